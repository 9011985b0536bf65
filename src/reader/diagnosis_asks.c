/* SPDX-License-Identifier: MIT */
/* Asks a server about its settings and its state for doctor, in one round trip. */
#include "reader/redis_ask.h"
#include "redis/redis_batch.h"
#include "redis/redis_info.h"
#include <hiredis/hiredis.h>
#include <stdio.h>

enum question { QUESTION_INFO, QUESTION_SAVE, QUESTION_CLIENTS, QUESTIONS };
static const struct {
        int argc;
        const char *argv[4];
} questions[] = {
        [QUESTION_INFO] = {1, {"INFO"}},
        [QUESTION_SAVE] = {3, {"CONFIG", "GET", "save"}},
        [QUESTION_CLIENTS] = {4, {"CLIENT", "LIST", "TYPE", "normal"}},
};

/* Returns the value from a reply to CONFIG GET, or NULL: an error, or an older Redis without the setting. */
static const char *setting_of(const redisReply *reply)
{
        return reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                               reply->element[1]->type == REDIS_REPLY_STRING
                       ? reply->element[1]->str
                       : NULL;
}

#define SET(array, text) snprintf((array), sizeof(array), "%s", (text))

static void on_reply(const redisReply *reply, size_t question, void *userdata)
{
        struct ask *ask = userdata;
        struct redis_facts *facts = &ask->answer.diagnosis.redis;
        const char *error = reply && reply->type == REDIS_REPLY_ERROR ? reply->str : NULL;
        const char *setting = reply ? setting_of(reply) : NULL;

        if (!reply) {
                error_report_set(&ask->answer.error, "connection lost, or no reply in time");
        } else if (question == QUESTION_INFO) {
                if (reply->type == REDIS_REPLY_STRING)
                        redis_info_take(reply->str, facts);
                else
                        quoted_set(&facts->info_error, error ?: "the reply has no text");
        } else if (question == QUESTION_CLIENTS) {
                const struct field clients = reply_text(reply);

                facts->nameless = ask_format(ask)->count_nameless(&clients, ask_namespace(ask),
                                                                  redis_database(ask_redis(ask)));
        } else {
                facts->has_save = setting;
                SET(facts->save, setting ?: "");
                quoted_set(&facts->config_error, setting ? "" : error ?: "no such setting");
        }
}

static void on_replies(void *userdata)
{
        struct ask *ask = userdata;

        redis_batch_free(ask->work);
        if (ask->answer.error.text[0] != '\0')
                ask_fail(ask, ANSWER_LOST, "connection lost, or no reply in time");
        else
                ask_done(ask);
}

void ask_diagnosis(struct ask *ask)
{
        static const struct redis_batch_ops ops = {.reply = on_reply, .done = on_replies};
        const bool asked[] = {
                [QUESTION_INFO] = true,
                [QUESTION_SAVE] = true,
                [QUESTION_CLIENTS] = ask_format(ask)->count_nameless,
        };
        struct redis_batch *batch;
        int r = redis_batch_new(&ops, ask, &batch);

        if (r < 0) {
                ask_fail_errno(ask, r);
                return;
        }
        ask->work = batch;
        static_assert(ELEMENTSOF(asked) == QUESTIONS, "an entry for each");
        for (size_t i = 0; i < QUESTIONS && r == 0; i++)
                r = !asked[i] ? 0
                              : redis_batch_add(batch, ask_redis(ask), i, questions[i].argc,
                                                questions[i].argv, NULL);
        if (r < 0)
                on_reply(NULL, 0, ask);
        if (redis_batch_pending(batch) == 0) {
                redis_batch_free(batch);
                ask_fail_errno(ask, r);
        }
}
