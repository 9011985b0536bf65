/* SPDX-License-Identifier: MIT */
/* Directories that workers write to, with real ones: what their users put there is harmless, and is never
 * taken for a record. */
/* promises: P5 */
#include "base/fd.h"
#include "io/status_dir.h"
#include "model/fleet.h"
#include "unit.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#define OTHER 12346 /* need not exist */
#define PID   4711

static char folder[64], parent[80];
static int dir = -1;
static char text[STATUS_FILE_MAX_BYTES + 1];
static size_t length;

static bool is_root(void)
{
        return geteuid() == 0;
}

static void setup(void)
{
        unit_make_folder(folder);
        ck_assert_int_eq(chmod(folder, 0755), 0);
        snprintf(parent, sizeof(parent), "%s/status", folder);
        dir = -1;
}

static void setup_made(void)
{
        setup();
        dir = status_dir_make(parent, "web");
        ck_assert_int_ge(dir, 0);
}

static void teardown(void)
{
        dir = close_fd(dir);
        unit_remove_tree(folder);
}

/* The path of something below folder, valid until some more were asked for. */
static const char *below(const char *path)
{
        static char paths[4][256];
        static unsigned n;

        n = (n + 1) % ELEMENTSOF(paths);
        snprintf(paths[n], sizeof(paths[n]), "%s/%s", folder, path);
        return paths[n];
}

static bool exists(const char *path)
{
        struct stat status;

        return lstat(below(path), &status) == 0;
}

static struct stat stat_of(const char *path)
{
        struct stat status;

        ck_assert_int_eq(lstat(below(path), &status), 0);
        return status;
}

static unsigned count(const char *path)
{
        _cleanup_closedir_ DIR *list = opendir(below(path));
        unsigned n = 0;

        ck_assert_ptr_nonnull(list);
        for (const struct dirent *entry; (entry = readdir(list));)
                n += entry->d_name[0] != '.';
        return n;
}

static void put(const char *path, const char *contents)
{
        unit_write_file(folder, path, contents);
}

static enum heartbeat_fault read_it(void)
{
        length = 12345;
        return status_file_read(dir, PID, text, &length);
}

/* Return 0 or -errno. */
static int make_for(const char *fleet)
{
        close_fd(dir);
        dir = status_dir_make(parent, fleet);
        return MIN(dir, 0);
}

static int open_it(const char *fleet)
{
        close_fd(dir);
        dir = status_dir_open(parent, fleet);
        return MIN(dir, 0);
}

/* Where it is made. */

TEST(is_made_whole_whatever_the_umask)
{
        mode_t before = umask(0077);

        ck_assert_int_eq(make_for("web"), 0);
        (void)umask(before);
        ck_assert_uint_eq(stat_of("status").st_mode & 07777, 0700);
        ck_assert_uint_eq(stat_of("status/web").st_mode & 07777, 0700);
        ck_assert_uint_eq(count("status"), 1);
}

TEST(another_users_is_not_used)
{
        if (!is_root())
                return;
        ck_assert_int_eq(mkdir(parent, 0700), 0);
        ck_assert_int_eq(mkdir(below("status/web"), 0700), 0);
        ck_assert_int_eq(chown(below("status/web"), OTHER, (gid_t)-1), 0);
        ck_assert_int_eq(make_for("web"), -EPERM);
        ck_assert_int_eq(open_it("web"), -EPERM);
}

TEST(a_parent_that_is_a_link_leads_nowhere)
{
        ck_assert_int_eq(mkdir(below("elsewhere"), 0711), 0);
        ck_assert_int_eq(symlink("elsewhere", parent), 0);
        ck_assert_int_eq(make_for("web"), -ENOTDIR);
        ck_assert_int_eq(open_it("web"), -ENOTDIR);
        ck_assert_uint_eq(count("elsewhere"), 0);
}

TEST(what_is_no_directory_is_left_alone)
{
        ck_assert_int_eq(mkdir(parent, 0711), 0);
        unit_write_file(folder, "status/web", "x");
        ck_assert_int_eq(make_for("web"), -ENOTDIR);
        ck_assert(S_ISREG(stat_of("status/web").st_mode));
}

TEST(nothing_is_made_above_the_parent)
{
        snprintf(parent, sizeof(parent), "%s/none/status", folder);
        ck_assert_int_eq(make_for("web"), -ENOENT);
        ck_assert(!exists("none"));
}

/* What stands in it. */

TEST_FIXTURE(setup_made, teardown)

