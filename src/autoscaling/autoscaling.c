/* SPDX-License-Identifier: MIT */
/* Registers autoscaling as a subsystem of the daemon, and shows it in status, metrics and doctor. */
#include "autoscaling/autoscaling.h"
#include "daemon/poll/queue_reading.h"
#include "daemon/workers/process.h"
#include "frameworks/framework.h"
#include "io/clock.h"
#include "io/log.h"
#include "model/counts.h"
#include "model/world.h"
#include "observe/observe_deaf.h"
#include "servers/server.h"
#include "wire/metrics.h"
#include "wire/varlink.h"

/* How often the queues of a sleeping fleet are read: its first job is to begin within a second. */
#define WAKE_POLL_USEC (250 * USEC_PER_MSEC)

/* Foreign consumers read per count. Further ones are assumed to be like those read. */
#define READ_MAX 2000
/* Pages of 100 identities or more. A server can name a next page for ever. */
#define PAGES_MAX 1000
/* The pause between counts is the greatest of three: a fixed time, a multiple of the count's duration, and
 * a time per consumer found. Many consumers mean many hosts that count them. */
#define COUNT_USEC (60 * USEC_PER_SEC)
#define COUNT_DUTY 50
#define FOUND_USEC (100 * USEC_PER_MSEC)
/* If counts fail, the last result stays valid for this long after the next count was due. */
#define KEEP_USEC (5 * USEC_PER_MIN)

struct consumer {
        struct consumer *next;
        struct scaled_link *scaled;
        struct heartbeat_info *info; /* owned; NULL: the last heartbeat was not read, names no queues, or is
                                        quiet */
        unsigned threads, idle;
};

struct scaler {
        struct runtime *runtime;
        sd_event_source *timer; /* for sleeping fleets; NULL: there were none */
};

/* Adds the queues of a list that have a target for this fleet. Returns false if not all fit. */
static bool add_targets(struct served_queues *names, const char *list, const struct fleet *fleet)
{
        bool all = true;

        for (; list && *list != '\0'; list += strlen(list) + 1)
                if (autoscale_target(fleet, list) > 0)
                        all &= served_add_name(names, list);
        return all;
}

/* The queues of a fleet with a fixed count are read only while one of its workers may be deaf. */
static bool is_read(const struct fleet *fleet, usec_t now)
{
        return fleet_scales(fleet) || (!fleet->settings->removed && deaf_is_suspected(fleet, now));
}

static bool link_is_read(const struct link *link, usec_t now)
{
        WORLD_FOREACH_FLEET(link->runtime->world, fleet)
                if (fleet->queue_link == link && is_read(fleet, now))
                        return true;
        return false;
}

/* Determines the queues that the workers of a fleet serve, from what active workers reported. Returns
 * false if there are too many. */
static bool poll_served(struct fleet *fleet)
{
        struct served_queues names = {0};
        bool all = served_add_fleet(&names, fleet);

        if (names.n == 0)
                return true;
        char *copy = malloc(names.used + 1);
        if (copy) {
                memcpy(copy, names.text, names.used + 1);
                autoscale_serves(fleet, copy);
        }
        return all;
}

static bool is_ours(const struct link *link, const char *identity, size_t len)
{
        const struct world *world = link->runtime->world;
        size_t host_len;
        pid_t pid;

        if (!link->framework->identity_parse(identity, len, &host_len, &pid))
                return false;
        /* The identity of a worker that has just booted may be unknown: its pid identifies it, unless the
         * worker is in a PID namespace of its own. */
        if (link->heartbeats->match && match_has_owner(link->heartbeats->match, identity, len))
                return true;
        WORLD_FOREACH_FLEET(world, fleet)
                FLEET_FOREACH_WORKER(fleet, worker) {
                        const char *own = process_identity(worker->handle);

                        if (own ? strlen(own) == len && memcmp(own, identity, len) == 0
                                : worker->process.pid == pid || worker->process.heartbeat_pid == pid)
                                return true;
                }
        return false;
}

static void census_clear(struct consumer_list *census)
{
        for (struct consumer *consumer = census->list, *next; consumer; consumer = next) {
                next = consumer->next;
                free(consumer->info);
                free(consumer);
        }
        *census = (struct consumer_list){0};
}

