/* SPDX-License-Identifier: MIT */
/* How sqmgr begins and ends: the state file, adoption, and death at any step. */
#include "sim.h"
#include <stdio.h>
#include <string.h>

enum fate { FATE_KEPT, FATE_LOST, FATE_CUT, FATE_GARBLED };

bool shell_save(struct sim *sim, const struct plan *starting)
{
        struct shell *shell = &sim->shell;
        uint8_t *bytes;
        size_t size;

        const struct state_source source = {
                .world = shell->world,
                .starting = starting,
                .boot_id = "boot",
                .identity = identify_text,
                .userdata = sim,
                .now = sim->now,
        };
        if (state_pack(&source, &bytes, &size) < 0)
                abort();
        free(shell->state);
        shell->state = bytes;
        shell->state_size = size;
        for (unsigned i = 0; i < sim->n_fleets; i++) {
                const struct fleet *fleet = shell->world->fleets[i];

                sim->fleets[i].written_generation = fleet->generation;
                sim->fleets[i].written_order = fleet->order;
                sim->fleets[i].written_rollout = fleet->rollout.state;
                sim->fleets[i].written_count = fleet->scale;
                sim->fleets[i].written_hash = fleet->settings->launch_hash;
                sim->fleets[i].written_for = fleet->settings->active_process_count;
        }
        return true;
}

void shell_die(struct sim *sim)
{
        struct shell *shell = &sim->shell;

        for (size_t i = 0; i < sim->n_processes; i++) {
                sim->processes[i]->worker = NULL;
                sim->processes[i]->identity = 0;
                sim->processes[i]->looks = 0;
                sim->processes[i]->answered = false;
        }
        for (unsigned i = 0; i < sim->n_fleets; i++) {
                match_clear(&sim->fleets[i].link.match);
                sim->fleets[i].link = (struct link){.next_at = USEC_INFINITY};
                sim->fleets[i].unresolved = 0;
        }
        shell->world = world_free(shell->world);
        shell->running = shell->dying = false;
        shell->kill_in = -1;
        shell->start_at = sim->now + shell->down_usec;
}

bool shell_dies_here(struct sim *sim)
{
        struct shell *shell = &sim->shell;

        if (shell->dying)
                return true;
        if (shell->kill_in < 0 || shell->kill_in-- > 0)
                return false;
        tell(sim, "sqmgr is killed here, in the middle of its work");
        shell->deaths++;
        shell->dying = true;
        return true;
}

/* What the death of the machine's memory, a full disk or an editor did to the file. */
static void spoil_state(struct sim *sim)
{
        struct shell *shell = &sim->shell;

        switch (shell->kill_fate) {
        case FATE_LOST:
                shell->state_size = 0;
                break;
        case FATE_CUT:
                shell->state_size /= 2;
                break;
        case FATE_GARBLED:
                if (shell->state_size > 0)
                        shell->state[rng_range(&sim->rng, 0, shell->state_size - 1)] ^= 0x10;
                break;
        default:
                break;
        }
        shell->kill_fate = FATE_KEPT;
}

static struct process *find_known(const struct sim *sim, const struct worker *known)
{
        for (size_t i = 0; i < sim->n_processes; i++) {
                struct process *process = sim->processes[i];

                if ((process->pid == known->pid && process->start == known->pid_start) ||
                    (process->runner_pid == known->pid && process->runner_start == known->pid_start))
                        return process;
        }
        return NULL;
}

/* The start time of the process that has this pid now: the pid of a dead one is in use again, more often than
 * not, by somebody else's. */
static uint64_t start_of(struct sim *sim, pid_t pid)
{
        for (size_t i = 0; i < sim->n_processes; i++) {
                const struct process *process = sim->processes[i];

                if (process->main_alive && process->pid == pid)
                        return process->start;
                if (process->runner_alive && process->runner_pid == pid)
                        return process->runner_start;
        }
        return rng_chance(&sim->rng, 700) ? 1 : 0; /* no process of this world starts at 1 */
}

static void adopt(struct sim *sim, struct fleet *fleet, const struct worker *known, const char *identity)
{
        struct process *process = find_known(sim, known);

        if (process == NULL) {
                observe_adopted(fleet, known, 0, 0, sim->now);
                return;
        }
        struct worker *worker =
                observe_adopted(fleet, known, start_of(sim, known->pid),
                                known->beat_pid != 0 ? start_of(sim, known->beat_pid) : 0, sim->now);
        tell(sim, "adopts %s as %s", process_name(sim, process), worker_state_name(worker->state));
        check_adopted(sim, process, known, worker);
        if (worker->state == WORKER_GONE)
                return;
        worker->process = process;
        process->worker = worker;
        process->hung = worker->hung; /* as it was known when that was written last */
        match_owner_added(&sim->fleets[process->fleet].link.match);
        if (worker->beat_pid != 0)
                identify_known(process, identity);
}

