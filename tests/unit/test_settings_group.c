/* SPDX-License-Identifier: MIT */
/* Tests of the settings of a group of hosts that restart one after another. */
#include "golden.h"
#include "settings_text.h"
#include "unit.h"

static const char *const bad[] = {
        "[fleet:a]\ncommand=run\nrollout_group=g h\nrollout_hosts=0\nrollout_failures=-1",
        "[fleet]\nrollout_group=g\n[fleet:a]\ncommand=run\n[fleet:b]\ncommand=run",
        "[fleet:a]\ncommand=run\nframework=plain\nrollout_group=g",
};

TEST(what_cannot_be_a_group_is_refused)
{
        golden_begin();
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                add_refused_settings(&root_surroundings, bad[i], bad[i]);
        golden_end("settings-errors", "groups");
}

TEST(a_group_is_inherited_by_who_can_have_one)
{
        _cleanup_settings_ struct settings *s = read_good(
                "[fleet]\nrollout_group=g\nrollout_hosts=10%\nrollout_canary=5min\n[fleet:a]\ncommand=run\n"
                "[fleet:b]\ncommand=run\nframework=plain");

        ck_assert_str_eq(s->fleets[0]->rollout_group, "g");
        ck_assert(s->fleets[0]->rollout_hosts.value == 10 && s->fleets[0]->rollout_hosts.percent);
        ck_assert_uint_eq(s->fleets[0]->rollout_canary, 5 * USEC_PER_MIN);
        ck_assert_ptr_null(s->fleets[1]->rollout_group);
}

TEST(a_reload_changes_all_of_it_and_outdates_no_worker)
{
        _cleanup_settings_ struct settings *old = read_good("[fleet:a]\ncommand=run\nrollout_group=g");
        _cleanup_settings_ struct settings *new =
                read_good("[fleet:a]\ncommand=run\nrollout_group=h\nrollout_hosts=2\nrollout_failures="
                          "1\nrollout_canary=1h");
        _cleanup_settings_ struct settings *merged = NULL;
        char text[NOTES_MAX] = "";

        new->fleets[0]->rollout_key = strdup("secret");
        ck_assert_int_eq(settings_diff(old, new, note_change, text), 0);
        ck_assert_str_eq(text, "fleet:a rollout_group: g -> h\n"
                               "fleet:a rollout_hosts: 1 -> 2\n"
                               "fleet:a rollout_canary: none -> 1h\n"
                               "fleet:a rollout_failures: 0 -> 1\n");
        ck_assert_int_eq(settings_merge(old, new, &merged), 0);
        ck_assert_str_eq(merged->fleets[0]->rollout_group, "h");
        ck_assert_str_eq(merged->fleets[0]->rollout_key, "secret");
        ck_assert_uint_eq(merged->fleets[0]->launch_hash, old->fleets[0]->launch_hash);
}

TEST_MAIN("settings_group")
