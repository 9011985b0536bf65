/* SPDX-License-Identifier: MIT */
/* The answer with the workers of a host that the server lists, as bytes. */
#include "queries/answer.h"
#include <limits.h>
#include <string.h>

/* The size of a worker with no queues: the length of these, its pid and its time. */
#define WORKER_BYTES_MIN (3 * sizeof(uint64_t))

static void write_roster(struct codec_writer *writer, const void *body)
{
        const struct answer_roster *roster = body;

        codec_write_number(writer, roster->n);
        for (size_t i = 0; i < roster->n; i++) {
                codec_write_text(writer, roster->list[i].queues);
                codec_write_number(writer, (uint64_t)roster->list[i].pid);
                codec_write_number(writer, roster->list[i].born_usec);
        }
}

static int read_worker(struct codec_reader *reader, struct answer_worker *ret)
{
        size_t length;
        const char *queues = codec_read_text(reader, ANSWER_QUEUES_MAX, &length);

        ret->pid = (pid_t)codec_read_number(reader, 1, INT_MAX);
        ret->born_usec = codec_read_number(reader, 0, ANSWER_CLOCK_MAX_USEC);
        if (reader->wrong)
                return 0;
        ret->queues = strndup(queues, length);
        return ret->queues ? 0 : -ENOMEM;
}

static int read_roster(struct codec_reader *reader, void *body)
{
        struct answer_roster *roster = body;
        size_t n =
                codec_read_number(reader, 0, MIN((size_t)ANSWER_ROSTER_MAX, reader->left / WORKER_BYTES_MIN));

        roster->list = calloc(n + 1, sizeof(*roster->list));
        int r = roster->list ? 0 : -ENOMEM;
        for (size_t i = 0; i < n && r == 0 && !reader->wrong; i++) {
                r = read_worker(reader, &roster->list[i]);
                roster->n += r == 0 && roster->list[i].queues;
        }
        return r;
}

static void clear_roster(void *body)
{
        struct answer_roster *roster = body;

        for (size_t i = 0; i < roster->n; i++)
                free(roster->list[i].queues);
        free(TAKE_PTR(roster->list));
        roster->n = 0;
}

const struct answer_format answer_roster_format = {
        .write = write_roster, .read = read_roster, .clear = clear_roster};
