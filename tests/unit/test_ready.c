/* SPDX-License-Identifier: MIT */
/* Whether all is up, by what GetStatus replies. */
#include "golden.h"
#include "unit.h"
#include "wire/ready.h"

#define FLEET(name, state, target, active)                                                                   \
        "{\"name\":\"" name "\",\"state\":\"" state "\",\"target\":" #target ",\"active\":" #active          \
        ",\"starting\":1}"
#define STATUS(shutdown, fleets) "{\"shutdown\":" shutdown ",\"fleets\":[" fleets "]}"

/* The sentences of that section of tests/golden/ready; NULL: nothing is missing. */
static void expect_lacks(const char *status, const char *section)
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
        if (section)
                golden_expect("ready", section, reported);
        else
                ck_assert_str_eq(reported, "");
        json_decref(lacks);
        json_decref(json);
}

TEST(each_fleet_that_is_to_run_has_its_count)
{
        expect_lacks(STATUS("null", ""), NULL);
        expect_lacks(STATUS("null", FLEET("a", "running", 2, 2) "," FLEET("b", "running", 1, 3)), NULL);
        expect_lacks(STATUS("null", FLEET("a", "running", 2, 1) "," FLEET("b", "running", 1,
                                                                          0) "," FLEET("c", "running", 1, 1)),
                     "two fleets");
}

TEST(what_its_operator_has_stopped_is_not_missed)
{
        expect_lacks(STATUS("null", FLEET("a", "quiet", 2, 0) "," FLEET("b", "stopped", 2, 1)), NULL);
        expect_lacks(STATUS("null", FLEET("off", "running", 0, 0)), NULL);
}

TEST(what_ends_or_does_not_answer_is_not_ready)
{
        expect_lacks(STATUS("{\"seconds_left\":3.5,\"text\":\"x\"}", FLEET("a", "running", 0, 1)),
                     "a shutdown");
        expect_lacks("null", "no status");
        expect_lacks("{}", "no status");
        expect_lacks("{\"fleets\":7}", "no status");
        /* Whatever else is in it. */
        expect_lacks("{\"fleets\":[7,{\"name\":8,\"state\":9},null]}", NULL);
        expect_lacks("{\"fleets\":[{\"name\":8,\"state\":\"running\",\"target\":1}]}",
                     "a fleet without a name");
}

TEST_MAIN("ready")
