/* SPDX-License-Identifier: MIT */
/* Do answers about queues and about a server arrive as they were sent, and is what cannot be refused? */
#include "answer_bytes.h"

static struct answer answer;
static struct queues *queues; /* of the answer */

static void setup(void)
{
        answer = (struct answer){.kind = QUERY_QUEUES, .queues = {.done_known = true, .done = 17}};
        queues = answer.queues.queues = calloc(1, sizeof(*queues));
        ck_assert_ptr_nonnull(queues);
        *queues = (struct queues){
                .left_out = 3, .retry = 4, .schedule = 5, .dead = 6, .service = 2 * USEC_PER_SEC};
        struct queue *queue = queues_add(queues, "mail", 4);
        ck_assert_ptr_nonnull(queue);
        queue->size = 7;
        queue->latency_known = queue->paused = true;
        queue->latency = 8 * USEC_PER_SEC;
        queue->n_classes = 2;
        queue->service = 9 * USEC_PER_SEC;
        ck_assert_ptr_nonnull(queues_add(queues, "low", 3));
}

static void teardown(void)
{
        answer_clear(&answer);
}

TEST(queues_arrive_as_they_were_sent)
{
        struct answer read;

        ck_assert_int_eq(answer_pass(&answer, &read), 0);
        const struct queues *got = read.queues.queues;
        ck_assert(read.queues.done_known);
        ck_assert_uint_eq(read.queues.done, 17);
        ck_assert_uint_eq(got->left_out, 3);
        ck_assert_uint_eq(got->retry, 4);
        ck_assert_uint_eq(got->schedule, 5);
        ck_assert_uint_eq(got->dead, 6);
        ck_assert_uint_eq(got->service, 2 * USEC_PER_SEC);
        ck_assert_uint_eq(got->n, 2);
        ck_assert_str_eq(got->list[0].name, "mail");
        ck_assert_uint_eq(got->list[0].size, 7);
        ck_assert(got->list[0].latency_known && got->list[0].paused);
        ck_assert_uint_eq(got->list[0].latency, 8 * USEC_PER_SEC);
        ck_assert_uint_eq(got->list[0].n_classes, 2);
        ck_assert_uint_eq(got->list[0].service, 9 * USEC_PER_SEC);
        ck_assert_str_eq(got->list[1].name, "low");
        ck_assert(!got->list[1].latency_known && !got->list[1].paused);
        answer_clear(&read);
}

TEST(a_part_of_an_answer_is_refused)
{
        answer_expect_whole(&answer);
}

#define EXPECT_BOUND(member, bound)                                                                          \
        do {                                                                                                 \
                __typeof__(member) before = (member);                                                        \
                struct answer read;                                                                          \
                (member) = (__typeof__(member))(bound);                                                      \
                ck_assert_int_eq(answer_pass(&answer, &read), 0);                                            \
                answer_clear(&read);                                                                         \
                (member) += 1;                                                                               \
                answer_expect_refused(&answer);                                                              \
                (member) = before;                                                                           \
        } while (0)

TEST(each_number_has_a_bound)
{
        EXPECT_BOUND(answer.queues.done, INT64_MAX);
        EXPECT_BOUND(queues->left_out, INT32_MAX);
        EXPECT_BOUND(queues->retry, QUEUES_READ_MAX * QUEUE_JOBS_MAX);
        EXPECT_BOUND(queues->schedule, QUEUES_READ_MAX * QUEUE_JOBS_MAX);
        EXPECT_BOUND(queues->dead, QUEUES_READ_MAX * QUEUE_JOBS_MAX);
        EXPECT_BOUND(queues->service, QUEUE_SERVICE_MAX);
        EXPECT_BOUND(queues->list[1].size, QUEUE_JOBS_MAX);
        EXPECT_BOUND(queues->list[1].latency, UINT64_C(1000000000000) * USEC_PER_SEC);
        EXPECT_BOUND(queues->list[1].n_classes, QUEUE_CLASSES_MAX);
        EXPECT_BOUND(queues->list[1].service, QUEUE_CLASSES_MAX * QUEUE_SERVICE_MAX);
}

