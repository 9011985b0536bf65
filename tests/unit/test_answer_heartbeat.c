/* SPDX-License-Identifier: MIT */
/* Answers about heartbeats, identities and lists of workers as bytes: is all read that was written, and
 * nothing that cannot be? */
/* promises: P10 */
#include "base/macro.h"
#include "servers/answer.h"
#include "unit.h"
#include <limits.h>
#include <string.h>

#define ID     7
#define HEADER (2 * sizeof(uint64_t)) /* the kind of message, and the id */
/* The numbers before the body: the status, a duration, and the lengths of no error and of nothing quoted. */
#define BODY   4
#define BIT(i) (UINT64_C(1) << (i))

static struct answer answer, copy;
static struct codec_writer writer;

static int decode(const uint8_t *bytes, size_t n, enum query_kind kind)
{
        /* Of this size alone, so that what reads beyond it is seen. */
        uint8_t *exact = malloc(n);
        struct codec_reader reader = {.at = exact, .left = n};

        ck_assert_ptr_nonnull(exact);
        memcpy(exact, bytes, n);
        ck_assert_uint_eq(codec_read_number(&reader, 0, UINT64_MAX), READER_ANSWER);
        ck_assert_uint_eq(answer_read_id(&reader), ID);
        int r = answer_read(&reader, kind, &copy);
        free(exact);
        return r;
}

/* Writes the answer, and reads it into copy. */
static int transfer(void)
{
        writer.size = 0;
        answer_write(&writer, ID, &answer);
        ck_assert(!writer.failed);
        return decode(writer.bytes, writer.size, answer.kind);
}

/* free: a bit for each eight bytes behind the header that may have any value. */
static void expect_bounds(uint64_t free)
{
        static const uint8_t all[sizeof(uint64_t)] = {255, 255, 255, 255, 255, 255, 255, 255};
        uint8_t kept[sizeof(uint64_t)];

        ck_assert_int_eq(transfer(), 0);
        answer_clear(&copy);
        for (size_t n = HEADER; n < writer.size; n++)
                ck_assert_int_eq(decode(writer.bytes, n, answer.kind), -EBADMSG);
        for (size_t i = 0, at = HEADER; at + sizeof(all) <= writer.size; i++, at += sizeof(all)) {
                memcpy(kept, writer.bytes + at, sizeof(kept));
                memcpy(writer.bytes + at, all, sizeof(all));
                ck_assert_msg(decode(writer.bytes, writer.size, answer.kind) ==
                                      (free & BIT(i) ? 0 : -EBADMSG),
                              "number %zu", i);
                answer_clear(&copy);
                memcpy(writer.bytes + at, kept, sizeof(kept));
        }
        codec_write_space(&writer, 1)[0] = 0;
        ck_assert_int_eq(decode(writer.bytes, writer.size, answer.kind), -EBADMSG);
}

static void teardown(void)
{
        answer_clear(&copy);
        answer_clear(&answer);
        free(TAKE_PTR(writer.bytes));
        writer = (struct codec_writer){0};
}

static void make_heartbeat(void)
{
        static const char queues[] = "default\0";
        struct heartbeat_info *info = calloc(1, sizeof(*info) + sizeof(queues));

        ck_assert_ptr_nonnull(info);
        info->concurrency = 5;
        info->n_capsules = 1;
        strcpy(info->capsules[0], "internal");
        memcpy(info->queues, queues, sizeof(queues));
        answer = (struct answer){.kind = QUERY_HEARTBEAT};
        answer.heartbeat = (struct answer_heartbeat){
                .found = true,
                .heartbeat = {.sent_usec = ANSWER_CLOCK_MAX_USEC,
                              .busy = 1000000,
                              .concurrency = 1000000,
                              .quiet = true,
                              .rss_bytes = UINT64_C(1) << 50,
                              .start = UINT64_MAX,
                              .born_usec = ANSWER_CLOCK_MAX_USEC,
                              .quiet_signal = 64,
                              .stop_signal = 64,
                              .processed_known = true,
                              .processed = UINT64_C(1) << 50,
                              .outcomes = {.known = true,
                                           .processed = UINT64_C(1) << 50,
                                           .failed = UINT64_C(1) << 50,
                                           .class = "FailJobs",
                                           .class_failed = UINT64_C(1) << 50}},
                .info = info,
        };
}

