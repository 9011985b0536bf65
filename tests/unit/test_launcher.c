/* SPDX-License-Identifier: MIT */
/* Tests of io/launcher.h: many starts at once, starts that hang, and shortages. */
/* promises: P8 */
#include "base/fd.h"
#include "io/launch.h"
#include "io/launcher.h"
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

/* A user of nobody else. */
#define SOME_UID 54321

static const struct traits traits = {.name = "any"};
static char dir[64], file_log[128], fifo[128], *argv[4];
static struct fleet_settings fleet;

static void setup(void)
{
        unit_make_folder(dir);
        ck_assert_int_eq(chmod(dir, 0777), 0);
        snprintf(file_log, sizeof(file_log), "%s/log", dir);
        snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
        argv[0] = (char *)"/bin/sh";
        argv[1] = (char *)"-c";
        fleet = (struct fleet_settings){
                .name = (char *)"mail", .traits = &traits, .argv = argv, .log = file_log};
}

static void teardown(void)
{
        if (getuid() == SOME_UID)
                ck_assert_int_eq(setresuid(0, 0, 0), 0);
        unit_remove_tree(dir);
}

/* Returns the pid or -errno. */
static pid_t start(const char *script, unsigned index, int *ret_report_fd)
{
        struct launch_request request = {.fleet = &fleet, .index = index, .instance = ""};
        struct launched launched = {.report_fd = -1};

        argv[2] = (char *)script;
        request.base_environment = environ;
        ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &request.nofile), 0);
        int r = launch_start(&request, &launched);
        if (ret_report_fd)
                *ret_report_fd = launched.report_fd;
        else
                close_fd(launched.report_fd);
        return r < 0 ? r : launched.pid;
}

static void expect_exit(pid_t pid, int code)
{
        int status;

        ck_assert_int_gt(pid, 0);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == code, "status %x", (unsigned)status);
}

/* Threads hold what starts need: only the one for the next start is left once each has executed its command.
 */
static void expect_one_thread(void)
{
        struct stat status;

        do {
                launcher_rest();
                ck_assert_int_eq(stat("/proc/self/task", &status), 0);
        } while (status.st_nlink > 4);
}

/* The log has a line for each index, in any order. */
TEST(of_300_starts_at_once_each_runs_once)
{
        bool seen[301] = {false};
        char text[8192], *at = text;
        int status;

        for (unsigned i = 1; i <= 300; i++)
                ck_assert_int_gt(start("echo $SQMGR_INDEX", i, NULL), 0);
        for (unsigned i = 1; i <= 300; i++) {
                ck_assert_int_gt(wait(&status), 0);
                ck_assert_int_eq(status, 0);
        }
        ck_assert_int_gt(fd_read_file(AT_FDCWD, file_log, text, sizeof(text)), 0);
        for (unsigned i = 1; i <= 300; i++, at++) {
                unsigned long index = strtoul(at, &at, 10);

                ck_assert_uint_ge(index, 1);
                ck_assert_uint_le(index, 300);
                ck_assert(!seen[index] && *at == '\n');
                seen[index] = true;
        }
        ck_assert_int_eq(*at, '\0');
        expect_one_thread();
}

/* As sqmgr does after its settings are read, which may start a reader. */
TEST(actions_that_are_set_after_a_start_are_reset_in_the_next_one)
{
        int status;

        expect_exit(start("exit 3", 0, NULL), 3);
        ck_assert(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
        launcher_find_actions();
        pid_t pid = start("kill -PIPE $$; exit 4", 0, NULL);
        ck_assert_int_gt(pid, 0);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
}

/* Gives up the rights of root, which may read every file, until the end of the test. */
static void become_some_user(void)
{
        if (geteuid() == 0)
                ck_assert_int_eq(setresuid(SOME_UID, SOME_UID, 0), 0);
}

/* Makes the log a pipe that cannot be read: opening it to write waits for a reader, as a file on a dead
 * server does. */
static void make_log_hang(void)
{
        become_some_user();
        ck_assert_int_eq(mkfifo(fifo, 0200), 0);
        fleet.log = fifo;
}

static void let_log_go(void)
{
        ck_assert_int_eq(chmod(fifo, 0600), 0);
        ck_assert_int_ge(open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC), 0);
}

static bool is_starting(pid_t pid)
{
        char path[64], comm[32];

        snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
        return fd_read_file(AT_FDCWD, path, comm, sizeof(comm)) > 0 && strcmp(comm, LAUNCH_COMM "\n") == 0;
}

/* The kernel announces the end of the thread that made a process to what asks for that (PR_SET_PDEATHSIG). */
static bool is_made_by_main_thread(pid_t pid)
{
        char path[64], list[8192], name[16];

        snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
        ck_assert_int_gt(fd_read_file(AT_FDCWD, path, list + 1, sizeof(list) - 1), 0);
        list[0] = ' ';
        snprintf(name, sizeof(name), " %d ", (int)pid);
        return strstr(list, name);
}

