/* SPDX-License-Identifier: MIT */
/* Queues, the workers that serve them, and who decides how many: what arrives is a function of the world and
 * its seed, the same for each rule that is tried on it. A job's time in the queue is what counts, to within
 * one step. */
#pragma once

#include "../sim/rng.h"
#include "autoscaling/autoscale_rules.h"
#include <stdio.h>
#include <string.h>

#define STEP           0.5 /* seconds, as all times here */
#define HEARTBEAT      10.0
#define POLL_SECONDS   5.0 /* of sqmgr */
#define DOWN_AFTER     600.0
#define COUNT_SECONDS  60.0 /* between two counts of the processes of other hosts */
#define EXPIRY_SECONDS 60.0 /* the heartbeat of a dead Sidekiq stays so long */
#define QUEUES_MAX     2
#define SITES_MAX      3
#define THREADS_MAX    10
#define MACHINES_MAX   64
#define CLASSES_MAX    3

/* Jobs of one kind. */
struct class
{
        unsigned queue;
        double load_from, load_to; /* in threads; it rises and falls between the two once in `period` */
        double period;             /* seconds; 0: always load_from */
        double service;            /* mean; 0: there is no such class */
        unsigned burst;            /* besides, so many at once */
        double burst_every;        /* seconds on average */
};

/* A fleet that scales, or so many workers of somebody else's. */
struct site_plan {
        unsigned min, max;
        bool is_other;
        double from, until; /* the fleet or the workers are there in this time; until = 0: to the end */
};

struct scenario {
        const char *name;
        double hours;
        double targets[QUEUES_MAX]; /* 0: there is no such queue */
        struct class classes[CLASSES_MAX];
        struct site_plan sites[SITES_MAX];
        unsigned n_sites;
        bool apart; /* each site is a host, which sees the others by their heartbeats alone */
        unsigned concurrency;
        double boot;
        bool blind;                     /* nothing tells what a job takes */
        double outage_at, outage_for;   /* Redis is away: nothing is put in, taken or read */
        double rollout_at, rollout_for; /* the count is held */
        double paused_from;             /* the last queue is, from then on; 0: never */
};

enum rule { RULE_SQMGR, RULE_FIXED, RULE_SCHEDULE };

struct arrival {
        double at, service;
};
struct arrivals {
        struct arrival *list; /* owned, by time */
        size_t n, allocated;
};

struct machine {
        bool used, draining;
        double active_at, heartbeat_at;
        double free_at[THREADS_MAX];
        unsigned begun; /* jobs */
        unsigned busy_reported, done_reported;
};

struct site {
        struct machine machines[MACHINES_MAX];
        size_t n_machines; /* beyond these none was ever used */
        unsigned count;
        struct scaling scaling;
        struct scaling_verdict verdict;
        double poll_at, count_at;
        double share, foreign_idle; /* as of the last count */
        unsigned reversals;
        int direction;
};

struct run {
        const struct scenario *scenario;
        const struct arrivals *arrivals; /* of each queue */
        enum rule rule;
        unsigned fixed; /* RULE_FIXED, _SCHEDULE: so many */
        double now;
        size_t heads[QUEUES_MAX];
        struct site sites[SITES_MAX];
        uint64_t done;
        float *waits[QUEUES_MAX]; /* of each job, written where not NULL */

        double worker_seconds;
        uint64_t late;  /* jobs that waited for longer than it */
        uint64_t begun; /* jobs */
        unsigned changes, reversals;
        int direction; /* of the last change of any site */
        bool outside;  /* the count was below the least or above the most */
};

static inline double uniform(struct rng *rng)
{
        return (double)(rng_next(rng) >> 11) / (double)(1ULL << 53);
}

/* Of mean 1, by von Neumann's comparisons. */
static inline double exponential(struct rng *rng)
{
        for (double whole = 0;; whole++) {
                double first = uniform(rng), last = first;
                unsigned n = 1;

                for (double next; (next = uniform(rng)) < last; last = next)
                        n++;
                if (n % 2 == 1)
                        return whole + first;
        }
}

static inline double load_at(const struct class *class, double at)
{
        if (class->period <= 0)
                return class->load_from;
        double phase = at / class->period - (double)(uint64_t)(at / class->period);
        double rise = phase < 0.5 ? 2 * phase : 2 - 2 * phase;
        return class->load_from + (class->load_to - class->load_from) * rise;
}

