/* SPDX-License-Identifier: MIT */
/* Autoscaled fleets: makes random queues, and judges the resulting counts. */
#include "autoscaling/autoscale_rules.h"
#include "model/counts.h"
#include "model/world.h"
#include "sim.h"

#define SEC USEC_PER_SEC

void scaling_open(struct sim *sim)
{
        for (unsigned i = 0; i < sim->n_fleets; i++) {
                struct fleet_sim *model = &sim->fleets[i];

                model->demand = rng_fork(sim->seed, 300 + i);
                model->heads = rng_fork(sim->seed, 320 + i);
                model->sleeps = rng_fork(sim->seed, 360 + i);
                if (!model->settings[0].traits->reports_queues || !rng_chance(&model->demand, 250))
                        continue;
                bool sleeps = model->settings[0].traits->shows_due_jobs && rng_chance(&model->sleeps, 400);
                for (unsigned k = 0; k < ELEMENTSOF(model->settings); k++) {
                        struct fleet_settings *settings = &model->settings[k];

                        settings->broker_named = true;
                        settings->active_process_max =
                                settings->active_process_count + (unsigned)rng_range(&model->demand, 0, 4);
                        settings->active_process_max = MAX(settings->active_process_max, 1U);
                        if (sleeps)
                                settings->active_process_count = 0;
                        settings->latency_target = (char *)"30s";
                        settings->scale_down_after = rng_range(&model->demand, 1, 10) * USEC_PER_MIN;
                        if (settings->max_processes > 0)
                                settings->max_processes =
                                        MAX(settings->max_processes, settings->active_process_max + 1);
                }
        }
}

void scaling_started(struct sim *sim)
{
        for (unsigned i = 0; i < sim->n_fleets; i++)
                sim->fleets[i].count = sim->shell.world->fleets[i]->automatic_count;
}

/* Returns the current count without the operator's order. */
static unsigned scaling_count(const struct sim *sim, unsigned number)
{
        const struct fleet_settings *settings = sim->shell.world->fleets[number]->settings;

        if (settings->active_process_max == 0)
                return settings->active_process_count;
        return MIN(MAX(sim->fleets[number].count, settings->active_process_count),
                   settings->active_process_max);
}

/* Bursts of some minutes, with pauses; the last pause lasts until the end. The oldest job of a burst may be
 * too large to be read. */
static struct queues *make_queues(struct sim *sim, struct fleet_sim *model)
{
        struct queues *queues = calloc(1, sizeof(*queues));
        struct queue *queue = queues ? queues_add(queues, "default", strlen("default")) : NULL;

        if (!queue)
                abort();
        if (sim->now >= model->demand_until) {
                bool calm = sim->now >= sim->calm_at || rng_chance(&model->demand, 600);

                model->waiting = calm ? 0 : (unsigned)rng_range(&model->demand, 1, 400);
                model->demand_until = sim->now + rng_range(&model->demand, 20, 600) * SEC;
                model->head_unknown = model->waiting > 0 && rng_chance(&model->heads, 300);
        }
        queue->size = model->waiting;
        queue->latency_known = !model->head_unknown;
        queue->latency = model->waiting > 0 ? rng_range(&model->demand, 0, 40) * SEC : 0;
        if (model->head_unknown)
                queue->latency = 0;
        return queues;
}

static unsigned leaves_for_scaling(const struct fleet *fleet)
{
        unsigned n = 0;

        FLEET_FOREACH_WORKER(fleet, worker)
                n += (worker->state == WORKER_QUIET || worker->state == WORKER_STOPPING) &&
                     worker->reason == REASON_SCALE;
        return n;
}

/* starves: a job has waited for so long that no idle thread elsewhere can take it. */
static void judge(struct sim *sim, unsigned number, unsigned before, unsigned leaving, bool starves)
{
        const struct fleet *fleet = sim->shell.world->fleets[number];
        unsigned after = scaling_count(sim, number);
        bool held = !sim->fleets[number].link.up || fleet->rollout.state == ROLLOUT_RUNNING ||
                    fleet->rollout.state == ROLLOUT_HALTED || fleet->scale != 0;

        if (after != before && held)
                violate(sim, after < before ? "P2" : "P5",
                        "fleet '%s' is scaled from %u to %u where it is to be kept", fleet->settings->name,
                        before, after);
        if (after < before && sim->fleets[number].head_unknown && sim->fleets[number].link.up)
                violate(sim, "P5", "fleet '%s' is scaled from %u to %u though a job may have waited for long",
                        fleet->settings->name, before, after);
        if (fleet_serves(fleet) && after == 0 && !held && starves && !autoscale_of(fleet)->bounded_by_memory)
                violate(sim, "P5", "fleet '%s' sleeps while jobs wait", fleet->settings->name);
        if (after < before && after == 0 && sim->fleets[number].waiting > 0)
                violate(sim, "P5", "fleet '%s' ends its last worker while jobs wait", fleet->settings->name);
        if (after < before && (before - after > 1 || leaving > 0))
                violate(sim, "P2", "fleet '%s' is scaled from %u to %u with %u that leave",
                        fleet->settings->name, before, after, leaving);
}

void scaling_look(struct sim *sim, unsigned number)
{
        struct fleet_sim *model = &sim->fleets[number];
        struct fleet *fleet = sim->shell.world->fleets[number];
        struct autoscale_reading reading = {.service = SEC};

        /* After everything has settled, no count may change any more, though running jobs may come to need
         * fewer threads. */
        if (!fleet_scales(fleet) || sim->settled_at != 0)
                return;
        bool shown = !autoscale_of(fleet)->served;
        FLEET_FOREACH_WORKER(fleet, worker)
                shown |= worker->state == WORKER_ACTIVE;
        if (shown) {
                char *names = calloc(1, sizeof("default") + 1);

                if (!names)
                        abort();
                memcpy(names, "default", sizeof("default"));
                autoscale_serves(fleet, names);
        }
        struct queues *queues = make_queues(sim, model);
        bool starves = queues->list[0].size > 0 && queues->list[0].latency >= 5 * SEC;
        reading.queues = model->link.up ? queues : queues_free(queues);
        unsigned before = scaling_count(sim, number), leaving = leaves_for_scaling(fleet);
        if (autoscale_observe(fleet, &reading, sim->now)) {
                report(sim, "fleet '%s': %u -> %u workers", fleet->settings->name, before,
                       fleet->automatic_count);
                sim->shell.pass.unsaved = true;
        }
        sim->shell.pass.unsaved |= fleet->automatic_count != model->count;
        model->count = fleet->automatic_count;
        judge(sim, number, before, leaving, starves);
}

unsigned scaling_target(const struct sim *sim, const struct fleet *fleet)
{
        if (sim->shell.world->shutting_down || fleet_order(fleet) != ORDER_RUN)
                return 0;
        if (fleet->scale == 0)
                return scaling_count(sim, check_number(sim, fleet));
        /* A reload may have lowered the maximum since the order. */
        const struct fleet_settings *settings = fleet->settings;
        unsigned most = 3 * MAX(MAX(settings->active_process_count, settings->active_process_max), 1U);
        return MIN(fleet->scale, settings->max_processes > 0 ? settings->max_processes : most);
}
