/* SPDX-License-Identifier: MIT */
/* Tests of io/users.h. */
#include "io/users.h"
#include "unit.h"
#include <sched.h>

TEST(names_who_is_there_and_nobody_else)
{
        char name[64] = "x";

        users_name(0, name, sizeof(name));
        ck_assert_str_eq(name, "root");
        users_name((uid_t)-2, name, sizeof(name));
        ck_assert_str_eq(name, "");
}

TEST(a_name_is_never_cut_off)
{
        char name[5] = "x";

        users_name(0, name, sizeof(name));
        ck_assert_str_eq(name, "root");
        users_name(0, name, sizeof(name) - 1);
        ck_assert_str_eq(name, "");
}

TEST(groups_are_those_of_the_file)
{
        gid_t group = 7;

        ck_assert(!users_group("no-such-group", &group));
        ck_assert_uint_eq(group, 7);
        ck_assert(users_group("root", &group));
        ck_assert_uint_eq(group, 0);
}

TEST(in_a_user_namespace_the_overflow_id_is_nobodys)
{
        ck_assert(!users_is_of_unmapped(0));
        ck_assert(!users_is_of_unmapped(65533));
        /* No other thread runs here. */
        if (unshare(CLONE_NEWUSER) < 0)
                return;
        ck_assert(users_is_of_unmapped(65534));
        ck_assert(!users_is_of_unmapped(0));
}

TEST_MAIN("users")
