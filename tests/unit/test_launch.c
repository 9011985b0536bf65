/* SPDX-License-Identifier: MIT */
/* Tests of io/launch.h: each starts real processes and reads what they say of themselves. */
#include "base/fd.h"
#include "golden.h"
#include "io/launch.h"
#include "io/log.h"
#include "io/log_tail.h"
#include "io/proc.h"
#include "quoting.h"
#include "unit.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* A fleet with a folder of its own, and how its last launch went. */
static const struct traits traits = {.name = "any"};
static const struct traits named = {.name = "named", .name_variable = "WORKER_NAME", .name_suffix = "@%h"};
static const struct shim path_shim = {.file = "python/shim.py", .variable = "LOADS", .separator = ':'};
static const struct shim option_shim = {
        .file = "python/shim.py", .variable = "LOADS", .separator = ' ', .option = "--require="};
static const struct traits of_path = {.name = "any", .shim = &path_shim};
static const struct traits of_option = {.name = "any", .shim = &option_shim};

struct bench {
        char dir[64];
        char log[128];
        char *argv[4];
        char *before[4], *after[4];
        char *environment_list[4];
        char *base_environment[16];
        struct fleet_settings fleet;
        struct launch_request request;
        struct launch_report report;
        pid_t pid;
        int status;
        char output[8192]; /* what the log holds */
};

static void bench_open(struct bench *bench)
{
        *bench = (struct bench){
                .dir = "/tmp/test_launch.XXXXXX",
                .argv = {(char *)"/bin/sh", (char *)"-c"},
                .before = {(char *)"/bin/sh", (char *)"-c"},
                .after = {(char *)"/bin/sh", (char *)"-c"},
                .base_environment = {(char *)"PATH=/usr/local/bin:/usr/bin:/bin"},
                .report = LAUNCH_REPORT_INIT,
        };
        ck_assert_ptr_nonnull(mkdtemp(bench->dir));
        ck_assert_int_eq(chmod(bench->dir, 01777), 0);
        snprintf(bench->log, sizeof(bench->log), "%s/log", bench->dir);
        bench->fleet = (struct fleet_settings){
                .name = (char *)"mail",
                .traits = &traits,
                .argv = bench->argv,
                .log = bench->log,
                .boot_timeout = 60 * USEC_PER_SEC,
        };
        bench->request = (struct launch_request){
                .fleet = &bench->fleet,
                .index = 3,
                .generation = 12,
                .started_at = 77,
                .instance = "0123abcd",
                .base_environment = bench->base_environment,
        };
        ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &bench->request.nofile), 0);
}

static void bench_close(struct bench *bench)
{
        close_fd(bench->report.log_fd);
        free(bench->report.error);
        unit_remove_tree(bench->dir);
}

static void await_report(int report_fd, struct launch_report *report)
{
        while (report->outcome == LAUNCH_PENDING) {
                struct pollfd poll_fd = {.fd = report_fd, .events = POLLIN};
                ck_assert_int_eq(poll(&poll_fd, 1, -1), 1);
                ck_assert_int_eq(launch_report_read(report_fd, report), 0);
        }
}

/* Launches the fleet's command and waits for its end. */
static void bench_run(struct bench *bench)
{
        struct launched launched;

        close_fd(bench->report.log_fd);
        free(bench->report.error);
        bench->report = LAUNCH_REPORT_INIT;
        ck_assert_int_eq(launch_start(&bench->request, &launched), 0);
        bench->pid = launched.pid;
        await_report(launched.report_fd, &bench->report);
        close_fd(launched.report_fd);
        ck_assert_int_eq(waitpid(bench->pid, &bench->status, 0), bench->pid);
        if (fd_read_file(AT_FDCWD, bench->log, bench->output, sizeof(bench->output)) < 0)
                bench->output[0] = '\0';
}

/* The same for a shell script, which must run. */
static const char *bench_run_script(struct bench *bench, const char *script)
{
        bench->argv[2] = (char *)script;
        bench_run(bench);
        ck_assert_msg(bench->report.outcome == LAUNCH_RUNNING, "%s",
                      bench->report.error ? quoted_reveal(bench->report.error) : "");
        ck_assert_msg(bench->status == 0, "status %x: %s", (unsigned)bench->status, bench->output);
        return bench->output;
}