static inline void arrive(struct arrivals *arrivals, double at, double service)
{
        if (arrivals->n == arrivals->allocated) {
                arrivals->allocated = MAX((size_t)1024, 2 * arrivals->allocated);
                arrivals->list = reallocarray(arrivals->list, arrivals->allocated, sizeof(*arrivals->list));
                if (!arrivals->list)
                        abort();
        }
        arrivals->list[arrivals->n++] = (struct arrival){at, service};
}

static inline int compare_arrivals(const void *a, const void *b)
{
        double left = ((const struct arrival *)a)->at, right = ((const struct arrival *)b)->at;

        return (left > right) - (left < right);
}

static inline void make_class(const struct class *class, double end, struct rng *rng,
                              struct arrivals *arrivals)
{
        double most = MAX(class->load_from, class->load_to) / class->service;

        for (double at = 0; most > 0;) {
                at += exponential(rng) / most;
                if (at >= end)
                        break;
                if (uniform(rng) * most < load_at(class, at) / class->service)
                        arrive(arrivals, at, class->service * exponential(rng));
        }
        for (double at = 0; class->burst > 0;) {
                at += class->burst_every * (0.5 + uniform(rng));
                if (at >= end - 600)
                        break;
                for (unsigned i = 0; i < class->burst; i++)
                        arrive(arrivals, at, class->service * exponential(rng));
        }
}

/* What would be put in while Redis is away is put in when it is back. */
static inline void make_arrivals(const struct scenario *scenario, uint64_t seed,
                                 struct arrivals arrivals[QUEUES_MAX])
{
        double back = scenario->outage_at + scenario->outage_for;

        memset(arrivals, 0, sizeof(*arrivals) * QUEUES_MAX);
        for (size_t i = 0; i < CLASSES_MAX; i++) {
                const struct class *class = &scenario->classes[i];
                struct rng rng = rng_fork(seed, i);

                if (class->service > 0)
                        make_class(class, scenario->hours * 3600, &rng, &arrivals[class->queue]);
        }
        for (size_t q = 0; q < QUEUES_MAX; q++) {
                for (size_t i = 0; i < arrivals[q].n; i++)
                        if (arrivals[q].list[i].at >= scenario->outage_at && arrivals[q].list[i].at < back)
                                arrivals[q].list[i].at = back;
                if (arrivals[q].n > 0)
                        qsort(arrivals[q].list, arrivals[q].n, sizeof(struct arrival), compare_arrivals);
        }
}

static inline void free_arrivals(struct arrivals arrivals[QUEUES_MAX])
{
        for (size_t q = 0; q < QUEUES_MAX; q++)
                free(arrivals[q].list);
}

static inline bool is_paused(const struct run *run, size_t q)
{
        double from = run->scenario->paused_from;

        return from > 0 && run->now >= from && (q + 1 == QUEUES_MAX || run->scenario->targets[q + 1] <= 0);
}

static inline bool is_away(const struct run *run)
{
        const struct scenario *scenario = run->scenario;

        return scenario->outage_for > 0 && run->now >= scenario->outage_at &&
               run->now < scenario->outage_at + scenario->outage_for;
}

static inline bool is_there(const struct run *run, size_t s)
{
        const struct site_plan *plan = &run->scenario->sites[s];

        return run->now >= plan->from && (plan->until <= 0 || run->now < plan->until);
}

/* Jobs that wait, and the age of the oldest. */
static inline uint64_t queue_length(const struct run *run, size_t q)
{
        const struct arrivals *arrivals = &run->arrivals[q];
        size_t low = run->heads[q], high = arrivals->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (arrivals->list[middle].at <= run->now)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low - run->heads[q];
}

static inline double queue_age(const struct run *run, size_t q)
{
        const struct arrivals *arrivals = &run->arrivals[q];
        size_t head = run->heads[q];

        return head < arrivals->n && arrivals->list[head].at < run->now ? run->now - arrivals->list[head].at
                                                                        : 0;
}

/* The queue from which a thread takes next: the first that has a job, as `-q a -q b` has it. */
static inline int choose_queue(const struct run *run, double until)
{
        for (size_t q = 0; q < QUEUES_MAX; q++) {
                const struct arrivals *arrivals = &run->arrivals[q];

                if (run->heads[q] >= arrivals->n || is_paused(run, q) ||
                    arrivals->list[run->heads[q]].at >= until)
                        continue;
                return (int)q;
        }
        return -1;
}

