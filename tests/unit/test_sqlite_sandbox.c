/* SPDX-License-Identifier: MIT */
/* The driver for SQLite in the sandbox of its reader: all that a batch needs is permitted, and nothing else.
 */
#include "database/sqlite_file.h"
#include "reader/sandbox.h"
#include "sqlite_folder.h"
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>

/* A process that died within a transaction: its log is to be rolled back, or read. */
static void leave_a_log(void)
{
        release(hold("PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN IMMEDIATE;"
                     "CREATE TABLE junk AS WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n "
                     "WHERE i < 3000) SELECT i, hex(zeroblob(100)) FROM n; UPDATE t SET name = 'undone'"));
        ck_assert_uint_gt(count_files(), 1);
}

/* Returns 0 if the process can do what a batch needs in its sandbox. */
static int work_in_the_sandbox(void)
{
        const struct sandbox_needs needs = {.folder = folder};

        sqlite_file_prepare();
        if (sd_event_new(&event) < 0 || sandbox_limits() < 0)
                return 90;
        open_within(PATIENCE);
        if (sandbox_enter(&needs) < 0)
                return 91;
        run_until(states[DATABASE_CONNECTED] + states[DATABASE_DOWN] > 0);
        if (states[DATABASE_CONNECTED] == 0) {
                fprintf(stderr, "%s\n", why.text);
                return 92;
        }
        for (unsigned i = 0; i < 3; i++) {
                run("SELECT name FROM t ORDER BY id", false);
                if (got.result != DATABASE_DONE ||
                    strcmp(got.text, i == 0 ? "0:one;0:two;" : "0:x;0:x;") != 0)
                        return 93;
                run("UPDATE t SET name = 'x'", true);
                if (got.result != DATABASE_DONE)
                        return 94;
        }
        return 0;
}

TEST_LOOP(all_that_a_batch_needs_is_there_in_the_sandbox, 3 * (int)ELEMENTSOF(modes))
{
        bool wal = _i / 3 == 1;
        pid_t holder = 0;
        int status;

        execute(modes[_i / 3]);
        if (_i % 3 == 1)
                leave_a_log();
        else if (_i % 3 == 2)
                holder = hold(wal ? "SELECT * FROM t; BEGIN; SELECT * FROM t" : "SELECT 1");
        pid_t pid = fork();
        if (pid == 0)
                _exit(work_in_the_sandbox());
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
        if (holder > 0)
                release(holder);
        ck_assert_uint_le(count_files(), holder > 0 && wal ? 3 : 1);
}

static int result(long r)
{
        return r < 0 ? errno : 0;
}

static int opens_a_socket(void)
{
        return result(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

static int opens_a_unix_socket(void)
{
        return result(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

static int makes_a_socket_pair(void)
{
        int fds[2];

        return result(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
}

static int writes_elsewhere(void)
{
        return result(open("/dev/null", O_WRONLY | O_CLOEXEC));
}

static int makes_a_file_elsewhere(void)
{
        return result(open("/tmp/test_sqlite.made", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
}

static int truncates_by_open(void)
{
        return result(open(path, O_RDWR | O_TRUNC | O_CLOEXEC));
}

static int makes_a_folder(void)
{
        char name[128];

        snprintf(name, sizeof(name), "%s.d", path);
        return result(mkdir(name, 0700));
}

static int renames(void)
{
        char name[128];

        snprintf(name, sizeof(name), "%s.d", path);
        return result(rename(path, name));
}

static int links_a_file(void)
{
        char name[128];

        snprintf(name, sizeof(name), "%s.d", path);
        return result(symlink("/etc/passwd", name));
}

static int maps_code_of_a_file(void)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);

        return p == MAP_FAILED ? errno : 0;
}

static int waits_for_a_lock(void)
{
        struct flock lock = {.l_type = F_RDLCK};

        return result(fcntl(open(path, O_RDONLY | O_CLOEXEC), F_SETLKW, &lock));
}

static int changes_an_owner(void)
{
        return result(chown(path, 1, 1));
}

static int (*const refused[])(void) = {
        opens_a_socket,         opens_a_unix_socket, makes_a_socket_pair, writes_elsewhere,
        makes_a_file_elsewhere, truncates_by_open,   makes_a_folder,      renames,
        links_a_file,           maps_code_of_a_file, waits_for_a_lock,    changes_an_owner,
};

TEST_LOOP(nothing_else_is_there_in_the_sandbox, (int)ELEMENTSOF(refused))
{
        const struct sandbox_needs needs = {.folder = folder};
        int status;

        pid_t pid = fork();
        if (pid == 0) {
                if (sandbox_limits() < 0 || sandbox_enter(&needs) < 0)
                        _exit(0);
                _exit(refused[_i]());
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_msg(sandbox_is_off() || (WIFEXITED(status) && WEXITSTATUS(status) != 0), "%d: %x", _i,
                      (unsigned)status);
}

TEST_MAIN("sqlite_sandbox", .each = {setup, teardown_alone}, .timeout_seconds = 120)
