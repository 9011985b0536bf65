/* SPDX-License-Identifier: MIT */
/* Options of `celery worker` that sqmgr cannot work with. */
#pragma once

#include "settings/traits.h"

/* See struct traits.command_flaws. */
extern const struct command_flaw celery_command_flaws[];
