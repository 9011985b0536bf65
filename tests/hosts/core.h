/* SPDX-License-Identifier: MIT */
/* The workers of one host, and the real core that supervises them: a world of tests/sim, with its faults. The
 * host's leases restart its first fleet. Times are those of the group. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include "model/rollout_state.h"

struct core;

/* name: the host's name in the story; NULL: no story is kept. */
struct core *core_new(uint64_t seed, usec_t now, const char *name);
/* Returns NULL. */
struct core *core_free(struct core *core);
/* Runs the host until now. reaches: its Redis can be reached. */
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
/* Returns how many active or starting workers are older than the fleet's last restart, without those that
 * hang or that were not seen to boot. */
unsigned core_outdated(const struct core *core);

/* Writes the state. Returns true if the state was written. */
bool core_save(struct core *core);
/* Returns true if the state was written since the last call. */
bool core_was_saved(struct core *core);

/* Kills sqmgr; core_begin() starts it again. Returns false if it cannot be killed now, because its last
 * action is not written yet. lost: the state is lost, too. */
bool core_kill(struct core *core, bool lost);
void core_begin(struct core *core);
/* Reboots the machine: all its processes end. */
void core_reboot(struct core *core);
/* Freezes sqmgr until this time; machine: freezes the whole machine. */
void core_freeze(struct core *core, usec_t until, bool machine);
void core_redis_failed_over(struct core *core);
void core_redis_was_emptied(struct core *core);

/* Ends all faults. */
void core_calm(struct core *core);
/* Returns true if everything has settled. must: reports a violation if not. */
bool core_is_settled(struct core *core, bool must);
