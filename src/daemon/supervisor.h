/* SPDX-License-Identifier: MIT */
/* The daemon: it looks, plans, executes and tells, until it is told to end. */
#pragma once

struct handover;   /* daemon/api/handover.h */
struct invocation; /* daemon/life/reexec.h */
struct settings;
struct supervisor;

/* handover: what the image before left, which is taken over; settings too. Returns 0 with *ret to be freed by
 * supervisor_free(), or -errno; -EBUSY was told. */
int supervisor_new(const struct invocation *invocation, struct settings *settings,
                   const struct handover *handover, struct supervisor **ret);
/* Takes NULL, and returns it. */
struct supervisor *supervisor_free(struct supervisor *supervisor);
/* Runs until told to end. Returns 0, or -errno where the loop itself failed. */
int supervisor_run(struct supervisor *supervisor);
