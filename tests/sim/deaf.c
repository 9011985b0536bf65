/* SPDX-License-Identifier: MIT */
/* Queues in which jobs wait while some workers begin none: makes them, and judges which workers are found
 * deaf. */
#include "model/world.h"
#include "observe/observe_deaf.h"
#include "sim.h"

#define SEC USEC_PER_SEC

void deaf_open(struct sim *sim)
{
        for (unsigned i = 0; i < sim->n_fleets; i++) {
                struct fleet_sim *model = &sim->fleets[i];

                model->deaf.rng = rng_fork(sim->seed, 340 + i);
                model->deaf.judged =
                        model->settings[0].traits->reports_queues && rng_chance(&model->deaf.rng, 700);
        }
}

void deaf_forget(struct sim *sim)
{
        for (unsigned i = 0; i < sim->n_fleets; i++)
                sim->fleets[i].deaf.before = queues_free(sim->fleets[i].deaf.before);
}

void deaf_hear(struct sim *sim, const struct process *process, bool busy, usec_t written_at)
{
        struct seen_busy *seen = sim->fleets[process->fleet].deaf.seen, *place = &seen[1];

        /* The last two workers at work: one of them is another one than the worker judged. */
        if (!busy || written_at <= MAX(seen[0].serial == process->serial ? seen[0].at : 0,
                                       seen[1].serial == process->serial ? seen[1].at : 0))
                return;
        if (seen[0].serial == process->serial ||
            (seen[1].serial != process->serial && seen[0].at < seen[1].at))
                place = &seen[0];
        *place = (struct seen_busy){process->serial, written_at};
}

static const char *served_by(const struct worker *worker _unused_)
{
        return "default\0";
}

/* Reads the queue. For some minutes jobs wait and are taken; for others a fault makes the reading no
 * evidence. */
static struct queues *read_queue(struct sim *sim, struct fleet_sim *model)
{
        struct deaf_sim *deaf = &model->deaf;
        struct rng *rng = &deaf->rng;

        if (sim->now >= deaf->until) {
                deaf->view = rng_chance(rng, 650) ? QUEUE_TAKEN
                                                  : (enum queue_view)rng_range(rng, 0, _QUEUE_VIEW_MAX - 1);
                deaf->until = sim->now + rng_range(rng, 10, 1200) * SEC;
                deaf->size = rng_range(rng, 2, 400);
        }
        if (deaf->view == QUEUE_UNREAD || !model->link.up)
                return NULL;
        struct queues *queues = calloc(1, sizeof(*queues));
        struct queue *queue = queues ? queues_add(queues, "default", strlen("default")) : NULL;
        if (!queue)
                abort();
        if (deaf->view == QUEUE_TAKEN)
                deaf->size = rng_range(rng, 1, 400);
        queue->size = deaf->view == QUEUE_EMPTY || sim->now >= sim->calm_at ? 0 : deaf->size;
        queue->paused = deaf->view == QUEUE_PAUSED;
        return queues;
}

/* Judges by what the loop of the worker truly does. */
void deaf_check_loop(struct sim *sim, const struct process *process)
{
        const struct worker *worker = process->worker;

        if (worker->deaf.found_at != sim->now || !worker->deaf.loop_stands || process->lied_at != 0)
                return;
        if (!process->takes_none)
                violate(sim, "P5", "%s is deaf, though its loop turns", process_name(sim, process));
        if (worker->fleet->settings->hang_after == 0)
                violate(sim, "P5", "%s is deaf with hang_after 0", process_name(sim, process));
}

/* Judges by what was read: of heartbeats as they were written, and of the queue. */
static void judge_found(struct sim *sim, unsigned number, const struct process *process)
{
        const struct deaf_sim *deaf = &sim->fleets[number].deaf;
        const struct fleet *fleet = sim->shell.world->fleets[number];
        usec_t stale = check_stale_usec(sim, number);
        usec_t span = MAX(fleet->settings->hang_after, stale), others_at = 0;
        const char *who = process_name(sim, process);

        if (process->lied_at != 0)
                return;
        for (size_t i = 0; i < ELEMENTSOF(deaf->seen); i++) {
                if (deaf->seen[i].serial != process->serial)
                        others_at = MAX(others_at, deaf->seen[i].at);
                else if (deaf->seen[i].at != 0 && deaf->seen[i].at + span > sim->now)
                        violate(sim, "P5", "%s is deaf, though it was seen at work", who);
        }
        if (fleet->settings->hang_after == 0)
                violate(sim, "P5", "%s is deaf with hang_after 0", who);
        if (sim->now - deaf->broken_at < span)
                violate(sim, "P5", "%s is deaf, though no job may have waited %llu s ago", who,
                        (unsigned long long)((sim->now - deaf->broken_at) / SEC));
        if (others_at == 0 || sim->now - others_at > span / 2 + 2 * stale)
                violate(sim, "P5", "%s is deaf, though no other worker takes jobs", who);
        if (sim->now < sim->shell.trusted_at + span)
                violate(sim, "P9", "%s is deaf by what was read in doubt", who);
        if (!sim->fleets[number].link.up || sim->now < sim->fleets[number].link.up_at + span)
                violate(sim, "P5", "%s is deaf by what was read before an outage", who);
}

void deaf_look(struct sim *sim, unsigned number)
{
        struct fleet_sim *model = &sim->fleets[number];
        struct fleet *fleet = sim->shell.world->fleets[number];
        struct deaf_sim *deaf = &model->deaf;

        if (!deaf->judged || sim->settled_at != 0)
                return;
        struct queues *queues = read_queue(sim, model);
        if (!queues || queues->list[0].size == 0 || queues->list[0].paused)
                deaf->broken_at = sim->now;
        deaf_observe_queues(fleet, &(struct deaf_reading){deaf->before, deaf->before_at, queues, served_by},
                            sim->now);
        queues_free(deaf->before);
        deaf->before = queues;
        deaf->before_at = sim->now;
        FLEET_FOREACH_WORKER(fleet, worker)
                if (worker->deaf.found_at == sim->now)
                        judge_found(sim, number, worker->handle);
}

void deaf_check(struct sim *sim, const struct action *action, const struct process *process)
{
        if (action->fleet->settings->hang_action != HANG_KILL)
                violate(sim, "P5", "%s is replaced as deaf, which hang_action does not ask for",
                        process_name(sim, process));
        if (sim->shell.trusted_at >= action->worker->deaf.found_at)
                violate(sim, "P9", "%s is replaced as deaf by what was read in doubt",
                        process_name(sim, process));
        if (!sim->fleets[process->fleet].link.up ||
            sim->fleets[process->fleet].link.up_at >= action->worker->deaf.found_at)
                violate(sim, "P5", "%s is replaced as deaf by what was read before an outage",
                        process_name(sim, process));
}
