/* SPDX-License-Identifier: MIT */
/* Answers about jobs that are put back, as bytes. */
#include "queries/answer.h"

static const struct codec_field requeue_fields[] = {
        CODEC_RANGE(struct answer_requeue, outcome, 0, _RESCUE_OUTCOME_MAX - 1),
        CODEC_FIELD(NUMBER, struct answer_requeue, times),
};
static const struct record requeue_record = RECORD(requeue_fields);

static void write_requeue(struct codec_writer *writer, const void *body)
{
        codec_write(writer, &requeue_record, body);
}

static int read_requeue(struct codec_reader *reader, void *body)
{
        const struct answer_requeue *requeue = body;
        int r = codec_read(reader, &requeue_record, body);

        reader->wrong |= (requeue->outcome == RESCUE_REQUEUED) != (requeue->times > 0);
        return r;
}

const struct answer_format answer_requeue_format = {.write = write_requeue, .read = read_requeue};