/* The error is that of the case in tests/golden/start-errors, the directory of this test as "D". */
static void expect_error(const struct bench *bench, const char *what)
{
        ck_assert_ptr_nonnull(bench->report.error);
        golden_expect_with("start-errors", what, quoted_reveal(bench->report.error), bench->dir, "D");
}

static void bench_run_failing(struct bench *bench, const char *what)
{
        if (!bench->argv[2])
                bench->argv[2] = (char *)":";
        bench_run(bench);
        ck_assert_int_eq(bench->report.outcome, LAUNCH_FAILED);
        expect_error(bench, what);
        ck_assert(WIFEXITED(bench->status));
        ck_assert_int_eq(WEXITSTATUS(bench->status), 127);
}

static struct bench bench;

static void setup(void)
{
        bench_open(&bench);
}

static void teardown(void)
{
        bench_close(&bench);
}

TEST(runs_the_command_in_a_process_group_of_its_own)
{
        char expected[64];

        bench_run_script(&bench,
                         "read pid name state parent group rest < /proc/$$/stat; echo $pid $group $#");
        snprintf(expected, sizeof(expected), "%d %d 0\n", (int)bench.pid, (int)bench.pid);
        ck_assert_str_eq(bench.output, expected);
        ck_assert_ptr_null(bench.report.error);
}

static void handle(int signo _unused_)
{
}

TEST(gives_default_handlers_and_an_empty_signal_mask)
{
        sigset_t mask, after;

        signal(SIGPIPE, SIG_IGN);
        signal(SIGTSTP, SIG_IGN);
        signal(SIGXFSZ, SIG_IGN);
        signal(SIGRTMAX, SIG_IGN);
        signal(SIGHUP, handle);
        signal(SIGBUS, handle);
        sigemptyset(&mask);
        sigaddset(&mask, SIGTERM);
        sigaddset(&mask, SIGCHLD);
        ck_assert_int_eq(sigprocmask(SIG_SETMASK, &mask, NULL), 0);

        bench_run_script(&bench, "exec sed -n '/^Sig[BIC]/p' /proc/self/status");
        /* Signals 32 and 33 are the C library's own: what it inherited of them it does not let anyone change.
         */
        char *ignored = strstr(bench.output, "SigIgn:\t");
        ck_assert_ptr_nonnull(ignored);
        ck_assert_uint_eq(strtoull(ignored + 8, NULL, 16) & ~0x180000000ULL, 0);
        ck_assert_ptr_nonnull(strstr(bench.output, "SigBlk:\t0000000000000000\n"));
        ck_assert_ptr_nonnull(strstr(bench.output, "SigCgt:\t0000000000000000\n"));
        ck_assert_int_eq(sigprocmask(SIG_SETMASK, NULL, &after), 0);
        ck_assert_int_eq(sigismember(&after, SIGTERM), 1);
        ck_assert_int_eq(sigismember(&after, SIGHUP), 0);
}

TEST(leaks_no_descriptors_and_reads_nothing)
{
        int leaks[3];

        bench.fleet.name = (char *)"web";
        bench.request.index = 3;
        bench.request.generation = 7;
        bench.request.started_at = 12345;
        bench.request.instance = "0123456789abcdef";
        for (size_t i = 0; i < ELEMENTSOF(leaks); i++) {
                leaks[i] = open("/dev/null", O_RDONLY);
                ck_assert_int_ge(leaks[i], 0);
        }
        /* The fourth is the folder itself, which ls has open; the last has the markers. */
        bench_run_script(&bench, "ls /proc/self/fd | sort -n; readlink /proc/self/fd/0 /proc/self/fd/60");
        ck_assert_str_eq(bench.output, "0\n1\n2\n3\n60\n/dev/null\n/memfd:SQMGR_INSTANCE=0123456789abcdef "
                                       "SQMGR_WORKER=web/3 SQMGR_GENERATION=7 SQMGR_START=12345 (deleted)\n");
        for (size_t i = 0; i < ELEMENTSOF(leaks); i++)
                close(leaks[i]);
}

