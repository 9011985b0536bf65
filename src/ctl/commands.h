/* SPDX-License-Identifier: MIT */
/* The table of commands: --help, completion and what a command line may hold follow from it. */
#pragma once

#include "ctl/ctl.h"
#include "ctl/usage.h"

extern const struct command commands[];
extern const size_t n_commands;

/* The command of that name, or NULL. */
const struct command *commands_find(const char *name);

/* They return an exit code. A command without a function of its own is a row in calls.c: ctl_call(). */
int ctl_abort(struct ctl *ctl);
int ctl_call(struct ctl *ctl);
int ctl_events(struct ctl *ctl);
int ctl_logs(struct ctl *ctl);
int ctl_ping(struct ctl *ctl);
int ctl_restart(struct ctl *ctl);
int ctl_rollout(struct ctl *ctl);
int ctl_scale(struct ctl *ctl);
int ctl_status(struct ctl *ctl);
int ctl_top(struct ctl *ctl);
int ctl_why(struct ctl *ctl);
