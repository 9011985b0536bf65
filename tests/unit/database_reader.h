/* SPDX-License-Identifier: MIT */
/* A database on the loop of the test, and its answers. */
#pragma once

#include "local_reader.h"
#include "settings/settings.h"

#define SOLID_QUEUE 8
#define GOOD_JOB    9
#define ANSWERS_MAX 64

static struct reader *reader;
static struct database_starter *reader_starter; /* NULL: the database is the test */
/* Answers, by the number of the query; kind _QUERY_KIND_MAX: not answered. */
static struct answer answers[ANSWERS_MAX];
static size_t asked;

static inline void database_reader_begin(const char *url, unsigned framework)
{
        struct redis_settings settings = {.timeout = 5 * USEC_PER_SEC};
        const struct reader_options options = {.backend = &database_backend,
                                               .framework = framework,
                                               .settings = &settings,
                                               .url = url,
                                               .starter = reader_starter};

        if (!event)
                ck_assert_int_eq(sd_event_new(&event), 0);
        ck_assert_int_eq(reader_new(event, &options, &reader), 0);
        for (size_t i = 0; i < ANSWERS_MAX; i++)
                answers[i] = (struct answer){.kind = _QUERY_KIND_MAX};
        asked = 0;
}

static inline void database_reader_forget_answers(void)
{
        for (size_t i = 0; i < asked; i++) {
                if (answers[i].kind != _QUERY_KIND_MAX)
                        answer_clear(&answers[i]);
                answers[i] = (struct answer){.kind = _QUERY_KIND_MAX};
        }
        asked = 0;
}

static inline void database_reader_end(void)
{
        reader = reader_free(reader);
        database_reader_forget_answers();
}

static inline void database_reader_on_answer(struct answer *answer, void *userdata)
{
        *(struct answer *)userdata = *answer;
        /* The copy owns the members now. */
        answer->status = ANSWER_LOST;
        memset(&answer->heartbeat, 0, sizeof(*answer) - offsetof(struct answer, heartbeat));
}

/* Sends a query. Returns where its answer will be. */
static inline struct answer *ask_for(const struct query *query)
{
        ck_assert_uint_lt(asked, ANSWERS_MAX);
        ck_assert_int_eq(reader_ask(reader, query, database_reader_on_answer, &answers[asked]), 0);
        return &answers[asked++];
}

static inline struct answer *ask_text(enum query_kind kind, const char *text, uint64_t number)
{
        const struct field field = QUERY_TEXT(text);

        return ask_for(&(struct query){.kind = kind, .numbers = {number}, .texts = &field, .n_texts = 1});
}

static inline struct answer *ask_scan_of(const char *host) /* NULL: all hosts */
{
        const struct field texts[] = {QUERY_TEXT(""), QUERY_TEXT(host ?: "")};

        return ask_for(&(struct query){.kind = QUERY_SCAN, .texts = texts, .n_texts = host ? 2 : 1});
}

/* names: separated by '|'; NULL: all queues. */
static inline struct answer *ask_queues_of(const char *names)
{
        char list[1024];
        size_t length = 0;

        if (names)
                length = (size_t)snprintf(list, sizeof(list), "%s|", names);
        for (size_t i = 0; i < length; i++)
                if (list[i] == '|')
                        list[i] = '\0';
        const struct field field = {.text = list, .len = length};
        return ask_for(&(struct query){.kind = QUERY_QUEUES, .texts = &field, .n_texts = names ? 1 : 0});
}

static inline struct answer *ask_requeue_of(const char *identity, const char *thread, const char *entry,
                                            bool puts_back, uint64_t limit)
{
        const struct field texts[] = {QUERY_TEXT(identity), QUERY_TEXT(thread), QUERY_TEXT(entry),
                                      QUERY_TEXT("was killed")};

        return ask_for(&(struct query){
                .kind = QUERY_REQUEUE, .numbers = {0, puts_back, limit}, .texts = texts, .n_texts = 4});
}

static inline struct answer *ask_released_of(const char *const *entries, size_t n)
{
        struct field texts[8];

        ck_assert_uint_le(n, ELEMENTSOF(texts));
        for (size_t i = 0; i < n; i++)
                texts[i] = (struct field)QUERY_TEXT(entries[i]);
        return ask_for(&(struct query){.kind = QUERY_RELEASED, .texts = texts, .n_texts = n});
}

static inline bool is_answered(const struct answer *answer)
{
        return answer->kind != _QUERY_KIND_MAX;
}

/* Waits for the answer, and returns it. */
static inline struct answer *wait_for(struct answer *answer)
{
        run_until(is_answered(answer));
        return answer;
}

/* Describes queues as `name=size/latency`, with `?` for an unknown latency and `p` if paused. */
static inline const char *queues_text(const struct queues *queues)
{
        static char text[4096];
        size_t n = 0;

        text[0] = '\0';
        for (size_t i = 0; queues && i < queues->n && n < sizeof(text); i++) {
                const struct queue *queue = &queues->list[i];

                n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s=%llu/", i > 0 ? " " : "", queue->name,
                                      (unsigned long long)queue->size);
                if (queue->latency_known)
                        n += (size_t)snprintf(text + n, sizeof(text) - n, "%llu%s",
                                              (unsigned long long)(queue->latency / USEC_PER_SEC),
                                              queue->paused ? "p" : "");
                else
                        n += (size_t)snprintf(text + n, sizeof(text) - n, "?%s", queue->paused ? "p" : "");
        }
        return text;
}
