/* SPDX-License-Identifier: MIT */
/* The optional features of this daemon. */
#pragma once

#include "daemon/runtime/subsystem.h"

/* Terminated by NULL. Features are called in this order. */
extern const struct subsystem *const subsystem_table[];