static inline void begin_job(struct run *run, size_t q, double *free_at)
{
        size_t head = run->heads[q]++;
        const struct arrival *job = &run->arrivals[q].list[head];
        double start = MAX(MAX(*free_at, job->at), run->now), wait = start - job->at;

        *free_at = start + job->service;
        run->begun++;
        run->late += wait > run->scenario->targets[q];
        if (run->waits[q])
                run->waits[q][head] = (float)wait;
}

/* Returns a free thread of an active worker, of hosts apart the one that has waited longest, else the thread
 * that will be free first; NULL: no worker is active. */
static inline double *first_free(struct run *run, struct machine **ret_machine)
{
        double *first = NULL;

        for (size_t s = 0; s < run->scenario->n_sites; s++)
                for (size_t i = 0; i < run->sites[s].n_machines && is_there(run, s); i++) {
                        struct machine *machine = &run->sites[s].machines[i];

                        if (!machine->used || machine->draining || machine->active_at > run->now)
                                continue;
                        for (size_t t = 0; t < run->scenario->concurrency; t++) {
                                if (first && machine->free_at[t] >= *first)
                                        continue;
                                first = &machine->free_at[t];
                                *ret_machine = machine;
                                if (*first <= run->now && !run->scenario->apart)
                                        return first;
                        }
                }
        return first;
}

static inline void work(struct run *run)
{
        double until = run->now + STEP;

        while (!is_away(run)) {
                struct machine *machine = NULL;
                double *free_at = first_free(run, &machine);
                int q = free_at && *free_at < until ? choose_queue(run, until) : -1;

                if (q < 0)
                        return;
                begin_job(run, (size_t)q, free_at);
                machine->begun++;
        }
}

static inline unsigned running(const struct run *run, const struct machine *machine)
{
        unsigned n = 0;

        for (size_t t = 0; t < run->scenario->concurrency; t++)
                n += machine->free_at[t] > run->now;
        return n;
}

static inline void start_machine(struct run *run, struct site *site, double boot)
{
        for (size_t i = 0; i < MACHINES_MAX; i++)
                if (!site->machines[i].used) {
                        site->machines[i] = (struct machine){
                                .used = true,
                                .active_at = run->now + boot,
                                .heartbeat_at = run->now + boot,
                        };
                        site->n_machines = MAX(site->n_machines, i + 1);
                        return;
                }
        abort();
}

/* The idlest leaves. */
static inline void drain_machine(struct run *run, struct site *site)
{
        struct machine *least = NULL;

        for (size_t i = 0; i < site->n_machines; i++) {
                struct machine *machine = &site->machines[i];

                if (machine->used && !machine->draining &&
                    (!least || running(run, machine) < running(run, least)))
                        least = machine;
        }
        if (!least)
                abort();
        least->draining = true;
}

static inline void put_count(struct run *run, struct site *site, double boot)
{
        unsigned keep = 0;

        for (size_t i = 0; i < site->n_machines; i++)
                keep += site->machines[i].used && !site->machines[i].draining;
        for (; keep < site->count; keep++)
                start_machine(run, site, boot);
        for (; keep > site->count; keep--)
                drain_machine(run, site);
}

/* The results of its jobs are reported with its heartbeat, as Sidekiq does. */
static inline void send_heartbeat(struct run *run, struct machine *machine)
{
        unsigned busy = running(run, machine), done = machine->begun - busy;

        machine->heartbeat_at = run->now + HEARTBEAT;
        machine->busy_reported = busy;
        run->done += done - machine->done_reported;
        machine->done_reported = done;
}

/* A draining machine ends once it runs no job. */
static inline void end_drained(struct run *run, struct machine *machine)
{
        if (!machine->draining || running(run, machine) > 0)
                return;
        send_heartbeat(run, machine);
        machine->used = false;
}

static inline void tend(struct run *run)
{
        for (size_t s = 0; s < run->scenario->n_sites; s++)
                for (size_t i = 0; i < run->sites[s].n_machines && is_there(run, s); i++) {
                        struct machine *machine = &run->sites[s].machines[i];

                        if (!machine->used)
                                continue;
                        run->worker_seconds += run->scenario->sites[s].is_other ? 0 : STEP;
                        if (machine->heartbeat_at <= run->now && !is_away(run))
                                send_heartbeat(run, machine);
                        end_drained(run, machine);
                }
}

