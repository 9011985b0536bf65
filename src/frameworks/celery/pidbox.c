/* SPDX-License-Identifier: MIT */
/* Requests to Celery workers, and their replies; see the header. */
#include "frameworks/celery/pidbox.h"
#include "base/macro.h"
#include "io/clock.h"
#include "redis/redis.h"
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* The list is collected after such pauses, the last of which is repeated until the time of the round is over.
 */
static const usec_t pauses[] = {10 * USEC_PER_MSEC, 20 * USEC_PER_MSEC, 50 * USEC_PER_MSEC,
                                100 * USEC_PER_MSEC};
#define ROUND_USEC USEC_PER_SEC
/* Seconds after which the list is gone. */
#define EXPIRY "60"
/* Requests of a round, and bytes of a request. */
#define METHODS_MAX 3
/* Elements that are read at once. Others than workers can push some. */
#define REPLIES_MAX 16384
/* A reply to one of the last requests tells when that was sent. */
#define SENT_MAX 64

struct pidbox {
        struct redis *redis;
        const struct pidbox_ops *ops;
        void *userdata;
        sd_event_source *timer;
        char *channel;
        char *reply_name;   /* as in requests */
        char *list, *taken; /* the keys of the list, and of the list that is being read */

        bool busy;
        size_t expected, received; /* replies of the round */
        size_t pause;
        usec_t ends_at;
        uint64_t number;          /* of the last request */
        uint64_t first;           /* request of the round */
        usec_t sent_at[SENT_MAX]; /* by number */
        bool refused;             /* a command of the round */
        struct error_report error;
};

static void end_round(struct pidbox *pidbox)
{
        pidbox->busy = false;
        (void)sd_event_source_set_enabled(pidbox->timer, SD_EVENT_OFF);
        if (!pidbox->refused)
                pidbox->error = (struct error_report){0};
        pidbox->ops->on_end(pidbox->userdata);
}

static void note_error(struct pidbox *pidbox, const redisReply *reply)
{
        if (!reply || reply->type != REDIS_REPLY_ERROR)
                return;
        pidbox->refused = true;
        error_report_quote(&pidbox->error, reply->str, "command refused");
}

static void on_sent(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        note_error(userdata, reply);
}

static int command(struct pidbox *pidbox, redis_reply_fn callback, int argc, const char *const argv[])
{
        return redis_command_forbiddable(pidbox->redis, callback, pidbox, argc, argv, NULL);
}

#define COMMAND(pidbox, callback, ...)                                                                       \
        command(pidbox, callback, (int)ELEMENTSOF(((const char *const[]){__VA_ARGS__})),                     \
                (const char *const[]){__VA_ARGS__})

/* Makes the list, if it is not there, and renews its expiry. */
static int keep_list(struct pidbox *pidbox)
{
        int r = COMMAND(pidbox, on_sent, "RPUSH", pidbox->list, "");

        return r < 0 ? r : COMMAND(pidbox, on_sent, "EXPIRE", pidbox->list, EXPIRY);
}

static void take_element(struct pidbox *pidbox, const redisReply *element)
{
        struct celery_reply reply = {0};

        if (element->type != REDIS_REPLY_STRING || element->len == 0)
                return;
        int r = celery_reply_decode(element->str, element->len, &reply);
        bool unreadable = (r == -EMSGSIZE || r == -EINVAL) && reply.node[0] != '\0';
        /* A number that was never sent, or so long ago that its time is not known. */
        bool known = reply.number != 0 && reply.number <= pidbox->number &&
                     pidbox->number - reply.number < SENT_MAX;
        if ((r == 0 || unreadable) && known) {
                pidbox->received += pidbox->busy && reply.number >= pidbox->first;
                pidbox->ops->on_reply(&reply, r == 0, pidbox->sent_at[reply.number % SENT_MAX],
                                      pidbox->userdata);
        }
        celery_reply_clear(&reply);
}

static void arm(struct pidbox *pidbox, usec_t now)
{
        usec_t pause = pauses[MIN(pidbox->pause, ELEMENTSOF(pauses) - 1)];

        pidbox->pause++;
        (void)sd_event_source_set_time(pidbox->timer, usec_add(now, pause));
        (void)sd_event_source_set_enabled(pidbox->timer, SD_EVENT_ONESHOT);
}

static void on_replies(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct pidbox *pidbox = userdata;
        usec_t now = clock_now(CLOCK_MONOTONIC);

        note_error(pidbox, reply);
        for (size_t i = 0; reply && reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++)
                take_element(pidbox, reply->element[i]);
        if (!pidbox->busy)
                return;
        if (!reply || pidbox->received >= pidbox->expected || now >= pidbox->ends_at)
                end_round(pidbox);
        else
                arm(pidbox, now);
}

