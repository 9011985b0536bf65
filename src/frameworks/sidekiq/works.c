/* SPDX-License-Identifier: MIT */
/* Reads the work lists of some processes; see the header. */
#include "frameworks/sidekiq/works.h"
#include "frameworks/sidekiq/format.h"
#include "frameworks/sidekiq/job.h"
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
        size_t pending;          /* commands without a reply */
        sd_event_source *decode; /* armed for each slice when there is none any more */
        size_t decoding;         /* the list that it has come to */
        char error[256];
        works_fn done; /* NULL: given up */
        void *userdata;
};

struct ask {
        struct works *works;
        size_t list;
        bool old_key;
};

static void works_destroy(struct works *works)
{
        for (size_t i = 0; i < works->n_lists; i++)
                job_list_clear(&works->lists[i]);
        free(works->lists);
        sd_event_source_disable_unref(works->decode);
        free(works);
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
        works_destroy(works);
        return 0;
}

static void take_list(struct works *works, const struct ask *ask, const redisReply *reply)
{
        for (size_t i = 0; i + 1 < reply->elements; i += 2) {
                const redisReply *thread = reply->element[i], *entry = reply->element[i + 1];

                if (thread->type != REDIS_REPLY_STRING || entry->type != REDIS_REPLY_STRING)
                        continue;
                struct field field = {.text = thread->str, .len = thread->len};
                struct field value = {.text = entry->str, .len = entry->len};
                if (job_list_add(&works->lists[ask->list], ask->old_key, &field, &value) < 0)
                        too_little_memory(works);
        }
}

static void on_list(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct ask *ask = userdata;
        struct works *works = ask->works;

        if (!reply)
                snprintf(works->error, sizeof(works->error), "the connection was lost");
        else if (reply->type == REDIS_REPLY_ERROR)
                snprintf(works->error, sizeof(works->error), "it answers '%s'", reply->str);
        else if (reply->type == REDIS_REPLY_ARRAY)
                take_list(works, ask, reply);
        free(ask);
        if (--works->pending > 0)
                return;
        if (!works->done)
                works_destroy(works);
        else
                (void)sd_event_source_set_enabled(works->decode, SD_EVENT_ONESHOT);
}

static int ask_list(struct works *works, const struct works_request *request, size_t list, bool old_key)
{
        _cleanup_free_ char *key =
                sidekiq_key(request->namespace, request->identities[list], suffixes[old_key]);
        struct ask *ask = malloc(sizeof(*ask));
        const char *argv[] = {"HGETALL", key};
        int r = -ENOMEM;

        if (key && ask) {
                *ask = (struct ask){.works = works, .list = list, .old_key = old_key};
                r = redis_command_forbiddable(request->redis, on_list, ask, ELEMENTSOF(argv), argv, NULL);
        }
        if (r < 0)
                free(ask);
        else
                works->pending++;
        return r;
}

static int works_read(const struct works_request *request, works_fn done, void *userdata, struct works **ret)
{
        struct works *works = calloc(1, sizeof(*works));
        int r;

        if (!works || !(works->lists = calloc(request->n, sizeof(*works->lists)))) {
                free(works);
                return -ENOMEM;
        }
        works->n_lists = request->n;
        /* Of a time long ago: a deferred source would come before all others of its priority. */
        r = sd_event_add_time(request->event, &works->decode, CLOCK_MONOTONIC, 0, 1, on_decode, works);
        if (r >= 0)
                r = sd_event_source_set_enabled(works->decode, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_source_set_priority(works->decode, PRIORITY);
        for (size_t i = 0; i < request->n && r >= 0; i++) {
                r = ask_list(works, request, i, false);
                if (r >= 0)
                        r = ask_list(works, request, i, true);
        }
        if (r < 0) {
                if (works->pending == 0)
                        works_destroy(works);
                return r;
        }
        works->done = done;
        works->userdata = userdata;
        *ret = works;
        return 0;
}

static struct works *works_free(struct works *works)
{
        if (!works)
                return NULL;
        works->done = NULL;
        if (works->pending == 0)
                works_destroy(works);
        return NULL;
}

const struct works_ops sidekiq_works = {.read = works_read, .free = works_free};
