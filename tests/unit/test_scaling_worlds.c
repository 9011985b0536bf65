/* SPDX-License-Identifier: MIT */
/* The rule of scaling in simulated hours: targets are kept wherever the most workers could keep them, without
 * flapping and at little more than hindsight costs. SCALING_SEEDS worlds are made by chance.
 *
 * The world has queues, the workers that serve them, and who decides how many. What arrives is a function of
 * the world and its seed, the same for each rule that is tried on it. A job's time in the queue is what
 * counts, to within one step. */
#include "../sim/rng.h"
#include "autoscaling/autoscale_rules.h"
#include "unit.h"

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
        uint64_t late; /* jobs that waited for longer than it */
        unsigned changes, reversals;
        int direction; /* of the last change of any site */
        bool outside;  /* the count was below the least or above the most */
};

static double load_at(const struct class *class, double at)
{
        if (class->period <= 0)
                return class->load_from;
        double phase = at / class->period - (double)(uint64_t)(at / class->period);
        double rise = phase < 0.5 ? 2 * phase : 2 - 2 * phase;
        return class->load_from + (class->load_to - class->load_from) * rise;
}

static void arrive(struct arrivals *arrivals, double at, double service)
{
        if (arrivals->n == arrivals->allocated) {
                arrivals->allocated = MAX((size_t)1024, 2 * arrivals->allocated);
                arrivals->list = reallocarray(arrivals->list, arrivals->allocated, sizeof(*arrivals->list));
                if (!arrivals->list)
                        abort();
        }
        arrivals->list[arrivals->n++] = (struct arrival){at, service};
}

static int compare_arrivals(const void *a, const void *b)
{
        double left = ((const struct arrival *)a)->at, right = ((const struct arrival *)b)->at;

        return (left > right) - (left < right);
}

static void make_class(const struct class *class, double end, struct rng *rng, struct arrivals *arrivals)
{
        double most = MAX(class->load_from, class->load_to) / class->service;

        for (double at = 0; most > 0;) {
                at += rng_exponential(rng) / most;
                if (at >= end)
                        break;
                if (rng_uniform(rng) * most < load_at(class, at) / class->service)
                        arrive(arrivals, at, class->service * rng_exponential(rng));
        }
        for (double at = 0; class->burst > 0;) {
                at += class->burst_every * (0.5 + rng_uniform(rng));
                if (at >= end - 600)
                        break;
                for (unsigned i = 0; i < class->burst; i++)
                        arrive(arrivals, at, class->service * rng_exponential(rng));
        }
}

