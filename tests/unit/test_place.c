/* SPDX-License-Identifier: MIT */
/* Which directories are safe for what is ours, with real ones. */
#include "base/macro.h"
#include "io/place.h"
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OTHER 12345 /* a user that need not exist */

static char folder[64];

static void make_folder(void)
{
        strcpy(folder, "/tmp/test-place.XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(folder));
        ck_assert_int_eq(chmod(folder, 0755), 0);
}

static const char *below(const char *name)
{
        static char path[4][128];
        static unsigned n;

        n = (n + 1) % ELEMENTSOF(path);
        snprintf(path[n], sizeof(path[n]), "%s/%s", folder, name);
        return path[n];
}

static void make(const char *name, mode_t mode)
{
        ck_assert_int_eq(mkdir(below(name), 0700), 0);
        ck_assert_int_eq(chmod(below(name), mode), 0);
}

static void end_folder(void)
{
        (void)unlink(below("link"));
        (void)unlink(below("file"));
        (void)unlink(below("a/link"));
        (void)unlink(below("a/b/file"));
        (void)rmdir(below("a/b"));
        (void)rmdir(below("a"));
        ck_assert_int_eq(rmdir(folder), 0);
}

static const struct {
        mode_t above, last;
        int expected;
} modes[] = {
        {0755, 0755, PLACE_SAFE},
        {0700, 0700, PLACE_SAFE},
        /* As /tmp is: what is ours below it is nobody else's to move. */
        {01777, 0755, PLACE_SAFE},
        {0755, 01777, PLACE_WRITABLE},
        {0755, 0775, PLACE_WRITABLE},
        {0755, 0757, PLACE_WRITABLE},
        {0775, 0755, PLACE_WRITABLE},
        {0757, 0700, PLACE_WRITABLE},
};

START_TEST(who_may_write_there_is_told_by_the_modes)
{
        char where[256] = "", why[512] = "";

        make("a", 0755);
        make("a/b", modes[_i].last);
        ck_assert_int_eq(chmod(below("a"), modes[_i].above), 0);
        ck_assert_int_eq(place_check(below("a/b/file"), where, sizeof(where)), modes[_i].expected);
        ck_assert_int_eq(place_explain(below("a/b/file"), why, sizeof(why)), modes[_i].expected ? -EPERM : 0);
        if (modes[_i].expected)
                ck_assert_msg(strncmp(where, folder, strlen(folder)) == 0 && strstr(why, where), "%s: %s",
                              where, why);
}
END_TEST

START_TEST(links_are_judged_by_where_they_lead)
{
        char where[256];

        make("a", 0777);
        make("a/b", 0755);
        ck_assert_int_eq(symlink("a/b", below("link")), 0);
        ck_assert_int_eq(place_check(below("link/file"), where, sizeof(where)), PLACE_WRITABLE);
}
END_TEST

START_TEST(a_link_of_another_user_is_not_safe_wherever_it_leads)
{
        char where[256];

        make("a", 0755);
        ck_assert_int_eq(symlink("a", below("link")), 0);
        ck_assert_int_eq(place_check(below("link/file"), where, sizeof(where)), PLACE_SAFE);
        if (geteuid() != 0)
                return;
        ck_assert_int_eq(lchown(below("link"), OTHER, (gid_t)-1), 0);
        ck_assert_int_eq(place_check(below("link/file"), where, sizeof(where)), PLACE_LINK);
        ck_assert_str_eq(where, below("link"));
}
END_TEST

START_TEST(a_directory_of_another_user_is_not_safe)
{
        char where[256];

        make("a", 0755);
        make("a/b", 0755);
        if (geteuid() != 0)
                return;
        ck_assert_int_eq(chown(below("a"), OTHER, (gid_t)-1), 0);
        ck_assert_int_eq(place_check(below("a/b/file"), where, sizeof(where)), PLACE_OWNER);
        ck_assert_str_eq(where, below("a"));
}
END_TEST

static void make_file(const char *name)
{
        int fd = open(below(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(close(fd), 0);
}

START_TEST(a_file_is_where_no_link_can_be_changed)
{
        char where[256], why[512] = "";

        make("a", 0755);
        make("a/b", 0755);
        make_file("a/b/file");
        ck_assert_int_eq(symlink("b", below("a/link")), 0);
        ck_assert_int_eq(symlink(below("a/link/file"), below("file")), 0);
        ck_assert_int_eq(place_check_file(below("file"), where, sizeof(where)), PLACE_SAFE);
        ck_assert_int_eq(place_explain_file(below("file"), why, sizeof(why)), 0);

        /* Where it ends is as safe as before, and so is where it begins. */
        ck_assert_int_eq(chmod(below("a"), 0777), 0);
        ck_assert_int_eq(chmod(below("a/b"), 01777), 0);
        ck_assert_int_eq(place_check_file(below("file"), where, sizeof(where)), PLACE_WRITABLE);
        ck_assert_str_eq(where, below("a"));
        ck_assert_int_eq(chmod(below("a"), 01777), 0);
        ck_assert_int_eq(place_check_file(below("file"), where, sizeof(where)), PLACE_SAFE);
        if (geteuid() != 0)
                return;
        ck_assert_int_eq(lchown(below("a/link"), OTHER, (gid_t)-1), 0);
        ck_assert_int_eq(place_check_file(below("file"), where, sizeof(where)), PLACE_LINK);
        ck_assert_str_eq(where, below("a/link"));
        ck_assert_int_eq(place_explain_file(below("file"), why, sizeof(why)), -EPERM);
        ck_assert_msg(strstr(why, below("a/link")), "%s", why);
}
END_TEST

START_TEST(links_in_a_circle_have_an_end)
{
        char where[256];

        ck_assert_int_eq(symlink("link", below("link")), 0);
        ck_assert_int_eq(place_check_file(below("link"), where, sizeof(where)), -ELOOP);
        ck_assert_int_eq(place_check(below("link/file"), where, sizeof(where)), -ELOOP);
}
END_TEST

/* As many are followed as by the kernel, which would not find the directory either. */
START_TEST(a_chain_of_links_has_an_end)
{
        char name[16], before[16] = "a", path[32], why[512];

        make("a", 0755);
        for (unsigned i = 1; i <= 41; i++) {
                snprintf(name, sizeof(name), "link%u", i);
                ck_assert_int_eq(symlink(before, below(name)), 0);
                snprintf(before, sizeof(before), "%s", name);
                snprintf(path, sizeof(path), "%s/file", name);
                bool found = access(below(name), F_OK) == 0;
                int r = place_explain(below(path), why, sizeof(why));
                ck_assert_msg(r == (found ? PLACE_SAFE : -ELOOP), "%u links: %d", i, r);
                ck_assert_msg(found || strstr(why, "Too many levels of symbolic links"), "%s", why);
        }
        unit_remove_tree(folder);
        ck_assert_int_eq(mkdir(folder, 0700), 0);
}
END_TEST

START_TEST(what_is_not_there_is_told)
{
        char where[256];

        ck_assert_int_eq(place_check(below("none/file"), where, sizeof(where)), -ENOENT);
        ck_assert_int_eq(place_check("/file", where, sizeof(where)), PLACE_SAFE);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("place");
        TCase *tcase = tcase_create("place");

        tcase_add_checked_fixture(tcase, make_folder, end_folder);
        tcase_add_loop_test(tcase, who_may_write_there_is_told_by_the_modes, 0, ELEMENTSOF(modes));
        tcase_add_test(tcase, links_are_judged_by_where_they_lead);
        tcase_add_test(tcase, a_link_of_another_user_is_not_safe_wherever_it_leads);
        tcase_add_test(tcase, a_directory_of_another_user_is_not_safe);
        tcase_add_test(tcase, a_file_is_where_no_link_can_be_changed);
        tcase_add_test(tcase, links_in_a_circle_have_an_end);
        tcase_add_test(tcase, a_chain_of_links_has_an_end);
        tcase_add_test(tcase, what_is_not_there_is_told);
        suite_add_tcase(suite, tcase);
        return unit_main(suite);
}
