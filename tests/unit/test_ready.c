/* SPDX-License-Identifier: MIT */
/* Whether all is up, by what GetStatus replies. */
#include "golden.h"
#include "unit.h"
#include "wire/reply.h"

#define PROBLEM(summary, unready) "{\"summary\":\"" summary "\",\"unready\":" unready "}"
#define STATUS(problems)          "{\"version\":\"1\",\"fleets\":[],\"problems\":[" problems "]}"

/* The sentences of that section of tests/golden/ready; NULL: nothing is missing. */
static void expect_lacks(const char *status, const char *section)
{
        json_t *json = json_loads(status, JSON_DECODE_ANY, NULL), *lacks = reply_lacks(json), *text;
        char reported[1024] = "";
        size_t i;

        ck_assert(json && lacks);
        json_array_foreach(lacks, i, text)
        {
                strncat(reported, json_string_value(text), sizeof(reported) - strlen(reported) - 1);
                strncat(reported, "\n", sizeof(reported) - strlen(reported) - 1);
        }
        if (section)
                golden_expect("ready", section, reported);
        else
                ck_assert_str_eq(reported, "");
        json_decref(lacks);
        json_decref(json);
}

TEST(only_problems_that_say_so_make_it_unready)
{
        expect_lacks(STATUS(""), NULL);
        expect_lacks(STATUS(PROBLEM("the worst", "false")), NULL);
        expect_lacks(STATUS(PROBLEM("fleet 'a': 1 of 2 workers active", "true") "," PROBLEM(
                             "b", "false") "," PROBLEM("sqmgr: shutting down", "true")),
                     "two problems");
}

TEST(what_does_not_answer_is_not_ready)
{
        expect_lacks("null", "no status");
        expect_lacks("{}", "no status");
        expect_lacks("{\"fleets\":7}", "no status");
        expect_lacks("{\"fleets\":[]}", "no status");
        /* Whatever else is in it. */
        expect_lacks("{\"fleets\":[],\"problems\":[7,{\"unready\":8},null]}", NULL);
}

TEST_MAIN("ready")
