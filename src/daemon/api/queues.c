/* SPDX-License-Identifier: MIT */
/* Has the queues of each Redis read, for those who ask and against their limits. One reading of all serves
 * whoever asks while it lasts. */
#include "frameworks/sidekiq/queues.h"
#include "daemon/supervisor.h"
#include "io/log.h"
#include "model/world.h"
#include "wire/varlink.h"
#include <string.h>

#define CALLS_MAX 64

struct queue_reading {
        struct {
                struct call *call;
                bool metrics; /* it asks for these, the queues among them */
        } calls[CALLS_MAX];   /* to be answered when all are in */
        size_t n_calls;
        bool under_way;
};

static void on_queues(struct queues *queues, const char *error, void *userdata)
{
        struct link *link = userdata;

        link->queues = queues;
        snprintf(link->queues_error, sizeof(link->queues_error), "%s", error != NULL ? error : "");
        link->queues_read = queues_read_free(link->queues_read);
        supervisor_arm_turn(link->supervisor);
}

static void begin(struct supervisor *supervisor)
{
        supervisor->queue_reading->under_way = true;
        for (size_t i = 0; i < supervisor->n_links; i++) {
                struct link *link = supervisor->links[i];
                const char *error = redis_error(link->redis);

                link->queues = queues_free(link->queues);
                link->queues_error[0] = '\0';
                int r = queues_read_start(link->redis, supervisor->settings->redis.namespace, on_queues, link,
                                          &link->queues_read);
                if (r == -ENOTCONN)
                        snprintf(link->queues_error, sizeof(link->queues_error), "%s",
                                 error != NULL ? error : "it is not connected yet");
                else if (r < 0)
                        snprintf(link->queues_error, sizeof(link->queues_error), "memory is short");
        }
        supervisor_arm_turn(supervisor);
}

static json_t *render_queues(const struct link *link)
{
        _cleanup_json_ json_t *list = json_array();

        for (size_t i = 0; link->queues != NULL && i < link->queues->n; i++) {
                const struct queue *queue = &link->queues->list[i];
                double latency = (double)(queue->latency / USEC_PER_MSEC) / 1000;
                json_t *entry = json_pack("{s:o, s:I, s:o, s:b}", "name", varlink_name(queue->name), "size",
                                          (json_int_t)queue->size, "latency_seconds",
                                          queue->latency_known ? json_real(latency) : json_null(), "paused",
                                          (int)queue->paused);

                if (json_array_append_new(list, entry) < 0)
                        return NULL;
        }
        return TAKE_PTR(list);
}

/* "": they were read. */
static const char *error_of(const struct link *link)
{
        bool unread = link->queues == NULL && link->queues_error[0] == '\0';

        /* A reload has added it meanwhile. */
        return unread ? "it was not read yet" : link->queues_error;
}

static json_t *render(const struct supervisor *supervisor)
{
        _cleanup_json_ json_t *list = json_array();

        for (size_t i = 0; i < supervisor->n_links; i++) {
                const struct link *link = supervisor->links[i];
                const struct queues none = {0}, *queues = link->queues != NULL ? link->queues : &none;
                json_t *entry = json_pack("{s:o, s:o, s:I, s:I, s:I, s:o, s:I}", "url",
                                          varlink_text(redis_url_text(link->redis)), "error",
                                          varlink_text(error_of(link)), "retry", (json_int_t)queues->retry,
                                          "schedule", (json_int_t)queues->schedule, "dead",
                                          (json_int_t)queues->dead, "queues", render_queues(link),
                                          "queues_left_out", (json_int_t)queues->left_out);

                if (json_array_append_new(list, entry) < 0)
                        return NULL;
        }
        return json_pack("{s:O}", "redis", list);
}

static void reply(const struct supervisor *supervisor, struct call *call)
{
        const struct link *first = supervisor->links[0];
        char reason[512];

        for (size_t i = 0; i < supervisor->n_links; i++)
                if (supervisor->links[i]->queues != NULL) {
                        server_reply(call, render(supervisor), false);
                        return;
                }
        snprintf(reason, sizeof(reason), "the queues of Redis %s cannot be read: %s",
                 redis_url_text(first->redis), error_of(first));
        server_reply_error(call, CONTROL_REFUSED,
                           json_pack("{s:o, s:[]}", "reason", varlink_text(reason), "details"));
}