TEST(gives_the_original_file_limit_though_more_files_are_open)
{
        struct rlimit original, raised;
        char expected[64];
        int open_files[100];

        ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &original), 0);
        original.rlim_cur = 50;
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &original), 0);
        ck_assert_int_eq(launch_raise_nofile(&bench.request.nofile), 0);
        ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &raised), 0);
        ck_assert_uint_eq(raised.rlim_cur, original.rlim_max);
        ck_assert_uint_eq(bench.request.nofile.rlim_cur, 50);

        for (size_t i = 0; i < ELEMENTSOF(open_files); i++)
                open_files[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        bench_run_script(&bench, "ulimit -Sn; ulimit -Hn");
        snprintf(expected, sizeof(expected), "50\n%ju\n", (uintmax_t)original.rlim_max);
        ck_assert_str_eq(bench.output, expected);
        for (size_t i = 0; i < ELEMENTSOF(open_files); i++)
                close_fd(open_files[i]);
}

TEST(builds_the_environment_so_that_the_later_source_wins)
{
        static const char *const base[] = {
                "PATH=/usr/bin:/bin", "NOTIFY_SOCKET=/n", "WATCHDOG_PID=1",   "WATCHDOG_USEC=2",
                "LISTEN_PID=1",       "LISTEN_FDS=1",     "LISTEN_FDNAMES=x", "RUNTIME_DIRECTORY=/run/sqmgr",
                "INVOCATION_ID=abc",  "A=base",           "B=base",           "C=base",
                "SQMGR_INDEX=99"};

        for (size_t i = 0; i < ELEMENTSOF(base); i++)
                bench.base_environment[i] = (char *)base[i];
        bench.environment_list[0] = (char *)"B=list";
        bench.environment_list[1] = (char *)"C=list";
        bench.environment_list[2] = (char *)"SQMGR_FLEET=list";
        bench.fleet.environment_list = bench.environment_list;
        unit_write_file(bench.dir, "env", "# comment\nC='of the file'\nSQMGR_WORKER=file\n");
        bench.fleet.directory = bench.dir;
        bench.fleet.environment_file = (char *)"env";

        bench_run_script(&bench, "exec env | grep -v ^PWD= | LC_ALL=C sort");
        ck_assert_str_eq(bench.output,
                         "A=base\nB=list\nC=of the file\nINVOCATION_ID=abc\nPATH=/usr/bin:/bin\n"
                         "SQMGR_FLEET=mail\nSQMGR_GENERATION=12\nSQMGR_INDEX=3\n"
                         "SQMGR_INSTANCE=0123abcd\nSQMGR_START=77\nSQMGR_WORKER=mail/3\n");
}

/* No two workers of a host have one name, unless the fleet's own settings say so. */
TEST(names_the_worker_in_its_environment)
{
        ck_assert_str_eq(bench_run_script(&bench, "echo \"<$WORKER_NAME>\""), "<>\n");
        bench.fleet.traits = &named;
        ck_assert_str_eq(bench_run_script(&bench, "echo \"<$WORKER_NAME>\""), "<>\n<mail-3@%h>\n");
        bench.environment_list[0] = (char *)"WORKER_NAME=mine@%h";
        bench.fleet.environment_list = bench.environment_list;
        ck_assert_str_eq(bench_run_script(&bench, "echo \"<$WORKER_NAME>\""), "<>\n<mail-3@%h>\n<mine@%h>\n");
}

TEST(names_the_host_of_a_worker_in_namespaces_unless_the_fleet_does)
{
        static const struct traits hosted = {.name = "hosted", .host_variable = "HOST_NAME"};
        static const char script[] = "echo ${HOST_NAME-none}";

        bench.fleet.traits = &hosted;
        bench_run_script(&bench, script);
        bench.request.unique_host = "vm:mail.3.abc";
        bench_run_script(&bench, script);
        bench.base_environment[1] = (char *)"HOST_NAME=inherited";
        bench_run_script(&bench, script);
        bench.environment_list[0] = (char *)"HOST_NAME=mine";
        bench.fleet.environment_list = bench.environment_list;
        ck_assert_str_eq(bench_run_script(&bench, script), "none\nvm:mail.3.abc\ninherited\nmine\n");
}

/* before: what the worker has in $LOADS without the shim, which is below the folder of that name. The folder
 * of this test is "D" in what is expected. */
