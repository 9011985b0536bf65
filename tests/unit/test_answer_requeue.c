/* SPDX-License-Identifier: MIT */
/* Tests of the answers about jobs that are put back, as bytes (queries/answer.h): they are read as they were
 * written, and what breaks a bound is refused as a whole. */
/* promises: P5 */
#include "servers/answer.h"
#include "unit.h"
#include <limits.h>

static struct codec_writer writer;

static void setup(void)
{
        writer = (struct codec_writer){0};
}

static void teardown(void)
{
        free(writer.bytes);
}

/* Reads what was written, behind its kind and its id. */
static int read_answer(size_t n, enum query_kind kind, struct answer *ret)
{
        struct codec_reader reader = {.at = writer.bytes, .left = n};

        ck_assert_int_eq(codec_read_number(&reader, 0, _READER_MESSAGE_MAX), READER_ANSWER);
        ck_assert_uint_eq(answer_read_id(&reader), 7);
        return answer_read(&reader, kind, ret);
}

static void write_answer(const struct answer *answer)
{
        free(writer.bytes);
        writer = (struct codec_writer){0};
        answer_write(&writer, 7, answer);
        ck_assert(!writer.failed);
}

static int read_back(const struct answer *answer, struct answer *ret)
{
        write_answer(answer);
        return read_answer(writer.size, answer->kind, ret);
}

#define expect_refused(written)                                                                              \
        do {                                                                                                 \
                struct answer _ret;                                                                          \
                ck_assert_int_eq(read_back(written, &_ret), -EBADMSG);                                       \
        } while (0)

/* Each beginning of what was written is refused. */
static void expect_truncated_refused(const struct answer *answer)
{
        struct answer ret;

        write_answer(answer);
        for (size_t n = 2 * sizeof(uint64_t); n < writer.size; n++)
                ck_assert_int_eq(read_answer(n, answer->kind, &ret), -EBADMSG);
}

TEST(a_job_is_put_back_a_number_of_times_or_not)
{
        struct answer answer = {.kind = QUERY_REQUEUE, .requeue = {RESCUE_REQUEUED, UINT_MAX}};
        struct answer ret;

        ck_assert_int_eq(read_back(&answer, &ret), 0);
        ck_assert_int_eq(ret.requeue.outcome, RESCUE_REQUEUED);
        ck_assert_uint_eq(ret.requeue.times, UINT_MAX);
        expect_truncated_refused(&answer);
        answer.requeue.times = 0;
        expect_refused(&answer);
        answer.requeue = (struct answer_requeue){RESCUE_PRIVATE, 1};
        expect_refused(&answer);
        answer.requeue.times = 0;
        ck_assert_int_eq(read_back(&answer, &ret), 0);
        ck_assert_int_eq(ret.requeue.outcome, RESCUE_PRIVATE);
        answer.requeue.outcome = _RESCUE_OUTCOME_MAX;
        expect_refused(&answer);
}

TEST_MAIN("answer_requeue", .each = {setup, teardown})