TEST(is_found_again_by_the_next_start_and_by_who_reads)
{
        put("status/web/4711", "x");
        ck_assert_int_eq(make_for("web"), 0);
        ck_assert_int_eq(read_it(), HEARTBEAT_FAULT_NONE);
        ck_assert_int_eq(open_it("web"), 0);
        ck_assert_int_eq(read_it(), HEARTBEAT_FAULT_NONE);
        ck_assert_int_eq(open_it("we"), -ENOENT);
}

TEST(one_that_is_swapped_for_a_link_leads_nowhere)
{
        ck_assert_int_eq(rename(below("status/web"), below("elsewhere")), 0);
        ck_assert_int_eq(symlink("../elsewhere", below("status/web")), 0);
        put("elsewhere/4711", "x");
        ck_assert_int_eq(open_it("web"), -ENOTDIR);
        ck_assert_int_eq(make_for("web"), -ENOTDIR);
        ck_assert_uint_eq(count("elsewhere"), 1);
}

TEST(reads_the_file_of_that_process)
{
        char full[STATUS_FILE_MAX_BYTES + 1];

        put("status/web/4711", "v=1\n");
        put("status/web/47", "other");
        ck_assert_int_eq(read_it(), HEARTBEAT_FAULT_NONE);
        ck_assert_uint_eq(length, 4);
        ck_assert_str_eq(text, "v=1\n");
        put("status/web/4711", "");
        ck_assert_int_eq(read_it(), HEARTBEAT_FAULT_NONE);
        ck_assert_uint_eq(length, 0);
        memset(full, 'x', sizeof(full));
        full[STATUS_FILE_MAX_BYTES] = '\0';
        put("status/web/4711", full);
        ck_assert_int_eq(read_it(), HEARTBEAT_FAULT_NONE);
        ck_assert_uint_eq(length, STATUS_FILE_MAX_BYTES);
        status_file_remove(dir, PID);
        ck_assert(!exists("status/web/4711"));
        ck_assert(exists("status/web/47"));
        status_file_remove(dir, PID);
        ck_assert_int_eq(read_it(), HEARTBEAT_FAULT_MISSING);
}

TEST_LOOP(follows_no_link, 4)
{
        static const char *const targets[] = {"other", "/etc/passwd", "nothing", "4711"};

        put("status/web/other", "v=1\n");
        ck_assert_int_eq(symlink(targets[_i], below("status/web/4711")), 0);
        ck_assert_int_eq(read_it(), HEARTBEAT_FAULT_KIND);
        status_file_remove(dir, PID);
        ck_assert(exists("status/web/other"));
}

/* Nobody reads the pipe. */
TEST_LOOP(a_pipe_a_directory_and_a_socket_are_no_files, 3)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        const char *path = below("status/web/4711");
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
        ck_assert_int_eq(_i == 0   ? mkfifo(path, 0666)
                         : _i == 1 ? mkdir(path, 0700)
                                   : bind(fd, (const struct sockaddr *)&address, sizeof(address)),
                         0);
        ck_assert_int_eq(read_it(), HEARTBEAT_FAULT_KIND);
}

/* /dev/zero, which never ends. */
TEST(a_device_is_no_file)
{
        if (mknod(below("status/web/4711"), S_IFCHR | 0666, 1 << 8 | 5) < 0)
                return;
        enum heartbeat_fault fault = read_it();
        ck_assert(fault == HEARTBEAT_FAULT_KIND || fault == HEARTBEAT_FAULT_UNREADABLE); /* nodev */
}

TEST_LOOP(a_large_file_is_not_read, 2)
{
        put("status/web/4711", "");
        ck_assert_int_eq(truncate(below("status/web/4711"),
                                  _i == 0 ? (off_t)STATUS_FILE_MAX_BYTES + 1 : (off_t)1 << 40),
                         0);
        ck_assert_int_eq(read_it(), HEARTBEAT_FAULT_SIZE);
}

/* He would be given 45 s to let go of it, in which we would wait. */
TEST(waits_for_nobody_who_holds_a_lease)
{
        put("status/web/4711", "v=1\n");
        ck_assert_ptr_ne(signal(SIGIO, SIG_IGN), SIG_ERR);
        _cleanup_close_ int fd = open(below("status/web/4711"), O_RDWR | O_CLOEXEC);
        if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
                return;
        ck_assert_int_eq(read_it(), HEARTBEAT_FAULT_UNREADABLE);
}

/* FUSE lets anybody mount what answers when it likes, onto what is his own. */
TEST_LOOP(enters_no_mount, 2)
{
        int status;

        put("status/web/4711", "v=1\n");
        pid_t pid = fork();
        if (pid == 0) {
                const char *place = below(_i == 0 ? "status/web/4711" : "status/web");

                if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
                    (_i == 0 ? mount(place, place, NULL, MS_BIND, NULL)
                             : mount("none", place, "tmpfs", 0, "size=1m")) < 0)
                        _exit(77);
                int r = open_it("web");
                if (_i == 0)
                        _exit(r == 0 && read_it() == HEARTBEAT_FAULT_KIND ? 0 : 1);
                _exit(r == -EXDEV && make_for("web") == -EXDEV ? 0 : 1);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || (WEXITSTATUS(status) == 77)));
}

