/* SPDX-License-Identifier: MIT */
/* Answers of readers, through their bytes. */
#pragma once

#include "servers/answer.h"
#include "unit.h"

/* What stands before the rest that answer_read() reads: the kind of the message, and the id. */
#define ANSWER_HEAD (2 * sizeof(uint64_t))

/* Reads these bytes of an answer, of which none more may be touched. Returns as answer_read(). */
static inline int answer_read_bytes(const uint8_t *bytes, size_t n, enum query_kind kind, struct answer *ret)
{
        _cleanup_free_ uint8_t *copy = malloc(n);
        struct codec_reader reader = {.at = copy, .left = n};

        ck_assert_ptr_nonnull(copy);
        memcpy(copy, bytes, n);
        ck_assert_uint_eq(codec_read_number(&reader, 0, _READER_MESSAGE_MAX), READER_ANSWER);
        ck_assert_uint_eq(answer_read_id(&reader), 7);
        return answer_read(&reader, kind, ret);
}

/* Writes an answer and reads it. Returns as answer_read(). */
static inline int answer_pass(const struct answer *answer, struct answer *ret)
{
        struct codec_writer writer = {0};

        answer_write(&writer, 7, answer);
        ck_assert(!writer.failed);
        int r = answer_read_bytes(writer.bytes, writer.size, answer->kind, ret);
        free(writer.bytes);
        return r;
}

/* Is it refused? Nothing is left of it. */
static inline void answer_expect_refused(const struct answer *answer)
{
        struct answer read;

        ck_assert_int_eq(answer_pass(answer, &read), -EBADMSG);
}

/* Is it refused at each length but its own? */
static inline void answer_expect_whole(const struct answer *answer)
{
        struct codec_writer writer = {0};
        struct answer read;

        answer_write(&writer, 7, answer);
        size_t n = writer.size;
        codec_write_number(&writer, 0);
        ck_assert(!writer.failed);
        for (size_t i = ANSWER_HEAD; i < writer.size; i++)
                if (i != n)
                        ck_assert_int_eq(answer_read_bytes(writer.bytes, i, answer->kind, &read), -EBADMSG);
        ck_assert_int_eq(answer_read_bytes(writer.bytes, n, answer->kind, &read), 0);
        answer_clear(&read);
        free(writer.bytes);
}