static void ask(struct scaled_link *scaled, const struct query *query, reader_answer_fn callback,
                void *userdata)
{
        bool sent = reader_ask(scaled->link->reader, query, callback, userdata) == 0;

        scaled->pending += sent;
        scaled->failed |= !sent;
}

static void end(struct scaled_link *scaled)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);

        scaled->next_at = now + MAX(MAX(COUNT_USEC, COUNT_DUTY * usec_sub(now, scaled->begun_at)),
                                    FOUND_USEC * scaled->now.n_found);
        if (!scaled->failed) {
                census_clear(&scaled->counted);
                scaled->counted = scaled->now;
                scaled->counted_at = now;
                scaled->counted_until = scaled->next_at + KEEP_USEC;
                scaled->now = (struct consumer_list){0};
        }
        census_clear(&scaled->now);
}

static void on_page(struct answer *answer, void *userdata);

static void ask_page(struct scaled_link *scaled)
{
        const struct field texts[] = {QUERY_TEXT(scaled->cursor)};
        const struct query query = {.kind = QUERY_SCAN, .numbers = {1}, .texts = texts, .n_texts = 1};

        ask(scaled, &query, on_page, scaled);
        scaled->failed |= ++scaled->pages > PAGES_MAX;
}

/* Call answer_begin() first and answer_end() last for each answer. */
static void answer_begin(struct scaled_link *scaled, const struct answer *answer)
{
        scaled->pending--;
        scaled->failed |= answer->status != ANSWER_OK;
}

static void answer_end(struct scaled_link *scaled)
{
        if (scaled->pending > 0)
                return;
        /* The page and all consumers on it were answered: continue with the next page. */
        if (!scaled->failed && scaled->cursor[0] != '\0')
                ask_page(scaled);
        if (scaled->pending == 0)
                end(scaled);
}

static void on_consumer(struct answer *answer, void *userdata)
{
        struct consumer *consumer = userdata;
        struct scaled_link *scaled = consumer->scaled;
        const struct heartbeat *heartbeat = &answer->heartbeat.heartbeat;

        answer_begin(scaled, answer);
        /* A dead process may leave its identity without a heartbeat. */
        if (answer->status == ANSWER_OK && answer->heartbeat.found) {
                scaled->now.n_read++;
                if (!heartbeat->quiet)
                        consumer->info = TAKE_PTR(answer->heartbeat.info);
                consumer->threads = heartbeat->concurrency;
                consumer->idle = heartbeat->concurrency > heartbeat->busy
                                         ? heartbeat->concurrency - heartbeat->busy
                                         : 0;
        }
        answer_end(scaled);
}

static void found(struct scaled_link *scaled, const struct answer_identity *found)
{
        struct consumer_list *census = &scaled->now;
        const struct field texts[] = {QUERY_TEXT(found->identity)};
        const struct query query = {.kind = QUERY_HEARTBEAT, .numbers = {1, 1}, .texts = texts, .n_texts = 1};

        if (is_ours(scaled->link, found->identity, texts[0].len) || ++census->n_found > READ_MAX)
                return;
        struct consumer *consumer = calloc(1, sizeof(*consumer));
        if (!consumer) {
                scaled->failed = true;
                return;
        }
        *consumer = (struct consumer){.next = census->list, .scaled = scaled};
        census->list = consumer;
        ask(scaled, &query, on_consumer, consumer);
}

static void on_page(struct answer *answer, void *userdata)
{
        struct scaled_link *scaled = userdata;

        answer_begin(scaled, answer);
        memcpy(scaled->cursor, answer->scan.cursor, sizeof(scaled->cursor));
        for (size_t i = 0; i < answer->scan.n && !scaled->failed; i++)
                found(scaled, &answer->scan.list[i]);
        answer_end(scaled);
}

void foreign_consumers_poll(struct scaled_link *scaled, usec_t now)
{
        if (scaled->pending > 0 || now < scaled->next_at ||
            reader_state(scaled->link->reader) != READER_STATE_CONNECTED)
                return;
        scaled->begun_at = now;
        scaled->failed = false;
        scaled->pages = 0;
        scaled->cursor[0] = '\0';
        ask_page(scaled);
        if (scaled->pending == 0)
                scaled->next_at = now + COUNT_USEC;
}