static void expect_loads(const struct traits *shimmed, const char *shims, const char *before, int error,
                         const char *expected)
{
        char folder[128], loads[64], line[256];
        const char *at = strchr(expected, 'D') ?: expected + strlen(expected);

        snprintf(folder, sizeof(folder), "%s%s", bench.dir, shims ?: "");
        snprintf(loads, sizeof(loads), "LOADS=%s", before ?: "");
        snprintf(line, sizeof(line), "%.*s%s%s\n", (int)(at - expected), expected, *at ? bench.dir : "",
                 *at ? at + 1 : "");
        bench.base_environment[1] = before ? loads : NULL;
        bench.fleet.traits = shimmed;
        bench.request.shims = shims ? folder : NULL;
        (void)unlink(bench.log);
        ck_assert_str_eq(bench_run_script(&bench, "echo \"$LOADS\""), line);
        ck_assert_int_eq(bench.report.shim_error, error);
}

TEST(adds_the_shim_behind_what_the_variable_has)
{
        unit_write_file(bench.dir, "python/shim.py", "");
        expect_loads(&of_path, "", NULL, 0, "D/python");
        expect_loads(&of_path, "", "", 0, "D/python");
        expect_loads(&of_path, "", "/app:/lib", 0, "/app:/lib:D/python");
        expect_loads(&of_option, "", "--old=99", 0, "--old=99 --require=D/python/shim.py");
        expect_loads(&traits, "", "kept", 0, "kept");
        expect_loads(&of_path, NULL, "kept", 0, "kept");
}

TEST(starts_without_a_shim_that_cannot_be_read_or_named)
{
        static const char *const names[] = {"/a b", "/a:b", "/a\"b", "/a\\b"};
        char file[64];

        expect_loads(&of_option, "/missing", "kept", ENOENT, "kept");
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                snprintf(file, sizeof(file), "%s/python/shim.py", names[i] + 1);
                unit_write_file(bench.dir, file, "");
                expect_loads(&of_option, names[i], "kept", EINVAL, "kept");
        }
        ck_assert_str_ne(shim_error_text(EINVAL), shim_error_text(ENOENT));
}

TEST(orphans_below_a_worker_in_namespaces_stay_its_children)
{
        static const char script[] =
                "rm -f begun parent; sh -c 'sh ./orphan & until test -e begun; do sleep .01; "
                "done'; until test -e parent; do sleep .01; done; "
                "test $(cat parent) = $$ && echo ours || echo lost";

        bench.fleet.directory = bench.dir;
        unit_write_file(bench.dir, "orphan",
                        "touch begun\n"
                        "until test $PPID != $(cut -d' ' -f4 /proc/$$/stat); do sleep .01; done\n"
                        "cut -d' ' -f4 /proc/$$/stat >number; mv number parent\n");
        ck_assert_str_eq(bench_run_script(&bench, script), "lost\n");
        bench.fleet.namespaced = 1;
        ck_assert_str_eq(bench_run_script(&bench, script), "lost\nours\n");
}

TEST(says_what_is_wrong_with_the_environment_file)
{
        char path[128];

        snprintf(path, sizeof(path), "%s/env", bench.dir);
        bench.fleet.environment_file = path;
        bench_run_failing(&bench, "environment_file: missing");
        unit_write_file(bench.dir, "env", "A=1\n\nexport B\n");
        bench_run_failing(&bench, "environment_file: a bad line");
}

/* NULL: nothing is wrong. */
static void rehearse(const char *what)
{
        free(bench.report.error);
        bench.report = LAUNCH_REPORT_INIT;
        ck_assert_int_eq(launch_rehearse(&bench.request, 60 * USEC_PER_SEC, &bench.report), 0);
        ck_assert_int_eq(bench.report.outcome, what ? LAUNCH_FAILED : LAUNCH_RUNNING);
        if (what)
                expect_error(&bench, what);
        ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
}

static void run_before(const char *script)
{
        bench.before[2] = (char *)script;
        bench.fleet.before_start_argv = bench.before;
}

