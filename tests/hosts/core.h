/* SPDX-License-Identifier: MIT */
/* The workers of one host and the real core that supervises them: a world of tests/sim, with its faults. A
 * lease of the host restarts its first fleet. All times are those of the group. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include "model/rollout_state.h"

struct core;

/* Creates a core. name: the host in the printed story; NULL: no story is printed. Free with core_free(). */
struct core *core_new(uint64_t seed, usec_t now, const char *name);
/* Returns NULL. */
struct core *core_free(struct core *core);
/* Runs until now. reaches: the host can reach Redis. */
void core_run(struct core *core, usec_t now, bool reaches);
/* Returns what was violated; NULL: nothing. */
const char *core_broken(const struct core *core);

/* Installs the release of a new order and restarts the fleet. bad: the release fails. Returns false if the
 * fleet is quieted and stays so. */
bool core_restart(struct core *core, bool bad);
void core_abort(struct core *core);
/* Returns the state of the last restart, as of the last moment that sqmgr ran. *ret_error: why the restart
 * halted. */
enum rollout_state core_rollout(const struct core *core, const char **ret_error);
/* How many workers that take jobs, or will, are older than its last restart; but for those that hang. */
unsigned core_outdated(const struct core *core);

/* Writes the state. Returns false on failure. */
bool core_save(struct core *core);
/* Returns true if the state was written since the last call. */
bool core_was_saved(struct core *core);

/* Kills sqmgr; core_begin() starts the next one. lost: the state is lost, too. Returns false if sqmgr must
 * not be killed now, because its last changes are not written. */
bool core_kill(struct core *core, bool lost);
void core_begin(struct core *core);
/* Reboots the machine: all its processes end. */
void core_reboot(struct core *core);
/* Freezes sqmgr until then; machine: the whole machine. */
void core_freeze(struct core *core, usec_t until, bool machine);
void core_redis_failed_over(struct core *core);
void core_redis_was_emptied(struct core *core);

/* Ends all faults. */
void core_calm(struct core *core);
/* Returns true if everything has settled. must: not to have settled is a violation. */
bool core_is_settled(struct core *core, bool must);
