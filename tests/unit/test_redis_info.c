/* SPDX-License-Identifier: MIT */
/* Decodes INFO of a Redis, whatever it contains. */
/* promises: P10 */
#include "redis/redis_info.h"
#include "unit.h"
#include <string.h>

TEST(facts_are_read_and_printable)
{
        struct redis_facts facts = {.has_save = true};

        redis_info_take(
                "# Memory\r\nmaxmemory:1024\r\nmaxmemory_policy:all\033keys\r\n"
                "evicted_keys:18446744073709551615\r\naof_enabled:1\r\nrdb_last_bgsave_status:err\r\n",
                &facts);
        ck_assert(facts.has_info && facts.has_limit && facts.is_appending && facts.snapshot_failed);
        ck_assert(facts.has_save);
        ck_assert_str_eq(facts.policy, "all?keys");
        ck_assert_uint_eq(facts.evicted, UINT64_MAX);
}

TEST(a_long_policy_is_cut)
{
        char text[200] = "maxmemory_policy:";
        struct redis_facts facts = {0};

        memset(text + strlen(text), 'x', 150);
        redis_info_take(text, &facts);
        ck_assert_uint_eq(strlen(facts.policy), sizeof(facts.policy) - 1);
}

static const struct {
        const char *text;
        uint64_t number;
} numbers[] = {
        {"n:7\r\n", 7},
        {"a:1\r\nn:7", 7},
        {"n:7 jobs\n", 7},
        {"n:-1\r\n", 0},
        {"n: 7\r\n", 0},
        {"n:\r\n7\r\n", 0},
        {"n:", 0},
        {"n:nan\r\n", 0},
        {"n:99999999999999999999\r\n", UINT64_MAX},
        {"xn:7\r\nnn:7\r\nn\r\n", 0},
        {"", 0},
};

TEST_LOOP(a_number_is_read_or_0, ELEMENTSOF(numbers))
{
        ck_assert_uint_eq(redis_info_number(numbers[_i].text, "n"), numbers[_i].number);
}

/* 32 MB of empty lines cost no more than a long text without any. */
TEST(lines_of_a_text_without_end_are_not_read)
{
        const size_t size = (size_t)32 * 1024 * 1024, near = (size_t)64 * 1024;
        char *text = malloc(size);

        ck_assert_ptr_nonnull(text);
        memset(text, '\n', size);
        strcpy(text + size - 5, "n:7\n");
        ck_assert_uint_eq(redis_info_number(text, "n"), 0);
        memcpy(text + near, "n:8\n", 4);
        ck_assert_uint_eq(redis_info_number(text, "n"), 8);
        free(text);
}

TEST_MAIN("redis_info")
