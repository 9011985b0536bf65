/* SPDX-License-Identifier: MIT */
/* Reads the heartbeats of a leftover worker and sends it signals through the server; see the header. */
#include "daemon/workers/leftover.h"
#include "continuity/state.h"
#include "frameworks/framework.h"
#include "frameworks/table.h"
#include "io/clock.h"
#include "io/reader.h"
#include "model/names.h"
#include "model/world.h"
#include "observe/leftover.h"
#include <string.h>

#define POLL_USEC USEC_PER_SEC

struct leftover_watch {
        struct runtime *runtime;
        const struct state_dead *dead;
        void (*done)(void *userdata);
        void *userdata;
        sd_event_source *timer;
        struct reader *reader; /* NULL: no query in progress */
        struct heartbeat heartbeat;
        struct leftover leftover;
        bool reported;
};

struct leftover_watch *leftover_watch_free(struct leftover_watch *watch)
{
        if (!watch)
                return NULL;
        if (watch->reader)
                reader_forget(watch->reader, watch);
        sd_event_source_disable_unref(watch->timer);
        free(watch);
        return NULL;
}

static struct fleet *find_fleet(const struct leftover_watch *watch)
{
        struct fleet *fleet = world_fleet(watch->runtime->world, watch->dead->fleet);

        return fleet && fleet->link ? fleet : NULL;
}

static void poll_later(struct leftover_watch *watch)
{
        (void)sd_event_source_set_time(watch->timer, usec_add(clock_now(CLOCK_MONOTONIC), POLL_USEC));
        (void)sd_event_source_set_enabled(watch->timer, SD_EVENT_ONESHOT);
}

/* Returns false if the query was not sent: the next poll tries again. */
static bool ask(struct leftover_watch *watch, const struct fleet *fleet, enum query_kind kind, int signo,
                reader_answer_fn callback)
{
        const struct field texts[] = {QUERY_TEXT(watch->dead->worker.identity)};
        const struct query query = {
                .kind = kind, .numbers = {(uint64_t)signo}, .texts = texts, .n_texts = ELEMENTSOF(texts)};

        if (reader_ask(fleet->link->reader, &query, callback, watch) < 0)
                return false;
        watch->reader = fleet->link->reader;
        return true;
}

static void on_signaled(struct answer *answer _unused_, void *userdata)
{
        struct leftover_watch *watch = userdata;

        watch->reader = NULL;
        poll_later(watch);
}

static void report(struct leftover_watch *watch, struct fleet *fleet, bool ended)
{
        const struct worker *worker = &watch->dead->worker.worker;

        if (ended != watch->reported)
                return;
        if (ended)
                world_event(fleet->world, EVENT_LEFTOVER, fleet, worker,
                            "%s (pid %d), whose client had ended, has ended", WORKER_ID(worker),
                            (int)worker->process.pid);
        else
                world_event(fleet->world, EVENT_LEFTOVER, fleet, worker,
                            "%s (pid %d) keeps running although its client has ended; quieted and stopped "
                            "through %s",
                            WORKER_ID(worker), (int)worker->process.pid,
                            fleet_settings_server(fleet->settings));
        watch->reported = true;
        wakeup_arm(watch->runtime->wakeup);
}

/* Acts on a reading. heartbeat: NULL: there is none. */
static void judge(struct leftover_watch *watch, struct fleet *fleet, const struct heartbeat *heartbeat)
{
        const struct framework *framework = framework_of(fleet->settings->traits);
        enum leftover_step step =
                leftover_observe(&watch->leftover, fleet, heartbeat, clock_now(CLOCK_MONOTONIC));

        if (step == LEFTOVER_ENDED) {
                report(watch, fleet, true);
                watch->done(watch->userdata);
                return;
        }
        if (step != LEFTOVER_WAIT)
                report(watch, fleet, false);
        if (step == LEFTOVER_WAIT ||
            !ask(watch, fleet, QUERY_SIGNAL,
                 step == LEFTOVER_QUIET ? framework->quiet_signal : framework->stop_signal, on_signaled))
                poll_later(watch);
}

/* Returns the fleet; or NULL after calling done(), or after a failed query. */
static struct fleet *take_answer(struct leftover_watch *watch, const struct answer *answer)
{
        struct fleet *fleet = find_fleet(watch);

        watch->reader = NULL;
        if (!fleet)
                watch->done(watch->userdata);
        else if (answer->status != ANSWER_OK)
                poll_later(watch);
        return fleet && answer->status == ANSWER_OK ? fleet : NULL;
}

static void on_work_list(struct answer *answer, void *userdata)
{
        struct leftover_watch *watch = userdata;
        struct fleet *fleet = take_answer(watch, answer);

        if (!fleet)
                return;
        watch->heartbeat.work_list_known = answer->work_list.known;
        watch->heartbeat.work_list_empty = answer->work_list.empty;
        judge(watch, fleet, &watch->heartbeat);
}

static void on_heartbeat(struct answer *answer, void *userdata)
{
        struct leftover_watch *watch = userdata;
        struct fleet *fleet = take_answer(watch, answer);

        if (!fleet)
                return;
        watch->heartbeat = answer->heartbeat.heartbeat;
        if (!answer->heartbeat.found)
                judge(watch, fleet, NULL);
        else if (!ask(watch, fleet, QUERY_WORK_LIST, 0, on_work_list))
                poll_later(watch);
}

static int on_timer(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct leftover_watch *watch = userdata;
        struct fleet *fleet = find_fleet(watch);
        const char *identity = watch->dead->worker.identity;

        if (!fleet)
                watch->done(watch->userdata);
        /* While a worker has it, as after an adoption, that worker is sent the signals. */
        else if (match_has_owner(fleet->link->heartbeats->match, identity, strlen(identity)) ||
                 !ask(watch, fleet, QUERY_HEARTBEAT, 0, on_heartbeat))
                poll_later(watch);
        return 0;
}

int leftover_watch_new(struct runtime *runtime, const struct state_dead *dead, void (*done)(void *userdata),
                       void *userdata, struct leftover_watch **ret)
{
        struct leftover_watch *watch = calloc(1, sizeof(*watch));

        if (!watch)
                return -ENOMEM;
        *watch = (struct leftover_watch){
                .runtime = runtime,
                .dead = dead,
                .done = done,
                .userdata = userdata,
                .leftover.since = clock_now(CLOCK_MONOTONIC),
        };
        int r = sd_event_add_time_relative(runtime->event, &watch->timer, CLOCK_MONOTONIC, 0, 0, on_timer,
                                           watch);
        if (r < 0) {
                free(watch);
                return r;
        }
        *ret = watch;
        return 0;
}
