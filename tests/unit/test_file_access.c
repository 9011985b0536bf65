/* SPDX-License-Identifier: MIT */
/* Which files are read, and what is said about others, with real files. */
/* promises: P10 */
#include "golden.h"
#include "io/file_access.h"
#include "unit.h"
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* A user and a group that need not exist. */
#define STRANGER 54321
#define GROUP    54322

static char *folder;

static void set_up(void)
{
        char template[] = "/tmp/sqmgr-test-access-XXXXXX";

        ck_assert_ptr_nonnull(mkdtemp(template));
        ck_assert_int_eq(chmod(template, 0755), 0);
        folder = strdup(template);
        unit_write_file(folder, "file", "content\n");
        unit_write_file(folder, "below/file", "content\n");
}

static void tear_down(void)
{
        unit_remove_tree(folder);
        free(folder);
}

static const char *below(const char *name)
{
        static char path[256];

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        return path;
}

static void set_mode(const char *name, mode_t mode)
{
        ck_assert_int_eq(chmod(below(name), mode), 0);
}

static void set_owner(const char *name, uid_t uid, gid_t gid)
{
        ck_assert_int_eq(chown(below(name), uid, gid), 0);
}

/* Opens the file, and adds what is said about it. */
static void add_opened(const char *what, const char *name)
{
        char why[FILE_WHY_MAX] = "opened";
        int fd = file_access_open(below(name), why);

        ck_assert_int_eq(fd >= 0, strcmp(why, "opened") == 0);
        golden_add_with(what, why, folder, "D");
        close_fd(fd);
}

/* As a stranger would: only root can become one. */
static void add_opened_as_stranger(const char *what, const char *name)
{
        char why[FILE_WHY_MAX] = "";
        int ends[2], status;

        ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
        pid_t pid = fork();
        if (pid == 0) {
                if (setgroups(0, NULL) < 0 || setresgid(STRANGER, STRANGER, STRANGER) < 0 ||
                    setresuid(STRANGER, STRANGER, STRANGER) < 0)
                        _exit(1);
                _exit(file_access_open(below(name), why) == -EACCES &&
                                      write(ends[1], why, strlen(why)) == (ssize_t)strlen(why)
                              ? 0
                              : 1);
        }
        ck_assert_int_gt(pid, 0);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
        ck_assert_int_gt(read(ends[0], why, sizeof(why) - 1), 0);
        ck_assert_int_eq(close(ends[0]), 0);
        ck_assert_int_eq(close(ends[1]), 0);
        golden_add_with(what, why, folder, "D");
}

TEST(a_file_is_trusted_by_its_mode_and_that_of_its_directory)
{
        golden_begin();
        add_opened("own", "file");
        set_mode("file", 0440);
        add_opened("read-only", "file");
        set_mode("file", 0620);
        add_opened("mode 0620", "file");
        set_mode("file", 0602);
        add_opened("mode 0602", "file");
        set_mode("below", 0775);
        add_opened("in a directory of mode 0775", "below/file");
        set_mode("below", 01777);
        add_opened("in a sticky directory", "below/file");
        ck_assert_int_eq(symlink("below/file", below("link")), 0);
        set_mode("below/file", 0666);
        add_opened("by a link", "link");
        golden_end("file-access", "modes");
}

TEST(other_files_are_not_read)
{
        golden_begin();
        add_opened("missing", "none");
        add_opened("a directory", "below");
        ck_assert_int_eq(mkfifo(below("fifo"), 0600), 0);
        add_opened("a FIFO", "fifo");
        golden_end("file-access", "no files");
}

TEST(own_files_that_are_closed_are_opened_by_their_owner)
{
        if (geteuid() == 0)
                return;
        golden_begin();
        set_mode("file", 0);
        add_opened("mode 0", "file");
        set_mode("below", 0600);
        add_opened("in a directory of mode 0600", "below/file");
        set_mode("below", 0700);
        golden_end("file-access", "own, closed");
}

TEST(root_trusts_only_its_own_files)
{
        if (geteuid() != 0)
                return;
        golden_begin();
        set_owner("file", STRANGER, 0);
        add_opened("of a stranger", "file");
        set_owner("file", 0, STRANGER);
        set_mode("file", 0640);
        add_opened("of a stranger's group", "file");
        set_owner("below", STRANGER, 0);
        add_opened("in a directory of a stranger", "below/file");
        golden_end("file-access", "owners");
}

TEST(files_that_only_root_can_read_are_named_with_what_helps)
{
        if (geteuid() != 0)
                return;
        golden_begin();
        set_mode("file", 0600);
        add_opened_as_stranger("mode 0600 of root", "file");
        set_owner("file", 0, GROUP);
        add_opened_as_stranger("mode 0600 of another group", "file");
        set_mode("file", 0640);
        add_opened_as_stranger("mode 0640 of another group", "file");
        set_mode("below", 0700);
        add_opened_as_stranger("in a directory of root", "below/file");
        set_owner("below", 0, GROUP);
        set_mode("below", 0710);
        add_opened_as_stranger("in a directory of another group", "below/file");
        golden_end("file-access", "files of root");
}

TEST(a_log_that_cannot_be_created_goes_to_the_directory_of_logs)
{
        static const struct {
                const char *directories;
                int error;
                const char *remedy;
        } cases[] = {
                {"/var/log/sqmgr/app", EACCES, "; set log = /var/log/sqmgr/app/workers.log"},
                {"/var/log/sqmgr/app:/var/log/app", EROFS, "; set log = /var/log/sqmgr/app/workers.log"},
                {"/var/log/sqmgr/app", ENOENT, ""},
                {NULL, EACCES, "; set log to a file in a directory of sqmgr's user"},
        };
        char remedy[FILE_REMEDY_MAX];

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                if (cases[i].directories)
                        ck_assert_int_eq(setenv("LOGS_DIRECTORY", cases[i].directories, 1), 0);
                else
                        ck_assert_int_eq(unsetenv("LOGS_DIRECTORY"), 0);
                file_access_log_remedy(cases[i].error, remedy);
                ck_assert_str_eq(remedy, cases[i].remedy);
        }
}

TEST_MAIN("file_access", .each = {set_up, tear_down})
