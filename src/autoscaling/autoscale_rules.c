/* SPDX-License-Identifier: MIT */
/* Applies the worker count that a fleet's queues need; see the header. */
#include "autoscaling/autoscale_rules.h"
#include "base/parse.h"
#include "base/printable.h"
#include "continuity/codec.h"
#include "model/counts.h"
#include "model/fleet.h"
#include "model/freshness.h"
#include "model/memory.h"
#include "model/preload.h"
#include "model/queues.h"
#include "model/world.h"
#include "settings/limits.h"
#include <stdio.h>
#include <string.h>

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

bool autoscale_reads(const struct world *world, const struct link *link)
{
        WORLD_FOREACH_FLEET(world, fleet)
                if (fleet->queue_link == link && fleet_scales(fleet))
                        return true;
        return false;
}

const struct autoscale *autoscale_of(const struct fleet *fleet)
{
        static const struct autoscale nothing;

        return fleet->autoscale ?: &nothing;
}

int autoscale_attach(struct fleet *fleet)
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
        for (size_t i = 0; i < queues->n; i++)
                if (autoscale_target(fleet, queues->list[i].name) > 0 &&
                    !queue_names_have(names, queues->list[i].name))
                        return false;
        return true;
}

static bool has_any(const struct fleet *fleet, const char *names)
{
        const struct queues *queues = autoscale_of(fleet)->queues;

        for (size_t i = 0; queues && i < queues->n; i++)
                if (queue_names_have(names, queues->list[i].name))
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
                bool leaves = worker->state == WORKER_QUIET || worker->state == WORKER_STOPPING;

                reading->draining += leaves ? worker->reason == REASON_SCALE
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
        if (records && read->foreign_known && autoscale->shared_at != read->foreign_counted_at) {
                /* While the first worker boots, its threads are not known yet. */
                autoscale->shared_at = threads > 0 ? read->foreign_counted_at : 0;
                autoscale->share = scaling_share(threads, read->foreign_threads, autoscale->concurrency);
        }
        return autoscale->share;
}

/* Returns the idle threads of others that are subtracted from the need. Processes that serve all of the
 * queues count in the share instead. To a sleeping fleet, idle threads of others are as good as any. */
static double idle_elsewhere(const struct fleet *fleet, const struct autoscale_reading *read,
                             const struct scaling_reading *reading)
{
        if (reading->count == 0)
                return read->foreign_idle + MAX(reading->threads - reading->busy, 0.0);
        return fleet->settings->traits->records_workers ? read->foreign_partial_idle : read->foreign_idle;
}

static unsigned fleets_beside(const struct fleet *fleet, bool scaling)
{
        unsigned n = 0;

        WORLD_FOREACH_FLEET(fleet->world, other)
                n += scaling ? scales_with(fleet, other) : other->queue_link == fleet->queue_link;
        return n;
}

/* Fills list with the served queues. Returns true if a job has waited, or may have waited, in one of them for
 * so long that no thread can be idle. */
static bool take_queues(const struct fleet *fleet, struct scaling_queue *list)
{
        const struct queues *queues = autoscale_of(fleet)->queues;
        bool waits = false;

        for (size_t i = 0; i < queues->n; i++) {
                const struct queue *queue = &queues->list[i];

                list[i] = (struct scaling_queue){
                        .size = queue->size,
                        .age = queue->size > 0 && queue->latency_known ? queue->latency : 0,
                        .age_unknown = queue->size > 0 && !queue->latency_known,
                        .target = autoscale_target(fleet, queue->name),
                        .paused = queue->paused,
                        .due_known = queue->due_known,
                        .due_in = queue->due_in,
                };
                waits |= list[i].target > 0 && !queue->paused &&
                         (list[i].age_unknown || list[i].age >= TAKEN_USEC);
        }
        return waits;
}

