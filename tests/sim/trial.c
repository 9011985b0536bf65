/* SPDX-License-Identifier: MIT */
/* Trials of releases, and returns to the release before. */
#include "decide/command.h"
#include "decide/plan.h"
#include "model/counts.h"
#include "model/rollout.h"
#include "model/world.h"
#include "sim.h"

#define SEC USEC_PER_SEC

void trial_open(struct sim *sim)
{
        for (unsigned i = 0; i < sim->n_fleets; i++) {
                struct fleet_sim *model = &sim->fleets[i];

                model->trial =
                        (struct trial_sim){.rng = rng_fork(sim->seed, 380 + i), .kill_at = USEC_INFINITY};
                model->trial.tries = rng_chance(&model->trial.rng, 400);
                for (unsigned k = 0; k < ELEMENTSOF(model->settings); k++) {
                        struct fleet_settings *settings = &model->settings[k];

                        /* No place for a replacement beside the worker that it replaces: only restarts and
                         * returns replace workers. */
                        if (!model->trial.tries || settings->restart_surge.value > 0 ||
                            settings->memory_threshold > 0 || settings->max_age > 0)
                                continue;
                        settings->max_processes =
                                MAX(settings->active_process_count, settings->active_process_max);
                }
        }
}

static void choose(struct sim *sim, struct trial_sim *trial, const struct fleet *fleet)
{
        *trial = (struct trial_sim){
                .rng = trial->rng, .tries = true, .generation = fleet->generation, .kill_at = USEC_INFINITY};
        trial->limit = rng_chance(&trial->rng, 600) ? 1 + (unsigned)rng_range(&trial->rng, 0, 2) : 0;
        trial->until = sim->now + rng_range(&trial->rng, 1, 20 * 60) * SEC;
        trial->worse = rng_chance(&trial->rng, 400);
        trial->return_at = rng_chance(&trial->rng, 600) ? sim->now + rng_range(&trial->rng, 1, 10 * 60) * SEC
                                                        : USEC_INFINITY;
}

static void kill_template(struct sim *sim, unsigned number)
{
        const struct template_process *template = check_template(sim, number, true);

        sim->fleets[number].trial.kill_at = USEC_INFINITY;
        if (template)
                process_kill(sim, template->process, false);
}

void trial_look(struct sim *sim, unsigned number)
{
        struct trial_sim *trial = &sim->fleets[number].trial;
        struct fleet *fleet = sim->shell.world->fleets[number];
        bool runs = fleet->rollout.state == ROLLOUT_RUNNING;

        if (!trial->tries || sim->shell.world->shutting_down)
                return;
        if (sim->calm)
                trial->return_at = trial->kill_at = USEC_INFINITY;
        if (fleet->rollout.returned && sim->now >= trial->kill_at)
                kill_template(sim, number);
        if (runs && trial->generation != fleet->generation)
                choose(sim, trial, fleet);
        if (trial->generation != fleet->generation)
                return;
        if (sim->now >= trial->return_at) {
                trial->return_at = USEC_INFINITY;
                if (rng_chance(&trial->rng, 500))
                        trial->kill_at = sim->now + rng_range(&trial->rng, 1, 60) * SEC;
                uint64_t before = fleet->rollout.before, generation = fleet->generation;
                if (command_rollback(fleet, NULL, sim->now) == COMMAND_DONE ? fleet->generation != before
                                                                            : fleet->generation != generation)
                        violate(sim, "P4", "a rollback leads to generation %llu",
                                (unsigned long long)fleet->generation);
                sim->shell.pass.unsaved = true;
                return;
        }
        if (!runs)
                return;
        if (sim->now < trial->until) {
                fleet->rollout.limit = trial->limit;
                return;
        }
        fleet->rollout.limit = 0;
        if (!trial->worse || trial->limit == 0)
                return;
        rollout_reject(fleet, "jobs fail", NULL, sim->now);
        sim->shell.pass.unsaved = true;
        if (fleet->rollout.state != ROLLOUT_HALTED)
                violate(sim, "P7", "the restart to a rejected release continues");
}

static bool accepts(const struct worker *worker)
{
        return worker->state == WORKER_ACTIVE && !worker->heartbeat.hung;
}

/* The number of workers, besides this one, that are or become active. */
static unsigned count_others(const struct fleet *fleet, const struct worker *except, bool outdated)
{
        unsigned n = 0;

        FLEET_FOREACH_WORKER(fleet, worker)
                n += worker != except && worker->state <= WORKER_ACTIVE && !worker->heartbeat.hung &&
                     (worker->generation != fleet->generation) == outdated;
        return n;
}

void trial_check(struct sim *sim, const struct action *action, const struct process *process)
{
        const struct fleet *fleet = action->fleet;
        const struct rollout *rollout = &fleet->rollout;
        unsigned number = check_number(sim, fleet);
        bool limited = rollout->state == ROLLOUT_RUNNING && rollout->limit > 0;

        /* A worker that was quieted before is signaled again: the count may have grown since, or the return
         * has ended. */
        if (action->kind == ACTION_QUIET && action->reason == REASON_RESTART && limited &&
            action->worker->state <= WORKER_ACTIVE &&
            count_others(fleet, action->worker, true) < usec_sub(fleet_target(fleet), rollout->limit))
                violate(sim, "P7", "%s is replaced, though the restart is limited to %u",
                        process_name(sim, process), rollout->limit);
        if (action->kind == ACTION_QUIET && action->reason == REASON_ROLLBACK &&
            action->worker->state <= WORKER_ACTIVE && action->worker->generation <= fleet->generation)
                violate(sim, "P7", "%s leaves for a return to its own release", process_name(sim, process));
        if (action->kind == ACTION_LOAD && rollout->returned)
                violate(sim, "P7", "a template is loaded, though the fleet has returned");
        if (action->kind != ACTION_START || !rollout->returned || action->template)
                return;
        FLEET_FOREACH_WORKER(fleet, worker)
                if (accepts(worker) && worker->generation <= fleet->generation)
                        violate(sim, "P7",
                                "fleet %u has returned, and starts what its command runs beside the old "
                                "release",
                                number);
}

bool trial_withholds(const struct sim *sim, unsigned number)
{
        const struct fleet *fleet = sim->shell.world->fleets[number];

        FLEET_FOREACH_WORKER(fleet, worker)
                if (worker->state != WORKER_ACTIVE || worker->generation > fleet->generation)
                        return false;
        return fleet->rollout.returned && fleet->waits_for == WAIT_RETURNED &&
               !check_template(sim, number, true);
}
