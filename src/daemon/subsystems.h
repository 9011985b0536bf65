/* SPDX-License-Identifier: MIT */
/* The optional features that this daemon has. */
#pragma once

#include "daemon/runtime/subsystem.h"

/* Ends with NULL. Their functions are called in this order. */
extern const struct subsystem *const subsystem_table[];
