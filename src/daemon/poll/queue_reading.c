/* SPDX-License-Identifier: MIT */
/* Reads the queues of each server and compares them with their limits. */
#include "daemon/poll/queue_reading.h"
#include "daemon/workers/process.h"
#include "frameworks/table.h"
#include "io/clock.h"
#include "io/log.h"
#include "model/world.h"
#include <stdio.h>

const char *served_by(const struct worker *worker)
{
        const struct framework *framework = framework_of(worker->fleet->settings->traits);

        return worker->handle && worker->handle->slot && framework->queue_names
                       ? framework->queue_names(worker->handle->slot->info)
                       : NULL;
}

bool served_add_name(struct served_queues *served, const char *name)
{
        size_t length = strlen(name) + 1;

        if (queue_names_have(served->text, name))
                return true;
        if (served->n == QUEUES_NAMED_MAX || served->used + length >= sizeof(served->text))
                return false;
        memcpy(served->text + served->used, name, length);
        served->used += length;
        served->text[served->used] = '\0';
        served->n++;
        return true;
}

bool served_add(struct served_queues *served, const char *list)
{
        bool all = true;

        for (; list && *list != '\0'; list += strlen(list) + 1)
                all &= served_add_name(served, list);
        return all;
}

bool served_add_fleet(struct served_queues *served, const struct fleet *fleet)
{
        bool all = true;

        FLEET_FOREACH_WORKER(fleet, worker)
                if (worker->state == WORKER_ACTIVE)
                        all &= served_add(served, served_by(worker));
        return all;
}

void served_estimate(const struct link *link, struct queues *queues, usec_t now)
{
        if (!queues || !link->framework->traits->latency_estimated)
                return;
        _cleanup_free_ struct latency_flow *flows = calloc(queues->n + 1, sizeof(*flows));
        if (!flows)
                return;
        WORLD_FOREACH_FLEET(link->runtime->world, fleet) {
                struct served_queues served = {0};

                if (fleet->queue_link != link)
                        continue;
                (void)served_add_fleet(&served, fleet);
                latency_add(flows, queues, &fleet->work, served.text, now);
        }
        latency_judge(queues, flows, now);
}

static void on_queues(struct answer *answer, void *userdata)
{
        struct link *link = userdata;

        link->reads_queues = false;
        if (answer->status == ANSWER_OK)
                link->queues = TAKE_PTR(answer->queues.queues);
        link->queues_error = answer->error;
        served_estimate(link, link->queues, clock_now(CLOCK_MONOTONIC));
        if (link->queues)
                queues_sort(link->queues);
        wakeup_arm(link->runtime->wakeup);
}

/* A broker has no list of its queues: those that workers serve are read. */
static int ask_queues(struct link *link)
{
        struct served_queues served = {0};

        if (link->heartbeats)
                return link_read_queues(link, NULL, false, on_queues, link);
        WORLD_FOREACH_FLEET(link->runtime->world, fleet)
                if (fleet->queue_link == link)
                        (void)served_add_fleet(&served, fleet);
        return link_read_queues(link, served.text, false, on_queues, link);
}

static int read_link(struct link *link)
{
        int r = link->framework->has_queues ? ask_queues(link) : -EOPNOTSUPP;

        link->reads_queues = r >= 0;
        return r;
}

void queue_reading_begin(struct runtime *runtime)
{
        if (runtime->links.reads_queues)
                return;
        runtime->links.reads_queues = true;
        FOREACH_POINTER(link, runtime->links.list, runtime->links.n) {
                link->queues = queues_free(link->queues);
                int r = read_link(link);
                const struct error_report *error = r == -ENOTCONN ? reader_error(link->reader) : NULL;

                if (error)
                        link->queues_error = *error;
                else if (r == -EOPNOTSUPP)
                        error_report_set(&link->queues_error, "%s does not report queues",
                                         link->framework->traits->title);
                else
                        error_report_set(&link->queues_error, "%s",
                                         r >= 0           ? ""
                                         : r == -ENOTCONN ? "not connected yet"
                                                          : "out of memory");
        }
        wakeup_arm(runtime->wakeup);
}

void queue_reading_poll(struct runtime *runtime)
{
        if (queue_watch_wanted(&runtime->world->settings->redis))
                queue_reading_begin(runtime);
}

const struct error_report *queue_reading_error(const struct link *link)
{
        static const struct error_report unread = {.text = "not read yet"};

        /* A reload has added the link during the reading. */
        return !link->queues && link->queues_error.text[0] == '\0' ? &unread : &link->queues_error;
}

/* Warns that limits are not checked: unchecked limits must not look like met limits. A lost connection is
 * logged elsewhere. */
static void report_unread(struct link *link)
{
        bool refused = !link->queues && reader_state_answers(reader_state(link->reader)) &&
                       link->queues_error.text[0] != '\0';

        if (refused && !link->queues_error_reported)
                log_quoted(LOG_WARNING, &link->queues_error.quoted,
                           "%s %s: cannot read the queues: %s; queue limits are not checked", link_noun(link),
                           reader_url_text(link->reader), link->queues_error.text);
        if (refused || link->queues)
                link->queues_error_reported = refused;
}

/* Queues over their limit stay so while they cannot be read. */
static void judge(struct link *link)
{
        struct world *world = link->runtime->world;
        const struct redis_settings *settings = &world->settings->redis;
        char over[QUEUE_WATCH_TEXT_MAX], back[QUEUE_WATCH_TEXT_MAX];

        if (queue_watch_wanted(settings))
                report_unread(link);
        if (!link->queues || queue_watch_judge(&link->queue_watch, link->queues, settings, over, back) < 0)
                return;
        if (over[0] != '\0')
                world_event(world, EVENT_QUEUE_OVER, NULL, NULL, "%s %s: %s", link_noun(link),
                            reader_url_text(link->reader), over);
        if (back[0] != '\0')
                world_event(world, EVENT_QUEUE_BACK, NULL, NULL, "%s %s: within limits again: %s",
                            link_noun(link), reader_url_text(link->reader), back);
}

bool queue_reading_tick(struct runtime *runtime)
{
        if (!runtime->links.reads_queues)
                return false;
        FOREACH_POINTER(link, runtime->links.list, runtime->links.n)
                if (link->reads_queues)
                        return false;
        runtime->links.reads_queues = false;
        FOREACH_POINTER(link, runtime->links.list, runtime->links.n)
                judge(link);
        return true;
}
