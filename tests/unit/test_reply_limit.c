/* SPDX-License-Identifier: MIT */
/* Does the gauge see replies as hiredis does, however they are cut, and what is too large as soon as it
 * shows? */
#include "base/macro.h"
#include "redis/reply_limit.h"
#include "unit.h"
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

static enum reply_limit_outcome feed(struct reply_limit *reply_limit, const char *text)
{
        return reply_limit_feed(reply_limit, text, strlen(text));
}

static bool is_between_replies(const struct reply_limit *reply_limit)
{
        return reply_limit->left == 0 && reply_limit->length == 0 && reply_limit->skip == 0;
}

static const struct {
        const char *text;
        enum reply_limit_outcome outcome;
} cases[] = {
        {"+OK\r\n-ERR no\r\n:12\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n", REPLY_LIMIT_FITS},
        {"+a\rb\nc\r\r\n", REPLY_LIMIT_FITS},
        {"*2\r\n*1\r\n$4\r\n\r\n\r\n\r\n*2\r\n:1\r\n$-1\r\n", REPLY_LIMIT_FITS},
        {"%1\r\n+a\r\n~1\r\n#t\r\n>1\r\n=5\r\ntxt:a\r\n_\r\n,1.5\r\n(1\r\n", REPLY_LIMIT_FITS},
        {"$33554432\r\n", REPLY_LIMIT_TOO_MANY_BYTES},
        {"$314572800\r\n", REPLY_LIMIT_TOO_MANY_BYTES},
        {"*2\r\n$20000000\r\n", REPLY_LIMIT_FITS},
        {"*262144\r\n", REPLY_LIMIT_FITS},
        {"*262145\r\n", REPLY_LIMIT_TOO_MANY_ELEMENTS},
        {"*2147483646\r\n", REPLY_LIMIT_TOO_MANY_ELEMENTS},
        {"*2\r\n*131072\r\n", REPLY_LIMIT_FITS},
        {"*131073\r\n*131072\r\n", REPLY_LIMIT_TOO_MANY_ELEMENTS},
        {"%131073\r\n", REPLY_LIMIT_TOO_MANY_ELEMENTS},
        {"*4294967297\r\n", REPLY_LIMIT_TOO_MANY_ELEMENTS},
        {"$999999999999999\r\n", REPLY_LIMIT_TOO_MANY_BYTES},
        {"$18446744073709551616\r\n", REPLY_LIMIT_MALFORMED},
        {"$-7\r\n", REPLY_LIMIT_MALFORMED},
        {"*-7\r\n", REPLY_LIMIT_MALFORMED},
        {"$\r\n", REPLY_LIMIT_MALFORMED},
        {"$1x\r\n", REPLY_LIMIT_MALFORMED},
        {"$01\r\n", REPLY_LIMIT_MALFORMED},
        {"*?\r\n", REPLY_LIMIT_MALFORMED},
        {"$000000000000000000000000000000001\r\n", REPLY_LIMIT_MALFORMED},
        {"HTTP/1.1 400 Bad Request\r\n", REPLY_LIMIT_FOREIGN},
        {"+OK\r\n\r\n", REPLY_LIMIT_FOREIGN},
        {"|1\r\n", REPLY_LIMIT_FOREIGN},
};

TEST_LOOP(what_is_too_large_shows_in_its_header, ELEMENTSOF(cases))
{
        struct reply_limit whole = {0}, cut = {0};
        enum reply_limit_outcome outcome = REPLY_LIMIT_FITS;

        ck_assert_int_eq(feed(&whole, cases[_i].text), cases[_i].outcome);
        for (const char *c = cases[_i].text; *c != '\0' && outcome == REPLY_LIMIT_FITS; c++)
                outcome = reply_limit_feed(&cut, c, 1);
        ck_assert_int_eq(outcome, cases[_i].outcome);
        ck_assert_str_ne(reply_limit_explain(outcome), "");
}

TEST(a_byte_of_zero_is_no_type)
{
        ck_assert_int_eq(reply_limit_feed(&(struct reply_limit){0}, "", 1), REPLY_LIMIT_FOREIGN);
}

TEST(many_strings_count_together)
{
        static char megabyte[1024 * 1024];
        struct reply_limit reply_limit = {0};
        unsigned n = 0;
        enum reply_limit_outcome outcome = feed(&reply_limit, "*100\r\n");

        while (outcome == REPLY_LIMIT_FITS && n < 100) {
                outcome = feed(&reply_limit, "$1048576\r\n");
                if (outcome == REPLY_LIMIT_FITS) {
                        ck_assert_int_eq(reply_limit_feed(&reply_limit, megabyte, sizeof(megabyte)),
                                         REPLY_LIMIT_FITS);
                        ck_assert_int_eq(feed(&reply_limit, "\r\n"), REPLY_LIMIT_FITS);
                        n++;
                }
        }
        ck_assert_int_eq(outcome, REPLY_LIMIT_TOO_MANY_BYTES);
        ck_assert_uint_eq(n, 31);
}

TEST(each_reply_is_counted_for_itself)
{
        static char text[1000 * 1000];
        struct reply_limit reply_limit = {0};

        for (unsigned i = 0; i < 100; i++) {
                ck_assert_int_eq(feed(&reply_limit, "*3\r\n:1\r\n$1000000\r\n"), REPLY_LIMIT_FITS);
                ck_assert_int_eq(reply_limit_feed(&reply_limit, text, sizeof(text)), REPLY_LIMIT_FITS);
                ck_assert_int_eq(feed(&reply_limit, "\r\n+OK\r\n"), REPLY_LIMIT_FITS);
                ck_assert(is_between_replies(&reply_limit));
        }
}