/* Returns true if a process that serves `queues` serves any of the names. */
static bool serves(const char *queues, const char *names, bool *ret_all)
{
        bool any = false;

        *ret_all = true;
        for (; names && *names != '\0'; names += strlen(names) + 1) {
                bool has = queue_names_have(queues, names);

                any |= has;
                *ret_all &= has;
        }
        return any;
}

struct foreign_count foreign_consumers_count(const struct scaled_link *scaled, const char *names, usec_t now)
{
        const struct consumer_list *census = &scaled->counted;
        double serving = 0, each = MAX((double)census->n_found / READ_MAX, 1.0);
        struct foreign_count count = {.unread = scaled->next_at == 0, .counted_at = scaled->counted_at};

        count.known = now < scaled->counted_until;
        count.any = census->n_read > 0;
        if (!count.known)
                return count;
        for (const struct consumer *consumer = census->list; consumer; consumer = consumer->next) {
                bool all;

                if (!serves(scaled->link->framework->queue_names(consumer->info), names, &all))
                        continue;
                serving += each;
                count.idle += consumer->idle * each;
                if (all)
                        count.threads += consumer->threads * each;
                else
                        count.partial_idle += consumer->idle * each;
        }
        count.serving = (unsigned)serving;
        return count;
}

static void end_scaled_link(struct link_user *user)
{
        struct scaled_link *scaled = (struct scaled_link *)user;

        reader_forget(scaled->link->reader, scaled);
        for (struct consumer *consumer = scaled->now.list; consumer; consumer = consumer->next)
                reader_forget(scaled->link->reader, consumer);
        census_clear(&scaled->now);
        census_clear(&scaled->counted);
        queues_free(scaled->demanded.queues);
        free(scaled);
}

struct scaled_link *scaled_link_of(const struct link *link)
{
        return (struct scaled_link *)link->user;
}

/* True if the reading may wake a sleeping fleet. */
static bool has_jobs(const struct queues *queues)
{
        QUEUES_FOREACH(queues, queue)
                if (queue->size > 0 || queue->due_known)
                        return true;
        return false;
}

static void on_demand(struct answer *answer, void *userdata)
{
        struct scaled_link *scaled = userdata;
        const struct link *link = scaled->link;
        bool failed = answer->status != ANSWER_OK && autoscale_any(link->runtime->world, link, fleet_scales);

        queues_free(scaled->demanded.queues);
        scaled->demanded = answer->queues;
        answer->queues.queues = NULL;
        served_estimate(link, scaled->demanded.queues, clock_now(CLOCK_MONOTONIC));
        scaled->asked = false;
        scaled->answered = true;
        scaled->of_sleepers = scaled->for_sleepers;
        if (failed && !scaled->error_reported)
                log_quoted(LOG_WARNING, &answer->error.quoted,
                           "%s %s: autoscaling cannot read the queues: %s", link_noun(link),
                           reader_url_text(link->reader), answer->error.text);
        scaled->error_reported = failed;
        /* Nothing to decide, four times a second: the next pass takes note of it. */
        if (!scaled->of_sleepers || failed || has_jobs(scaled->demanded.queues))
                wakeup_arm(link->runtime->wakeup);
}

/* Returns NULL if memory is short. */
static struct scaled_link *join_link(struct link *link)
{
        struct scaled_link *scaled = scaled_link_of(link);

        if (scaled)
                return scaled;
        scaled = calloc(1, sizeof(*scaled));
        if (!scaled)
                return NULL;
        scaled->user.end = end_scaled_link;
        scaled->link = link;
        link->user = &scaled->user;
        return scaled;
}

/* Whether jobs are about to fall due decides when such a fleet ends its last worker, too. */
static bool may_sleep(const struct fleet *fleet)
{
        return fleet_scales(fleet) && fleet->settings->active_process_count == 0;
}

static bool link_sleeps(const struct link *link)
{
        return scaled_link_of(link) && autoscale_any(link->runtime->world, link, fleet_sleeps);
}