/* A process that carries our mark, and that no state tells of. */
static void adopt_unknown(struct sim *sim, struct process *process, bool beats)
{
        struct fleet *fleet = sim->shell.world->fleets[process->fleet];
        struct worker known = {
                .index = process->index,
                .generation = fleet->generation,
                .beat_pid = beats ? process->runner_pid : 0,
                .beat_pid_start = beats ? process->runner_start : 0,
                .pid = process->main_alive ? process->pid : process->runner_pid,
                .pid_start = process->main_alive ? process->start : process->runner_start,
                .state = WORKER_STARTING,
                .spawned_at = process->spawned_at,
                .state_at = sim->now,
        };

        char identity[64] = "";

        if (beats)
                snprintf(identity, sizeof(identity), ":%x", process->serial);
        for (size_t i = 0; i < fleet->n_workers; i++)
                if (fleet->workers[i]->index == known.index)
                        known.index = fleet_free_index(fleet);
        adopt(sim, fleet, &known, identity);
}

void shell_resolve(struct sim *sim, struct process *process)
{
        struct fleet_sim *fleet = &sim->fleets[process->fleet];

        if (!process->runner_alive || fleet->unresolved == 0)
                return;
        tell(sim, "%s beats: it is ours", process_name(sim, process));
        adopt_unknown(sim, process, true);
        if (--fleet->unresolved == 0)
                sim->shell.world->fleets[process->fleet]->hold_until = 0;
}

/* Those of which the state does not tell. One that still boots carries its place and generation in its
 * environment; of one that has booted the title may have overwritten that: it must beat first. */
static void find_others(struct sim *sim, bool lost)
{
        for (size_t i = 0; i < sim->n_processes; i++) {
                struct process *process = sim->processes[i];
                struct fleet_sim *fleet = &sim->fleets[process->fleet];
                struct fleet *ours = sim->shell.world->fleets[process->fleet];

                if (process->worker != NULL || !process_lives(process))
                        continue;
                if (!process->booted || !lost) {
                        adopt_unknown(sim, process, false);
                        continue;
                }
                fleet->unresolved++;
                fleet->unresolved_until = sim->now + ours->settings->boot_timeout;
                ours->hold_until = fleet->unresolved_until;
        }
}

static void continue_state(struct sim *sim, const struct state *state)
{
        for (size_t i = 0; i < state->n_fleets; i++) {
                const struct state_fleet *saved = &state->fleets[i];
                struct fleet *fleet = world_fleet(sim->shell.world, saved->name);

                if (fleet == NULL)
                        continue;
                state_continue_fleet(fleet, saved, sim->now);
                for (size_t j = 0; j < saved->n_workers; j++)
                        if (saved->workers[j].worker.pid != 0)
                                adopt(sim, fleet, &saved->workers[j].worker, saved->workers[j].identity);
        }
}

void shell_start(struct sim *sim)
{
        struct shell *shell = &sim->shell;
        struct state *state = NULL;

        if (world_new(&shell->settings, sim->seed + shell->deaths, &shell->world) < 0)
                abort();
        shell->running = true;
        pass_end(&shell->pass);
        shell->pass = (struct pass){.world = shell->world};
        shell->wake_at = shell->trusted_at = sim->now;
        shell->turn_at = shell->stalled_until = 0;
        check_distrust(sim, UINT32_MAX);
        for (size_t i = 0; i < sim->n_processes; i++)
                sim->processes[i]->exit_tell_at = USEC_INFINITY;
        for (unsigned i = 0; i < sim->n_fleets; i++)
                sim->fleets[i].link.next_at = sim->now + rng_range(&sim->rng, 0, 10 * USEC_PER_MSEC);
        spoil_state(sim);
        int outcome = state_unpack(shell->state, shell->state_size, "boot", sim->now, &state);
        tell(sim, "sqmgr starts, its state %s", outcome == STATE_READ ? "is read" : "is lost");
        if (outcome == STATE_READ) {
                continue_state(sim, state);
                check_continued(sim);
        }
        find_others(sim, outcome != STATE_READ);
        state_free(state);
        /* What happened after the last write is known to nobody. */
        for (unsigned i = 0; i < sim->n_fleets; i++) {
                const struct rollout *rollout = &shell->world->fleets[i]->rollout;

                sim->fleets[i].failures = MIN(sim->fleets[i].failures, rollout->failures);
                sim->fleets[i].failed_at = MIN(sim->fleets[i].failed_at, rollout->failed_at);
        }
        shell->pass.unsaved = !shell_save(sim, NULL);
}
