/* SPDX-License-Identifier: MIT */
/* Functions for the queries that a reader of Redis answers; see the header. */
#include "reader/redis_ask.h"
#include "queries/configuration.h"
#include "reader/server.h"
#include <stdio.h>

void ask_quote_refusal(struct error_report *ret, const redisReply *reply)
{
        error_report_quote(ret, reply->str, "command refused");
}

bool ask_failed(struct ask *ask, const redisReply *reply)
{
        if (reply && reply->type != REDIS_REPLY_ERROR)
                return false;
        struct error_report error;
        if (reply)
                ask_quote_refusal(&error, reply);
        else
                error_report_set(&error, "connection lost");
        ask_fail_as(ask, reply ? ANSWER_REFUSED : ANSWER_LOST, &error);
        return true;
}

bool ask_command(struct ask *ask, redis_reply_fn callback, struct redis_command *command, bool forbiddable)
{
        struct redis *redis = ask_redis(ask);
        int r = forbiddable
                        ? redis_command_forbiddable(redis, callback, ask, command->argc, command->argv, NULL)
                        : redis_command(redis, callback, ask, command->argc, command->argv, NULL);

        command_clear(command);
        if (r < 0)
                ask_fail_errno(ask, r);
        return r >= 0;
}

struct queue_reading *ask_queue_reading(const struct ask *ask, bool named)
{
        struct redis_link *link = ask_backend(ask);

        return &link->queue_readings[named];
}

struct redis *ask_redis(const struct ask *ask)
{
        const struct redis_link *link = ask_backend(ask);

        return link->redis;
}

const struct redis_format *ask_format(const struct ask *ask)
{
        return redis_format_of(ask_configuration(ask)->framework);
}

const char *ask_namespace(const struct ask *ask)
{
        return ask_configuration(ask)->namespace;
}

sd_event *ask_event(const struct ask *ask)
{
        return reader_server_event(ask->server);
}
