/* SPDX-License-Identifier: MIT */
/* How many workers a fleet needs for its queues; see the header. */
#include "autoscaling/scaling_rules.h"
#include "base/parse.h"
#include <stdio.h>

/* A worker is added if the current threads would be used by more than this fraction. A worker is removed
 * if the remaining threads would be used by no more than this fraction. In between, the count is kept, so
 * small changes of the need change nothing. */
#define FULL 0.95
/* The current growth of the queues is averaged over this time. */
#define RECENT_USEC (15 * USEC_PER_SEC)
/* However late a queue is, its backlog gets 1/LEAST_LEFT of the target. More workers would boot too late
 * for those jobs, and be too many for the next ones. */
#define LEAST_LEFT 2
/* A queue is late once its oldest job has waited for 1/LATE of the target: enough time for a boot, and for
 * another if one was not enough. */
#define LATE 3

static usec_t left_of(const struct scaling_queue *queue, usec_t boot)
{
        return MAX(usec_sub(queue->target, usec_add(queue->age, boot)), queue->target / LEAST_LEFT);
}

static bool has_target_now(const struct scaling_queue *queue)
{
        return queue->target > 0 && !queue->paused;
}

/* Finds the queue that has used up the greatest part of its target, and sums the waiting jobs. */
static void find_oldest(const struct scaling_reading *reading, struct scaling_verdict *verdict)
{
        double most = 0;

        for (size_t i = 0; i < reading->n_queues; i++) {
                const struct scaling_queue *queue = &reading->queues[i];

                if (!has_target_now(queue))
                        continue;
                double part = usec_seconds(queue->age) / usec_seconds(queue->target);
                verdict->waiting += queue->size;
                verdict->age_unknown |= queue->age_unknown;
                if (queue->due_known)
                        verdict->due_in = MIN(verdict->due_in, queue->due_in);
                if (verdict->target != 0 && part <= most)
                        continue;
                most = part;
                verdict->age = queue->age;
                verdict->target = queue->target;
                verdict->left = left_of(queue, reading->boot);
        }
}

/* Without workers, nothing more will become known. */
static bool is_unknown(const struct scaling_reading *reading)
{
        return reading->unserved || reading->concurrency == 0;
}

static enum scaling_hold find_hold(const struct scaling_reading *reading,
                                   const struct scaling_verdict *verdict)
{
        bool asleep = reading->count == 0;

        if (reading->hold == SCALING_HELD_REDIS || (reading->hold != SCALING_FREE && !asleep))
                return reading->hold;
        if (asleep && is_unknown(reading))
                return SCALING_FREE;
        if (reading->concurrency == 0)
                return SCALING_HELD_HEARTBEATS;
        return verdict->target == 0 ? SCALING_HELD_PAUSED : SCALING_FREE;
}

/* Starts a new series of readings. */
static void begin(struct scaling *scaling, const struct scaling_reading *reading, uint64_t waiting,
                  usec_t now)
{
        *scaling = (struct scaling){
                .read_at = now,
                .since = now,
                .used_at = now,
                .waiting = waiting,
                .done = reading->done,
                .busy = reading->busy,
                .service = scaling->service,
        };
}

/* While less than one job is done, the service time is at least the remembered working time. */
static void fold_service(struct scaling *scaling, const struct scaling_reading *reading, double elapsed,
                         double keep)
{
        uint64_t done = reading->done > scaling->done ? reading->done - scaling->done : 0;

        scaling->busy_seconds = scaling->busy_seconds * keep + reading->done_busy * elapsed;
        scaling->jobs_done = scaling->jobs_done * keep + (double)done;
        scaling->done = reading->done;
        if (scaling->jobs_done >= 1)
                scaling->service = scaling->busy_seconds / scaling->jobs_done;
        else
                scaling->service = MAX(scaling->service, scaling->busy_seconds);
}