/* What would be put in while Redis is away is put in when it is back. */
static void make_arrivals(const struct scenario *scenario, uint64_t seed,
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

static void free_arrivals(struct arrivals arrivals[QUEUES_MAX])
{
        for (size_t q = 0; q < QUEUES_MAX; q++)
                free(arrivals[q].list);
}

static bool is_paused(const struct run *run, size_t q)
{
        double from = run->scenario->paused_from;

        return from > 0 && run->now >= from && (q + 1 == QUEUES_MAX || run->scenario->targets[q + 1] <= 0);
}

static bool is_away(const struct run *run)
{
        const struct scenario *scenario = run->scenario;

        return scenario->outage_for > 0 && run->now >= scenario->outage_at &&
               run->now < scenario->outage_at + scenario->outage_for;
}

static bool is_there(const struct run *run, size_t s)
{
        const struct site_plan *plan = &run->scenario->sites[s];

        return run->now >= plan->from && (plan->until <= 0 || run->now < plan->until);
}

/* Jobs that wait, and the age of the oldest. */
static uint64_t queue_length(const struct run *run, size_t q)
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

static double queue_age(const struct run *run, size_t q)
{
        const struct arrivals *arrivals = &run->arrivals[q];
        size_t head = run->heads[q];

        return head < arrivals->n && arrivals->list[head].at < run->now ? run->now - arrivals->list[head].at
                                                                        : 0;
}

/* The queue from which a thread takes next: the first that has a job, as `-q a -q b` has it. */
static int choose_queue(const struct run *run, double until)
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

static void begin_job(struct run *run, size_t q, double *free_at)
{
        size_t head = run->heads[q]++;
        const struct arrival *job = &run->arrivals[q].list[head];
        double start = MAX(MAX(*free_at, job->at), run->now), wait = start - job->at;

        *free_at = start + job->service;
        run->late += wait > run->scenario->targets[q];
        if (run->waits[q])
                run->waits[q][head] = (float)wait;
}

/* Returns a free thread of an active worker, of hosts apart the one that has waited longest, else the thread
 * that will be free first; NULL: no worker is active. */
static double *first_free(struct run *run, struct machine **ret_machine)
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

static void work(struct run *run)
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

static unsigned running(const struct run *run, const struct machine *machine)
{
        unsigned n = 0;

        for (size_t t = 0; t < run->scenario->concurrency; t++)
                n += machine->free_at[t] > run->now;
        return n;
}

static void start_machine(struct run *run, struct site *site, double boot)
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
static void drain_machine(struct run *run, struct site *site)
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

static void put_count(struct run *run, struct site *site, double boot)
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
static void send_heartbeat(struct run *run, struct machine *machine)
{
        unsigned busy = running(run, machine), done = machine->begun - busy;

        machine->heartbeat_at = run->now + HEARTBEAT;
        machine->busy_reported = busy;
        run->done += done - machine->done_reported;
        machine->done_reported = done;
}

/* A draining machine ends once it runs no job. */
static void end_drained(struct run *run, struct machine *machine)
{
        if (!machine->draining || running(run, machine) > 0)
                return;
        send_heartbeat(run, machine);
        machine->used = false;
}

static void tend(struct run *run)
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

static unsigned active_machines(const struct run *run, const struct site *site, unsigned *ret_draining,
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

static usec_t usec_of(double seconds)
{
        return (usec_t)(seconds * USEC_PER_SEC);
}

static struct scaling_limits limits_of(const struct site_plan *plan)
{
        return (struct scaling_limits){plan->min, plan->max, usec_of(DOWN_AFTER)};
}

static bool is_foreign(const struct run *run, size_t s, size_t other)
{
        return run->scenario->sites[other].is_other || (run->scenario->apart && other != s);
}

/* A heartbeat stays for a while after the death of its process. */
static bool is_seen(const struct run *run, size_t s)
{
        const struct site_plan *plan = &run->scenario->sites[s];

        return is_there(run, s) ||
               (!plan->is_other && run->now >= plan->until && run->now < plan->until + EXPIRY_SECONDS);
}

static void count_foreign(struct run *run, size_t s)
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

static void ask_sqmgr(struct run *run, size_t s)
{
        const struct scenario *scenario = run->scenario;
        struct site *site = &run->sites[s];
        struct queue list[QUEUES_MAX] = {0};
        struct queues queues = {.list = list};
        struct scaling_limits limits = limits_of(&scenario->sites[s]);
        unsigned draining = 0, busy, weight = 0;

        count_foreign(run, s);
        struct scaling_reading reading = {
                .queues = &queues,
                .done_known = !scenario->blind,
                .done = run->done,
                .boot = usec_of(scenario->boot),
                .count = site->count,
                .concurrency = scenario->concurrency,
        };

        for (size_t q = 0; q < QUEUES_MAX && scenario->targets[q] > 0; q++)
                list[queues.n++] = (struct queue){
                        .size = queue_length(run, q),
                        .latency_known = true,
                        .latency = usec_of(queue_age(run, q)),
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
        for (size_t q = 0; q < queues.n && site->count == 0; q++)
                if (list[q].latency < 5 * USEC_PER_SEC)
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

static void ask(struct run *run, size_t s)
{
        const struct site_plan *plan = &run->scenario->sites[s];
        struct site *site = &run->sites[s];
        unsigned before = site->count;

        if (is_away(run) && run->rule != RULE_SQMGR)
                return;
        if (run->rule == RULE_SQMGR)
                ask_sqmgr(run, s);
        else
                site->count = run->fixed;
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

static void decide(struct run *run)
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

static void run_open(struct run *run, const struct scenario *scenario, const struct arrivals *arrivals,
                     enum rule rule, unsigned fixed)
{
        *run = (struct run){.scenario = scenario, .arrivals = arrivals, .rule = rule, .fixed = fixed};
        for (size_t s = 0; s < scenario->n_sites; s++)
                if (!scenario->sites[s].is_other) {
                        run->sites[s].count = rule == RULE_FIXED ? fixed : scenario->sites[s].min;
                        put_count(run, &run->sites[s], 0);
                }
}

static void run_for(struct run *run, double seconds)
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
static struct scenario join_hosts(const struct scenario *scenario)
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
static double hindsight(const struct scenario *scenario, const struct arrivals *arrivals)
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
                        if (block.late > best.late)
                                continue;
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
                while (block.late == 0 && block.now < scenario->hours * 3600)
                        run_for(&block, 300);
                if (block.late == 0)
                        return MIN(best.worker_seconds, block.worker_seconds);
        }
        return best.worker_seconds;
}

#define HALF_MINUTE   30
#define ONE_FLEET     .sites = {{.min = 2, .max = 10}}, .n_sites = 1, .concurrency = 5, .boot = 10
#define FOUR_HOURS    .hours = 4, .targets = {HALF_MINUTE}
#define DAY(from, to) .classes = {{.load_from = (from), .load_to = (to), .period = 4 * 3600, .service = 0.5}}

static const struct scenario scenarios[] = {
        {.name = "steady load", ONE_FLEET, FOUR_HOURS, DAY(12, 12)},
        {.name = "steady, close to what its workers can do", ONE_FLEET, FOUR_HOURS, DAY(14.8, 14.8)},
        {.name = "from little to much and back", ONE_FLEET, FOUR_HOURS, DAY(2, 35)},
        {.name = "the same, what a job takes not known", ONE_FLEET, FOUR_HOURS, DAY(2, 35), .blind = true},
        {.name = "bursts of 2,000 jobs",
         ONE_FLEET,
         .hours = 4,
         .targets = {60},
         .classes = {{.load_from = 2, .service = 0.5}, {.service = 0.5, .burst = 2000, .burst_every = 2400}}},
        {.name = "a slow class among fast ones",
         ONE_FLEET,
         FOUR_HOURS,
         .classes = {{.load_from = 4, .service = 0.05},
                     {.load_from = 6, .service = 10, .burst = 60, .burst_every = 1800}}},
        {.name = "two queues, one with a batch",
         ONE_FLEET,
         .hours = 4,
         .targets = {HALF_MINUTE, 300},
         .classes = {{.load_from = 6, .load_to = 10, .period = 7200, .service = 0.3},
                     {.queue = 1, .service = 2, .burst = 1500, .burst_every = 3600}}},
        {.name = "jobs of hours",
         ONE_FLEET,
         .hours = 12,
         .targets = {60},
         .classes = {{.load_from = 20, .service = 3600}}},
        {.name = "Redis away for two minutes",
         ONE_FLEET,
         .hours = 4,
         .targets = {60},
         .classes = {{.load_from = 10, .load_to = 20, .period = 7200, .service = 0.5}},
         .outage_at = 5000,
         .outage_for = 120},
        {.name = "a rollout while it rises",
         ONE_FLEET,
         FOUR_HOURS,
         DAY(2, 35),
         .rollout_at = 4000,
         .rollout_for = 300},
        {.name = "a queue that is paused",
         ONE_FLEET,
         .hours = 4,
         .targets = {HALF_MINUTE, HALF_MINUTE},
         .classes = {{.load_from = 6, .load_to = 10, .period = 7200, .service = 0.3},
                     {.queue = 1, .load_from = 1, .service = 0.3}},
         .paused_from = 3600},
        {.name = "three hosts on one queue",
         .sites = {{.min = 1, .max = 5}, {.min = 1, .max = 5}, {.min = 1, .max = 5}},
         .n_sites = 3,
         .apart = true,
         .concurrency = 5,
         .boot = 10,
         FOUR_HOURS,
         DAY(4, 60)},
        {.name = "two fleets on one queue",
         .sites = {{.min = 1, .max = 4}, {.min = 2, .max = 8}},
         .n_sites = 2,
         .concurrency = 5,
         .boot = 10,
         FOUR_HOURS,
         DAY(4, 40)},
        {.name = "one that nobody manages besides",
         .sites = {{.min = 2, .max = 10}, {.max = 3, .is_other = true, .from = 3600, .until = 9000}},
         .n_sites = 2,
         .concurrency = 5,
         .boot = 10,
         FOUR_HOURS,
         DAY(10, 30)},
};

/* What the rule may lose to a fleet that has its most workers always: two looks and the beats between them
 * tell of a burst, or a third of its target where it is not known what a job takes; and each doubling from
 * the least to the most takes a boot. */
static double margin_of(const struct scenario *scenario)
{
        double margin = 2 * POLL_SECONDS + HEARTBEAT + (scenario->blind ? scenario->targets[0] / 3 : 0);

        for (unsigned count = scenario->sites[0].min; count < scenario->sites[0].max; count *= 2)
                margin += scenario->boot;
        return margin;
}

static double between(struct rng *rng, double least, double most)
{
        return least + (most - least) * rng_uniform(rng);
}

/* One fleet, a load that its most workers can bear, and bursts. */
static struct scenario random_scenario(uint64_t seed)
{
        struct rng rng = rng_fork(seed, 99);
        unsigned min = (unsigned)rng_range(&rng, 1, 4), max = min * (unsigned)rng_range(&rng, 2, 8);
        struct scenario scenario = {
                .name = "by chance",
                .hours = 3,
                .sites = {{.min = min, .max = max}},
                .n_sites = 1,
                .concurrency = (unsigned)rng_range(&rng, 1, THREADS_MAX),
                .boot = between(&rng, 1, 30),
                .blind = rng_chance(&rng, 200),
        };
        double threads = max * scenario.concurrency, target = between(&rng, 1.2, 5) * margin_of(&scenario);

        scenario.targets[0] = target;
        scenario.classes[0] = (struct class){
                .load_from = between(&rng, 0, 0.3) * threads,
                .load_to = between(&rng, 0.1, 0.6) * threads,
                .period = between(&rng, 1000, 10000),
                .service = between(&rng, 0.1, 2),
        };
        scenario.classes[1] = (struct class){
                .service = between(&rng, 0.1, 5),
                .burst_every = between(&rng, 1200, 3600),
        };
        scenario.classes[1].burst =
                (unsigned)(between(&rng, 0, 0.5) * threads * target / scenario.classes[1].service);
        return scenario;
}

#define SEED   1
#define STEADY 0

static struct run run, most;

/* What each job has waited for: under the rule, and with the most workers always. */
static void compare(const struct scenario *scenario, const struct arrivals *arrivals)
{
        float *waits[QUEUES_MAX], *least[QUEUES_MAX];
        double margin = margin_of(scenario);

        run_open(&run, scenario, arrivals, RULE_SQMGR, 0);
        run_open(&most, scenario, arrivals, RULE_FIXED, scenario->sites[0].max);
        for (size_t q = 0; q < QUEUES_MAX; q++) {
                run.waits[q] = waits[q] = calloc(arrivals[q].n + 1, sizeof(float));
                most.waits[q] = least[q] = calloc(arrivals[q].n + 1, sizeof(float));
                ck_assert(waits[q] && least[q]);
        }
        run_for(&run, scenario->hours * 3600);
        run_for(&most, scenario->hours * 3600);
        for (size_t q = 0; q < QUEUES_MAX; q++) {
                for (size_t i = 0; i < run.heads[q]; i++)
                        if (waits[q][i] > scenario->targets[q] &&
                            least[q][i] <= scenario->targets[q] - margin)
                                ck_abort_msg("%s: a job waits for %.1f s of %.1f s, and with all workers for "
                                             "%.1f s",
                                             scenario->name, (double)waits[q][i], scenario->targets[q],
                                             (double)least[q][i]);
                free(waits[q]);
                free(least[q]);
        }
}

/* It goes down no sooner than all of DOWN_AFTER after it went up: so there are two turns in that time at
 * most. */
static void judge(const struct scenario *scenario)
{
        ck_assert_msg(!run.outside, "%s: the count is below the least, or above the most", scenario->name);
        ck_assert_msg(run.reversals <= 2 * scenario->hours * 3600 / DOWN_AFTER, "%s: turns back %u times",
                      scenario->name, run.reversals);
}

/* One after the other, for what they cost is judged on average. */
TEST(keeps_its_targets_at_little_more_than_hindsight_costs)
{
        double ratios = 0;

        for (size_t i = 0; i < ELEMENTSOF(scenarios); i++) {
                const struct scenario *scenario = &scenarios[i];
                struct arrivals arrivals[QUEUES_MAX];

                make_arrivals(scenario, SEED, arrivals);
                compare(scenario, arrivals);
                judge(scenario);
                /* Here the most workers have enough to spare that nothing may be late. */
                ck_assert_msg(run.late == 0, "%s: %llu jobs are late", scenario->name,
                              (unsigned long long)run.late);
                ck_assert_uint_le(run.changes, 20 * (unsigned)scenario->hours * scenario->n_sites);
                if (i == STEADY)
                        ck_assert_uint_le(run.changes, (unsigned)scenario->hours);
                ratios += MAX(run.worker_seconds / hindsight(scenario, arrivals), 1.0);
                free_arrivals(arrivals);
        }
        ck_assert_double_le(ratios / ELEMENTSOF(scenarios), 1.3);
}

TEST(keeps_its_targets_whatever_comes)
{
        const char *text = getenv("SCALING_SEEDS");
        int seeds = text ? atoi(text) : 40;
        double turns = 0;

        for (int seed = 0; seed < seeds; seed++) {
                struct scenario scenario = random_scenario((uint64_t)seed);
                char name[32];

                snprintf(name, sizeof(name), "seed %d", seed);
                scenario.name = name;
                struct arrivals arrivals[QUEUES_MAX];
                make_arrivals(&scenario, (uint64_t)seed, arrivals);
                compare(&scenario, arrivals);
                judge(&scenario);
                turns += run.reversals / scenario.hours;
                free_arrivals(arrivals);
        }
        /* A burst is one turn up, and one down: each of these worlds has one or two an hour. */
        ck_assert_double_le(turns / seeds, 3);
}

#define HOST_SEEDS 3
#define HOST(least, ...)                                                                                     \
        {                                                                                                    \
                .min = (least), .max = 10, __VA_ARGS__                                                       \
        }
#define HOSTS(first, second, third)                                                                          \
        .sites = {first, second, third}, .n_sites = 3, .apart = true, .concurrency = 5, .boot = 10, .hours = 3
#define LOAD(from, to)                                                                                       \
        .targets = {HALF_MINUTE},                                                                            \
        .classes = {{.load_from = (from), .load_to = (to), .period = 3 * 3600, .service = 2}}

/* Three hosts on one queue, each of which sees the others by their heartbeats alone. */
static const struct {
        struct scenario scenario;
        unsigned turns; /* of each host */
        double ratio;   /* to what hindsight costs */
} hosts[] = {
        {{.name = "steady load", HOSTS(HOST(1), HOST(1), HOST(1)), LOAD(50, 50)}, 1, 1.4},
        {{.name = "a day", HOSTS(HOST(1), HOST(1), HOST(1)), LOAD(4, 80)}, 1, 1.4},
        {{.name = "one host at zero", HOSTS(HOST(2), HOST(2), HOST(0)), LOAD(40, 40)}, 1, 1.4},
        {{.name = "one host dies", HOSTS(HOST(3), HOST(3), HOST(3, .until = 6000)), LOAD(50, 50)}, 2, 1.4},
        {{.name = "one host joins", HOSTS(HOST(2), HOST(2), HOST(2, .from = 6000)), LOAD(40, 40)}, 1, 1.4},
        {{.name = "bursts",
          HOSTS(HOST(1), HOST(1), HOST(1)),
          .targets = {60},
          .classes = {{.load_from = 10, .service = 1}, {.service = 5, .burst = 400, .burst_every = 2400}}},
         10,
         3},
};

TEST_LOOP(hosts_that_see_heartbeats_alone_share_a_queue, ELEMENTSOF(hosts))
{
        const struct scenario *scenario = &hosts[_i].scenario;

        for (uint64_t seed = 1; seed <= HOST_SEEDS; seed++) {
                struct arrivals arrivals[QUEUES_MAX];

                make_arrivals(scenario, seed, arrivals);
                run_open(&run, scenario, arrivals, RULE_SQMGR, 0);
                run_for(&run, scenario->hours * 3600);
                judge(scenario);
                ck_assert_msg(run.late == 0, "%s, seed %llu: %llu jobs are late", scenario->name,
                              (unsigned long long)seed, (unsigned long long)run.late);
                double ratio = run.worker_seconds / hindsight(scenario, arrivals);
                ck_assert_msg(ratio <= hosts[_i].ratio, "%s, seed %llu: %.2f of what hindsight costs",
                              scenario->name, (unsigned long long)seed, ratio);
                for (size_t s = 0; s < scenario->n_sites; s++)
                        ck_assert_msg(run.sites[s].reversals <= hosts[_i].turns,
                                      "%s, seed %llu: host %zu turns back %u times", scenario->name,
                                      (unsigned long long)seed, s, run.sites[s].reversals);
                free_arrivals(arrivals);
        }
}

TEST_MAIN("scaling_worlds", .timeout_seconds = 600)
