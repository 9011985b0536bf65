/* SPDX-License-Identifier: MIT */
/* Another host of the same name, as with two containers: its processes have the pids of this host's workers
 * and send heartbeats to the same Redis. Cases that cannot be distinguished by any evidence are left out. */
#include "model/world.h"
#include "sim.h"

#define SEC USEC_PER_SEC
/* Serials from here on belong to clones. */
#define CLONE_SERIAL 0x80000000U
/* A booting worker is polled more often than this. */
#define POLL_USEC (500 * USEC_PER_MSEC)
/* A heartbeat of the worker counts as recent for this long: less than the time after which its identity is
 * searched for anew. */
static usec_t heard_usec(const struct sim *sim, const struct process *process)
{
        return MIN(20 * SEC, process_traits(sim, process)->stale_usec * 2 / 3);
}

static void clone_add(struct sim *sim, struct rng *rng, unsigned fleet, pid_t pid, usec_t at)
{
        static const usec_t lives[] = {30 * SEC, 5 * USEC_PER_MIN, USEC_PER_HOUR};

        if (sim->n_clones == CLONES_MAX || fleet_is_local(sim, fleet))
                return;
        sim->clones[sim->n_clones] = (struct clone){
                .serial = CLONE_SERIAL + sim->n_clones,
                .fleet = fleet,
                .pid = pid,
                .host = sim->host,
                .next_at = at,
                .end_at = usec_add(at, lives[rng_range(rng, 0, ELEMENTSOF(lives) - 1)]),
        };
        struct rng runs = rng_fork(sim->seed, 3000000 + sim->n_clones);
        if (rng_chance(&runs, 500))
                sim->clones[sim->n_clones].ran_usec = rng_range(&runs, 2 * SEC, 2 * USEC_PER_HOUR);
        sim->clones[sim->n_clones].rng = *rng;
        sim->n_clones++;
}

void clones_open(struct sim *sim)
{
        struct rng rng = rng_fork(sim->seed, 300);

        sim->clone_rng = rng_fork(sim->seed, 301);
        sim->cloned = rng_chance(&rng, 250);
        for (pid_t pid = sim->next_pid; sim->cloned && pid < sim->next_pid + 4; pid++)
                if (rng_chance(&rng, 500))
                        clone_add(sim, &rng, (unsigned)rng_range(&rng, 0, sim->n_fleets - 1), pid, sim->now);
}

void clone_of(struct sim *sim, const struct process *process)
{
        static const usec_t spans[] = {SEC, 10 * SEC, 60 * SEC, 300 * SEC};
        struct rng rng = rng_fork(sim->seed, 2000000 + process->serial);
        usec_t at = sim->now + rng_range(&rng, 0, spans[rng_range(&rng, 0, ELEMENTSOF(spans) - 1)]);

        if (!sim->cloned || sim->calm || !rng_chance(&rng, 600))
                return;
        /* Both hosts are deployed at the same time. */
        if (process->boot_at != USEC_INFINITY && rng_chance(&rng, 400))
                at = MAX(sim->now, usec_sub(process->boot_at, SEC)) + rng_range(&rng, 0, 2 * SEC);
        clone_add(sim, &rng, process->fleet, process->runner_pid, at);
}

/* Returns true if nothing delays polls until then. The next poll waits for the answer to the last one. */
static bool is_undisturbed(const struct sim *sim, unsigned fleet, usec_t until)
{
        const struct link *link = &sim->fleets[fleet].link;
        bool awaited = link->asked && link->answer_at > usec_add(sim->now, POLL_USEC);

        return !awaited && redis_answers(sim) && reader_is_prompt(sim, fleet) && link->up &&
               sim->shell.kill_in < 0 && sim->now >= MAX(sim->slow_until, sim->proc_fails_until) &&
               sim->shell.running && sim->now >= sim->shell.stalled_until &&
               (sim->next_act == sim->n_acts || sim->acts[sim->next_act].at > until);
}

/* Returns true if sqmgr would attribute the clone's heartbeats to our process of the same pid. This is so if
 * ours has booted, and its own heartbeat is missing, or is under a host name that sqmgr cannot know. The same
 * holds if ours may boot before a poll shows that the clone's heartbeat came first. */
static bool is_alone(const struct sim *sim, const struct clone *clone)
{
        usec_t heard = sim->now < sim->paused_until ? sim->paused_at : sim->now;

        SIM_FOREACH_PROCESS(sim, process) {
                const struct heartbeat_record *last = &process->records[0];
                usec_t boot_at = process->boot_at;

                if (!process->runner_alive || process->runner_pid != clone->pid)
                        continue;
                /* A fork boots at once, and whether a template works is not checked in time. */
                if (!process->booted && (process->forked || process->is_template))
                        return true;
                if (!process->booted && evidence_denies_boot(sim, process) &&
                    (boot_at == USEC_INFINITY ||
                     (boot_at > usec_add(sim->now, POLL_USEC) &&
                      (clone->listed ||
                       is_undisturbed(sim, clone->fleet, usec_add(boot_at, heard_usec(sim, process)))))))
                        continue;
                if (process->booted && !(sim->shell.hosts >> process->host & 1))
                        return true;
                if (!process->listed || last->written_at == 0 ||
                    heard > last->written_at + heard_usec(sim, process))
                        return true;
        }
        return false;
}