/* Asks for these queues. A reading of sleeping fleets alone says nothing about other fleets. */
static int ask_queues(struct scaled_link *scaled, const struct served_queues *names, bool for_sleepers)
{
        if (scaled->asked) {
                scaled->missed |= !for_sleepers && scaled->for_sleepers;
                return 0;
        }
        int r = link_read_queues(scaled->link, names->text,
                                 autoscale_any(scaled->link->runtime->world, scaled->link, may_sleep),
                                 on_demand, scaled);

        scaled->asked = r >= 0;
        scaled->for_sleepers = for_sleepers;
        scaled->missed &= for_sleepers;
        return r;
}

/* Adds the queues of all fleets. */
static void add_all(const struct link *link, struct served_queues *names, usec_t now)
{
        const struct world *world = link->runtime->world;

        WORLD_FOREACH_FLEET(world, fleet) {
                if (fleet->queue_link != link || fleet->settings->removed)
                        continue;
                bool all = poll_served(fleet);
                if (fleet_scales(fleet) && fleet->autoscale)
                        fleet->autoscale->queues_left_out =
                                !add_targets(names, fleet->autoscale->served, fleet) || !all;
        }
        /* Queues without a target are only shown, so they are added last. */
        WORLD_FOREACH_FLEET(world, fleet)
                if (fleet->queue_link == link && is_read(fleet, now))
                        (void)served_add(names, autoscale_of(fleet)->served);
}

static void poll_link(struct scaled_link *scaled, usec_t now)
{
        struct link *link = scaled->link;
        struct served_queues names = {0};

        add_all(link, &names, now);
        if (link->framework->traits->records_workers &&
            autoscale_any(link->runtime->world, link, fleet_scales))
                foreign_consumers_poll(scaled, now);
        if (ask_queues(scaled, &names, false) < 0) {
                scaled->demanded.queues = queues_free(scaled->demanded.queues);
                scaled->answered = true;
                scaled->of_sleepers = false;
                wakeup_arm(link->runtime->wakeup);
        }
}

static void poll_sleepers(struct scaled_link *scaled)
{
        const struct link *link = scaled->link;
        struct served_queues names = {0};

        /* With slow answers, each regular poll might find such a question in progress. */
        if (scaled->missed)
                add_all(link, &names, clock_now(CLOCK_MONOTONIC));
        else
                WORLD_FOREACH_FLEET(link->runtime->world, fleet)
                        if (fleet->queue_link == link && fleet_sleeps(fleet))
                                (void)add_targets(&names, autoscale_of(fleet)->served, fleet);
        /* An error shows at the next regular poll. */
        (void)ask_queues(scaled, &names, !scaled->missed);
}