/* Limits that nothing is compared with must not look like limits that are kept. That Redis is away is told
 * elsewhere. */
static void tell_unread(struct link *link)
{
        bool refused = link->queues == NULL && redis_state(link->redis) == REDIS_STATE_CONNECTED &&
                       link->queues_error[0] != '\0';

        if (refused && !link->queues_error_told)
                log_warning("Redis %s: its queues cannot be read, and their limits are not watched: %s",
                            redis_url_text(link->redis), link->queues_error);
        if (refused || link->queues != NULL)
                link->queues_error_told = refused;
}

/* While it cannot be read what was over stays so. */
static void judge(struct link *link)
{
        struct supervisor *supervisor = link->supervisor;
        char over[QUEUE_WATCH_TEXT_MAX], back[QUEUE_WATCH_TEXT_MAX];

        if (queue_watch_wanted(&supervisor->settings->redis))
                tell_unread(link);
        if (link->queues == NULL ||
            queue_watch_judge(&link->queue_watch, link->queues, &supervisor->settings->redis, over, back) < 0)
                return;
        if (over[0] != '\0')
                world_event(supervisor->world, EVENT_QUEUE_OVER, NULL, NULL, "Redis %s: %s",
                            redis_url_text(link->redis), over);
        if (back[0] != '\0')
                world_event(supervisor->world, EVENT_QUEUE_BACK, NULL, NULL,
                            "Redis %s: within its limits again: %s", redis_url_text(link->redis), back);
}

void queues_turn(struct supervisor *supervisor)
{
        struct queue_reading *reading = supervisor->queue_reading;

        if (!reading->under_way)
                return;
        for (size_t i = 0; i < supervisor->n_links; i++)
                if (supervisor->links[i]->queues_read != NULL)
                        return;
        reading->under_way = false;
        for (size_t i = 0; i < supervisor->n_links; i++)
                judge(supervisor->links[i]);
        while (reading->n_calls > 0) {
                struct call *call = reading->calls[--reading->n_calls].call;

                if (reading->calls[reading->n_calls].metrics)
                        control_reply_metrics(supervisor->control, call);
                else
                        reply(supervisor, call);
        }
}

void queues_look(struct supervisor *supervisor)
{
        if (!supervisor->queue_reading->under_way && queue_watch_wanted(&supervisor->settings->redis))
                begin(supervisor);
}

static void on_cancelled(struct call *call, void *userdata)
{
        struct queue_reading *reading = userdata;
        size_t i = 0;

        while (reading->calls[i].call != call)
                i++;
        reading->calls[i] = reading->calls[--reading->n_calls];
}

void queues_request(struct supervisor *supervisor, struct call *call, bool metrics)
{
        struct queue_reading *reading = supervisor->queue_reading;

        if (reading->n_calls == CALLS_MAX) {
                server_reply_error(
                        call, CONTROL_REFUSED,
                        json_pack("{s:s, s:[]}", "reason", "too many wait for this already", "details"));
                return;
        }
        reading->calls[reading->n_calls].metrics = metrics;
        reading->calls[reading->n_calls++].call = call;
        server_keep(call, on_cancelled, reading);
        if (!reading->under_way)
                begin(supervisor);
}

int queues_begin(struct supervisor *supervisor)
{
        supervisor->queue_reading = calloc(1, sizeof(*supervisor->queue_reading));
        return supervisor->queue_reading != NULL ? 0 : -ENOMEM;
}

void queues_end(struct supervisor *supervisor)
{
        assert(supervisor->queue_reading == NULL || supervisor->queue_reading->n_calls == 0);
        free(supervisor->queue_reading);
}

void queues_forget(struct link *link)
{
        queues_read_free(link->queues_read);
        queues_free(link->queues);
        queue_watch_clear(&link->queue_watch);
}
