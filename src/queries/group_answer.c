/* SPDX-License-Identifier: MIT */
/* Answers about groups of hosts, and about jobs that are put back, as bytes. */
#include "queries/answer.h"
#include <string.h>

static void write_texts(struct codec_writer *writer, const void *body)
{
        const struct texts *texts = body;

        texts_write(writer, texts->list, texts->n);
}

static void clear_texts(void *body)
{
        texts_clear(body);
}

static int read_words(struct codec_reader *reader, void *body)
{
        return texts_read(reader, ANSWER_WORDS_MAX, ANSWER_WORD_MAX, body);
}

const struct answer_format answer_words_format = {
        .write = write_texts, .read = read_words, .clear = clear_texts};

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
