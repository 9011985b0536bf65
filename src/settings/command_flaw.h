/* SPDX-License-Identifier: MIT */
/* Judges the command of a fleet by the flaws that its framework lists (struct command_flaw). Pure. */
#pragma once

#include <stdbool.h>

struct command_flaw;
struct fleet_settings;

/* The longest text of a flaw, with a NUL. */
#define COMMAND_FLAW_MAX 256

bool command_has_flaw(const struct fleet_settings *fleet, const struct command_flaw *flaw);
/* Describes the flaw in a sentence without a period. Returns text. */
const char *command_flaw_text(const struct command_flaw *flaw, char text[static COMMAND_FLAW_MAX]);
