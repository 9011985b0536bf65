/* SPDX-License-Identifier: MIT */
/* Hands signals to processes that read them from their server. */
#include "frameworks/decode.h"
#include "reader/redis_ask.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* As Sidekiq's own API writes a signal (Sidekiq::Process#signal): LPUSH IDENTITY-signals NAME, EXPIRE 60, as
 * one step. One command, since a MULTI that memory cuts short would leave the connection within it. */
#define EXPIRE_SECONDS "60"
static const char script[] = "redis.call('LPUSH', KEYS[1], ARGV[1])\n"
                             "return redis.call('EXPIRE', KEYS[1], ARGV[2])\n";

static void on_signal(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct ask *ask = userdata;

        if (!ask_failed(ask, reply))
                ask_done(ask);
}

void ask_signal(struct ask *ask)
{
        const struct query *query = ask_query(ask);
        const char *suffix = ask_format(ask)->signals_suffix;
        const char *name = query->numbers[0] < NSIG ? sigabbrev_np((int)query->numbers[0]) : NULL;
        _cleanup_free_ char *list = NULL;

        if (!suffix || !name || query->n_texts != 1) {
                ask_fail(ask, ANSWER_REFUSED, "the framework reads no such signal from its server");
                return;
        }
        if (asprintf(&list, "%s%s", query_text(query, 0), suffix) < 0)
                list = NULL;
        _cleanup_free_ char *key = list ? decode_key(ask_namespace(ask), list, NULL) : NULL;
        const char *argv[] = {"EVAL", script, "1", key, name, EXPIRE_SECONDS};
        int r = key ? redis_command_forbiddable(ask_redis(ask), on_signal, ask, ELEMENTSOF(argv), argv, NULL)
                    : -ENOMEM;
        if (r < 0)
                ask_fail_errno(ask, r);
}