TEST(before_start_comes_first_as_the_worker_does)
{
        bench.fleet.directory = bench.dir;
        run_before("echo before $SQMGR_WORKER $SQMGR_INSTANCE$SQMGR_START; id -u >>made; cut -d ' ' -f 5 "
                   "/proc/self/stat");
        bench_run_script(&bench, "echo run $SQMGR_INSTANCE; cat made; cut -d ' ' -f 5 /proc/self/stat");
        char expected[256];
        snprintf(expected, sizeof(expected), "before mail/3\n%d\nrun 0123abcd\n%u\n%d\n", (int)bench.pid,
                 geteuid(), (int)bench.pid);
        ck_assert_str_eq(bench.output, expected);
}

TEST(a_before_start_that_fails_is_a_start_that_fails)
{
        bench.argv[2] = (char *)"echo run";
        run_before("echo 'no database'; exit 3");
        bench_run_failing(&bench, "before_start: exits with 3");
        ck_assert_str_eq(bench.output, "no database\n");
        run_before("kill -9 $$");
        bench_run_failing(&bench, "before_start: is killed");
        bench.before[0] = (char *)"/proc/nowhere/x";
        bench_run_failing(&bench, "before_start: missing");
        ck_assert_str_eq(bench.output, "no database\n");
        bench.fleet.log = NULL;
        rehearse("before_start: missing");
}

/* What it leaves comes to this test. */
static bool group_is_gone(pid_t group)
{
        while (waitpid(-group, NULL, WNOHANG) > 0)
                ;
        return kill(-group, 0) < 0 && errno == ESRCH;
}

TEST(a_before_start_has_boot_timeout_and_goes_with_all_of_its)
{
        ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
        bench.argv[2] = (char *)"echo run";
        bench.fleet.boot_timeout = 300 * USEC_PER_MSEC;
        run_before("trap '' TERM; sleep 1000 & sleep 1000");
        bench_run(&bench);
        ck_assert_int_eq(bench.report.outcome, LAUNCH_FAILED);
        expect_error(&bench, "before_start: does not end");
        ck_assert(WIFSIGNALED(bench.status));
        while (!group_is_gone(bench.pid))
                (void)usleep(1000);
        ck_assert_str_eq(bench.output, "");
}

/* The worker, asked to exit meanwhile, takes it along. */
TEST(a_before_start_does_not_outlive_the_start)
{
        struct launched launched;

        ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
        bench.argv[2] = (char *)"echo run";
        run_before("trap '' TERM; echo begun; exec sleep 1000");
        ck_assert_int_eq(launch_start(&bench.request, &launched), 0);
        do
                (void)usleep(1000);
        while (fd_read_file(AT_FDCWD, bench.log, bench.output, sizeof(bench.output)) <= 0);
        ck_assert_int_eq(kill(-launched.pid, SIGTERM), 0);
        ck_assert_int_eq(waitpid(launched.pid, &bench.status, 0), launched.pid);
        await_report(launched.report_fd, &bench.report);
        close_fd(launched.report_fd);
        while (!group_is_gone(launched.pid))
                (void)usleep(1000);
}

TEST(after_exit_is_reported_how_the_worker_ended_and_is_bounded)
{
        struct launch_end end = {
                .pid = 4711, .code = "killed", .status = "KILL", .timeout = 60 * USEC_PER_SEC};

        ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
        bench.argv[2] = (char *)"echo run";
        bench.request.kind = LAUNCH_AFTER_EXIT;
        bench.request.end = &end;
        run_before("echo before");
        bench.fleet.after_exit_argv = bench.after;
        bench.after[2] =
                (char *)"echo $SQMGR_WORKER $SQMGR_PID $SQMGR_EXIT_CODE $SQMGR_EXIT_STATUS$SQMGR_INSTANCE";
        bench_run(&bench);
        ck_assert_int_eq(bench.report.outcome, LAUNCH_RUNNING);
        ck_assert_str_eq(bench.output, "mail/3 4711 killed KILL\n");

        bench.after[2] = (char *)"exit 3";
        bench_run_failing(&bench, "after_exit: exits with 3");
        end.timeout = 300 * USEC_PER_MSEC;
        bench.after[2] = (char *)"trap '' TERM; sleep 1000 & sleep 1000";
        bench_run(&bench);
        expect_error(&bench, "after_exit: does not end");
        while (!group_is_gone(bench.pid))
                (void)usleep(1000);
}

