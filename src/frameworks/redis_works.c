/* SPDX-License-Identifier: MIT */
/* Reads what processes run from one Redis; see the header. */
#include "frameworks/redis_works.h"
#include "frameworks/redis_command.h"
#include "io/redis_batch.h"
#include "wire/withhold.h"
#include <stdio.h>
#include <string.h>

/* So much takes a millisecond or two. */
#define SLICE_BYTES ((size_t)64 * 1024)
/* After all that supervises, and in turn with the clients. */
#define PRIORITY (SD_EVENT_PRIORITY_NORMAL + 10)

struct works {
        const struct works_format *format;
        struct job_list *lists;
        size_t n_lists;
        struct redis_batch *redis_batch;       /* the tag of each: its list, and which of the commands for that */
        sd_event_source *decode; /* armed for each slice when there is none any more */
        size_t decoding;         /* the list that it has come to */
        char error[256];
        works_fn done;
        void *userdata;
};

struct works *redis_works_free(struct works *works)
{
        if (!works)
                return NULL;
        redis_batch_free(works->redis_batch);
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
                int r = job_list_decode(&works->lists[works->decoding], works->format->decode, &bytes);

                if (r > 0)
                        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
                if (r < 0)
                        too_little_memory(works);
        }
        works->done(works->lists, works->error[0] != '\0' ? works->error : NULL, works->userdata);
        redis_works_free(works);
        return 0;
}

static void on_list(const redisReply *reply, size_t tag, void *userdata)
{
        struct works *works = userdata;
        const size_t each = works->format->n_asks;

        if (!reply)
                snprintf(works->error, sizeof(works->error), "the connection was lost");
        else if (reply->type == REDIS_REPLY_ERROR)
                snprintf(works->error, sizeof(works->error), WITHHOLD_ANSWER "%s'", reply->str);
        else if (works->format->take(reply, tag % each, &works->lists[tag / each]) < 0)
                too_little_memory(works);
}

static void on_lists(void *userdata)
{
        struct works *works = userdata;

        (void)sd_event_source_set_enabled(works->decode, SD_EVENT_ONESHOT);
}

static int ask_list(struct works *works, const struct works_request *request, size_t tag)
{
        const struct works_format *format = works->format;
        struct heartbeats_command command;
        int r = format->ask(request->namespace, request->identities[tag / format->n_asks],
                            tag % format->n_asks, &command);

        if (r < 0)
                return r;
        r = redis_batch_add(works->redis_batch, request->redis, tag, command.argc, command.argv, NULL);
        command_clear(&command);
        return r;
}

int redis_works_read(const struct works_format *format, const struct works_request *request, works_fn done,
                     void *userdata, struct works **ret)
{
        static const struct redis_batch_ops ops = {.reply = on_list, .done = on_lists};
        struct works *works = calloc(1, sizeof(*works));

        if (!works || !(works->lists = calloc(request->n, sizeof(*works->lists)))) {
                free(works);
                return -ENOMEM;
        }
        works->format = format;
        works->n_lists = request->n;
        works->done = done;
        works->userdata = userdata;
        int r = redis_batch_new(&ops, works, &works->redis_batch);
        /* Of a time long ago: a deferred source would come before all others of its priority. */
        if (r >= 0)
                r = sd_event_add_time(request->event, &works->decode, CLOCK_MONOTONIC, 0, 1, on_decode,
                                      works);
        if (r >= 0)
                r = sd_event_source_set_enabled(works->decode, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_source_set_priority(works->decode, PRIORITY);
        for (size_t i = 0; i < request->n * format->n_asks && r >= 0; i++)
                r = ask_list(works, request, i);
        if (r < 0) {
                redis_works_free(works);
                return r;
        }
        *ret = works;
        return 0;
}
