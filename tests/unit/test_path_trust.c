/* SPDX-License-Identifier: MIT */
/* Which directories are safe for what is ours, with real ones. */
#include "base/macro.h"
#include "io/path_trust.h"
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

/* explain: path_trust_explain(), or path_trust_explain_file(). */
static void assert_safe(int (*explain)(const char *path, char *why, size_t size), const char *name)
{
        char why[512] = "";
        int r = explain(below(name), why, sizeof(why));

        ck_assert_msg(r == 0, "%d: %s", r, why);
}

/* The sentence names the path, says those words, and quotes the directory or link at fault. */
static void assert_unsafe(int (*explain)(const char *path, char *why, size_t size), const char *name,
                          const char *words, const char *fault)
{
        char why[512] = "", quoted[160];
        int r = explain(below(name), why, sizeof(why));

        ck_assert_msg(r == -EPERM, "%d: %s", r, why);
        snprintf(quoted, sizeof(quoted), "'%s'", below(fault));
        ck_assert_msg(strstr(why, words) && strstr(why, quoted), "%s", why);
        ck_assert_msg(strncmp(why + 1, below(name), strlen(below(name))) == 0, "%s", why);
}

#define WRITABLE "is writable by others"

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
        const char *fault; /* NULL: it is safe */
} modes[] = {
        {0755, 0755, NULL},
        {0700, 0700, NULL},
        /* As in /tmp: other users cannot move what is ours below it. */
        {01777, 0755, NULL},
        {0755, 01777, "a/b"},
        {0755, 0775, "a/b"},
        {0755, 0757, "a/b"},
        {0775, 0755, "a"},
        {0757, 0700, "a"},
};

TEST_LOOP(who_may_write_there_is_reported_by_the_modes, ELEMENTSOF(modes))
{
        make("a", 0755);
        make("a/b", modes[_i].last);
        ck_assert_int_eq(chmod(below("a"), modes[_i].above), 0);
        if (modes[_i].fault)
                assert_unsafe(path_trust_explain, "a/b/file", WRITABLE, modes[_i].fault);
        else
                assert_safe(path_trust_explain, "a/b/file");
}

TEST(links_are_judged_by_where_they_lead)
{
        make("a", 0777);
        make("a/b", 0755);
        ck_assert_int_eq(symlink("a/b", below("link")), 0);
        assert_unsafe(path_trust_explain, "link/file", WRITABLE, "a");
}

TEST(a_link_of_another_user_is_not_safe_wherever_it_leads)
{
        make("a", 0755);
        ck_assert_int_eq(symlink("a", below("link")), 0);
        assert_safe(path_trust_explain, "link/file");
        if (geteuid() != 0)
                return;
        ck_assert_int_eq(lchown(below("link"), OTHER, (gid_t)-1), 0);
        assert_unsafe(path_trust_explain, "link/file", ": link '", "link");
}

TEST(a_directory_of_another_user_is_not_safe)
{
        make("a", 0755);
        make("a/b", 0755);
        if (geteuid() != 0)
                return;
        ck_assert_int_eq(chown(below("a"), OTHER, (gid_t)-1), 0);
        assert_unsafe(path_trust_explain, "a/b/file", ": directory '", "a");
}

static void make_file(const char *name)
{
        int fd = open(below(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(close(fd), 0);
}

TEST(a_file_is_where_no_link_can_be_changed)
{
        make("a", 0755);
        make("a/b", 0755);
        make_file("a/b/file");
        ck_assert_int_eq(symlink("b", below("a/link")), 0);
        ck_assert_int_eq(symlink(below("a/link/file"), below("file")), 0);
        assert_safe(path_trust_explain_file, "file");

        /* Where it ends is as safe as before, and so is where it begins. */
        ck_assert_int_eq(chmod(below("a"), 0777), 0);
        ck_assert_int_eq(chmod(below("a/b"), 01777), 0);
        assert_unsafe(path_trust_explain_file, "file", WRITABLE, "a");
        ck_assert_int_eq(chmod(below("a"), 01777), 0);
        assert_safe(path_trust_explain_file, "file");
        if (geteuid() != 0)
                return;
        ck_assert_int_eq(lchown(below("a/link"), OTHER, (gid_t)-1), 0);
        assert_unsafe(path_trust_explain_file, "file", ": link '", "a/link");
}

TEST(links_in_a_circle_have_an_end)
{
        char why[512];

        ck_assert_int_eq(symlink("link", below("link")), 0);
        ck_assert_int_eq(path_trust_explain_file(below("link"), why, sizeof(why)), -ELOOP);
        ck_assert_int_eq(path_trust_explain(below("link/file"), why, sizeof(why)), -ELOOP);
}

/* As many are followed as by the kernel, which would not find the directory either. */
TEST(a_chain_of_links_has_an_end)
{
        char name[16], before[16] = "a", path[32], why[512];

        make("a", 0755);
        for (unsigned i = 1; i <= 41; i++) {
                snprintf(name, sizeof(name), "link%u", i);
                ck_assert_int_eq(symlink(before, below(name)), 0);
                snprintf(before, sizeof(before), "%s", name);
                snprintf(path, sizeof(path), "%s/file", name);
                bool found = access(below(name), F_OK) == 0;
                int r = path_trust_explain(below(path), why, sizeof(why));
                ck_assert_msg(r == (found ? 0 : -ELOOP), "%u links: %d", i, r);
                ck_assert_msg(found || strstr(why, "Too many levels of symbolic links"), "%s", why);
        }
        unit_remove_tree(folder);
        ck_assert_int_eq(mkdir(folder, 0700), 0);
}

TEST(what_is_not_there_is_reported)
{
        char why[512];

        ck_assert_int_eq(path_trust_explain(below("none/file"), why, sizeof(why)), -ENOENT);
        ck_assert_int_eq(path_trust_explain("/file", why, sizeof(why)), 0);
}

TEST_MAIN("place", .each = {make_folder, end_folder})