TEST(a_rehearsal_says_what_would_stop_a_start_and_leaves_nothing)
{
        char path[128];

        snprintf(path, sizeof(path), "%s/made", bench.dir);
        bench.argv[2] = (char *)"echo run >made";
        bench.fleet.directory = bench.dir;
        rehearse(NULL);
        ck_assert_int_eq(access(path, F_OK), -1);
        ck_assert_int_eq(access(bench.log, F_OK), -1);

        bench.argv[0] = (char *)"bnudle";
        rehearse("command: not in PATH");
        unit_write_file(bench.dir, "bnudle", "");
        bench.argv[0] = (char *)"./bnudle";
        rehearse("command: no program");
        bench.argv[0] = (char *)"..";
        bench.environment_list[0] = (char *)"PATH=/bin";
        bench.fleet.environment_list = bench.environment_list;
        rehearse("command: a directory");
        bench.argv[0] = (char *)"sh";
        rehearse(NULL);

        bench.fleet.environment_file = (char *)"bnudle";
        unit_write_file(bench.dir, "bnudle", "export A=1\nB\n");
        rehearse("environment_file: a bad line below the directory");
        bench.fleet.environment_file = NULL;
        bench.fleet.log = (char *)"/proc/nowhere/log";
        rehearse("log: no directory");
        bench.fleet.log = (char *)"journal";
        rehearse(NULL);
        bench.fleet.directory = (char *)"/proc/nowhere";
        rehearse("directory: missing");
}

TEST(resolves_the_directory_anew_at_every_start)
{
        char one[128], two[128], current[128], expected[512];

        snprintf(one, sizeof(one), "%s/one", bench.dir);
        snprintf(two, sizeof(two), "%s/two", bench.dir);
        snprintf(current, sizeof(current), "%s/current", bench.dir);
        ck_assert_int_eq(mkdir(one, 0755), 0);
        ck_assert_int_eq(mkdir(two, 0755), 0);
        ck_assert_int_eq(symlink("one", current), 0);
        bench.fleet.directory = current;
        bench_run_script(&bench, "pwd -P");
        ck_assert_int_eq(unlink(current), 0);
        ck_assert_int_eq(symlink("two", current), 0);
        bench_run_script(&bench, "pwd -P");
        snprintf(expected, sizeof(expected), "%s\n%s\n", one, two);
        ck_assert_str_eq(bench.output, expected);

        ck_assert_int_eq(unlink(current), 0);
        bench_run_failing(&bench, "directory: a link that is gone");
}

TEST(appends_to_the_log_and_reads_back_what_is_new)
{
        char lines[LOG_TAIL_MAX_BYTES + 1];
        struct stat st;

        (void)umask(022);
        bench_run_script(&bench, "echo first");
        ck_assert_int_eq(stat(bench.log, &st), 0);
        ck_assert_uint_eq(st.st_mode & 07777, 0640);
        ck_assert_uint_eq(bench.report.log_start_bytes, 0);

        bench_run_script(&bench, "echo second; echo third >&2");
        ck_assert_str_eq(bench.output, "first\nsecond\nthird\n");
        ck_assert_uint_eq(bench.report.log_start_bytes, strlen("first\n"));
        ck_assert_int_ge(bench.report.log_fd, 0);
        ck_assert(fcntl(bench.report.log_fd, F_GETFD) & FD_CLOEXEC);
        ck_assert(fcntl(bench.report.log_fd, F_GETFL) & O_PATH);
        ck_assert_int_eq(log_tail_read(bench.report.log_fd, bench.report.log_start_bytes, (pid_t[2]){0},
                                       lines, sizeof(lines)),
                         0);
        ck_assert_str_eq(lines, "second\nthird");
}