/* Memory for missing workers that are still to be started, of all autoscaled fleets. */
static uint64_t missing_workers_bytes(const struct world *world)
{
        uint64_t bytes = 0;

        WORLD_FOREACH_FLEET(world, fleet) {
                unsigned live = 0, target = fleet_target(fleet);

                FLEET_FOREACH_WORKER(fleet, worker)
                        live += worker->state <= WORKER_ACTIVE;
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
        fleet->totals.scaled_up += count > before;
        fleet->totals.scaled_down += count < before;
        world_event(fleet->world, EVENT_SCALED, fleet, NULL, "fleet '%s': %u -> %u workers: %s",
                    fleet->settings->name, before, count, autoscale_text(fleet, because));
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
        struct scaling_queue *list = NULL;
        unsigned count = fleet_current_count(fleet);

        autoscale_keep(fleet, TAKE_PTR(read->queues), now);
        struct autoscale *autoscale = fleet->autoscale;
        if (!autoscale)
                return false;
        autoscale->foreign_consumers = read->foreign_consumers;
        /* The fleet shall accept no jobs, so waiting jobs do not show a lack of workers. */
        if (!fleet_serves(fleet)) {
                autoscale->rule.read_at = autoscale->read_at = 0;
                autoscale->bounded_by_memory = false;
                return false;
        }
        if (autoscale->queues)
                list = calloc(autoscale->queues->n + 1, sizeof(*list));
        struct scaling_reading reading = {
                .queues = list,
                .n_queues = list ? autoscale->queues->n : 0,
                .hold = list ? hold_of(fleet) : SCALING_HELD_REDIS,
                /* Clamped, because the automatic count is also computed while the operator's count
                 * applies. */
                .count = MIN(MAX(count, limits.min), limits.max),
                .done_known = read->done_known && read->foreign_known && !read->foreign_any &&
                              fleets_beside(fleet, false) == 1,
                .done = read->done,
                .service = read->service,
                .every = fleet->world->settings->check_interval,
                .unserved = is_unserved(fleet),
        };
        if (reading.hold == SCALING_FREE && read->foreign_unread && fleet->settings->traits->records_workers)
                reading.hold = SCALING_HELD_HOSTS;
        count_workers(fleet, &reading);
        unsigned weight = count_fleets(fleet, &reading);
        reading.part = (double)fleet->settings->active_process_max / MAX(weight, 1U);
        reading.share = take_share(fleet, read, reading.threads);
        reading.foreign_idle += idle_elsewhere(fleet, read, &reading);
        if (list && take_queues(fleet, list))
                reading.foreign_idle = 0;
        autoscale->source = read->service > 0    ? AUTOSCALE_BY_METRICS
                            : reading.done_known ? AUTOSCALE_BY_COUNT
                                                 : AUTOSCALE_BY_NOTHING;
        bool changed = judge(fleet, &reading, now);
        free(list);
        return changed;
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
        char boot[FORMAT_MAX];

        text[0] = '\0';
        if (!fleet_sleeps(fleet) || autoscale->verdict.cause != SCALING_ASLEEP)
                return text;
        if (fleet_preloads(fleet))
                snprintf(text, SLEEP_TEXT_MAX, "%s",
                         fleet_template(fleet) ? " from the template, within a second" : "");
        else if (autoscale->boot > 0)
                snprintf(text, SLEEP_TEXT_MAX, ", which boots in %s",
                         format_duration(autoscale->boot, boot, sizeof(boot)));
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

static void queue_line(const struct fleet *fleet, const struct queue *queue, char *text)
{
        char name[80], age[FORMAT_MAX], target[FORMAT_MAX];
        usec_t wanted = autoscale_target(fleet, queue->name);

        snprintf(name, sizeof(name), "%s", queue->name);
        printable_replace(name, strlen(name), false);
        int n = snprintf(text, AUTOSCALE_TEXT_MAX, "queue '%s'%s: %llu job%s waiting", name,
                         queue->paused ? " (paused)" : "", (unsigned long long)queue->size,
                         plural(queue->size));
        if (queue->size > 0 && queue->latency_known)
                n += snprintf(text + n, AUTOSCALE_TEXT_MAX - (size_t)n, ", oldest %s%s",
                              fleet->settings->traits->latency_estimated ? "about " : "",
                              format_duration(queue->latency, age, sizeof(age)));
        if (wanted > 0)
                snprintf(text + n, AUTOSCALE_TEXT_MAX - (size_t)n, "; target %s",
                         format_duration_exact(wanted, target, sizeof(target)));
        else
                snprintf(text + n, AUTOSCALE_TEXT_MAX - (size_t)n, "; no target");
}

static void foreign_line(const struct autoscale *autoscale, char *text)
{
        int n = snprintf(text, AUTOSCALE_TEXT_MAX, "threads: %.0f of %.0f busy", autoscale->busy,
                         autoscale->threads);

        if (autoscale->fleets > 1)
                n += snprintf(text + n, AUTOSCALE_TEXT_MAX - (size_t)n,
                              ", of %u fleets that scale by these queues", autoscale->fleets);
        if (autoscale->foreign_consumers > 0)
                n += snprintf(text + n, AUTOSCALE_TEXT_MAX - (size_t)n,
                              "; %u other process%s serve%s these queues, too", autoscale->foreign_consumers,
                              autoscale->foreign_consumers == 1 ? "" : "es",
                              autoscale->foreign_consumers == 1 ? "s" : "");
        if (autoscale->share < 1)
                n += snprintf(text + n, AUTOSCALE_TEXT_MAX - (size_t)n,
                              "; this host takes %.0f %% of the waiting jobs", 100 * autoscale->share);
        if (autoscale->foreign_idle > 0)
                snprintf(text + n, AUTOSCALE_TEXT_MAX - (size_t)n, "; %.0f threads idle elsewhere",
                         autoscale->foreign_idle);
}

static void service_line(const struct autoscale *autoscale, char *text)
{
        static const char *const sources[] = {
                [AUTOSCALE_BY_NOTHING] = "",
                [AUTOSCALE_BY_METRICS] = " (source: metrics of Sidekiq)",
                [AUTOSCALE_BY_COUNT] = " (source: number of finished jobs)",
        };
        char service[FORMAT_MAX], boot[FORMAT_MAX];
        int n;

        static_assert(ELEMENTSOF(sources) == _AUTOSCALE_SOURCE_MAX, "a text for each source");
        if (autoscale->verdict.service > 0)
                n = snprintf(text, AUTOSCALE_TEXT_MAX, "a job takes %s%s",
                             format_duration(autoscale->verdict.service, service, sizeof(service)),
                             sources[autoscale->source]);
        else
                n = snprintf(text, AUTOSCALE_TEXT_MAX, "duration of a job is unknown");
        if (autoscale->concurrency > 0)
                n += snprintf(text + n, AUTOSCALE_TEXT_MAX - (size_t)n, "; a worker runs %u job%s at once",
                              autoscale->concurrency, plural(autoscale->concurrency));
        if (autoscale->concurrency > 0 && autoscale->boot > 0)
                snprintf(text + n, AUTOSCALE_TEXT_MAX - (size_t)n, " and boots in %s",
                         format_duration(autoscale->boot, boot, sizeof(boot)));
}

static void need_line(const struct fleet *fleet, char *text)
{
        const struct scaling_verdict *verdict = &autoscale_of(fleet)->verdict;
        char span[FORMAT_MAX];

        snprintf(text, AUTOSCALE_TEXT_MAX,
                 "needed: the greatest of %.1f threads for the load, %.1f for waiting jobs, %.1f for late "
                 "jobs, less those idle elsewhere; share of this fleet: %.1f (peak %.1f %s%s)",
                 verdict->busy + verdict->growing, verdict->backlog, verdict->late, verdict->need,
                 verdict->peak, verdict->peak_is_complete ? "within " : "so far",
                 verdict->peak_is_complete
                         ? format_duration(fleet->settings->scale_down_after, span, sizeof(span))
                         : "");
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