TEST(a_line_has_an_end)
{
        struct reply_limit reply_limit = {0};
        enum reply_limit_outcome outcome = feed(&reply_limit, "+");
        size_t n = 0;

        for (; outcome == REPLY_LIMIT_FITS && n < 2 * REPLY_LIMIT_LINE_MAX; n++)
                outcome = feed(&reply_limit, "x");
        ck_assert_int_eq(outcome, REPLY_LIMIT_LINE_TOO_LONG);
        ck_assert_uint_eq(n, REPLY_LIMIT_LINE_MAX);
}

TEST(memory_is_what_has_arrived)
{
        struct reply_limit reply_limit = {0};

        ck_assert_uint_eq(reply_limit_memory(&reply_limit), 0);
        /* An announced text takes no memory yet, but a list has its pointers at once. */
        ck_assert_int_eq(feed(&reply_limit, "*3\r\n$1000000\r\n"), REPLY_LIMIT_FITS);
        ck_assert_uint_ge(reply_limit_memory(&reply_limit), 2 * sizeof(redisReply) + 3 * sizeof(void *));
        ck_assert_uint_lt(reply_limit_memory(&reply_limit), 1000);
        for (unsigned i = 0; i < 10; i++)
                ck_assert_int_eq(feed(&reply_limit, "0123456789"), REPLY_LIMIT_FITS);
        ck_assert_uint_ge(reply_limit_memory(&reply_limit), 100);
        ck_assert_uint_lt(reply_limit_memory(&reply_limit), 1000);
        reply_limit = (struct reply_limit){0};
        ck_assert_int_eq(feed(&reply_limit, "*262144\r\n"), REPLY_LIMIT_FITS);
        for (unsigned i = 0; i < 200000; i++)
                ck_assert_int_eq(feed(&reply_limit, "$0\r\n\r\n"), REPLY_LIMIT_FITS);
        ck_assert_uint_ge(reply_limit_memory(&reply_limit), 200000 * (sizeof(redisReply) + 48));
        for (unsigned i = 200000; i < 262144; i++)
                ck_assert_int_eq(feed(&reply_limit, ":1\r\n"), REPLY_LIMIT_FITS);
        ck_assert_uint_eq(reply_limit_memory(&reply_limit), 0);
        /* The replies that have ended end there. */
        ck_assert_int_eq(feed(&reply_limit, "+OK\r\n:1\r\n$3\r\n"), REPLY_LIMIT_FITS);
        ck_assert_uint_eq(reply_limit.ended, 2);
        ck_assert_uint_eq(reply_limit.tail, 4);
        ck_assert_int_eq(feed(&reply_limit, "abc"), REPLY_LIMIT_FITS);
        ck_assert_uint_eq(reply_limit.ended, 0);
        ck_assert_uint_eq(reply_limit.tail, 3);
        ck_assert_int_eq(feed(&reply_limit, "\r\n"), REPLY_LIMIT_FITS);
        ck_assert_uint_eq(reply_limit.ended, 1);
        ck_assert_uint_eq(reply_limit.tail, 0);
}

static unsigned random_below(unsigned limit)
{
        static uint64_t state = 1;

        state = state * 6364136223846793005u + 1442695040888963407u;
        return (unsigned)((state >> 33) % limit);
}

/* Whatever may stand in a string; in a line neither of the two that end it, which hiredis refuses from 1.1
 * on. */
static size_t put_noise(char *out, size_t n, bool is_line)
{
        static const char some[] = "\r\n$*:+-1290aB\r";

        for (size_t i = 0; i < n; i++) {
                out[i] = some[random_below(sizeof(some) - 1)];
                if (is_line && (out[i] == '\n' || out[i] == '\r'))
                        out[i] = 'n';
        }
        return n;
}

/* Returns its length. Not deeper than hiredis 0.14 goes. */
static size_t put_reply(char *out, unsigned depth)
{
        unsigned kind = random_below(depth < 4 ? 5 : 4), n = random_below(6);
        size_t length;

        switch (kind) {
        case 0:
                *out = random_below(2) ? '+' : '-';
                length = 1 + put_noise(out + 1, n, true);
                return length + (size_t)sprintf(out + length, "\r\n");
        case 1:
                return (size_t)sprintf(out, ":%u\r\n", random_below(1000));
        case 2:
                return (size_t)sprintf(out, random_below(2) ? "$-1\r\n" : "*-1\r\n");
        case 3:
                length = (size_t)sprintf(out, "$%u\r\n", n);
                length += put_noise(out + length, n, false);
                return length + (size_t)sprintf(out + length, "\r\n");
        default:
                length = (size_t)sprintf(out, "*%u\r\n", n);
                for (unsigned i = 0; i < n; i++)
                        length += put_reply(out + length, depth + 1);
                return length;
        }
}

/* Replies of all kinds, byte by byte: one ends where it ends for hiredis. */
TEST(hiredis_sees_the_same_ends)
{
        static char text[256 * 1024];
        redisReader *reader = redisReaderCreate();
        struct reply_limit reply_limit = {0};

        for (unsigned round = 0; round < 2000; round++) {
                size_t length = put_reply(text, 0);

                for (size_t i = 0; i < length; i++) {
                        void *reply = NULL;

                        ck_assert_int_eq(reply_limit_feed(&reply_limit, text + i, 1), REPLY_LIMIT_FITS);
                        ck_assert_int_eq(redisReaderFeed(reader, text + i, 1), REDIS_OK);
                        ck_assert_int_eq(redisReaderGetReply(reader, &reply), REDIS_OK);
                        ck_assert_int_eq(is_between_replies(&reply_limit), !!reply);
                        if (reply)
                                freeReplyObject(reply);
                }
                ck_assert(is_between_replies(&reply_limit));
        }
        redisReaderFree(reader);
}

TEST_MAIN("gauge")
