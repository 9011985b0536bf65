/* SPDX-License-Identifier: MIT */
/* Answers about queues, as bytes. */
#include "queries/answer.h"
#include <limits.h>
#include <string.h>

/* A framework may keep a set for each queue of a server. */
#define SET_MAX (QUEUES_READ_MAX * QUEUE_JOBS_MAX)
/* The clock of a host may be wrong by any amount. */
#define LATENCY_MAX (UINT64_C(1000000000000) * USEC_PER_SEC)

static const struct codec_field queue_fields[] = {
        CODEC_RANGE(struct queue, size, 0, QUEUE_JOBS_MAX),
        CODEC_FIELD(NUMBER, struct queue, latency_known),
        CODEC_RANGE(struct queue, latency, 0, LATENCY_MAX),
        CODEC_FIELD(NUMBER, struct queue, paused),
        CODEC_FIELD(NUMBER, struct queue, due_known),
        CODEC_RANGE(struct queue, due_in, 0, LATENCY_MAX),
        CODEC_RANGE(struct queue, n_classes, 0, QUEUE_CLASSES_MAX),
        CODEC_RANGE(struct queue, service, 0, QUEUE_CLASSES_MAX *QUEUE_SERVICE_MAX),
};
static const struct record queue_record = RECORD(queue_fields);

static const struct codec_field queues_fields[] = {
        CODEC_RANGE(struct queues, left_out, 0, INT_MAX),
        CODEC_RANGE(struct queues, retry, 0, SET_MAX),
        CODEC_RANGE(struct queues, schedule, 0, SET_MAX),
        CODEC_RANGE(struct queues, dead, 0, SET_MAX),
        CODEC_RANGE(struct queues, service, 0, QUEUE_SERVICE_MAX),
};
static const struct record queues_record = RECORD(queues_fields);

static const struct codec_field reading_fields[] = {
        CODEC_FIELD(NUMBER, struct queues_reading, done_known),
        CODEC_RANGE(struct queues_reading, done, 0, INT64_MAX),
};
static const struct record reading_record = RECORD(reading_fields);

static void write_queues(struct codec_writer *writer, const void *body)
{
        const struct queues_reading *reading = body;
        const struct queues *queues = reading->queues;

        codec_write(writer, &reading_record, reading);
        codec_write(writer, &queues_record, queues);
        codec_write_number(writer, queues->n);
        for (size_t i = 0; i < queues->n; i++) {
                codec_write_text(writer, queues->list[i].name);
                codec_write(writer, &queue_record, &queues->list[i]);
        }
}

static int read_queues(struct codec_reader *reader, void *body)
{
        struct queues_reading *reading = body;

        (void)codec_read(reader, &reading_record, reading);
        reading->queues = calloc(1, sizeof(*reading->queues));
        if (!reading->queues)
                return -ENOMEM;
        (void)codec_read(reader, &queues_record, reading->queues);
        size_t n = codec_read_number(reader, 0, QUEUES_READ_MAX);
        for (size_t i = 0; i < n && !reader->wrong; i++) {
                size_t length;
                const char *name = codec_read_text(reader, QUEUE_NAME_MAX, &length);
                struct queue *queue = queues_add(reading->queues, name, length);

                if (!queue)
                        return -ENOMEM;
                (void)codec_read(reader, &queue_record, queue);
        }
        return 0;
}

static void clear_queues(void *body)
{
        struct queues_reading *reading = body;

        reading->queues = queues_free(reading->queues);
}

const struct answer_format answer_queues_format = {
        .write = write_queues, .read = read_queues, .clear = clear_queues};