/* Exponential averages: data older than SCALING_AVERAGE_USEC counts for little. */
static void fold(struct scaling *scaling, const struct scaling_reading *reading, uint64_t waiting, usec_t now)
{
        double elapsed = usec_seconds(now - scaling->read_at), over = usec_seconds(SCALING_AVERAGE_USEC);
        double keep = over / (over + elapsed);
        double grown = ((double)waiting - (double)scaling->waiting) / elapsed;

        double keep_recent = usec_seconds(RECENT_USEC) / (usec_seconds(RECENT_USEC) + elapsed);

        scaling->recent_growth = scaling->recent_growth * keep_recent + grown * (1 - keep_recent);
        scaling->busy = scaling->busy * keep + reading->busy * (1 - keep);
        scaling->growth = scaling->growth * keep + grown * (1 - keep);
        if (reading->done_known)
                fold_service(scaling, reading, elapsed, keep);
        scaling->waiting = waiting;
        scaling->read_at = now;
}

/* A series that has just started gives no service time; a known one of an earlier series is used later. */
static bool is_young(const struct scaling *scaling, usec_t now)
{
        return now - scaling->since < SCALING_AVERAGE_USEC / 2;
}

/* Returns seconds; 0: unknown. */
static double service_of(const struct scaling *scaling, const struct scaling_reading *reading, usec_t now)
{
        if (reading->service > 0)
                return usec_seconds(reading->service);
        return reading->done_known && !is_young(scaling, now) ? scaling->service : 0;
}

/* Returns the threads for the growth of the queues during one job or one target, whichever is shorter.
 * Later growth shows in later readings. */
static double growing(const struct scaling *scaling, const struct scaling_reading *reading, double service,
                      usec_t target)
{
        return service > 0 ? scaling->growth * reading->share * MIN(service, usec_seconds(target)) : 0;
}

static double backlog(const struct scaling_reading *reading, double service)
{
        usec_t least = USEC_INFINITY;
        double need = 0;

        if (service <= 0)
                return 0;
        for (size_t i = 0; i < reading->n_queues; i++) {
                const struct scaling_queue *queue = &reading->queues[i];

                if (!has_target_now(queue) || queue->size == 0)
                        continue;
                usec_t left = left_of(queue, reading->boot);
                need += reading->share * (double)queue->size / (1 + usec_seconds(left) / service);
                least = MIN(least, left);
        }
        return least == USEC_INFINITY ? 0 : need + reading->busy / (1 + usec_seconds(least) / service);
}

/* True if, at the current pace, all waiting jobs start in time. A rising age of the oldest job is no
 * evidence: the age also rises while a burst is worked off. */
static bool keeps_up(const struct scaling *scaling, const struct scaling_verdict *verdict)
{
        return scaling->recent_growth < 0 &&
               usec_seconds(verdict->age) - (double)verdict->waiting / scaling->recent_growth <=
                       usec_seconds(verdict->target);
}

static double late(const struct scaling *scaling, const struct scaling_reading *reading,
                   const struct scaling_verdict *verdict)
{
        if (LATE * verdict->age <= verdict->target || reading->busy < FULL * reading->threads ||
            keeps_up(scaling, verdict))
                return 0;
        return reading->threads * MIN(LATE * usec_seconds(verdict->age) / usec_seconds(verdict->target), 2.0);
}

/* Returns the greatest need within `within`, including this one. A reload may change `within`, so
 * *ret_whole says if the slots cover all of it. */
