/* SPDX-License-Identifier: MIT */
/* Whether all is up, by what GetStatus replies. */
#include "unit.h"
#include "wire/ready.h"

#define FLEET(name, state, target, active)                                                                   \
        "{\"name\":\"" name "\",\"state\":\"" state "\",\"target\":" #target ",\"active\":" #active          \
        ",\"starting\":1}"
#define STATUS(shutdown, fleets) "{\"shutdown\":" shutdown ",\"fleets\":[" fleets "]}"

/* The sentences, each ended by a newline. */
static void expect_lacks(const char *status, const char *expected)
{
        json_t *json = json_loads(status, JSON_DECODE_ANY, NULL), *lacks = ready_lacks(json), *text;
        char reported[1024] = "";
        size_t i;

        ck_assert(json && lacks);
        json_array_foreach(lacks, i, text)
        {
                strncat(reported, json_string_value(text), sizeof(reported) - strlen(reported) - 1);
                strncat(reported, "\n", sizeof(reported) - strlen(reported) - 1);
        }
        ck_assert_str_eq(reported, expected);
        json_decref(lacks);
        json_decref(json);
}

TEST(each_fleet_that_is_to_run_has_its_count)
{
        expect_lacks(STATUS("null", ""), "");
        expect_lacks(STATUS("null", FLEET("a", "running", 2, 2) "," FLEET("b", "running", 1, 3)), "");
        expect_lacks(STATUS("null", FLEET("a", "running", 2, 1) "," FLEET("b", "running", 1,
                                                                          0) "," FLEET("c", "running", 1, 1)),
                     "fleet 'a' has 1 of 2 workers active, 1 starting\n"
                     "fleet 'b' has 0 of 1 worker active, 1 starting\n");
}

TEST(what_its_operator_has_stopped_is_not_missed)
{
        expect_lacks(STATUS("null", FLEET("a", "quiet", 2, 0) "," FLEET("b", "stopped", 2, 1)), "");
        expect_lacks(STATUS("null", FLEET("off", "running", 0, 0)), "");
}

TEST(what_ends_or_does_not_answer_is_not_ready)
{
        expect_lacks(STATUS("{\"seconds_left\":3.5,\"text\":\"x\"}", FLEET("a", "running", 0, 1)),
                     "sqmgr is shutting down\n");
        expect_lacks("null", "sqmgr has not told its status\n");
        expect_lacks("{}", "sqmgr has not told its status\n");
        expect_lacks("{\"fleets\":7}", "sqmgr has not told its status\n");
        /* Whatever else is in it. */
        expect_lacks("{\"fleets\":[7,{\"name\":8,\"state\":9},null]}", "");
        expect_lacks("{\"fleets\":[{\"name\":8,\"state\":\"running\",\"target\":1}]}",
                     "fleet '' has 0 of 1 worker active, 0 starting\n");
}

TEST_MAIN("ready")
