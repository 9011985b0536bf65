/* SPDX-License-Identifier: MIT */
/* Calls of the script that assigns leases to hosts; see the header. */
#include "rollout_hosts/call.h"
#include "io/reader.h"
#include "rollout_hosts/reply_rules.h"
#include <stdio.h>
#include <string.h>

/* Maximum number of texts in a call: the group, the operation, the caller, and the arguments of the
 * operation. */
#define TEXTS_MAX 16

struct call {
        rollout_call_fn callback;
        void *userdata;
};

/* Writes an error for an error reply of Redis, with a remedy if one is known. */
static void explain(const struct quoted *said, struct error_report *ret)
{
        static const struct {
                const char *code, *remedy;
        } remedies[] = {
                {"NOPERM", "rollouts of a group need an ACL such as `~" ROLLOUT_PREFIX
                           "* +@read +@write +eval +evalsha +time` for this user"},
                {"CROSSSLOT", "rollouts of a group do not work on Redis Cluster"},
                {"MOVED", "rollouts of a group do not work on Redis Cluster"},
                {"READONLY", "this server is a replica. Set the address of the master, or Sentinels"},
                {"ERR unknown command", "this server runs no scripts, which rollouts of a group need"},
        };

        error_report_set(ret, "Redis refuses the script");
        for (size_t i = 0; i < ELEMENTSOF(remedies); i++)
                if (quoted_has_code(said, remedies[i].code))
                        error_report_set(ret, "%s", remedies[i].remedy);
        ret->quoted = *said;
}

/* Calls back with an answer that was decoded. */
static void end_call(struct call *call, const struct answer *answer, const struct rollout_reply *reply)
{
        struct error_report error = {.text = "Redis sent an invalid reply"};
        struct rollout_answer result = {.error = &error};

        if (answer->status == ANSWER_REFUSED)
                explain(&answer->error.quoted, &error);
        else if (answer->status == ANSWER_LOST)
                result.error = &answer->error;
        else if (reply)
                result = (struct rollout_answer){
                        .reply = reply, .words = answer->words.list, .n = answer->words.n};
        call->callback(&result, call->userdata);
        free(call);
}

static void on_answer(struct answer *answer, void *userdata)
{
        const struct texts *words = &answer->words;
        struct rollout_reply reply;

        static_assert(ROLLOUT_REPLY_WORDS_MAX <= ANSWER_WORDS_MAX && ROLLOUT_TEXT_MAX < ANSWER_WORD_MAX,
                      "all of a reply is read");
        bool is_reply =
                answer->status == ANSWER_OK && rollout_reply_decode(words->list, words->n, &reply) == 0;
        end_call(userdata, answer, is_reply ? &reply : NULL);
}

static void on_glance(struct answer *answer, void *userdata)
{
        const struct field *words = answer->words.list;
        struct rollout_reply glance;
        bool is_glance = answer->status == ANSWER_OK && answer->words.n == 3;

        if (is_glance)
                rollout_reply_glance(&words[0], &words[1], &words[2], &glance);
        end_call(userdata, answer, is_glance ? &glance : NULL);
}

static int ask(const struct rollout_caller *caller, const struct query *query, reader_answer_fn decode,
               rollout_call_fn callback, void *userdata)
{
        struct call *call = malloc(sizeof(*call));

        if (!call)
                return -ENOMEM;
        *call = (struct call){.callback = callback, .userdata = userdata};
        int r = reader_ask(caller->reader, query, decode, call);
        if (r < 0)
                free(call);
        return r;
}

int rollout_call_glance(const struct rollout_caller *caller, rollout_call_fn callback, void *userdata)
{
        const struct field texts[] = {QUERY_TEXT(caller->group)};
        const struct query query = {.kind = QUERY_GLANCE, .texts = texts, .n_texts = ELEMENTSOF(texts)};

        return ask(caller, &query, on_glance, callback, userdata);
}

int rollout_call(const struct rollout_caller *caller, const char *const words[], rollout_call_fn callback,
                 void *userdata)
{
        char number[24];
        struct field texts[TEXTS_MAX] = {
                QUERY_TEXT(caller->group),    QUERY_TEXT(words[0]), QUERY_TEXT(caller->host),
                QUERY_TEXT(caller->instance), {.text = number},     QUERY_TEXT(caller->id),
        };
        struct query query = {.kind = QUERY_ROLLOUT, .texts = texts, .n_texts = 6};

        texts[4].len = (size_t)snprintf(number, sizeof(number), "%llu", (unsigned long long)caller->number);
        for (words++; *words; words++) {
                assert(query.n_texts < ELEMENTSOF(texts));
                texts[query.n_texts++] = (struct field)QUERY_TEXT(*words);
        }
        return ask(caller, &query, on_answer, callback, userdata);
}