static double fold_peak(struct scaling *scaling, double need, usec_t within, usec_t now, bool *ret_whole)
{
        usec_t length = MAX((within + SCALING_SLOTS - 2) / (SCALING_SLOTS - 1), (usec_t)1), oldest = now;
        double peak = need;

        if (scaling->slots[scaling->slot].begun_at == 0 ||
            now - scaling->slots[scaling->slot].begun_at >= length) {
                scaling->slot = (scaling->slot + 1) % SCALING_SLOTS;
                scaling->slots[scaling->slot].begun_at = now;
                scaling->slots[scaling->slot].need = need;
        }
        scaling->slots[scaling->slot].read_at = now;
        scaling->slots[scaling->slot].need = MAX(scaling->slots[scaling->slot].need, need);
        for (size_t i = 0; i < SCALING_SLOTS; i++) {
                if (scaling->slots[i].begun_at == 0)
                        continue;
                oldest = MIN(oldest, scaling->slots[i].begun_at);
                if (now - scaling->slots[i].read_at <= within)
                        peak = MAX(peak, scaling->slots[i].need);
        }
        *ret_whole = now - oldest >= within;
        return peak;
}

/* Returns the workers for a number of threads used to at most FULL; bounded, because the need has no
 * bound. */
static unsigned workers_for(double need, unsigned concurrency)
{
        double workers = MIN(need / (FULL * concurrency), (double)UINT16_MAX);
        unsigned whole = (unsigned)workers;

        return whole + (workers > whole);
}

/* Sidekiq looks for jobs that have fallen due 10 to 15 s after its boot for the first time (INITIAL_WAIT of
 * lib/sidekiq/scheduled.rb), and every few seconds then. */
#define DUE_MARGIN_USEC (16 * USEC_PER_SEC)

static bool falls_due(const struct scaling_reading *reading, const struct scaling_verdict *verdict)
{
        return verdict->due_in <= usec_add(reading->boot, DUE_MARGIN_USEC);
}

/* Idle threads elsewhere take as many jobs as they are. */
static enum scaling_cause wake_cause(const struct scaling_reading *reading,
                                     const struct scaling_verdict *verdict)
{
        if (is_unknown(reading))
                return SCALING_LEARN;
        if ((double)verdict->waiting > reading->foreign_idle)
                return SCALING_WAKE;
        return falls_due(reading, verdict) ? SCALING_DUE : SCALING_ASLEEP;
}

/* Chooses for a fleet without workers. */
static void choose_from_none(const struct scaling *scaling, const struct scaling_limits *limits,
                             const struct scaling_reading *reading, struct scaling_verdict *verdict)
{
        verdict->cause = wake_cause(reading, verdict);
        if (verdict->cause == SCALING_ASLEEP)
                return;
        double service = reading->service > 0 ? usec_seconds(reading->service) : scaling->service;
        verdict->service = (usec_t)(MIN(service, 1e9) * USEC_PER_SEC);
        verdict->need = verdict->backlog = backlog(reading, service) * reading->part;
        unsigned enough =
                verdict->cause == SCALING_WAKE ? workers_for(verdict->need, reading->concurrency) : 1;
        verdict->wanted = MIN(MIN(MAX(enough, 1U), 2U), limits->max);
}

/* Returns which of the three parts needs the most threads. */
static enum scaling_cause greatest(const struct scaling_verdict *verdict)
{
        double load = verdict->busy + verdict->growing;

        if (verdict->late > MAX(load, verdict->backlog))
                return SCALING_LATE;
        return verdict->backlog > load ? SCALING_WAITING : SCALING_LOAD;
}

/* The last worker ends once no job was there for down_after: the averages of the need never reach 0. A
 * worker that boots is not ended: with a short down_after, no boot would ever show the queues. What jobs that
 * wait need is not known before their service time is: with a short down_after, the peak lacks it. */
static bool has_too_many(const struct scaling_limits *limits, const struct scaling_reading *reading,
                         bool is_unused, const struct scaling_verdict *verdict)
{
        if (reading->count <= limits->min || reading->draining > 0 || verdict->age_unknown ||
            !verdict->peak_is_complete || verdict->need_unknown)
                return false;
        return reading->count == 1 ? is_unused && reading->active > 0
                                   : workers_for(verdict->peak, reading->concurrency) < reading->count;
}

/* is_unused: no job was there for down_after. count includes starting workers. More than twice the active
 * workers are wanted only after those have booted. */
