/* SPDX-License-Identifier: MIT */
/* Tests of io/users.h. */
#include "io/users.h"
#include "unit.h"

START_TEST(names_who_is_there_and_nobody_else)
{
        char name[64] = "x";

        users_name(0, name, sizeof(name));
        ck_assert_str_eq(name, "root");
        users_name((uid_t)-2, name, sizeof(name));
        ck_assert_str_eq(name, "");
}
END_TEST

START_TEST(a_name_is_never_cut_off)
{
        char name[5] = "x";

        users_name(0, name, sizeof(name));
        ck_assert_str_eq(name, "root");
        users_name(0, name, sizeof(name) - 1);
        ck_assert_str_eq(name, "");
}
END_TEST

START_TEST(groups_are_those_of_the_file)
{
        gid_t group = 7;

        ck_assert(!users_group("no-such-group", &group));
        ck_assert_uint_eq(group, 7);
        ck_assert(users_group("root", &group));
        ck_assert_uint_eq(group, 0);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("users");
        TCase *cases = tcase_create("all");

        tcase_add_test(cases, names_who_is_there_and_nobody_else);
        tcase_add_test(cases, a_name_is_never_cut_off);
        tcase_add_test(cases, groups_are_those_of_the_file);
        suite_add_tcase(suite, cases);
        return unit_main(suite);
}
