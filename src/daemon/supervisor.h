/* SPDX-License-Identifier: MIT */
/* The daemon: polls, plans, executes and reports until it is asked to end. */
#pragma once

struct handover;   /* daemon/lifecycle/reexec.h */
struct invocation; /* daemon/lifecycle/reexec.h */
struct settings;

/* Runs the daemon until it is asked to end. Takes over settings and handover, which holds what the image
 * before left. Returns 0 or -errno, which is logged. */
int supervisor_run(const struct invocation *invocation, struct settings *settings, struct handover *handover);
