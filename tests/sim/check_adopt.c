/* SPDX-License-Identifier: MIT */
/* Checks the promises across restarts of sqmgr: what a new sqmgr must know, and which processes it adopts. */
#include "continuity/adoption.h"
#include "model/world.h"
#include "sim.h"

void check_held(struct sim *sim, bool whole)
{
        for (unsigned i = 0; whole && i < sim->n_fleets; i++)
                if (sim->shell.world->fleets[i]->held)
                        violate(sim, "P8", "the starts of fleet '%s' are held, though all was searched",
                                sim->fleets[i].name);
}

void check_unproven(struct sim *sim, const struct action *action, struct process *process, bool signals)
{
        const struct worker *worker = action->worker;

        if (signals && process->left_behind)
                violate(sim, "P1", "what a job left behind is signalled as %s", WORKER_ID(worker));
        if (signals || !worker->process.unproven)
                return;
        process->let_go = true;
        if (evidence_booted(sim, process) && action->reason == REASON_BOOT &&
            process->booted_at <= worker->process.boot_polled_at)
                violate(sim, "P4", "%s has booted, and is let go of", process_name(sim, process));
}

/* Hashes whole words, because each pass computes the digest. */
static uint64_t digest(uint64_t hash, const uint64_t *words, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                hash = (hash ^ words[i]) * 0xbf58476d1ce4e5b9U;
                hash ^= hash >> 29;
        }
        return hash;
}

static uint64_t digest_templates(uint64_t hash, const struct fleet *fleet)
{
        for (size_t i = 0; i < TEMPLATES_MAX; i++) {
                const struct template *template = &fleet->templates[i];
                const uint64_t known[] = {
                        template->state,      (uint64_t) template->pid,         template->pid_start,
                        template->generation, (uint64_t) template->serving_pid, template->serving_start,
                };

                if (template_is_alive(template))
                        hash = digest(hash, known, ELEMENTSOF(known));
        }
        return hash ^ fleet->preload.refused_generation;
}

uint64_t check_digest(const struct sim *sim)
{
        uint64_t hash = 1;

        for (unsigned i = 0; i < sim->n_fleets; i++) {
                const struct fleet *fleet = sim->shell.world->fleets[i];
                const uint64_t orders[] = {fleet->generation, fleet->order,         fleet->force,
                                           fleet->scale,      fleet->rollout.state, fleet->automatic_count};

                hash = digest(hash, orders, ELEMENTSOF(orders));
                hash = digest_templates(hash, fleet);
                FLEET_FOREACH_WORKER(fleet, worker) {
                        if (worker->state == WORKER_GONE)
                                continue;
                        const uint64_t known[] = {
                                worker->index,
                                worker->generation,
                                (uint64_t)worker->process.pid,
                                worker->process.start,
                                (uint64_t)worker->process.heartbeat_pid,
                                worker->process.heartbeat_start,
                                worker->state,
                                worker->evidence.threads_witness,
                                worker->process.unproven,
                        };

                        hash = digest(hash, known, ELEMENTSOF(known));
                }
        }
        return hash;
}

void check_adopted(struct sim *sim, const struct process *process, const struct worker *known,
                   const struct worker *worker)
{
        bool lives = process->main_alive ||
                     (process->runner_alive && known->process.heartbeat_pid == process->runner_pid);

        if (lives && worker->state == WORKER_GONE)
                violate(sim, "P4", "%s lives, and is taken for gone", process_name(sim, process));
        if (worker->index != known->index || worker->generation != known->generation)
                violate(sim, "P4", "%s is adopted as another", process_name(sim, process));
}

void check_found(struct sim *sim, const struct process *process, const struct claimant *claimant,
                 const struct worker *worker)
{
        if (process->worker)
                violate(sim, "P4", "%s is adopted twice", process_name(sim, process));
        if (process->main_alive && claimant->pid != process->pid)
                violate(sim, "P4", "%s is adopted by what runs below it", process_name(sim, process));
        if (claimant->index != 0 && (check_number(sim, worker->fleet) != process->mark_fleet ||
                                     (worker->index != process->mark_index && !claimant->extra) ||
                                     worker->generation != process->mark_generation))
                violate(sim, "P4", "%s is adopted as another", process_name(sim, process));
}

void check_continued(struct sim *sim, bool orders)
{
        for (unsigned i = 0; i < sim->n_fleets; i++) {
                struct fleet_sim *model = &sim->fleets[i];
                const struct written *written = orders ? &model->ordered : &model->written;
                const struct fleet *fleet = sim->shell.world->fleets[i];
                bool reloaded = !fleet->settings->removed && fleet->settings->launch_hash != written->hash;
                bool lapsed = fleet->settings->active_process_count != written->for_count;

                if (!written->any)
                        continue;
                enum rollout_state rollout = written->rollout;
                if (fleet->settings->removed && rollout == ROLLOUT_RUNNING)
                        rollout = ROLLOUT_ABORTED;
                if (reloaded)
                        model->reloaded_generation = fleet->generation;
                if (reloaded && written->returned)
                        rollout = ROLLOUT_HALTED;
                if ((fleet->generation != written->generation) != reloaded ||
                    fleet->generation > written->newest + 1 || fleet->order != written->order ||
                    fleet->rollout.state != rollout || fleet->scale != (lapsed ? 0 : written->count) ||
                    fleet->automatic_count != (fleet_scales(fleet) ? written->scaled : 0))
                        violate(sim, "P4", "fleet '%s' does not go on as it was written",
                                fleet->settings->name);
        }
}

void check_command(struct sim *sim, struct fleet *fleet, bool holds, const char *what)
{
        if (!holds)
                violate(sim, "P8", "fleet '%s': %s had no effect", fleet->settings->name, what);
}