static void choose(const struct scaling_limits *limits, const struct scaling_reading *reading, bool is_unused,
                   struct scaling_verdict *verdict)
{
        unsigned count = reading->count, most = MAX(count, 2 * MAX(reading->active, 1U));
        unsigned enough = workers_for(verdict->need, reading->concurrency);

        if (verdict->need > (double)count * reading->concurrency) {
                verdict->wanted = MIN(MIN(enough, most), MAX(limits->max, count));
                verdict->bounded_by_boot = MIN(enough, limits->max) > most;
                verdict->bounded_by_max = !verdict->bounded_by_boot && enough > limits->max;
                if (verdict->wanted > count)
                        verdict->cause = greatest(verdict);
        } else if (has_too_many(limits, reading, is_unused, verdict)) {
                verdict->wanted = count - 1;
                verdict->cause = SCALING_FEWER;
        }
}

/* A reload may put the count outside of the limits. */
static void put_within(const struct scaling_limits *limits, struct scaling_verdict *verdict)
{
        unsigned within = MIN(MAX(verdict->wanted, limits->min), limits->max);

        if (within != verdict->wanted)
                verdict->cause = SCALING_LIMITS;
        verdict->wanted = within;
}

double scaling_share(double own, double foreign, unsigned concurrency)
{
        own = MAX(own, (double)MAX(concurrency, 1U));
        return own / (own + foreign);
}

void scaling_observe(struct scaling *scaling, const struct scaling_limits *limits,
                     const struct scaling_reading *reading, usec_t now, struct scaling_verdict *ret)
{
        struct scaling_verdict verdict = {.wanted = reading->count,
                                          .due_in = USEC_INFINITY,
                                          .share = reading->share,
                                          .threads = reading->count * reading->concurrency};

        find_oldest(reading, &verdict);
        verdict.hold = find_hold(reading, &verdict);
        if (verdict.hold != SCALING_FREE) {
                scaling->read_at = 0;
                verdict.cause = SCALING_HELD;
                put_within(limits, &verdict);
                *ret = verdict;
                return;
        }
        if (reading->count == 0) {
                scaling->read_at = 0;
                choose_from_none(scaling, limits, reading, &verdict);
                put_within(limits, &verdict);
                *ret = verdict;
                return;
        }
        if (reading->busy > 0 || verdict.waiting > 0 || verdict.age_unknown || falls_due(reading, &verdict) ||
            (reading->done_known && reading->done != scaling->done))
                scaling->used_at = now;
        if (scaling->read_at == 0 ||
            now - scaling->read_at > MAX(SCALING_AVERAGE_USEC, usec_add(reading->every, reading->every)))
                begin(scaling, reading, verdict.waiting, now);
        else if (now > scaling->read_at)
                fold(scaling, reading, verdict.waiting, now);

        double service = service_of(scaling, reading, now);
        verdict.service = (usec_t)(MIN(service, 1e9) * USEC_PER_SEC);
        verdict.busy = scaling->busy;
        verdict.growing = growing(scaling, reading, service, verdict.target);
        verdict.backlog = backlog(reading, service);
        verdict.need_unknown = verdict.waiting > 0 && service <= 0 && is_young(scaling, now);
        verdict.late = late(scaling, reading, &verdict);
        double all = MAX(MAX(verdict.busy + verdict.growing, verdict.backlog), verdict.late);
        verdict.need = MAX(all - reading->foreign_idle, 0.0) * reading->part;
        verdict.peak = fold_peak(scaling, verdict.need, limits->down_after, now, &verdict.peak_is_complete);
        choose(limits, reading, usec_sub(now, scaling->used_at) >= limits->down_after, &verdict);
        put_within(limits, &verdict);
        *ret = verdict;
}