/* Repeats itself while a fleet sleeps. */
static int on_wake_poll(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        const struct scaler *scaler = userdata;
        bool any = false;

        FOREACH_POINTER(link, scaler->runtime->links.list, scaler->runtime->links.n)
                if (link_sleeps(link)) {
                        poll_sleepers(scaled_link_of(link));
                        any = true;
                }
        (void)sd_event_source_set_time(source, clock_now(CLOCK_MONOTONIC) + WAKE_POLL_USEC);
        return sd_event_source_set_enabled(source, any ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

/* Has the queues of sleeping fleets polled, if there are any. */
static void arm_wake_poll(struct scaler *scaler)
{
        int enabled = SD_EVENT_OFF;
        bool any = false;

        FOREACH_POINTER(link, scaler->runtime->links.list, scaler->runtime->links.n)
                any |= link_sleeps(link);
        if (!any)
                return;
        if (!scaler->timer)
                (void)sd_event_add_time(scaler->runtime->event, &scaler->timer, CLOCK_MONOTONIC, 0, 0,
                                        on_wake_poll, scaler);
        else if (sd_event_source_get_enabled(scaler->timer, &enabled) >= 0 && enabled == SD_EVENT_OFF)
                (void)sd_event_source_set_enabled(scaler->timer, SD_EVENT_ONESHOT);
}

static void scaler_poll(void *self, usec_t now)
{
        const struct scaler *scaler = self;

        FOREACH_POINTER(link, scaler->runtime->links.list, scaler->runtime->links.n) {
                if (!link->framework->queue_names || !link_is_read(link, now))
                        continue;
                struct scaled_link *scaled = join_link(link);

                if (scaled)
                        poll_link(scaled, now);
        }
}

/* Copies the queues that the fleet serves. NULL: the reading failed, or memory is short. */
static struct queues *pick(const struct queues *read, const char *served)
{
        struct queues *picked = read ? calloc(1, sizeof(*picked)) : NULL;

        if (picked)
                picked->service = read->service;
        for (size_t i = 0; picked && i < read->n; i++) {
                const struct queue *from = &read->list[i];

                if (!queue_names_have(served, from->name))
                        continue;
                struct queue *queue = queues_add(picked, from->name, strlen(from->name));

                if (!queue)
                        return queues_free(picked);
                char *name = queue->name;
                *queue = *from;
                queue->name = name;
        }
        return picked;
}

static bool observe(const struct scaled_link *scaled, struct fleet *fleet, usec_t now)
{
        const struct autoscale *autoscale = autoscale_of(fleet);
        struct autoscale_reading reading = {
                .queues = pick(scaled->demanded.queues, autoscale->served),
                .done_known = scaled->demanded.done_known,
                .done = scaled->demanded.done,
        };

        deaf_observe_queues(
                fleet,
                &(struct deaf_reading){autoscale->queues, autoscale->queues_at, reading.queues, served_by},
                now);
        if (!fleet_scales(fleet)) {
                autoscale_keep(fleet, TAKE_PTR(reading.queues), now);
                return false;
        }
        if (reading.queues)
                reading.service = queues_service(reading.queues);
        reading.foreign = foreign_consumers_count(scaled, autoscale->served, now);
        return autoscale_observe(fleet, &reading, now);
}

static void scaler_observe(void *self, usec_t now)
{
        const struct scaler *scaler = self;
        bool changed = false;

        FOREACH_POINTER(link, scaler->runtime->links.list, scaler->runtime->links.n) {
                struct scaled_link *scaled = scaled_link_of(link);

                if (!scaled || !scaled->answered)
                        continue;
                scaled->answered = false;
                WORLD_FOREACH_FLEET(scaler->runtime->world, fleet)
                        if (fleet->queue_link == scaled->link && !fleet->settings->removed &&
                            (!scaled->of_sleepers || fleet_sleeps(fleet)))
                                changed |= observe(scaled, fleet, now);
                scaled->demanded.queues = queues_free(scaled->demanded.queues);
        }
        if (changed)
                wakeup_changed(scaler->runtime->wakeup);
        arm_wake_poll(self);
}

/* Drops the state of fleets with a fixed count and of removed fleets: freeing a fleet does not free that
 * state. */
static void scaler_join(void *self)
{
        const struct scaler *scaler = self;

        WORLD_FOREACH_FLEET(scaler->runtime->world, fleet)
                if (!fleet_scales(fleet))
                        autoscale_forget(fleet);
}

/* The state: see autoscale_pack(). */
static void scaler_pack(const void *self _unused_, const struct fleet *fleet, struct codec_writer *writer)
{
        if (fleet_scales(fleet))
                autoscale_pack(fleet, writer);
}

static void scaler_unpack(void *self _unused_, struct fleet *fleet, struct codec_reader *reader)
{
        if (fleet_scales(fleet))
                autoscale_unpack(fleet, reader);
}

static void scaler_end(void *self)
{
        struct scaler *scaler = self;

        WORLD_FOREACH_FLEET(scaler->runtime->world, fleet)
                autoscale_forget(fleet);
        sd_event_source_disable_unref(scaler->timer);
        free(scaler);
}

static int scaler_begin(struct runtime *runtime, void **ret)
{
        struct scaler *scaler = calloc(1, sizeof(*scaler));

        if (!scaler)
                return -ENOMEM;
        scaler->runtime = runtime;
        *ret = scaler;
        return 0;
}

static json_t *arithmetic(const struct fleet *fleet)
{
        _cleanup_json_ json_t *lines = json_array();
        char text[AUTOSCALE_TEXT_MAX];

        for (size_t i = 0; autoscale_line(fleet, i, text); i++)
                if (json_array_append_new(lines, varlink_text(text)) < 0)
                        return NULL;
        return TAKE_PTR(lines);
}

static int scaling_status(const void *self _unused_, const struct fleet *fleet, json_t *object)
{
        const struct fleet_settings *settings = fleet->settings;
        char because[AUTOSCALE_TEXT_MAX];

        if (!fleet_scales(fleet))
                return 0;
        json_t *scaling = json_pack(
                "{s:I, s:I, s:I, s:b, s:o, s:o}", "min", (json_int_t)settings->active_process_count, "max",
                (json_int_t)settings->active_process_max, "wanted", (json_int_t)autoscale_wanted(fleet),
                "automatic", (int)(fleet->scale == 0), "because",
                varlink_text(autoscale_text(fleet, because)), "arithmetic", arithmetic(fleet));

        return json_object_set_new(object, "scaling", scaling) < 0 ? -ENOMEM : 0;
}

static void scaling_metrics(const void *self _unused_, const struct world *world, struct metrics *metrics)
{
        static const struct {
                const char *name, *help;
        } families[] = {
                {"sqmgr_fleet_scaling_max_workers",
                 "Number of workers that the settings allow; like the other metrics of scaling, only for "
                 "autoscaled fleets."},
                {"sqmgr_fleet_scaling_wanted_workers", "Number of workers that the queues need."},
                {"sqmgr_fleet_scaling_automatic",
                 "1 if autoscaling sets the count, 0 if an operator has ordered one."},
                {"sqmgr_fleet_scaling_need_threads",
                 "Number of threads needed for running and waiting jobs; only if known."},
                {"sqmgr_fleet_scaling_oldest_ratio",
                 "Waiting time of the oldest job divided by its target, of the queue where that is the "
                 "greatest; only if known."},
        };

        for (size_t i = 0; i < ELEMENTSOF(families); i++) {
                metrics_family(metrics, families[i].name, "gauge", families[i].help);
                WORLD_FOREACH_FLEET(world, fleet) {
                        const struct scaling_verdict *verdict = &autoscale_of(fleet)->verdict;
                        bool known = autoscale_of(fleet)->read_at != 0 && verdict->cause != SCALING_HELD;
                        /* Below 0: the fleet has no such sample. */
                        const double values[ELEMENTSOF(families)] = {
                                fleet->settings->active_process_max,
                                autoscale_wanted(fleet),
                                fleet->scale == 0,
                                known ? verdict->need : -1,
                                known && verdict->target > 0 ? (double)verdict->age / (double)verdict->target
                                                             : -1,
                        };

                        if (fleet_scales(fleet) && values[i] >= 0)
                                METRICS_SAMPLE(metrics, values[i], "fleet", fleet->settings->name);
                }
        }
}

static void scaling_diagnose(const void *self _unused_, const struct fleet *fleet, struct problems *findings)
{
        char about[PROBLEM_ABOUT_MAX];

        if (!fleet_scales(fleet) || fleet->settings->traits->records_workers)
                return;
        problem_about(&(struct problem){.fleet = fleet}, about);
        problems_note(findings, PROBLEM_OK, about, NULL,
                      "scales as if this host alone served its queues, up to active_process_max = %u: "
                      "%s does not show the workers of other hosts",
                      fleet->settings->active_process_max, fleet->settings->traits->title);
}

static bool foreign_serve(const char *queue, const void *userdata)
{
        struct served_queues names = {0};

        if (!served_add_name(&names, queue))
                return true;
        struct foreign_count count =
                foreign_consumers_count(userdata, names.text, clock_now(CLOCK_MONOTONIC));
        return !count.known || count.serving > 0;
}

static void scaling_diagnose_link(const void *self _unused_, const struct link *link,
                                  struct problems *findings)
{
        const struct scaled_link *scaled = scaled_link_of(link);

        if (link->queues && scaled && link->framework->traits->records_workers)
                doctor_queues(findings, link->runtime->world, link, link->queues, foreign_serve, scaled);
}

const struct subsystem autoscaling_subsystem = {
        .name = "autoscaling",
        .begin = scaler_begin,
        .join = scaler_join,
        .poll = scaler_poll,
        .observe = scaler_observe,
        .metrics = scaling_metrics,
        .problems = autoscale_problems,
        .diagnose = scaling_diagnose,
        .diagnose_link = scaling_diagnose_link,
        .status = scaling_status,
        .pack = scaler_pack,
        .unpack = scaler_unpack,
        .end = scaler_end,
};
