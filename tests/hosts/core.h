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
/* Returns the invariant that was violated; NULL: none. */
const char *core_broken(const struct core *core);

/* Deploys a new release on the machine, a bad one if bad is true, and restarts the fleet. Returns false if
 * the fleet is quieted and stays so. */
bool core_restart(struct core *core, bool bad);
void core_abort(struct core *core);
/* Returns the state of the fleet's last restart, as of the time when sqmgr last ran. ret_error: why the
 * restart has halted. */
enum rollout_state core_rollout(const struct core *core, const char **ret_error);
/* Returns how many active or starting workers are older than the fleet's last restart, without hung ones. */
unsigned core_outdated(const struct core *core);

/* Writes the state. Returns true if the state was written. */
bool core_save(struct core *core);
/* Returns true if the state was written since the last call. */
bool core_was_saved(struct core *core);

/* Kills sqmgr; core_begin() starts it again. Returns false if it cannot be killed now, because its last
 * action is not written yet. lost: the state is lost, too. */
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
