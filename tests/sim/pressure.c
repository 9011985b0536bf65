/* SPDX-License-Identifier: MIT */
/* Memory pressure: when it occurs, what is read of it, and what sqmgr may do about it. */
#include "model/pressure.h"
#include "decide/pressure_response.h"
#include "model/world.h"
#include "sim.h"

#define SEC       USEC_PER_SEC
#define LIMIT     20 /* percent */
#define LASTS     (10 * SEC)
#define HUNDREDTH 100

/* A quarter of the simulated worlds has memory pressure. */
void pressure_open(struct sim *sim)
{
        struct rng rng = rng_fork(sim->seed, 300);
        usec_t span = sim->calm_at - sim->begun_at;

        if (!rng_chance(&rng, 250))
                return;
        sim->shell.settings.pressure_limit = LIMIT;
        sim->shell.settings.pressure_action = rng_chance(&rng, 700) ? PRESSURE_QUIET : PRESSURE_REPORT;
        for (size_t i = 0; i < ELEMENTSOF(sim->squeezes); i++) {
                usec_t at = sim->begun_at + rng_range(&rng, 0, span - 1);
                const usec_t spans[] = {5 * SEC, 30 * SEC, 120 * SEC, 600 * SEC};

                sim->squeezes[i].from = at;
                sim->squeezes[i].until =
                        MIN(at + rng_range(&rng, 1, spans[rng_range(&rng, 0, 3)]), sim->calm_at - 1);
        }
        sim->squeeze_rng = rng;
}

static bool is_squeezed(const struct sim *sim)
{
        for (size_t i = 0; i < ELEMENTSOF(sim->squeezes); i++)
                if (!sim->calm && sim->now >= sim->squeezes[i].from && sim->now < sim->squeezes[i].until)
                        return true;
        return false;
}

static unsigned hundredths(struct rng *rng, unsigned from, unsigned to)
{
        return (unsigned)rng_range(rng, from, to) * HUNDREDTH;
}

/* Derives the expected state from the readings alone, not from the core. */
static void judge(struct sim *sim, const struct pressure_reading *reading, bool is_over)
{
        struct squeezed *squeezed = &sim->squeezed;

        if (is_over == squeezed->high) {
                squeezed->turned_at = 0;
                return;
        }
        squeezed->turned_at = squeezed->turned_at != 0 ? squeezed->turned_at : sim->now;
        if (sim->now < squeezed->turned_at + LASTS || (is_over && reading->avg10 <= reading->avg60))
                return;
        *squeezed = (struct squeezed){.high = is_over, .since = sim->now};
        for (unsigned i = 0; i < sim->n_fleets; i++)
                sim->fleets[i].left = 0;
}

void pressure_look(struct sim *sim)
{
        uint64_t total = 16 * 1024 * MEGABYTE;
        struct rng *rng = &sim->squeeze_rng;
        struct pressure_reading reading = {.available_bytes = total / 2, .total_bytes = total};
        bool squeezed = is_squeezed(sim);

        if (sim->shell.settings.pressure_limit == 0)
                return;
        if (squeezed || (!sim->calm && rng_chance(rng, 50))) {
                reading.avg10 = hundredths(rng, LIMIT + 1, 90);
                reading.avg60 = hundredths(rng, 0, rng_chance(rng, 800) ? LIMIT : 95);
        }
        if (squeezed || (!sim->calm && rng_chance(rng, 100)))
                reading.available_bytes = rng_range(rng, 0, total / 10 - 1);
        judge(sim, &reading,
              reading.avg10 > LIMIT * HUNDREDTH && reading.available_bytes < reading.total_bytes / 10);
        observe_pressure(sim->shell.world, &reading, sim->now);
}

/* Call when sqmgr has started: it has read nothing yet. */
void pressure_forgotten(struct sim *sim)
{
        sim->squeezed = (struct squeezed){0};
        for (unsigned i = 0; i < sim->n_fleets; i++)
                sim->fleets[i].left = 0;
        for (size_t i = 0; i < sim->n_processes; i++)
                sim->processes[i]->pressed = false;
}

/* A new sqmgr has read its state, or could not. If the state reports pressure, only a reading can end it. */
void pressure_continued(struct sim *sim)
{
        for (unsigned i = 0; i < sim->n_fleets; i++)
                sim->fleets[i].left = sim->shell.world->fleets[i]->places_left;
        sim->squeezed.high = sim->shell.world->pressure.high;
        sim->squeezed.since = sim->now;
}

/* Call when a worker is known to be gone, and no order caused that meanwhile. */
void pressure_left(struct sim *sim, const struct process *process)
{
        /* An earlier sqmgr may have asked this worker to leave. */
        if ((process->pressed || process->worker->orders.pressed) && sim->squeezed.high &&
            process->worker->reason == REASON_MEMORY)
                sim->fleets[process->fleet].left++;
}

bool pressure_holds(const struct sim *sim, unsigned fleet, unsigned living, unsigned target)
{
        return sim->squeezed.high && living + sim->fleets[fleet].left >= target;
}

void pressure_quieted(struct sim *sim, const struct action *action, struct process *process)
{
        const struct fleet *fleet = action->fleet;
        struct squeezed *squeezed = &sim->squeezed;
        unsigned others = 0;

        for (size_t i = 0; i < fleet->n_workers; i++)
                others += fleet->workers[i] != action->worker && fleet->workers[i]->state == WORKER_ACTIVE;
        if (!squeezed->high || sim->shell.settings.pressure_action != PRESSURE_QUIET)
                violate(sim, "P2", "%s is quieted for want of memory, and there is none",
                        process_name(sim, process));
        else if (others == 0)
                violate(sim, "P2", "%s is quieted for want of memory, and is the last to take jobs",
                        process_name(sim, process));
        else if (!process->pressed && ++squeezed->quieted > 1 + (sim->now - squeezed->since) / (60 * SEC))
                violate(sim, "P2", "%u workers are quieted for want of memory within %llu s",
                        squeezed->quieted, (unsigned long long)((sim->now - squeezed->since) / SEC));
        process->pressed = true;
}
