/* SPDX-License-Identifier: MIT */
/* The command `queues`: what waits in each Redis, and for how long. */
#include "base/parse.h"
#include "base/text.h"
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/exit.h"
#include "ctl/reply.h"
#include "ctl/say.h"
#include <stdio.h>
#include <string.h>

static const char *latency_text(json_t *queue, char text[FORMAT_MAX])
{
        json_t *seconds = json_object_get(queue, "latency_seconds");

        if (!json_is_number(seconds))
                return "?";
        return format_duration((usec_t)(json_number_value(seconds) * (double)USEC_PER_SEC), text, FORMAT_MAX);
}

static bool was_read(json_t *redis)
{
        return !json_is_string(json_object_get(redis, "error"));
}

static void print_redis(json_t *redis)
{
        json_t *queues = json_object_get(redis, "queues"), *queue;
        int width = (int)strlen("QUEUE");
        size_t i;

        if (!was_read(redis)) {
                say_line("%s: cannot be read: %s", reply_string(redis, "url"), reply_string(redis, "error"));
                return;
        }
        say_line("%s: %lld to be retried, %lld scheduled, %lld dead", reply_string(redis, "url"),
                 reply_integer(redis, "retry"), reply_integer(redis, "schedule"),
                 reply_integer(redis, "dead"));
        if (json_array_size(queues) == 0) {
                printf("  no queue yet\n");
                return;
        }
        json_array_foreach(queues, i, queue) width = MAX(width, text_width(reply_string(queue, "name")));
        printf("  %-*s  %9s  %9s\n", width, "QUEUE", "SIZE", "LATENCY");
        json_array_foreach(queues, i, queue)
        {
                char latency[FORMAT_MAX];

                fputs("  ", stdout);
                text_print_cell(stdout, reply_string(queue, "name"), width);
                printf("  %9lld  %9s%s\n", reply_integer(queue, "size"), latency_text(queue, latency),
                       reply_is_true(queue, "paused") ? "  paused" : "");
        }
        if (reply_integer(redis, "queues_left_out") > 0)
                printf("  %lld more are not read\n", reply_integer(redis, "queues_left_out"));
}

int ctl_queues(struct ctl *ctl)
{
        _cleanup_json_ json_t *reply = NULL;
        json_t *redis;
        size_t i;
        int r = client_call(ctl, "GetQueues", json_object(), &reply);

        if (r != CTL_DONE)
                return r;
        if (ctl->json)
                reply_print_json(reply);
        json_array_foreach(json_object_get(reply, "redis"), i, redis)
        {
                if (!ctl->json)
                        print_redis(redis);
                if (!was_read(redis))
                        r = CTL_FAILED;
        }
        return r;
}
