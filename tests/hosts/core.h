/* SPDX-License-Identifier: MIT */
/* The workers of one host, and the real core that looks after them: a world of tests/sim, with its faults, in
 * which the host's leases are restarts of its first fleet. Times are the group's. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include "model/rollout_state.h"

struct core;

/* name: to tell its story by; NULL: it is not told. */
struct core *core_new(uint64_t seed, usec_t now, const char *name);
/* Returns NULL. */
struct core *core_free(struct core *core);
/* As far as to that moment. reaches: its Redis can be reached. */
void core_run(struct core *core, usec_t now, bool reaches);
/* What was violated; NULL: nothing. */
const char *core_broken(const struct core *core);

/* The machine has the release of a new order, which may be a bad one, and its fleet is restarted. Returns
 * false if the fleet is quieted and stays so. */
bool core_restart(struct core *core, bool bad);
void core_abort(struct core *core);
/* Of its last restart, as it was when sqmgr last lived; ret_error: why that has halted. */
enum rollout_state core_rollout(const struct core *core, const char **ret_error);
/* How many workers that take jobs, or will, are older than its last restart; but for those that hang. */
unsigned core_outdated(const struct core *core);

/* Writes the state. Returns whether that could be done. */
bool core_save(struct core *core);
/* Was it written since this was last asked? */
bool core_was_saved(struct core *core);

/* sqmgr is killed, and begun again by core_begin(). Returns false where it cannot be now: what it has last
 * done is not written. lost: so is its state. */
bool core_kill(struct core *core, bool lost);
void core_begin(struct core *core);
/* All that runs there ends with it. */
void core_reboot(struct core *core);
/* sqmgr does nothing until then; machine: nor does anything else. */
void core_freeze(struct core *core, usec_t until, bool machine);
void core_redis_failed_over(struct core *core);
void core_redis_was_emptied(struct core *core);

/* Nothing goes wrong any more. */
void core_calm(struct core *core);
/* Has everything come to rest? must: it is a violation that it has not. */
bool core_is_settled(struct core *core, bool must);