/* Its length tells which it was, and no other was ever whole. */
TEST(one_that_changes_meanwhile_is_read_later)
{
        pid_t pid;
        unsigned n_read = 0, n_changes = 0;

        put("status/web/4711", "");
        pid = fork();
        if (pid == 0) {
                static char contents[4000];
                _cleanup_close_ int fd = open(below("status/web/4711"), O_WRONLY | O_CLOEXEC);

                for (;;) {
                        memset(contents, 'a', sizeof(contents));
                        if (ftruncate(fd, 0) < 0 || pwrite(fd, contents, 4000, 0) < 0 ||
                            ftruncate(fd, 0) < 0 || pwrite(fd, contents, 100, 0) < 0)
                                _exit(1);
                }
        }
        while (n_changes == 0 || n_read == 0) {
                enum heartbeat_fault fault = read_it();

                ck_assert(fault == HEARTBEAT_FAULT_NONE || fault == HEARTBEAT_FAULT_CHANGES);
                n_changes += fault == HEARTBEAT_FAULT_CHANGES;
                n_read += fault == HEARTBEAT_FAULT_NONE;
                if (fault == HEARTBEAT_FAULT_NONE)
                        ck_assert(length == 0 || length == 100 || length == 4000);
        }
        unit_kill(pid);
}

/* More than are looked at in one go. */
static void put_many(void)
{
        char path[64];

        put("status/web/0", "");
        for (unsigned i = 1; i < 1500; i++) {
                snprintf(path, sizeof(path), "status/web/%u", 100000 + i);
                ck_assert_int_eq(link(below("status/web/0"), below(path)), 0);
        }
}

TEST(many_names_hide_none)
{
        put_many();
        put("status/web/4711", "v=1\n");
        ck_assert_int_eq(read_it(), HEARTBEAT_FAULT_NONE);
        ck_assert_uint_eq(length, 4);
}

/* What is taken away. */

/* A pid that no process has. */
static pid_t gone(void)
{
        pid_t pid = fork();

        if (pid == 0)
                _exit(0);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        return pid;
}

static const char *file_of(pid_t pid)
{
        static char path[64];

        snprintf(path, sizeof(path), "status/web/%d", (int)pid);
        return path;
}

static void make_old(const char *path)
{
        const struct timespec times[2] = {{.tv_sec = time(NULL) - 7200}, {.tv_sec = time(NULL) - 7200}};

        ck_assert_int_eq(utimensat(AT_FDCWD, below(path), times, AT_SYMLINK_NOFOLLOW), 0);
}

TEST(sweeps_what_the_dead_have_left)
{
        pid_t dead = gone();
        char begun[64], dead_begun[64];

        snprintf(begun, sizeof(begun), "status/web/.%d", (int)getpid());
        snprintf(dead_begun, sizeof(dead_begun), "status/web/.%d", (int)dead);
        put(begun, "");
        put(dead_begun, "");
        make_old(begun);
        ck_assert(status_file_is_begun(dir, getpid()));
        put(file_of(dead), "v=1\n");
        put(file_of(getpid()), "v=1\n");
        put("status/web/new.1", "");
        put("status/web/new.2", "");
        put("status/web/99999999999999999999", "");
        make_old("status/web/new.2");
        make_old(file_of(getpid()));
        status_dir_sweep(dir);
        ck_assert(exists(begun));
        ck_assert(!exists(dead_begun));
        ck_assert(!status_file_is_begun(dir, dead));
        ck_assert(!exists(file_of(dead)));
        ck_assert(exists(file_of(getpid())));
        ck_assert(exists("status/web/new.1"));
        ck_assert(!exists("status/web/new.2"));
        ck_assert(!exists("status/web/99999999999999999999"));
}

TEST(sweeps_links_and_not_what_they_lead_to)
{
        pid_t dead = gone();

        put("precious", "x");
        ck_assert_int_eq(symlink("../../precious", below(file_of(dead))), 0);
        ck_assert_int_eq(mkdir(below("status/web/old"), 0700), 0);
        make_old("status/web/old");
        status_dir_sweep(dir);
        ck_assert(!exists(file_of(dead)));
        ck_assert(exists("precious"));
        ck_assert(exists("status/web/old"));
}

TEST_MAIN("status_dir", .each = {setup, teardown})
