/* SPDX-License-Identifier: MIT */
/* Reads the work lists of some processes; see the header. */
#include "frameworks/sidekiq/works.h"
#include "frameworks/sidekiq/format.h"
#include "frameworks/sidekiq/job.h"
#include "io/asks.h"
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

/* Which of them a process writes depends on its version: `work` from 6.4.2 on, `workers` before. */
static const char *const suffixes[] = {"work", "workers"};

/* So much takes a millisecond or two. */
#define SLICE_BYTES ((size_t)64 * 1024)
/* After all that supervises, and in turn with the clients. */
#define PRIORITY (SD_EVENT_PRIORITY_NORMAL + 10)

struct works {
        struct job_list *lists;
        size_t n_lists;
        struct asks *asks;       /* the tag of each: its list, and which of the suffixes */
        sd_event_source *decode; /* armed for each slice when there is none any more */
        size_t decoding;         /* the list that it has come to */
        char error[256];
        works_fn done;
        void *userdata;
};

static struct works *works_free(struct works *works)
{
        if (!works)
                return NULL;
        asks_free(works->asks);
        for (size_t i = 0; i < works->n_lists; i++)
                job_list_clear(&works->lists[i]);
        free(works->lists);
        sd_event_source_disable_unref(works->decode);
        free(works);
        return NULL;
}

static void too_little_memory(struct works *works)
{
        snprintf(works->error, sizeof(works->error), "there is too little memory");
}

static int on_decode(sd_event_source *source, uint64_t due _unused_, void *userdata)
{
        struct works *works = userdata;
        size_t bytes = SLICE_BYTES;

        for (; works->decoding < works->n_lists; works->decoding++) {
                int r = job_list_decode(&works->lists[works->decoding], sidekiq_job_decode, &bytes);

                if (r > 0)
                        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
                if (r < 0)
                        too_little_memory(works);
        }
        works->done(works->lists, works->error[0] != '\0' ? works->error : NULL, works->userdata);
        works_free(works);
        return 0;
}

static void take_list(struct works *works, struct job_list *list, bool old_key, const redisReply *reply)
{
        for (size_t i = 0; i + 1 < reply->elements; i += 2) {
                const redisReply *thread = reply->element[i], *entry = reply->element[i + 1];

                if (thread->type != REDIS_REPLY_STRING || entry->type != REDIS_REPLY_STRING)
                        continue;
                struct field field = {.text = thread->str, .len = thread->len};
                struct field value = {.text = entry->str, .len = entry->len};
                if (job_list_add(list, old_key, &field, &value) < 0)
                        too_little_memory(works);
        }
}

static void on_list(const redisReply *reply, size_t tag, void *userdata)
{
        struct works *works = userdata;
        const size_t each = ELEMENTSOF(suffixes);

        if (!reply)
                snprintf(works->error, sizeof(works->error), "the connection was lost");
        else if (reply->type == REDIS_REPLY_ERROR)
                snprintf(works->error, sizeof(works->error), "it answers '%s'", reply->str);
        else if (reply->type == REDIS_REPLY_ARRAY)
                take_list(works, &works->lists[tag / each], tag % each > 0, reply);
}

static void on_lists(void *userdata)
{
        struct works *works = userdata;

        (void)sd_event_source_set_enabled(works->decode, SD_EVENT_ONESHOT);
}

static int ask_list(struct works *works, const struct works_request *request, size_t tag)
{
        const size_t each = ELEMENTSOF(suffixes);
        _cleanup_free_ char *key =
                sidekiq_key(request->namespace, request->identities[tag / each], suffixes[tag % each]);
        const char *argv[] = {"HGETALL", key};

        return key ? asks_add(works->asks, request->redis, tag, ELEMENTSOF(argv), argv, NULL) : -ENOMEM;
}

static int works_read(const struct works_request *request, works_fn done, void *userdata, struct works **ret)
{
        static const struct asks_ops ops = {.reply = on_list, .done = on_lists};
        struct works *works = calloc(1, sizeof(*works));

        if (!works || !(works->lists = calloc(request->n, sizeof(*works->lists)))) {
                free(works);
                return -ENOMEM;
        }
        works->n_lists = request->n;
        works->done = done;
        works->userdata = userdata;
        int r = asks_new(&ops, works, &works->asks);
        /* Of a time long ago: a deferred source would come before all others of its priority. */
        if (r >= 0)
                r = sd_event_add_time(request->event, &works->decode, CLOCK_MONOTONIC, 0, 1, on_decode,
                                      works);
        if (r >= 0)
                r = sd_event_source_set_enabled(works->decode, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_source_set_priority(works->decode, PRIORITY);
        for (size_t i = 0; i < request->n * ELEMENTSOF(suffixes) && r >= 0; i++)
                r = ask_list(works, request, i);
        if (r < 0) {
                works_free(works);
                return r;
        }
        *ret = works;
        return 0;
}

const struct works_ops sidekiq_works = {.read = works_read, .free = works_free};