TEST(a_heartbeat_is_read_as_it_was_written)
{
        make_heartbeat();
        ck_assert_int_eq(transfer(), 0);
        ck_assert_int_eq(copy.status, ANSWER_OK);
        ck_assert(copy.heartbeat.found);
        ck_assert_int_eq(
                memcmp(&copy.heartbeat.heartbeat, &answer.heartbeat.heartbeat, sizeof(struct heartbeat)), 0);
        ck_assert_uint_eq(copy.heartbeat.info->concurrency, 5);
        ck_assert_uint_eq(copy.heartbeat.info->n_capsules, 1);
        ck_assert_str_eq(copy.heartbeat.info->capsules[0], "internal");
        ck_assert_int_eq(memcmp(copy.heartbeat.info->queues, "default\0", 9), 0);
}

TEST(a_heartbeat_has_bounds)
{
        make_heartbeat();
        /* The start time, the class of the failures, and the name of the capsule. */
        expect_bounds(BIT(BODY + 7) | BIT(BODY + 18) | BIT(BODY + 23));
}

static const struct heartbeat beyond[] = {
        {.sent_usec = ANSWER_CLOCK_MAX_USEC + 1},
        {.busy = 1000001},
        {.concurrency = 1000001},
        {.rss_bytes = (UINT64_C(1) << 50) + 1},
        {.quiet_signal = 65},
        {.stop_signal = 65},
        {.born_usec = ANSWER_CLOCK_MAX_USEC + 1},
        {.quiet_signal = -1},
        {.processed = (UINT64_C(1) << 50) + 1},
        {.outcomes = {.processed = (UINT64_C(1) << 50) + 1}},
        {.outcomes = {.processed = 1, .failed = 2}},
        {.outcomes = {.processed = 2, .failed = 1, .class_failed = 2}},
};

TEST_LOOP(a_heartbeat_beyond_a_bound_is_refused, ELEMENTSOF(beyond))
{
        make_heartbeat();
        answer.heartbeat.heartbeat = beyond[_i];
        ck_assert_int_eq(transfer(), -EBADMSG);
}

TEST(the_class_of_failures_is_bounded_and_printable)
{
        make_heartbeat();
        struct worker_outcomes *outcomes = &answer.heartbeat.heartbeat.outcomes;
        memset(outcomes->class, 'x', sizeof(outcomes->class) - 1);
        outcomes->class[0] = '\033';
        ck_assert_int_eq(transfer(), 0);
        ck_assert_uint_eq(strlen(copy.heartbeat.heartbeat.outcomes.class), JOB_CLASS_MAX - 1);
        ck_assert_int_eq(copy.heartbeat.heartbeat.outcomes.class[0], '?');
}

TEST(what_a_process_reported_has_bounds)
{
        make_heartbeat();
        answer.heartbeat.info->concurrency = 1000001;
        ck_assert_int_eq(transfer(), -EBADMSG);
        answer.heartbeat.info->concurrency = 0;
        answer.heartbeat.info->born_usec = ANSWER_CLOCK_MAX_USEC + 1;
        ck_assert_int_eq(transfer(), -EBADMSG);
        answer.heartbeat.info->born_usec = ANSWER_CLOCK_MAX_USEC;
        answer.heartbeat.info->n_capsules = HEARTBEAT_CAPSULES_MAX;
        ck_assert_int_eq(transfer(), 0);
        answer_clear(&copy);
        answer.heartbeat.found = false;
        ck_assert_int_eq(transfer(), 0);
        ck_assert_uint_eq(copy.heartbeat.heartbeat.busy, 0);
}

