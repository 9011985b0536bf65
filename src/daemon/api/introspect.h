/* SPDX-License-Identifier: MIT */
/* Answers what the socket is, and which interfaces it has, as Varlink wants it of every service. */
#pragma once

#include "wire/varlink.h"

#define INTROSPECT_INTERFACE "org.varlink.service"

/* What answers the call of a method of that interface; version: sqmgr's. *ret_error is the error that it is,
 * or NULL. To be released; NULL: memory is short. */
json_t *introspect(const struct varlink_call *call, const char *version, const char **ret_error);