static inline unsigned active_machines(const struct run *run, const struct site *site, unsigned *ret_draining,
                                       unsigned *ret_busy)
{
        unsigned active = 0;

        *ret_draining = *ret_busy = 0;
        for (size_t i = 0; i < site->n_machines; i++) {
                const struct machine *machine = &site->machines[i];

                if (!machine->used || machine->active_at > run->now)
                        continue;
                *ret_draining += machine->draining;
                active += !machine->draining;
                *ret_busy += machine->busy_reported;
        }
        return active;
}

static inline usec_t usec_of(double seconds)
{
        return (usec_t)(seconds * USEC_PER_SEC);
}

static inline struct scaling_limits limits_of(const struct site_plan *plan)
{
        return (struct scaling_limits){plan->min, plan->max, usec_of(DOWN_AFTER)};
}

static inline bool is_foreign(const struct run *run, size_t s, size_t other)
{
        return run->scenario->sites[other].is_other || (run->scenario->apart && other != s);
}

/* A heartbeat stays for a while after the death of its process. */
static inline bool is_seen(const struct run *run, size_t s)
{
        const struct site_plan *plan = &run->scenario->sites[s];

        return is_there(run, s) ||
               (!plan->is_other && run->now >= plan->until && run->now < plan->until + EXPIRY_SECONDS);
}

static inline void count_foreign(struct run *run, size_t s)
{
        struct site *site = &run->sites[s];
        unsigned draining, busy, own = 0, foreign = 0;

        if (run->now < site->count_at || is_away(run))
                return;
        /* Hosts count at different times. */
        site->count_at = run->now + COUNT_SECONDS + (site->count_at <= 0 ? (double)s * 20 : 0);
        site->foreign_idle = 0;
        for (size_t i = 0; i < run->scenario->n_sites; i++) {
                unsigned active = active_machines(run, &run->sites[i], &draining, &busy),
                         threads = active * run->scenario->concurrency;

                if (!is_foreign(run, s, i)) {
                        own += threads;
                } else if (is_seen(run, i)) {
                        foreign += threads;
                        site->foreign_idle += threads > busy ? threads - busy : 0;
                }
        }
        site->share = scaling_share(own, foreign, run->scenario->concurrency);
}

static inline void ask_sqmgr(struct run *run, size_t s)
{
        const struct scenario *scenario = run->scenario;
        struct site *site = &run->sites[s];
        struct scaling_queue queues[QUEUES_MAX] = {0};
        struct scaling_limits limits = limits_of(&scenario->sites[s]);
        unsigned draining = 0, busy, weight = 0;

        count_foreign(run, s);
        struct scaling_reading reading = {
                .queues = queues,
                .done_known = !scenario->blind,
                .done = run->done,
                .boot = usec_of(scenario->boot),
                .count = site->count,
                .concurrency = scenario->concurrency,
        };

        for (size_t q = 0; q < QUEUES_MAX && scenario->targets[q] > 0; q++)
                queues[reading.n_queues++] = (struct scaling_queue){
                        .size = queue_length(run, q),
                        .age = usec_of(queue_age(run, q)),
                        .target = usec_of(scenario->targets[q]),
                        .paused = is_paused(run, q),
                };
        for (size_t i = 0; i < scenario->n_sites; i++) {
                unsigned active = active_machines(run, &run->sites[i], &draining, &busy);

                unsigned threads = active * scenario->concurrency;
                reading.done_busy += is_there(run, i) ? busy : 0;
                if (is_foreign(run, s, i))
                        continue;
                weight += scenario->sites[i].max;
                reading.busy += busy;
                reading.threads += threads;
        }
        reading.part = (double)scenario->sites[s].max / weight;
        reading.share = site->share;
        for (size_t q = 0; q < reading.n_queues && site->count == 0; q++)
                if (queues[q].age < 5 * USEC_PER_SEC)
                        reading.foreign_idle = site->foreign_idle;
        reading.active = active_machines(run, site, &reading.draining, &busy);
        if (is_away(run))
                reading.hold = SCALING_HELD_REDIS;
        else if (scenario->rollout_for > 0 && run->now >= scenario->rollout_at &&
                 run->now < scenario->rollout_at + scenario->rollout_for)
                reading.hold = SCALING_HELD_ROLLOUT;
        scaling_observe(&site->scaling, &limits, &reading, USEC_PER_HOUR + usec_of(run->now), &site->verdict);
        site->count = site->verdict.wanted;
}

