/* SPDX-License-Identifier: MIT */
/* Implements org.varlink.service, which every Varlink service must offer. */
#pragma once

#include "wire/varlink.h"

#define INTROSPECT_INTERFACE "org.varlink.service"

/* Answers a call of that interface; version is that of sqmgr. Returns the parameters of the reply as a new
 * reference, or NULL when memory is short. *ret_error is the name of the error, or NULL. */
json_t *introspect(const struct varlink_call *call, const char *version, const char **ret_error);
