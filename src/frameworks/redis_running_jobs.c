/* SPDX-License-Identifier: MIT */
/* Reads the running jobs of processes from one Redis; see the header. */
#include "frameworks/redis_running_jobs.h"
#include "redis/redis_command.h"
#include "servers/server.h"
#include <stdio.h>

/* Decoding this much takes one or two milliseconds. */
#define SLICE_BYTES ((size_t)64 * 1024)
/* Lower than all supervision, and equal to the clients. */
#define PRIORITY (SD_EVENT_PRIORITY_NORMAL + 10)

struct redis_running_jobs {
        const struct running_jobs_format *format;
        struct reader *reader;
        struct job_list *lists;
        size_t n_lists;
        struct job_space space; /* of all lists */
        bool with_entries;
        struct redis_batch *redis_batch; /* tag: index of the list times n_asks, plus index of the command */
        sd_event_source *decode;         /* timer, armed anew for each slice once all replies are in */
        size_t decoding;                 /* index of the list being decoded */
        struct error_report error;
        redis_running_jobs_fn done;
        void *userdata;
};

struct redis_running_jobs *redis_running_jobs_free(struct redis_running_jobs *running_jobs)
{
        if (!running_jobs)
                return NULL;
        redis_batch_free(running_jobs->redis_batch);
        job_lists_free(running_jobs->lists, running_jobs->lists ? running_jobs->n_lists : 0);
        sd_event_source_disable_unref(running_jobs->decode);
        free(running_jobs);
        return NULL;
}

static void too_little_memory(struct redis_running_jobs *running_jobs)
{
        error_report_set(&running_jobs->error, "out of memory");
}

/* Decodes a slice, or ends the reading and frees it. */
static void decode(struct redis_running_jobs *running_jobs)
{
        size_t bytes = SLICE_BYTES;

        for (; running_jobs->decoding < running_jobs->n_lists; running_jobs->decoding++) {
                int r = job_list_decode(&running_jobs->lists[running_jobs->decoding],
                                        running_jobs->format->decode, &bytes);

                if (r > 0) {
                        (void)sd_event_source_set_enabled(running_jobs->decode, SD_EVENT_ONESHOT);
                        return;
                }
                if (r < 0)
                        too_little_memory(running_jobs);
                job_list_end(&running_jobs->lists[running_jobs->decoding], running_jobs->with_entries);
        }
        running_jobs->done(TAKE_PTR(running_jobs->lists),
                           running_jobs->error.text[0] != '\0' ? &running_jobs->error : NULL,
                           running_jobs->userdata);
        redis_running_jobs_free(running_jobs);
}

static int on_decode(sd_event_source *source _unused_, uint64_t due _unused_, void *userdata)
{
        struct redis_running_jobs *running_jobs = userdata;
        struct reader *reader = running_jobs->reader;

        if (reader)
                reader_decoding(reader, true);
        decode(running_jobs);
        if (reader)
                reader_decoding(reader, false);
        return 0;
}

static void on_list(const redisReply *reply, size_t tag, void *userdata)
{
        struct redis_running_jobs *running_jobs = userdata;
        const size_t each = running_jobs->format->n_asks;

        if (!reply)
                error_report_set(&running_jobs->error, "connection to Redis lost");
        else if (reply->type == REDIS_REPLY_ERROR)
                error_report_quote(&running_jobs->error, reply->str, "command refused");
        else if (running_jobs->format->take(reply, tag % each, &running_jobs->lists[tag / each]) < 0)
                too_little_memory(running_jobs);
}

static void on_lists(void *userdata)
{
        struct redis_running_jobs *running_jobs = userdata;

        (void)sd_event_source_set_enabled(running_jobs->decode, SD_EVENT_ONESHOT);
}

static int ask_list(struct redis_running_jobs *running_jobs, const struct running_jobs_request *request,
                    size_t tag)
{
        const struct running_jobs_format *format = running_jobs->format;
        struct redis_command command;
        int r = format->ask(request->namespace, request->identities[tag / format->n_asks],
                            tag % format->n_asks, &command);

        if (r < 0)
                return r;
        r = redis_batch_add(running_jobs->redis_batch, request->redis, tag, &command);
        command_clear(&command);
        return r;
}

int redis_running_jobs_read(const struct running_jobs_format *format,
                            const struct running_jobs_request *request, redis_running_jobs_fn done,
                            void *userdata, struct redis_running_jobs **ret)
{
        static const struct redis_batch_ops ops = {.reply = on_list, .done = on_lists};
        struct redis_running_jobs *running_jobs = calloc(1, sizeof(*running_jobs));

        if (!running_jobs || !(running_jobs->lists = calloc(request->n, sizeof(*running_jobs->lists)))) {
                free(running_jobs);
                return -ENOMEM;
        }
        running_jobs->format = format;
        running_jobs->reader = request->reader;
        running_jobs->n_lists = request->n;
        running_jobs->space = (struct job_space){JOBS_MAX, JOBS_BYTES_MAX};
        running_jobs->with_entries = request->with_entries;
        for (size_t i = 0; i < request->n; i++)
                running_jobs->lists[i].space = &running_jobs->space;
        running_jobs->done = done;
        running_jobs->userdata = userdata;
        int r = redis_batch_new(&ops, running_jobs, &running_jobs->redis_batch);
        /* A timer in the past, not a deferred source: that would run before all others of its priority. */
        if (r >= 0)
                r = sd_event_add_time(request->event, &running_jobs->decode, CLOCK_MONOTONIC, 0, 1, on_decode,
                                      running_jobs);
        if (r >= 0)
                r = sd_event_source_set_enabled(running_jobs->decode, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_source_set_priority(running_jobs->decode, PRIORITY);
        for (size_t i = 0; i < request->n * format->n_asks && r >= 0; i++)
                r = ask_list(running_jobs, request, i);
        if (r < 0) {
                redis_running_jobs_free(running_jobs);
                return r;
        }
        *ret = running_jobs;
        return 0;
}