TEST(starts_that_hang_hold_nothing_and_delay_no_other)
{
        pid_t hung[20];
        char path[64];

        make_log_hang();
        int socket = open("/dev/null", O_RDONLY | O_CLOEXEC);
        for (size_t i = 0; i < ELEMENTSOF(hung); i++)
                ck_assert_int_gt(hung[i] = start("exit 42", 1, NULL), 0);
        fleet.log = file_log;
        for (unsigned i = 0; i < 5; i++)
                expect_exit(start("exit 43", 1, NULL), 43);
        for (size_t i = 0; i < ELEMENTSOF(hung); i++) {
                ck_assert(is_starting(hung[i]));
                ck_assert(is_made_by_main_thread(hung[i]));
                for (int fd = LAUNCH_REPORT_FD + 1; fd <= MAX(socket, 20); fd++) {
                        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)hung[i], fd);
                        ck_assert_msg(access(path, F_OK) < 0, "it has descriptor %d", fd);
                }
        }
        close(socket);
        ck_assert_int_eq(kill(hung[0], SIGKILL), 0);
        ck_assert_int_eq(waitpid(hung[0], NULL, 0), hung[0]);
        let_log_go();
        for (size_t i = 1; i < ELEMENTSOF(hung); i++)
                expect_exit(hung[i], 42);
        expect_one_thread();
}

TEST(of_too_many_starts_that_hang_the_last_is_refused)
{
        enum { MOST = 512 };
        static pid_t hung[MOST];

        make_log_hang();
        for (size_t i = 0; i < MOST; i++)
                ck_assert_int_gt(hung[i] = start("exit 42", 1, NULL), 0);
        ck_assert_int_eq(start("exit 42", 1, NULL), -EBUSY);
        for (size_t i = 0; i < MOST; i++) {
                ck_assert_int_eq(kill(hung[i], SIGKILL), 0);
                ck_assert_int_eq(waitpid(hung[i], NULL, 0), hung[i]);
        }
        fleet.log = file_log;
        expect_exit(start("exit 43", 1, NULL), 43);
}

TEST(a_worker_inherits_umask_and_limits)
{
        struct rlimit limit;

        (void)umask(027);
        ck_assert_int_eq(getrlimit(RLIMIT_STACK, &limit), 0);
        limit.rlim_cur = 1 << 20;
        ck_assert_int_eq(setrlimit(RLIMIT_STACK, &limit), 0);
        expect_exit(start("[ $(umask) = 0027 ] && [ $(ulimit -s) = 1024 ] && exit 47", 1, NULL), 47);
}

/* The end of a program, by exit() or execve(), does not wait for the children of its threads. */
TEST_LOOP(a_start_that_hangs_outlives_its_sqmgr, 2)
{
        int pair[2];
        pid_t hung;

        ck_assert_int_eq(pipe2(pair, O_CLOEXEC), 0);
        pid_t pid = fork();
        if (pid == 0) {
                make_log_hang();
                hung = start("echo run", 1, NULL);
                if (write(pair[1], &hung, sizeof(hung)) != sizeof(hung))
                        _exit(1);
                if (_i == 0)
                        _exit(0);
                execl("/bin/true", "true", NULL);
                _exit(1);
        }
        expect_exit(pid, 0);
        ck_assert_int_eq(read(pair[0], &hung, sizeof(hung)), sizeof(hung));
        ck_assert_int_gt(hung, 0);
        ck_assert(is_starting(hung));
        ck_assert_int_eq(kill(hung, SIGKILL), 0);
}

TEST(without_descriptors_a_start_fails_and_the_next_succeeds)
{
        struct rlimit before, few;

        launcher_prepare();
        ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
        few = before;
        few.rlim_cur = 3;
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
        ck_assert_int_eq(start("exit 44", 1, NULL), -EMFILE);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
        expect_exit(start("exit 44", 1, NULL), 44);
}

/* Threads count as processes: a limit of 1 permits no thread, one of 2 no child. */
TEST(without_processes_a_start_fails_and_the_next_succeeds)
{
        struct rlimit before, few;

        become_some_user();
        ck_assert_int_eq(getrlimit(RLIMIT_NPROC, &before), 0);
        few = before;
        for (few.rlim_cur = 1; few.rlim_cur <= 2; few.rlim_cur++) {
                ck_assert_int_eq(setrlimit(RLIMIT_NPROC, &few), 0);
                ck_assert_int_eq(start("exit 45", 1, NULL), -EAGAIN);
        }
        ck_assert_int_eq(setrlimit(RLIMIT_NPROC, &before), 0);
        expect_exit(start("exit 45", 1, NULL), 45);
}

TEST(without_memory_a_start_fails_and_the_next_succeeds)
{
#ifdef __SANITIZE_ADDRESS__
        return; /* it reserves memory itself */
#endif
        struct rlimit before, little;

        ck_assert_int_eq(getrlimit(RLIMIT_AS, &before), 0);
        little = before;
        little.rlim_cur = 1;
        ck_assert_int_eq(setrlimit(RLIMIT_AS, &little), 0);
        pid_t r = start("exit 46", 1, NULL);
        ck_assert_int_eq(setrlimit(RLIMIT_AS, &before), 0);
        ck_assert(r == -ENOMEM || r == -EAGAIN);
        expect_exit(start("exit 46", 1, NULL), 46);
}

TEST_MAIN("launcher", .each = {setup, teardown})