TEST(names_and_their_number_have_a_bound)
{
        char name[QUEUE_NAME_MAX + 2] = "";
        struct answer read;

        memset(name, 'x', QUEUE_NAME_MAX);
        while (queues->n < QUEUES_READ_MAX)
                ck_assert_ptr_nonnull(queues_add(queues, name, QUEUE_NAME_MAX));
        ck_assert_int_eq(answer_pass(&answer, &read), 0);
        ck_assert_uint_eq(read.queues.queues->n, QUEUES_READ_MAX);
        ck_assert_str_eq(read.queues.queues->list[2].name, name);
        answer_clear(&read);
        ck_assert_ptr_nonnull(queues_add(queues, "one", 3));
        answer_expect_refused(&answer);
        free(queues->list[--queues->n].name);
        free(queues->list[--queues->n].name);
        name[QUEUE_NAME_MAX] = 'x';
        ck_assert_ptr_nonnull(queues_add(queues, name, QUEUE_NAME_MAX + 1));
        answer_expect_refused(&answer);
}

TEST(what_a_server_told_of_itself_arrives)
{
        static const struct redis_facts facts = {
                .has_info = true,
                .has_limit = true,
                .evicted = UINT64_MAX,
                .policy = "allkeys-lru",
                .info_error.quoted_bytes = "no",
                .has_save = true,
                .save = "3600 1",
                .config_error.quoted_bytes = "a\033b",
        };
        const struct answer told = {.kind = QUERY_DIAGNOSIS, .diagnosis.redis = facts};
        struct answer read;

        ck_assert_int_eq(answer_pass(&told, &read), 0);
        ck_assert(read.diagnosis.redis.has_info && read.diagnosis.redis.has_limit);
        ck_assert(!read.diagnosis.redis.snapshot_failed && !read.diagnosis.redis.is_appending);
        ck_assert_uint_eq(read.diagnosis.redis.evicted, UINT64_MAX);
        ck_assert_str_eq(read.diagnosis.redis.policy, "allkeys-lru");
        ck_assert_str_eq(quoted_reveal(&read.diagnosis.redis.info_error), "no");
        ck_assert(read.diagnosis.redis.has_save);
        ck_assert_str_eq(read.diagnosis.redis.save, "3600 1");
        /* People see it. */
        ck_assert_str_eq(quoted_reveal(&read.diagnosis.redis.config_error), "a?b");
        answer_expect_whole(&told);
}

TEST(what_a_database_says_of_a_framework_arrives)
{
        const struct answer told = {
                .kind = QUERY_DIAGNOSIS,
                .diagnosis.database = {.version = "15\0334",
                                       .read_only = true,
                                       .forking = 1,
                                       .has_roles = true,
                                       .dispatchers = 2,
                                       .schedulers = 3,
                                       .recurring = 4,
                                       .paused_queues = 5,
                                       .failed = UINT64_MAX},
        };
        struct answer read;

        ck_assert_int_eq(answer_pass(&told, &read), 0);
        const struct database_facts *facts = &read.diagnosis.database;
        ck_assert_str_eq(facts->version, "15?4");
        ck_assert(facts->read_only && facts->has_roles);
        ck_assert_uint_eq(facts->forking, 1);
        ck_assert_uint_eq(facts->dispatchers, 2);
        ck_assert_uint_eq(facts->schedulers, 3);
        ck_assert_uint_eq(facts->recurring, 4);
        ck_assert_uint_eq(facts->paused_queues, 5);
        ck_assert_uint_eq(facts->failed, UINT64_MAX);
        answer_expect_whole(&told);
}

/* The texts of the facts are arrays: one that is too long was written by somebody else. */
TEST(a_text_of_a_server_has_a_bound)
{
        const struct answer told = {.kind = QUERY_DIAGNOSIS, .diagnosis.redis.has_info = true};
        struct codec_writer writer = {0};
        struct answer read;
        char text[sizeof(told.diagnosis.redis.policy)] = "";

        answer_write(&writer, 7, &told);
        const size_t texts = 4, flags = 1;
        const size_t policy = writer.size - (texts + flags) * sizeof(uint64_t);
        for (size_t length = sizeof(text) - 1; length <= sizeof(text); length++) {
                struct codec_writer longer = {0};

                memcpy(codec_write_space(&longer, policy), writer.bytes, policy);
                codec_write_number(&longer, length);
                memset(codec_write_space(&longer, length), 'x', length);
                size_t rest = writer.size - policy - sizeof(uint64_t);
                memcpy(codec_write_space(&longer, rest), writer.bytes + policy + sizeof(uint64_t), rest);
                ck_assert_int_eq(answer_read_bytes(longer.bytes, longer.size, QUERY_DIAGNOSIS, &read),
                                 length < sizeof(text) ? 0 : -EBADMSG);
                free(longer.bytes);
        }
        free(writer.bytes);
}

TEST_MAIN("answer_queues", .each = {setup, teardown})