TEST(keeps_the_output_where_it_is_reported_to_inherit)
{
        char name[] = "inherit", lines[64];

        int saved = dup(STDOUT_FILENO);
        int file = open(bench.log, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        ck_assert_int_ge(dup2(file, STDOUT_FILENO), 0);
        bench.fleet.log = name;
        bench.argv[2] = (char *)"echo inherited";
        bench_run(&bench);
        ck_assert_int_ge(dup2(saved, STDOUT_FILENO), 0);
        close(saved);

        ck_assert_int_eq(bench.report.outcome, LAUNCH_RUNNING);
        ck_assert_int_eq(bench.report.log_fd, -1);
        ck_assert_int_gt(fd_read_start(file, lines, sizeof(lines)), 0);
        ck_assert_str_eq(lines, "inherited\n");
        close(file);
}

TEST(hands_over_no_log_that_is_not_a_regular_file)
{
        bench.fleet.log = (char *)"/dev/null";
        bench_run_script(&bench, "echo lost");
        ck_assert_int_eq(bench.report.log_fd, -1);
}

TEST(says_that_there_is_no_journal)
{
        if (access("/run/systemd/journal/stdout", F_OK) == 0) {
                fprintf(stderr, "skipped: this machine has a journal\n");
                return;
        }
        bench.fleet.log = (char *)"journal";
        bench_run_failing(&bench, "log: no journal");
}

/* As a service, where `log` is not set: the journal is used where there is one, and nothing fails without it.
 */
TEST(a_journal_that_is_only_the_default_stops_no_start)
{
        if (access("/run/systemd/journal/stdout", F_OK) == 0) {
                fprintf(stderr, "skipped: this machine has a journal\n");
                return;
        }
        struct stat st;
        char stream[64];

        ck_assert_int_eq(fstat(STDERR_FILENO, &st), 0);
        snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
        ck_assert_int_eq(setenv("JOURNAL_STREAM", stream, 1), 0);
        ck_assert_str_eq(log_of_workers(NULL), "journal");
        ck_assert_str_eq(log_of_workers("inherit"), "inherit");
        bench.fleet.log = NULL;
        (void)bench_run_script(&bench, ":");
}

TEST(says_why_a_command_cannot_run)
{
        char script[128];

        bench.argv[0] = (char *)"bnudle";
        bench_run_failing(&bench, "command: not in PATH");
        bench.argv[0] = (char *)"/proc/nowhere/bundle";
        bench_run_failing(&bench, "command: missing");

        snprintf(script, sizeof(script), "%s/bundle", bench.dir);
        bench.argv[0] = script;
        unit_write_file(bench.dir, "bundle", "#!/proc/nowhere/ruby\n");
        bench_run_failing(&bench, "command: not executable");
        ck_assert_int_eq(chmod(script, 0755), 0);
        bench_run_failing(&bench, "command: no interpreter");
}

TEST(finds_the_command_in_the_path_of_the_new_environment)
{
        char path[128], script[128];

        unit_write_file(bench.dir, "bin/sqmgr-test-worker", "#!/bin/sh\necho found\n");
        snprintf(script, sizeof(script), "%s/bin/sqmgr-test-worker", bench.dir);
        ck_assert_int_eq(chmod(script, 0755), 0);
        snprintf(path, sizeof(path), "PATH=%s/bin", bench.dir);
        bench.environment_list[0] = path;
        bench.fleet.environment_list = bench.environment_list;
        bench.argv[0] = (char *)"sqmgr-test-worker";
        ck_assert_str_eq(bench_run_script(&bench, "-"), "found\n");
}

/* root may read and enter all. */
TEST(reports_a_directory_that_is_locked_and_reads_no_log_that_may_only_be_written)
{
        char locked[128];

        if (geteuid() == 0)
                return;
        snprintf(locked, sizeof(locked), "%s/locked", bench.dir);
        ck_assert_int_eq(mkdir(locked, 0), 0);
        bench.fleet.directory = locked;
        bench_run_failing(&bench, "directory: locked");
        rehearse("directory: locked");
        bench.fleet.directory = NULL;

        unit_write_file(bench.dir, "log", "of others\n");
        ck_assert_int_eq(chmod(bench.log, 0200), 0);
        bench_run_script(&bench, "echo mine");
        ck_assert_int_eq(bench.report.log_fd, -1);
        ck_assert_int_eq(chmod(bench.log, 0600), 0);
}

TEST(does_not_wait_for_a_child_that_hangs)
{
        struct launch_report report = LAUNCH_REPORT_INIT;
        struct launched launched;
        char path[128];
        int status;

        /* Opening a pipe that nobody writes hangs as a file on a dead server does. */
        snprintf(path, sizeof(path), "%s/pipe", bench.dir);
        ck_assert_int_eq(mkfifo(path, 0600), 0);
        bench.fleet.before_start_argv = (char *[]){(char *)"/bin/cat", path, NULL};
        bench.fleet.boot_timeout = USEC_PER_MIN;
        bench.argv[2] = (char *)"exit 42";
        ck_assert_int_eq(launch_start(&bench.request, &launched), 0);
        ck_assert_int_eq(launch_report_read(launched.report_fd, &report), 0);
        ck_assert_int_eq(report.outcome, LAUNCH_PENDING);

        FILE *file = fopen(path, "we");
        ck_assert_ptr_nonnull(file);
        ck_assert_int_eq(launch_report_read(launched.report_fd, &report), 0);
        ck_assert_int_eq(report.outcome, LAUNCH_PENDING);
        fclose(file);
        await_report(launched.report_fd, &report);
        ck_assert_int_eq(report.outcome, LAUNCH_RUNNING);
        close_fd(report.log_fd);
        free(report.error);
        close_fd(launched.report_fd);
        ck_assert_int_eq(waitpid(launched.pid, &status, 0), launched.pid);
        ck_assert_int_eq(WEXITSTATUS(status), 42);
}

TEST(starts_the_worker_though_nobody_reads_the_report)
{
        struct launched launched;
        int status;

        bench.argv[2] = (char *)"exit 43";
        ck_assert_int_eq(launch_start(&bench.request, &launched), 0);
        close(launched.report_fd);
        ck_assert_int_eq(waitpid(launched.pid, &status, 0), launched.pid);
        ck_assert_int_eq(WEXITSTATUS(status), 43);
}

TEST(reports_do_not_keep_each_other_open)
{
        struct launch_report reports[2] = {LAUNCH_REPORT_INIT, LAUNCH_REPORT_INIT};
        struct launched launched[2];

        bench.argv[2] = (char *)"exec sleep 1000";
        for (size_t i = 0; i < 2; i++)
                ck_assert_int_eq(launch_start(&bench.request, &launched[i]), 0);
        for (size_t i = 0; i < 2; i++) {
                await_report(launched[i].report_fd, &reports[i]);
                ck_assert_int_eq(reports[i].outcome, LAUNCH_RUNNING);
                close_fd(launched[i].report_fd);
                close_fd(reports[i].log_fd);
                free(reports[i].error);
                ck_assert_int_eq(kill(launched[i].pid, SIGKILL), 0);
                ck_assert_int_eq(waitpid(launched[i].pid, NULL, 0), launched[i].pid);
        }
}

/* Expects that the code of this release has arrived in the fleet's directory; error: the case in the golden
 * file; NULL: it has. */
static void expect_release(const char *release, const char *error)
{
        bench.request.kind = LAUNCH_RELEASE;
        bench.request.release = release;
        bench_run(&bench);
        ck_assert_int_eq(bench.status == 0, !error);
        ck_assert_int_eq(bench.report.outcome, error ? LAUNCH_FAILED : LAUNCH_RUNNING);
        if (error)
                expect_error(&bench, error);
}

TEST(a_release_is_where_the_directory_leads)
{
        static const char *const others[] = {"wo", "one", "current", "/", "e/two"};
        char section[64], two[128], current[128];

        snprintf(two, sizeof(two), "%s/two", bench.dir);
        snprintf(current, sizeof(current), "%s/current", bench.dir);
        ck_assert(mkdir(two, 0755) == 0 && symlink("two", current) == 0);
        bench.fleet.directory = current;
        expect_release("two", NULL);
        expect_release("/two", NULL);
        expect_release("two/", NULL);
        expect_release(two, NULL);
        for (size_t i = 0; i < ELEMENTSOF(others); i++) {
                snprintf(section, sizeof(section), "release: not '%s'", others[i]);
                expect_release(others[i], section);
        }
        bench.fleet.directory = NULL;
        expect_release("two", "release: no directory");
        bench.fleet.directory = current;
        ck_assert_int_eq(unlink(current), 0);
        expect_release("two", "release: the directory is gone");
}

TEST_MAIN("launch", .each = {setup, teardown})