static inline void ask_rule(struct run *run, size_t s)
{
        switch (run->rule) {
        case RULE_SQMGR:
                ask_sqmgr(run, s);
                return;
        case RULE_FIXED:
        case RULE_SCHEDULE:
                run->sites[s].count = run->fixed;
                return;
        }
}

static inline void ask(struct run *run, size_t s)
{
        const struct site_plan *plan = &run->scenario->sites[s];
        struct site *site = &run->sites[s];
        unsigned before = site->count;

        if (is_away(run) && run->rule != RULE_SQMGR)
                return;
        ask_rule(run, s);
        run->outside |= site->count < plan->min || site->count > plan->max;
        if (site->count == before)
                return;
        int direction = site->count > before ? 1 : -1;
        run->changes++;
        run->reversals += run->direction == -direction;
        run->direction = direction;
        site->reversals += site->direction == -direction;
        site->direction = direction;
        put_count(run, site, run->rule == RULE_SCHEDULE ? 0 : run->scenario->boot);
}

static inline void decide(struct run *run)
{
        for (size_t s = 0; s < run->scenario->n_sites; s++) {
                const struct site_plan *plan = &run->scenario->sites[s];
                struct site *site = &run->sites[s];

                if (plan->is_other) {
                        site->count = is_there(run, s) ? plan->max : 0;
                        put_count(run, site, 0);
                } else if (run->now >= site->poll_at && is_there(run, s)) {
                        if (run->scenario->apart && site->poll_at <= 0)
                                site->poll_at = run->now + (double)s;
                        site->poll_at += POLL_SECONDS;
                        ask(run, s);
                }
        }
}

static inline void run_open(struct run *run, const struct scenario *scenario, const struct arrivals *arrivals,
                            enum rule rule, unsigned fixed)
{
        *run = (struct run){.scenario = scenario, .arrivals = arrivals, .rule = rule, .fixed = fixed};
        for (size_t s = 0; s < scenario->n_sites; s++)
                if (!scenario->sites[s].is_other) {
                        run->sites[s].count = rule == RULE_FIXED ? fixed : scenario->sites[s].min;
                        put_count(run, &run->sites[s], 0);
                }
}

static inline void run_for(struct run *run, double seconds)
{
        double until = run->now + seconds;

        while (run->now < until) {
                decide(run);
                work(run);
                run->now += STEP;
                tend(run);
        }
}

/* For hindsight, hosts apart are one host. Those that are not there all the time need not run their least. */
static inline struct scenario join_hosts(const struct scenario *scenario)
{
        struct scenario joined = *scenario;

        if (!scenario->apart)
                return joined;
        joined.sites[0] = (struct site_plan){0};
        joined.n_sites = 1;
        joined.apart = false;
        for (size_t s = 0; s < scenario->n_sites; s++) {
                const struct site_plan *plan = &scenario->sites[s];

                joined.sites[0].min += plan->from > 0 || plan->until > 0 ? 0 : plan->min;
                joined.sites[0].max += plan->max;
        }
        return joined;
}

/* What the cheapest schedule costs that keeps the targets as it is known here, in seconds of workers: the
 * least count for each five minutes after which the most would still be in time, or the least fixed one,
 * whichever is less. It knows what comes, its workers boot in no time, and it may go down whenever it likes.
 */
static inline double hindsight(const struct scenario *scenario, const struct arrivals *arrivals)
{
        struct scenario joined = join_hosts(scenario);
        unsigned min = joined.sites[0].min, max = joined.sites[0].max;
        double longest = MAX(scenario->targets[0], scenario->targets[1]);
        static struct run best, block, after;

        run_open(&best, &joined, arrivals, RULE_SCHEDULE, min);
        while (best.now < scenario->hours * 3600) {
                for (unsigned count = min; count <= max; count++) {
                        block = best;
                        block.fixed = count;
                        run_for(&block, 300);
                        after = block;
                        after.fixed = max;
                        run_for(&after, 1.5 * longest);
                        if (after.late == best.late)
                                break;
                }
                best = block;
        }
        for (unsigned count = min; count <= max; count++) {
                run_open(&block, &joined, arrivals, RULE_FIXED, count);
                run_for(&block, scenario->hours * 3600);
                if (block.late == 0)
                        return MIN(best.worker_seconds, block.worker_seconds);
        }
        return best.worker_seconds;
}