/* Returns true if no later step of the clock can hide that the clone began before the process. */
static bool is_older(const struct sim *sim, const struct clone *clone, const struct process *process)
{
        if (!sim->shell.running)
                return false;
        const struct doubt *doubt = &sim->shell.world->doubt;

        for (size_t i = sim->next_act; i < sim->n_acts; i++)
                if (sim->acts[i].kind == ACT_CLOCK_STEP)
                        return false;
        return clone->born_usec != 0 && sim->stepped_usec == doubt->steady_lag &&
               process->runner_boottime >= doubt->steady_since &&
               (int64_t)clone->born_usec + 2 * (int64_t)SEC <
                       (int64_t)process->runner_boottime + doubt->steady_lag;
}

/* As is_older(), of each process of ours with the clone's pid. */
static bool is_distinguished(const struct sim *sim, const struct clone *clone)
{
        SIM_FOREACH_PROCESS(sim, process)
                if (process->runner_alive && process->runner_pid == clone->pid &&
                    !is_older(sim, clone, process))
                        return false;
        return true;
}

bool clones_resemble(const struct sim *sim, const struct process *process)
{
        for (unsigned i = 0; i < sim->n_clones; i++) {
                const struct clone *clone = &sim->clones[i];

                if (clone->listed && clone->fleet == process->fleet && clone->pid == process->runner_pid &&
                    !is_older(sim, clone, process))
                        return true;
        }
        return false;
}

void clones_lose_births(struct sim *sim)
{
        for (unsigned i = 0; i < sim->n_clones; i++)
                sim->clones[i].born_usec = sim->clones[i].record.heartbeat.born_usec = 0;
}

static void clone_step(struct sim *sim, struct clone *clone)
{
        struct rng *rng = &clone->rng;

        if (sim->now >= clone->end_at) {
                clone->listed = clone->listed && rng_chance(rng, 500);
                clone->next_at = USEC_INFINITY;
                return;
        }
        if (!clone->listed && sim->fleets[clone->fleet].behavior->reports_birth)
                /* The wall clocks of both hosts agree: with a clock that is ahead, the processes could not be
                 * distinguished. */
                clone->born_usec = sim_time_of_heartbeats(sim) - clone->ran_usec;
        if (!redis_answers(sim) || (is_alone(sim, clone) && !is_distinguished(sim, clone))) {
                clone->next_at = sim->now + SEC;
                return;
        }
        if (rng_chance(rng, 300))
                clone->busy = (unsigned)rng_range(rng, 0, SIM_JOBS_MAX) * rng_chance(rng, 600);
        clone->quiet = clone->quiet || rng_chance(rng, 50);
        clone->record = (struct heartbeat_record){
                .written_at = sim->now,
                .heartbeat = {.sent_usec = sim_time_of_heartbeats(sim),
                              .born_usec = clone->born_usec,
                              .busy = clone->busy,
                              .concurrency = SIM_JOBS_MAX,
                              .quiet = clone->quiet,
                              .work_list_known = true,
                              .work_list_empty = clone->busy == 0},
        };
        clone->listed = true;
        clone->next_at = sim->now + rng_range(rng, 4 * SEC, 10 * SEC);
}

usec_t clones_next_at(const struct sim *sim)
{
        usec_t at = USEC_INFINITY;

        for (unsigned i = 0; i < sim->n_clones; i++)
                at = MIN(at, sim->clones[i].next_at);
        return at;
}

void clones_step(struct sim *sim)
{
        for (unsigned i = 0; i < sim->n_clones; i++)
                if (sim->clones[i].next_at <= sim->now)
                        clone_step(sim, &sim->clones[i]);
}

void clones_end(struct sim *sim, bool heartbeat_on)
{
        for (unsigned i = 0; i < sim->n_clones; i++) {
                sim->clones[i].listed = false;
                sim->clones[i].record = (struct heartbeat_record){0};
                if (!heartbeat_on)
                        sim->clones[i].next_at = USEC_INFINITY;
        }
}

void clones_serve(struct sim *sim, unsigned fleet)
{
        for (unsigned i = 0; i < sim->n_clones; i++) {
                struct clone *clone = &sim->clones[i];
                bool stale = sim->now < MAX(sim->frozen_until, MAX(sim->garbage_until, sim->lags_until));

                if (clone->fleet != fleet)
                        continue;
                clone->answer = clone->record;
                if (stale || sim->now - clone->record.written_at > 60 * SEC)
                        clone->answer.written_at = 0;
        }
}

const struct clone *clone_find(const struct sim *sim, unsigned serial)
{
        for (unsigned i = 0; i < sim->n_clones; i++)
                if (sim->clones[i].serial == serial)
                        return &sim->clones[i];
        return NULL;
}