TEST(a_work_list_has_bounds)
{
        answer = (struct answer){.kind = QUERY_WORK_LIST, .work_list = {.known = true, .empty = true}};
        ck_assert_int_eq(transfer(), 0);
        ck_assert(copy.work_list.known && copy.work_list.empty);
        expect_bounds(0);
}

static void make_scan(size_t n, const char *identity)
{
        answer = (struct answer){.kind = QUERY_SCAN, .scan = {.n = n, .cursor = "12345678"}};
        answer.scan.list = calloc(n + 1, sizeof(*answer.scan.list));
        ck_assert_ptr_nonnull(answer.scan.list);
        for (size_t i = 0; i < n; i++)
                answer.scan.list[i] =
                        (struct answer_identity){.identity = strdup(identity), .host_len = 2, .pid = INT_MAX};
}

TEST(a_page_of_identities_has_bounds)
{
        make_scan(1, "vm:77:ab");
        ck_assert_int_eq(transfer(), 0);
        ck_assert_uint_eq(copy.scan.n, 1);
        ck_assert_str_eq(copy.scan.list[0].identity, "vm:77:ab");
        ck_assert_uint_eq(copy.scan.list[0].host_len, 2);
        ck_assert_int_eq(copy.scan.list[0].pid, INT_MAX);
        ck_assert_str_eq(copy.scan.cursor, "12345678");
        answer_clear(&copy);
        /* The texts. */
        expect_bounds(BIT(BODY + 1) | BIT(BODY + 4));
}

TEST(an_identity_beyond_a_bound_is_refused)
{
        make_scan(1, "vm:77:ab");
        answer.scan.list[0].pid = 0;
        ck_assert_int_eq(transfer(), -EBADMSG);
        answer.scan.list[0].pid = 1;
        answer.scan.list[0].host_len = 9; /* more than it has */
        ck_assert_int_eq(transfer(), -EBADMSG);
        answer.scan.list[0].host_len = 8;
        ck_assert_int_eq(transfer(), 0);
}

TEST(scanners_have_bounds)
{
        answer = (struct answer){
                .kind = QUERY_SCANNERS,
                .scanners = {
                        .members = UINT32_MAX, .scanners = UINT32_MAX, .members_known = true, .blind = true}};
        ck_assert_int_eq(transfer(), 0);
        ck_assert_uint_eq(copy.scanners.members, UINT32_MAX);
        ck_assert_uint_eq(copy.scanners.scanners, UINT32_MAX);
        ck_assert(copy.scanners.members_known && copy.scanners.blind);
        expect_bounds(0);
        answer.scanners.members++;
        ck_assert_int_eq(transfer(), -EBADMSG);
        answer.scanners.members = 0;
        answer.scanners.scanners++;
        ck_assert_int_eq(transfer(), -EBADMSG);
}

/* The message whose first text, behind these numbers, has this many bytes. */
static int read_text_of(enum query_kind kind, const uint64_t *numbers, size_t n, size_t length)
{
        writer.size = 0;
        codec_write_number(&writer, READER_ANSWER);
        codec_write_number(&writer, ID);
        for (size_t i = 0; i < BODY; i++)
                codec_write_number(&writer, 0);
        for (size_t i = 0; i < n; i++)
                codec_write_number(&writer, numbers[i]);
        codec_write_number(&writer, length);
        memset(codec_write_space(&writer, length), 'a', length);
        codec_write_number(&writer, 1);
        codec_write_number(&writer, 1);
        int r = decode(writer.bytes, writer.size, kind);
        answer_clear(&copy);
        return r;
}

TEST(texts_have_bounds)
{
        /* The cursor of a scan is empty. */
        static const uint64_t scan[] = {0, 1};

        ck_assert_int_eq(read_text_of(QUERY_SCAN, scan, 2, ANSWER_IDENTITY_MAX), 0);
        ck_assert_int_eq(read_text_of(QUERY_SCAN, scan, 2, ANSWER_IDENTITY_MAX + 1), -EBADMSG);
}

TEST_MAIN("answer_heartbeat", .each = {NULL, teardown})
