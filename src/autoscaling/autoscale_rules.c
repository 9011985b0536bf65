/* SPDX-License-Identifier: MIT */
/* Applies the worker count that a fleet's queues need; see the header. */
#include "autoscaling/autoscale_rules.h"
#include "advice/problem.h"
#include "base/parse.h"
#include "base/printable.h"
#include "base/text.h"
#include "continuity/codec.h"
#include "model/counts.h"
#include "model/deadlines.h"
#include "model/idle_proof.h"
#include "model/memory.h"
#include "model/preload.h"
#include "model/world.h"
#include "settings/limits.h"

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

static bool age_is_unknown(const struct queue *queue)
{
        return queue->size > 0 && !queue->latency_known;
}

/* Returns how long the oldest job has waited, as far as known. */
static usec_t age_of(const struct queue *queue)
{
        return queue->size > 0 && queue->latency_known ? queue->latency : 0;
}

static usec_t left_of(const struct queue *queue, usec_t boot)
{
        return MAX(usec_sub(queue->target, usec_add(age_of(queue), boot)), queue->target / LEAST_LEFT);
}

static bool has_target_now(const struct queue *queue)
{
        return queue->target > 0 && !queue->paused;
}

/* Finds the queue that has used up the greatest part of its target, and sums the waiting jobs. */
static void find_oldest(const struct scaling_reading *reading, struct scaling_verdict *verdict)
{
        double most = 0;

        QUEUES_FOREACH(reading->queues, queue) {
                if (!has_target_now(queue))
                        continue;
                double part = usec_seconds(age_of(queue)) / usec_seconds(queue->target);
                verdict->waiting += queue->size;
                verdict->age_unknown |= age_is_unknown(queue);
                if (queue->due_known)
                        verdict->due_in = MIN(verdict->due_in, queue->due_in);
                if (verdict->target != 0 && part <= most)
                        continue;
                most = part;
                verdict->age = age_of(queue);
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
        QUEUES_FOREACH(reading->queues, queue) {
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
        if (verdict.hold != SCALING_FREE || reading->count == 0) {
                scaling->read_at = 0;
                if (verdict.hold != SCALING_FREE)
                        verdict.cause = SCALING_HELD;
                else
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

static void waiting_text(const struct scaling_verdict *verdict, char text[static SCALING_TEXT_MAX])
{
        char oldest[FORMAT_MAX + 24] = "";

        if (verdict->age > 0 || !verdict->age_unknown)
                snprintf(oldest, sizeof(oldest), " (oldest %s)", FORMAT_DURATION(verdict->age));
        snprintf(text, SCALING_TEXT_MAX,
                 "%llu job%s waiting%s; at %s per job, %.1f threads start %s of them within %s",
                 (unsigned long long)verdict->waiting, plural(verdict->waiting), oldest,
                 FORMAT_DURATION(verdict->service), verdict->backlog,
                 verdict->share < 1 ? "this host's share" : "all", FORMAT_DURATION(verdict->left));
}

const char *scaling_text(const struct scaling_verdict *verdict, const struct scaling_limits *limits,
                         char text[static SCALING_TEXT_MAX])
{
        const char *bound = verdict->bounded_by_max    ? "; active_process_max allows no more"
                            : verdict->bounded_by_boot ? "; more may follow once these workers have booted"
                                                       : "";

        switch (verdict->cause) {
        case SCALING_HELD:
                snprintf(text, SCALING_TEXT_MAX, "count kept (reason: %s)", hold_texts[verdict->hold]);
                break;
        case SCALING_LOAD:
                snprintf(text, SCALING_TEXT_MAX, "%.1f threads busy; %.1f more keep the queues from growing",
                         verdict->busy, MAX(verdict->growing, 0.0));
                break;
        case SCALING_WAITING:
                waiting_text(verdict, text);
                break;
        case SCALING_LATE:
                snprintf(text, SCALING_TEXT_MAX,
                         "all threads busy; the oldest job has waited %s of its target %s",
                         FORMAT_DURATION(verdict->age), FORMAT_DURATION(verdict->target));
                break;
        case SCALING_ASLEEP:
                snprintf(text, SCALING_TEXT_MAX, "no job waits; the next one starts a worker");
                break;
        case SCALING_LEARN:
                snprintf(text, SCALING_TEXT_MAX, "one worker shows which queues the fleet serves");
                break;
        case SCALING_WAKE:
                snprintf(text, SCALING_TEXT_MAX, "%llu job%s waiting, and no worker runs",
                         (unsigned long long)verdict->waiting, plural(verdict->waiting));
                break;
        case SCALING_DUE:
                snprintf(text, SCALING_TEXT_MAX, "a scheduled job falls due in %s, and no worker runs",
                         FORMAT_DURATION(verdict->due_in));
                break;
        case SCALING_FEWER:
                snprintf(text, SCALING_TEXT_MAX, "needed at most %.1f threads within %s", verdict->peak,
                         FORMAT_DURATION(limits->down_after));
                break;
        case SCALING_LIMITS:
                snprintf(text, SCALING_TEXT_MAX, "count must be from %u to %u", limits->min, limits->max);
                break;
        case SCALING_KEPT:
        case _SCALING_CAUSE_MAX:
                snprintf(text, SCALING_TEXT_MAX, "needs %.1f threads (peak %.1f %s%s), has %u", verdict->need,
                         verdict->peak, verdict->peak_is_complete ? "within " : "so far",
                         verdict->peak_is_complete ? FORMAT_DURATION(limits->down_after) : "",
                         verdict->threads);
                break;
        }
        text_append(text, SCALING_TEXT_MAX, "%s", bound);
        return text;
}

/* An idle thread takes a job at once. If a job has waited this long, no thread is idle, whatever the last
 * count of idle threads was. */
#define TAKEN_USEC (5 * USEC_PER_SEC)
/* Lines for queues; further queues are only counted. */
#define LINES_QUEUES 16

static struct scaling_limits limits_of(const struct fleet *fleet)
{
        const struct fleet_settings *settings = fleet->settings;

        return (struct scaling_limits){settings->active_process_count, settings->active_process_max,
                                       settings->scale_down_after};
}

bool autoscale_any(const struct world *world, const struct link *link,
                   bool (*is_one)(const struct fleet *fleet))
{
        WORLD_FOREACH_FLEET(world, fleet)
                if (fleet->queue_link == link && is_one(fleet))
                        return true;
        return false;
}

const struct autoscale *autoscale_of(const struct fleet *fleet)
{
        static const struct autoscale nothing;

        return fleet->autoscale ?: &nothing;
}

/* Allocates the state of an autoscaled fleet unless it exists. Returns 0 or -ENOMEM. */
static int autoscale_attach(struct fleet *fleet)
{
        if (!fleet->autoscale)
                fleet->autoscale = calloc(1, sizeof(*fleet->autoscale));
        return fleet->autoscale ? 0 : -ENOMEM;
}

void autoscale_forget(struct fleet *fleet)
{
        if (!fleet->autoscale)
                return;
        queues_free(fleet->autoscale->queues);
        free(fleet->autoscale->served);
        free(fleet->autoscale);
        fleet->autoscale = NULL;
}

void autoscale_pack(const struct fleet *fleet, struct codec_writer *writer)
{
        const struct autoscale *autoscale = autoscale_of(fleet);
        uint64_t n = 0;

        if (fleet->settings->active_process_count > 0 || !autoscale->served)
                return;
        codec_write_number(writer, autoscale->concurrency);
        codec_write_number(writer, autoscale->boot);
        codec_write_number(writer, autoscale->served_generation);
        for (const char *name = autoscale->served; *name != '\0'; name += strlen(name) + 1)
                n++;
        codec_write_number(writer, n);
        for (const char *name = autoscale->served; *name != '\0'; name += strlen(name) + 1)
                codec_write_text(writer, name);
}

/* Returns a list as in struct autoscale, or NULL. */
static char *unpack_names(struct codec_reader *reader)
{
        size_t n = codec_read_number(reader, 0, QUEUES_NAMED_MAX), used = 0;
        char *names = calloc(n * (QUEUE_NAME_MAX + 1) + 2, 1);

        for (size_t i = 0; i < n && names && !reader->wrong; i++) {
                size_t length;
                const char *name = codec_read_text(reader, QUEUE_NAME_MAX, &length);

                memcpy(names + used, name, length);
                used += length > 0 ? length + 1 : 0;
        }
        return names;
}

void autoscale_unpack(struct fleet *fleet, struct codec_reader *reader)
{
        unsigned concurrency = (unsigned)codec_read_number(reader, 0, UINT16_MAX);
        usec_t boot = codec_read_number(reader, 0, USEC_PER_DAY);
        uint64_t generation = codec_read_number(reader, 0, UINT64_MAX);
        _cleanup_free_ char *names = unpack_names(reader);

        if (reader->wrong || !names || names[0] == '\0' || autoscale_attach(fleet) < 0)
                return;
        fleet->autoscale->concurrency = concurrency;
        fleet->autoscale->boot = boot;
        autoscale_serves(fleet, TAKE_PTR(names));
        fleet->autoscale->served_generation = generation;
}

void autoscale_serves(struct fleet *fleet, char *names)
{
        if (autoscale_attach(fleet) < 0) {
                free(names);
                return;
        }
        free(fleet->autoscale->served);
        fleet->autoscale->served = names;
        fleet->autoscale->served_generation = 0;
        FLEET_FOREACH_WORKER(fleet, worker)
                if (worker->state == WORKER_ACTIVE)
                        fleet->autoscale->served_generation =
                                MAX(fleet->autoscale->served_generation, worker->generation);
        if (fleet->autoscale->served_generation == 0)
                fleet->autoscale->served_generation = fleet->generation;
}

/* The next worker may serve other queues than the last ones did. */
static bool is_unserved(const struct fleet *fleet)
{
        const struct autoscale *autoscale = autoscale_of(fleet);

        return !autoscale->served || autoscale->served_generation != fleet->generation;
}

usec_t autoscale_target(const struct fleet *fleet, const char *queue)
{
        return limits_find(fleet->settings->latency_target, LIMITS_DURATION, queue);
}

static bool is_automatic(const struct fleet *fleet)
{
        return fleet_scales(fleet) && fleet->scale == 0;
}

static enum scaling_hold hold_of(const struct fleet *fleet)
{
        if (fleet->rollout.state == ROLLOUT_RUNNING)
                return SCALING_HELD_ROLLOUT;
        return fleet->rollout.state == ROLLOUT_HALTED ? SCALING_HELD_HALTED : SCALING_FREE;
}

/* True if names contains every queue that has a target for the fleet. */
static bool has_all(const struct fleet *fleet, const char *names)
{
        const struct queues *queues = autoscale_of(fleet)->queues;

        if (!queues)
                return false;
        QUEUES_FOREACH(queues, queue)
                if (autoscale_target(fleet, queue->name) > 0 && !queue_names_have(names, queue->name))
                        return false;
        return true;
}

static bool has_any(const struct fleet *fleet, const char *names)
{
        const struct queues *queues = autoscale_of(fleet)->queues;

        QUEUES_FOREACH(queues, queue)
                if (queue_names_have(names, queue->name))
                        return true;
        return false;
}

static bool serves_any(const struct fleet *fleet, const struct fleet *other)
{
        return other->queue_link == fleet->queue_link && has_any(fleet, autoscale_of(other)->served);
}

/* Returns true if the count follows the queues now: the fleet accepts jobs, is not held, and the operator has
 * set no count. */
static bool follows(const struct fleet *fleet)
{
        return fleet_scales(fleet) && fleet->scale == 0 && fleet_serves(fleet) &&
               hold_of(fleet) == SCALING_FREE;
}

/* True if the count of `other` follows the same need. */
static bool scales_with(const struct fleet *fleet, const struct fleet *other)
{
        return other == fleet || (other->queue_link == fleet->queue_link && follows(other) &&
                                  has_all(fleet, autoscale_of(other)->served));
}

/* Threads of one fleet. */
struct threads {
        unsigned busy, all; /* all: of active workers that are not deaf; busy: of draining workers, too */
};

static struct threads count_threads(const struct fleet *fleet)
{
        struct threads threads = {0};

        FLEET_FOREACH_WORKER(fleet, worker) {
                if (!worker->heartbeat.seen || worker->heartbeat.hung || worker->state == WORKER_GONE)
                        continue;
                threads.busy += worker->heartbeat.busy;
                threads.all += worker->state == WORKER_ACTIVE && !worker_is_deaf(worker)
                                       ? worker->heartbeat.concurrency
                                       : 0;
        }
        return threads;
}

/* Counts the workers of the fleet itself. */
static void count_workers(struct fleet *fleet, struct scaling_reading *reading)
{
        struct autoscale *autoscale = fleet->autoscale;
        usec_t newest = 0;

        FLEET_FOREACH_WORKER(fleet, worker) {
                reading->draining += worker_is_retiring(worker)
                                             ? worker->reason == REASON_SCALE
                                             : worker->state != WORKER_GONE &&
                                                       worker->verdict.retire_reason == REASON_SCALE;
                if (worker->state != WORKER_ACTIVE || worker->heartbeat.hung)
                        continue;
                reading->active++;
                if (worker->heartbeat.concurrency == 0 || worker->spawned_at < newest)
                        continue;
                newest = worker->spawned_at;
                autoscale->concurrency = worker->heartbeat.concurrency;
                usec_t boot = usec_sub(worker->active_at, worker->spawned_at);
                /* A longer time is no boot time: the first heartbeat was that of another process, or was
                 * missed while sqmgr did not run. */
                if (boot <= fleet->settings->boot_timeout)
                        autoscale->boot = boot;
        }
        reading->concurrency = autoscale->concurrency;
        reading->boot = autoscale->boot;
}

/* Adds the other fleets here that serve these queues. Returns the weight of all fleets that scale by them. */
static unsigned count_fleets(const struct fleet *fleet, struct scaling_reading *reading)
{
        const struct world *world = fleet->world;
        unsigned weight = 0;

        WORLD_FOREACH_FLEET(world, other) {
                struct threads threads = count_threads(other);

                if (other->queue_link == fleet->queue_link)
                        reading->done_busy += threads.busy;
                if (scales_with(fleet, other)) {
                        reading->busy += threads.busy;
                        reading->threads += threads.all;
                        weight += other->settings->active_process_max;
                } else if (serves_any(fleet, other) && threads.all > threads.busy) {
                        reading->foreign_idle += threads.all - threads.busy;
                }
        }
        return weight;
}

/* Returns the share of the waiting jobs that this host takes. Threads of other processes are known from the
 * last count only. The own threads are those at that count, too: if all hosts add workers between two counts,
 * their shares stay right. */
static double take_share(const struct fleet *fleet, const struct autoscale_reading *read, double threads)
{
        struct autoscale *autoscale = fleet->autoscale;
        bool records = fleet->settings->traits->records_workers;

        /* If counts fail, the last share stays. */
        if (autoscale->share == 0 || !records)
                autoscale->share = 1;
        if (records && read->foreign.known && autoscale->shared_at != read->foreign.counted_at) {
                /* While the first worker boots, its threads are not known yet. */
                autoscale->shared_at = threads > 0 ? read->foreign.counted_at : 0;
                autoscale->share = scaling_share(threads, read->foreign.threads, autoscale->concurrency);
        }
        return autoscale->share;
}

/* Returns the idle threads of others that are subtracted from the need. Processes that serve all of the
 * queues count in the share instead. To a sleeping fleet, idle threads of others are as good as any. */
static double idle_elsewhere(const struct fleet *fleet, const struct autoscale_reading *read,
                             const struct scaling_reading *reading)
{
        if (reading->count == 0)
                return read->foreign.idle + MAX(reading->threads - reading->busy, 0.0);
        return fleet->settings->traits->records_workers ? read->foreign.partial_idle : read->foreign.idle;
}

static unsigned fleets_beside(const struct fleet *fleet, bool scaling)
{
        unsigned n = 0;

        WORLD_FOREACH_FLEET(fleet->world, other)
                n += scaling ? scales_with(fleet, other) : other->queue_link == fleet->queue_link;
        return n;
}

/* Sets the targets of the served queues. Returns true if a job has waited, or may have waited, in one of them
 * for so long that no thread can be idle. */
static bool take_targets(const struct fleet *fleet, const struct queues *queues)
{
        bool waits = false;

        QUEUES_FOREACH(queues, queue) {
                queue->target = autoscale_target(fleet, queue->name);
                waits |= has_target_now(queue) && (age_is_unknown(queue) || age_of(queue) >= TAKEN_USEC);
        }
        return waits;
}

/* Memory for missing workers that are still to be started, of all autoscaled fleets. */
static uint64_t missing_workers_bytes(const struct world *world)
{
        uint64_t bytes = 0;

        WORLD_FOREACH_FLEET(world, fleet) {
                unsigned live = FLEET_COUNT_WORKERS(fleet, worker, worker->state <= WORKER_ACTIVE);
                unsigned target = fleet_target(fleet);

                if (fleet_scales(fleet) && target > live)
                        bytes += (target - live) * memory_expected_bytes(fleet);
        }
        return bytes;
}

/* Returns how many of the wanted workers fit into memory, at least count. */
static unsigned fit(const struct fleet *fleet, unsigned count, unsigned wanted, usec_t now)
{
        const struct world *world = fleet->world;
        uint64_t expected = memory_expected_bytes(fleet), taken;

        if (wanted <= count || world->available_bytes == 0 || expected == 0)
                return wanted;
        taken = usec_add(memory_reserved_bytes(world, now), missing_workers_bytes(world));
        while (count < wanted && !memory_is_short(world, taken, expected)) {
                taken += expected;
                count++;
        }
        return count;
}

/* Returns true if the applied count has changed. */
static bool put(struct fleet *fleet, unsigned count)
{
        unsigned before = fleet_current_count(fleet);
        char because[AUTOSCALE_TEXT_MAX];

        if (!is_automatic(fleet))
                return false;
        fleet->automatic_count = count;
        if (count == before)
                return false;
        fleet_event(fleet, EVENT_SCALED, ": %u -> %u workers: %s", before, count,
                    autoscale_text(fleet, because));
        return true;
}

static bool judge(struct fleet *fleet, struct scaling_reading *reading, usec_t now)
{
        struct autoscale *autoscale = fleet->autoscale;
        const struct scaling_limits limits = limits_of(fleet);

        autoscale->busy = reading->busy;
        autoscale->threads = reading->threads;
        autoscale->foreign_idle = reading->foreign_idle;
        autoscale->fleets = fleets_beside(fleet, true);
        autoscale->read_at = now;
        scaling_observe(&autoscale->rule, &limits, reading, now, &autoscale->verdict);
        unsigned wanted = fit(fleet, reading->count, autoscale->verdict.wanted, now);
        autoscale->bounded_by_memory = wanted < autoscale->verdict.wanted;
        autoscale->verdict.wanted = wanted;
        return put(fleet, wanted);
}

void autoscale_keep(struct fleet *fleet, struct queues *queues, usec_t now)
{
        if (autoscale_attach(fleet) < 0) {
                queues_free(queues);
                return;
        }
        queues_free(fleet->autoscale->queues);
        fleet->autoscale->queues = queues;
        fleet->autoscale->queues_at = now;
}

bool autoscale_observe(struct fleet *fleet, struct autoscale_reading *read, usec_t now)
{
        const struct scaling_limits limits = limits_of(fleet);
        unsigned count = fleet_current_count(fleet);

        autoscale_keep(fleet, TAKE_PTR(read->queues), now);
        struct autoscale *autoscale = fleet->autoscale;
        if (!autoscale)
                return false;
        autoscale->foreign_consumers = read->foreign.serving;
        /* The fleet shall accept no jobs, so waiting jobs do not show a lack of workers. */
        if (!fleet_serves(fleet)) {
                autoscale->rule.read_at = autoscale->read_at = 0;
                autoscale->bounded_by_memory = false;
                return false;
        }
        struct scaling_reading reading = {
                .queues = autoscale->queues,
                .hold = autoscale->queues ? hold_of(fleet) : SCALING_HELD_REDIS,
                /* Clamped, because the automatic count is also computed while the operator's count
                 * applies. */
                .count = MIN(MAX(count, limits.min), limits.max),
                .done_known = read->done_known && read->foreign.known && !read->foreign.any &&
                              fleets_beside(fleet, false) == 1,
                .done = read->done,
                .service = read->service,
                .every = fleet->world->settings->check_interval,
                .unserved = is_unserved(fleet),
        };
        if (reading.hold == SCALING_FREE && read->foreign.unread && fleet->settings->traits->records_workers)
                reading.hold = SCALING_HELD_HOSTS;
        count_workers(fleet, &reading);
        unsigned weight = count_fleets(fleet, &reading);
        reading.part = (double)fleet->settings->active_process_max / MAX(weight, 1U);
        reading.share = take_share(fleet, read, reading.threads);
        reading.foreign_idle += idle_elsewhere(fleet, read, &reading);
        if (autoscale->queues && take_targets(fleet, autoscale->queues))
                reading.foreign_idle = 0;
        autoscale->source = read->service > 0    ? AUTOSCALE_BY_METRICS
                            : reading.done_known ? AUTOSCALE_BY_COUNT
                                                 : AUTOSCALE_BY_NOTHING;
        return judge(fleet, &reading, now);
}

unsigned autoscale_wanted(const struct fleet *fleet)
{
        const struct autoscale *autoscale = autoscale_of(fleet);

        return autoscale->read_at != 0 ? autoscale->verdict.wanted : fleet_current_count(fleet);
}

/* How soon the next job begins after a sleep. */
#define SLEEP_TEXT_MAX 80
static const char *sleep_text(const struct fleet *fleet, char text[static SLEEP_TEXT_MAX])
{
        const struct autoscale *autoscale = autoscale_of(fleet);

        text[0] = '\0';
        if (!fleet_sleeps(fleet) || autoscale->verdict.cause != SCALING_ASLEEP)
                return text;
        if (fleet_preloads(fleet))
                snprintf(text, SLEEP_TEXT_MAX, "%s",
                         fleet_template(fleet) ? " from the template, within a second" : "");
        else if (autoscale->boot > 0)
                snprintf(text, SLEEP_TEXT_MAX, ", which boots in %s", FORMAT_DURATION(autoscale->boot));
        return text;
}

const char *autoscale_text(const struct fleet *fleet, char text[static AUTOSCALE_TEXT_MAX])
{
        const struct autoscale *autoscale = autoscale_of(fleet);
        const struct scaling_limits limits = limits_of(fleet);
        const char *because = "queues not read yet";
        char verdict[SCALING_TEXT_MAX], order[96] = "", span[SLEEP_TEXT_MAX];

        if (!fleet_serves(fleet))
                because = "count kept (reason: fleet quieted or stopped)";
        else if (autoscale->read_at != 0)
                because = scaling_text(&autoscale->verdict, &limits, verdict);
        if (!is_automatic(fleet))
                snprintf(order, sizeof(order),
                         "'sqmgrctl scale' keeps the count at %u; otherwise: ", fleet_current_count(fleet));
        snprintf(text, AUTOSCALE_TEXT_MAX, "%s%s%s", order, because,
                 autoscale->bounded_by_memory ? "; too little memory for more" : sleep_text(fleet, span));
        return text;
}

#define ADD(...) text_append(text, AUTOSCALE_TEXT_MAX, __VA_ARGS__)

#define SHOWN_MAX 80

static const char *shown(const char *name, char text[static SHOWN_MAX])
{
        snprintf(text, SHOWN_MAX, "%.79s", name);
        printable_replace(text, strlen(text), false);
        return text;
}

/* The name as it may be printed; the text is valid until the end of the enclosing block. */
#define SHOWN(name) shown(name, (char[SHOWN_MAX]){""})

static void queue_line(const struct fleet *fleet, const struct queue *queue, char *text)
{
        usec_t wanted = autoscale_target(fleet, queue->name);

        snprintf(text, AUTOSCALE_TEXT_MAX, "queue '%s'%s: %llu job%s waiting", SHOWN(queue->name),
                 queue->paused ? " (paused)" : "", (unsigned long long)queue->size, plural(queue->size));
        if (queue->size > 0 && queue->latency_known)
                ADD(", oldest %s%s", fleet->settings->traits->latency_estimated ? "about " : "",
                    FORMAT_DURATION(queue->latency));
        if (wanted > 0)
                ADD("; target %s", FORMAT_DURATION_EXACT(wanted));
        else
                ADD("; no target");
}

static void foreign_line(const struct autoscale *autoscale, char *text)
{
        snprintf(text, AUTOSCALE_TEXT_MAX, "threads: %.0f of %.0f busy", autoscale->busy, autoscale->threads);

        if (autoscale->fleets > 1)
                ADD(", of %u fleets that scale by these queues", autoscale->fleets);
        if (autoscale->foreign_consumers > 0)
                ADD("; %u other process%s serve%s these queues, too", autoscale->foreign_consumers,
                    autoscale->foreign_consumers == 1 ? "" : "es",
                    autoscale->foreign_consumers == 1 ? "s" : "");
        if (autoscale->share < 1)
                ADD("; this host takes %.0f %% of the waiting jobs", 100 * autoscale->share);
        if (autoscale->foreign_idle > 0)
                ADD("; %.0f threads idle elsewhere", autoscale->foreign_idle);
}

static void service_line(const struct autoscale *autoscale, char *text)
{
        static const char *const sources[] = {
                [AUTOSCALE_BY_NOTHING] = "",
                [AUTOSCALE_BY_METRICS] = " (source: metrics of Sidekiq)",
                [AUTOSCALE_BY_COUNT] = " (source: number of finished jobs)",
        };

        static_assert(ELEMENTSOF(sources) == _AUTOSCALE_SOURCE_MAX, "a text for each source");
        if (autoscale->verdict.service > 0)
                snprintf(text, AUTOSCALE_TEXT_MAX, "a job takes %s%s",
                         FORMAT_DURATION(autoscale->verdict.service), sources[autoscale->source]);
        else
                snprintf(text, AUTOSCALE_TEXT_MAX, "duration of a job is unknown");
        if (autoscale->concurrency > 0)
                ADD("; a worker runs %u job%s at once", autoscale->concurrency,
                    plural(autoscale->concurrency));
        if (autoscale->concurrency > 0 && autoscale->boot > 0)
                ADD(" and boots in %s", FORMAT_DURATION(autoscale->boot));
}

static void need_line(const struct fleet *fleet, char *text)
{
        const struct scaling_verdict *verdict = &autoscale_of(fleet)->verdict;

        snprintf(text, AUTOSCALE_TEXT_MAX,
                 "needed: the greatest of %.1f threads for the load, %.1f for waiting jobs, %.1f for late "
                 "jobs, less those idle elsewhere; share of this fleet: %.1f (peak %.1f %s%s)",
                 verdict->busy + verdict->growing, verdict->backlog, verdict->late, verdict->need,
                 verdict->peak, verdict->peak_is_complete ? "within " : "so far",
                 verdict->peak_is_complete ? FORMAT_DURATION(fleet->settings->scale_down_after) : "");
}

bool autoscale_line(const struct fleet *fleet, size_t i, char text[static AUTOSCALE_TEXT_MAX])
{
        const struct autoscale *autoscale = autoscale_of(fleet);
        size_t n = autoscale->queues ? MIN(autoscale->queues->n, (size_t)LINES_QUEUES) : 0;

        if (autoscale->read_at == 0)
                return false;
        if (i < n) {
                queue_line(fleet, &autoscale->queues->list[i], text);
                return true;
        }
        i -= n;
        if (n > 0 && autoscale->queues->n > n && i-- == 0) {
                snprintf(text, AUTOSCALE_TEXT_MAX, "%zu more queues", autoscale->queues->n - n);
                return true;
        }
        if (autoscale->verdict.cause == SCALING_HELD)
                return false;
        if (i == 0)
                foreign_line(autoscale, text);
        else if (i == 1)
                service_line(autoscale, text);
        else if (i == 2)
                need_line(fleet, text);
        return i <= 2;
}

/* A heartbeat may miss short jobs; a working thread takes a waiting job within this time. */
#define IDLE_USEC USEC_PER_MIN
/* At most this many queues are reported. */
#define UNSERVED_MAX 10
/* How long a queue may be served by none: a worker that is just starting may serve it. */
#define UNSERVED_USEC USEC_PER_MIN

/* Adds a problem of the fleet, with a text. */
#define ADD_PROBLEM(of_code, ...)                                                                            \
        problems_add(problems, &(struct problem){.code = (of_code), .fleet = fleet}, PROBLEM_ABOUT_FLEET,    \
                     __VA_ARGS__)

/* Reports queues with a target that no worker serves: a misspelt name, or a missing option in the worker's
 * command. */
static void find_unserved(const struct fleet *fleet, struct problems *problems)
{
        const char *served = autoscale_of(fleet)->served;
        char name[LIMITS_NAME_MAX];

        for (size_t i = 0; served && limits_name(fleet->settings->latency_target, LIMITS_DURATION, i, name);
             i++)
                if (!queue_names_have(served, name))
                        ADD_PROBLEM(PROBLEM_QUEUE_NAME_UNKNOWN,
                                    "latency_target names queue '%s', which no worker of the fleet serves",
                                    SHOWN(name));
}

/* After a job arrives, more threads take up to two polls, a heartbeat and a boot. */
static void find_short(const struct fleet *fleet, struct problems *problems)
{
        const usec_t boot = autoscale_of(fleet)->boot;
        const usec_t unseen = 2 * fleet->world->settings->check_interval + fleet->settings->traits->sent_usec;
        const struct queues *queues = boot > 0 ? autoscale_of(fleet)->queues : NULL;

        QUEUES_FOREACH(queues, queue) {
                usec_t wanted = autoscale_target(fleet, queue->name);
                /* Workers that are forked boot at once. */
                bool helps = !fleet->settings->preload && wanted >= unseen;

                if (wanted == 0 || wanted >= usec_add(unseen, boot))
                        continue;
                problems_add(
                        problems,
                        &(struct problem){.code = PROBLEM_TARGET_BELOW_BOOT,
                                          .fleet = fleet,
                                          .remedy = helps ? NULL
                                                          : "Raise latency_target or active_process_count"},
                        PROBLEM_ABOUT_FLEET,
                        "target of queue '%s' is %s, but in a burst jobs wait up to %s: it takes that long "
                        "to read the queue twice, to receive a heartbeat, and to boot a worker (%s)",
                        SHOWN(queue->name), FORMAT_DURATION(wanted), FORMAT_DURATION(usec_add(unseen, boot)),
                        FORMAT_DURATION(boot));
        }
}

static void find_long_job(const struct fleet *fleet, usec_t now, struct problems *problems)
{
        const struct queues *queues = autoscale_of(fleet)->queues;
        usec_t job = MAX(autoscale_of(fleet)->verdict.service, fleet_oldest_job_usec(fleet, now));

        QUEUES_FOREACH(queues, queue) {
                usec_t wanted = autoscale_target(fleet, queue->name);

                if (wanted == 0 || job <= wanted)
                        continue;
                ADD_PROBLEM(
                        PROBLEM_TARGET_BELOW_JOB,
                        "target of queue '%s' is %s, but jobs run for %s; while all threads run such jobs, "
                        "others wait as long",
                        SHOWN(queue->name), FORMAT_DURATION(wanted), FORMAT_DURATION(job));
        }
}

static void find_bound(const struct fleet *fleet, struct problems *problems)
{
        const struct autoscale *autoscale = autoscale_of(fleet);

        if (autoscale->read_at == 0)
                return;
        if (autoscale->verdict.bounded_by_max)
                ADD_PROBLEM(PROBLEM_AUTOSCALING_AT_MAX,
                            "needs %.1f threads, more than active_process_max = %u workers have",
                            autoscale->verdict.need, fleet->settings->active_process_max);
        if (autoscale->bounded_by_memory)
                ADD_PROBLEM(PROBLEM_AUTOSCALING_MEMORY, "needs more workers than the memory allows");
}

/* Reports queues whose jobs wait although none of the threads that serve them runs a job. */
static void find_idle(const struct fleet *fleet, struct problems *problems)
{
        const struct autoscale *autoscale = autoscale_of(fleet);
        const struct queues *queues = autoscale->read_at != 0 ? autoscale->queues : NULL;

        QUEUES_FOREACH(queues, queue) {
                usec_t wanted = autoscale_target(fleet, queue->name);

                if (wanted == 0 || queue->paused || queue->size == 0 || !queue->latency_known ||
                    queue->latency < MAX(wanted, IDLE_USEC) || autoscale->busy > 0 || autoscale->threads <= 0)
                        continue;
                ADD_PROBLEM(PROBLEM_QUEUE_STUCK,
                            "oldest job in queue '%s' has waited %s, but none of %.0f threads runs a job",
                            SHOWN(queue->name), FORMAT_DURATION(queue->latency), autoscale->threads);
        }
}

void autoscale_problems(const void *self _unused_, const struct fleet *fleet, usec_t now,
                        struct problems *problems)
{
        if (!fleet_scales(fleet))
                return;
        find_unserved(fleet, problems);
        find_short(fleet, problems);
        find_long_job(fleet, now, problems);
        find_bound(fleet, problems);
        find_idle(fleet, problems);
        if (autoscale_of(fleet)->queues_left_out)
                ADD_PROBLEM(PROBLEM_QUEUES_LEFT_OUT,
                            "workers serve more queues than sqmgr reads (%d of one server); jobs in the "
                            "others are not seen",
                            QUEUES_NAMED_MAX);
}

/* True if the queues that the fleet's workers serve are known, and none was left out. */
static bool reports_served(const struct fleet *fleet)
{
        size_t n = 0;

        for (const char *name = autoscale_of(fleet)->served; name && *name != '\0'; name += strlen(name) + 1)
                n++;
        return autoscale_of(fleet)->served ? n < QUEUES_NAMED_MAX : fleet_target(fleet) == 0;
}

static bool is_served_here(const struct world *world, const struct link *link, const char *queue)
{
        WORLD_FOREACH_FLEET(world, fleet)
                if (fleet->queue_link == link &&
                    (!reports_served(fleet) || queue_names_have(autoscale_of(fleet)->served, queue)))
                        return true;
        return false;
}

void doctor_queues(struct problems *findings, const struct world *world, const struct link *link,
                   const struct queues *queues, bool (*is_served)(const char *queue, const void *userdata),
                   const void *userdata)
{
        size_t reported = 0;

        /* Without autoscaling, the queues that the fleets serve are not determined. */
        if (!autoscale_any(world, link, fleet_scales))
                return;
        for (size_t i = 0; i < queues->n && reported < UNSERVED_MAX; i++) {
                const struct queue *queue = &queues->list[i];

                if (queue->paused || queue->size == 0 || !queue->latency_known ||
                    queue->latency < UNSERVED_USEC || is_served_here(world, link, queue->name) ||
                    is_served(queue->name, userdata))
                        continue;
                problems_note(findings, PROBLEM_WARNING, "queues",
                              "Let workers serve the queue (-q), or check what enqueues jobs there",
                              "%llu job%s waiting in queue '%s', oldest %s, but no worker serves the queue",
                              (unsigned long long)queue->size, plural(queue->size), SHOWN(queue->name),
                              FORMAT_DURATION(queue->latency));
                reported++;
        }
}