/* The list is renamed before it is read: no reply is lost between reading and deleting. */
static int collect(struct pidbox *pidbox)
{
        char last[16];

        snprintf(last, sizeof(last), "%d", REPLIES_MAX - 1);
        int r = COMMAND(pidbox, on_sent, "RENAME", pidbox->list, pidbox->taken);
        if (r >= 0)
                r = keep_list(pidbox);
        if (r >= 0)
                r = COMMAND(pidbox, on_replies, "LRANGE", pidbox->taken, "0", last);
        if (r >= 0)
                r = COMMAND(pidbox, on_sent, "DEL", pidbox->taken);
        return r;
}

static int on_timer(sd_event_source *source _unused_, uint64_t due _unused_, void *userdata)
{
        struct pidbox *pidbox = userdata;

        if (pidbox->busy && collect(pidbox) < 0)
                end_round(pidbox);
        return 0;
}

int pidbox_new(sd_event *event, struct redis *redis, const struct celery_names *names,
               const struct pidbox_ops *ops, void *userdata, struct pidbox **ret)
{
        struct pidbox *pidbox = calloc(1, sizeof(*pidbox));
        uint64_t random[2];

        if (!pidbox)
                return -ENOMEM;
        *pidbox = (struct pidbox){.redis = redis, .ops = ops, .userdata = userdata};
        int r = getrandom(random, sizeof(random), 0) == sizeof(random) ? 0 : -EIO;
        if (r >= 0 && asprintf(&pidbox->reply_name, "sqmgr.%016jx%016jx", (uintmax_t)random[0],
                               (uintmax_t)random[1]) < 0) {
                pidbox->reply_name = NULL;
                r = -ENOMEM;
        }
        if (r >= 0) {
                pidbox->channel = celery_request_channel(names);
                pidbox->list = celery_list_key(names, pidbox->reply_name);
                if (!pidbox->list || asprintf(&pidbox->taken, "%s.read", pidbox->list) < 0)
                        pidbox->taken = NULL;
                r = pidbox->channel && pidbox->taken ? 0 : -ENOMEM;
        }
        if (r >= 0)
                r = sd_event_add_time(event, &pidbox->timer, CLOCK_MONOTONIC, 0, 1, on_timer, pidbox);
        if (r >= 0)
                r = sd_event_source_set_enabled(pidbox->timer, SD_EVENT_OFF);
        if (r < 0) {
                pidbox_free(pidbox);
                return r;
        }
        *ret = pidbox;
        return 0;
}

struct pidbox *pidbox_free(struct pidbox *pidbox)
{
        if (!pidbox)
                return NULL;
        sd_event_source_disable_unref(pidbox->timer);
        free(pidbox->channel);
        free(pidbox->reply_name);
        free(pidbox->list);
        free(pidbox->taken);
        free(pidbox);
        return NULL;
}

int pidbox_send(struct pidbox *pidbox, const struct celery_request *request)
{
        char *message;
        int r = celery_request_encode(request, &message);

        if (r < 0)
                return r;
        r = COMMAND(pidbox, on_sent, "PUBLISH", pidbox->channel, message);
        free(message);
        return r;
}

int pidbox_begin(struct pidbox *pidbox, const struct pidbox_round *round)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);

        if (pidbox->busy)
                return -EBUSY;
        int r = keep_list(pidbox);
        pidbox->first = pidbox->number + 1;
        for (size_t i = 0; i < round->n_methods && r >= 0; i++) {
                const struct celery_request request = {
                        .method = round->methods[i],
                        .nodes = round->nodes,
                        .n_nodes = round->n_nodes,
                        .reply_list = pidbox->reply_name,
                        .number = ++pidbox->number,
                };

                pidbox->sent_at[pidbox->number % SENT_MAX] = now;
                r = pidbox_send(pidbox, &request);
        }
        if (r < 0)
                return r;
        pidbox->busy = true;
        pidbox->refused = false;
        pidbox->received = pidbox->pause = 0;
        pidbox->expected = round->nodes ? round->n_methods * round->n_nodes : SIZE_MAX;
        pidbox->ends_at = usec_add(now, ROUND_USEC);
        arm(pidbox, now);
        return 0;
}

bool pidbox_is_busy(const struct pidbox *pidbox)
{
        return pidbox->busy;
}

const struct error_report *pidbox_error(const struct pidbox *pidbox)
{
        return pidbox->error.text[0] != '\0' ? &pidbox->error : NULL;
}