static const char *const hold_texts[] = {
        [SCALING_FREE] = "",
        [SCALING_HELD_REDIS] = "queues cannot be read",
        [SCALING_HELD_HOSTS] = "workers of other hosts are not counted yet",
        [SCALING_HELD_PAUSED] = "each served queue is paused or has no target",
        [SCALING_HELD_ROLLOUT] = "restart in progress",
        [SCALING_HELD_HALTED] = "restart halted",
        [SCALING_HELD_HEARTBEATS] = "no worker has reported its threads yet",
};
static_assert(ELEMENTSOF(hold_texts) == _SCALING_HOLD_MAX, "a text for each hold");

static const char *waiting_text(const struct scaling_verdict *verdict, char *text, size_t size)
{
        char age[FORMAT_MAX], oldest[FORMAT_MAX + 24] = "", service[FORMAT_MAX], left[FORMAT_MAX];

        if (verdict->age > 0 || !verdict->age_unknown)
                snprintf(oldest, sizeof(oldest), " (oldest %s)",
                         format_duration(verdict->age, age, sizeof(age)));
        snprintf(text, size, "%llu job%s waiting%s; at %s per job, %.1f threads start %s of them within %s",
                 (unsigned long long)verdict->waiting, plural(verdict->waiting), oldest,
                 format_duration(verdict->service, service, sizeof(service)), verdict->backlog,
                 verdict->share < 1 ? "this host's share" : "all",
                 format_duration(verdict->left, left, sizeof(left)));
        return text;
}

const char *scaling_text(const struct scaling_verdict *verdict, const struct scaling_limits *limits,
                         char text[static SCALING_TEXT_MAX])
{
        char because[SCALING_TEXT_MAX - 64] = "", age[FORMAT_MAX], target[FORMAT_MAX];
        const char *bound = verdict->bounded_by_max    ? "; active_process_max allows no more"
                            : verdict->bounded_by_boot ? "; more may follow once these workers have booted"
                                                       : "";

        format_duration(limits->down_after, age, sizeof(age));
        switch (verdict->cause) {
        case SCALING_HELD:
                snprintf(because, sizeof(because), "count kept (reason: %s)", hold_texts[verdict->hold]);
                break;
        case SCALING_LOAD:
                snprintf(because, sizeof(because),
                         "%.1f threads busy; %.1f more keep the queues from growing", verdict->busy,
                         MAX(verdict->growing, 0.0));
                break;
        case SCALING_WAITING:
                waiting_text(verdict, because, sizeof(because));
                break;
        case SCALING_LATE:
                snprintf(because, sizeof(because),
                         "all threads busy; the oldest job has waited %s of its target %s",
                         format_duration(verdict->age, age, sizeof(age)),
                         format_duration(verdict->target, target, sizeof(target)));
                break;
        case SCALING_ASLEEP:
                snprintf(because, sizeof(because), "no job waits; the next one starts a worker");
                break;
        case SCALING_LEARN:
                snprintf(because, sizeof(because), "one worker shows which queues the fleet serves");
                break;
        case SCALING_WAKE:
                snprintf(because, sizeof(because), "%llu job%s waiting, and no worker runs",
                         (unsigned long long)verdict->waiting, plural(verdict->waiting));
                break;
        case SCALING_DUE:
                snprintf(because, sizeof(because), "a scheduled job falls due in %s, and no worker runs",
                         format_duration(verdict->due_in, age, sizeof(age)));
                break;
        case SCALING_FEWER:
                snprintf(because, sizeof(because), "needed at most %.1f threads within %s", verdict->peak,
                         age);
                break;
        case SCALING_LIMITS:
                snprintf(because, sizeof(because), "count must be from %u to %u", limits->min, limits->max);
                break;
        case SCALING_KEPT:
        case _SCALING_CAUSE_MAX:
                snprintf(because, sizeof(because), "needs %.1f threads (peak %.1f %s%s), has %u",
                         verdict->need, verdict->peak, verdict->peak_is_complete ? "within " : "so far",
                         verdict->peak_is_complete ? age : "", verdict->threads);
                break;
        }
        snprintf(text, SCALING_TEXT_MAX, "%s%s", because, bound);
        return text;
}
