/* SPDX-License-Identifier: MIT */
/* Tests of daemon/lifecycle/alerts.h with real scripts: the input of a script, and that a bad script does not
 * stop the next alert. */
#include "base/fd.h"
#include "daemon/lifecycle/alerts.h"
#include "golden.h"
#include "model/world.h"
#include "unit.h"
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>

/* Far beyond what any test needs: a test that waits for this long hangs. */
#define PATIENCE_SECONDS 30

static char dir[] = "/tmp/sqmgr-test-XXXXXX";
static char name[] = "web", command[PATH_MAX];
static struct fleet_settings fleet_settings = {.name = name};
static struct fleet web = {.settings = &fleet_settings};
static struct settings settings;
static struct world world = {.settings = &settings};
static struct runtime runtime;
static sd_event *event;
static struct alerts *alerts;
static int log_fd;

/* Has the lines run as a script, which finds the folder in $d. */
static void use_script(const char *lines, usec_t timeout)
{
        char text[1024];

        snprintf(text, sizeof(text), "d=%s\n%s\n", dir, lines);
        unit_write_file(dir, "script", text);
        snprintf(command, sizeof(command), "/bin/sh '%s/script' 'two words'", dir);
        settings.alert_command = command;
        ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &runtime.nofile), 0);
        ck_assert_int_eq(alerts_new(&runtime, timeout, &alerts), 0);
}

static void setup(void)
{
        sigset_t blocked;
        char path[64];

        unit_make_folder(dir);
        ck_assert_int_eq(chmod(dir, 0777), 0);
        snprintf(path, sizeof(path), "%s/log", dir);
        /* The log, and what the commands write. */
        log_fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        ck_assert_int_ge(log_fd, 0);
        ck_assert_int_ge(dup2(log_fd, STDERR_FILENO), 0);
        sigemptyset(&blocked);
        sigaddset(&blocked, SIGCHLD);
        ck_assert_int_eq(sigprocmask(SIG_BLOCK, &blocked, NULL), 0);
        ck_assert_int_ge(sd_event_new(&event), 0);
        settings = (struct settings){.alert_level = LOG_WARNING};
        runtime = (struct runtime){.event = event, .world = &world};
        ck_assert_int_eq(setenv("SQMGR_INSTANCE", "an outer one's", 1), 0);
        ck_assert_int_eq(setenv("NOTIFY_SOCKET", "/proc/nowhere", 1), 0);
}

static void teardown(void)
{
        alerts = alerts_free(alerts);
        event = sd_event_unref(event);
        close_fd(log_fd);
        unit_remove_tree(dir);
}

static void report(enum event_kind kind, unsigned index)
{
        char text[] = "it \"happened\"";
        struct event happened = {
                .kind = kind, .fleet = index > 0 ? &web : NULL, .index = index, .pid = 77, .text = text};

        alerts_event(alerts, &happened, 1700000000 * USEC_PER_SEC);
}

/* One turn of the loop. */
static void turn(void)
{
        siginfo_t info = {0};

        ck_assert_int_ge(sd_event_run(event, 10 * USEC_PER_MSEC), 0);
        while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
                if (!children_reap(&runtime.children, info.si_pid))
                        ck_assert_int_eq(waitpid(info.si_pid, NULL, 0), info.si_pid);
                info = (siginfo_t){0};
        }
}

/* How often the file has the text. */
static unsigned count_in(const char *file, const char *text)
{
        char path[64], content[8192] = "";
        unsigned count = 0;
        FILE *opened;

        snprintf(path, sizeof(path), "%s/%s", dir, file);
        opened = fopen(path, "re");
        if (!opened)
                return 0;
        size_t n = fread(content, 1, sizeof(content) - 1, opened);
        content[n] = '\0';
        (void)fclose(opened);
        for (const char *at = content; (at = strstr(at, text)); at += strlen(text))
                count++;
        return count;
}

static bool file_has(const char *file, const char *text)
{
        return count_in(file, text) > 0;
}

static void wait_for(const char *file, const char *text)
{
        time_t limit = time(NULL) + PATIENCE_SECONDS;

        while (!file_has(file, text)) {
                ck_assert_msg(time(NULL) < limit, "'%s' never had '%s'", file, text);
                turn();
        }
}

/* Waits for the line of the log that begins so, and compares it with that section of tests/golden/alerts. */
static void wait_for_line(const char *begin, const char *section)
{
        char content[65536], path[64], *line;

        snprintf(path, sizeof(path), "%s/log", dir);
        wait_for("log", begin);
        do {
                turn();
                ck_assert_int_ge(fd_read_file(AT_FDCWD, path, content, sizeof(content)), 0);
                line = strstr(content, begin);
        } while (!line || !strchr(line, '\n'));
        line[strcspn(line, "\n")] = '\0';
        golden_expect("alerts", section, line);
}

static void wait_for_end(void)
{
        time_t limit = time(NULL) + PATIENCE_SECONDS;

        while (runtime.children.first) {
                ck_assert(time(NULL) < limit);
                turn();
        }
}

static const char input[] =
        "{\"at\":1700000000.0,\"event\":\"crashed\",\"level\":\"error\",\"fleet\":\"web\",\"worker\":\"web/"
        "3\","
        "\"pid\":77,\"generation\":null,\"reason\":null,\"text\":\"it "
        "\\\"happened\\\"\",\"by\":null,\"quoted\":null,\"count\":1}\n";

TEST(the_command_gets_the_event_and_nothing_that_is_not_its_own)
{
        use_script("cat >$d/input\n"
                   "{ echo \"<$1> $SQMGR_EVENT $SQMGR_FLEET $SQMGR_WORKER ${SQMGR_INSTANCE-none} "
                   "${NOTIFY_SOCKET-none}\"\n"
                   "ls /proc/self/fd | tr '\\n' ' '\n"
                   "grep SigBlk /proc/self/status\n"
                   "echo done; } >$d/output",
                   ALERT_TIMEOUT_USEC);
        int leak = open("/dev/null", O_RDONLY); /* NOLINT: it is to be left behind */
        report(EVENT_CRASHED, 3);
        close_fd(leak);
        wait_for("output", "done\n");
        ck_assert(file_has("input", input));
        ck_assert(file_has("output", "<two words> crashed web web/3 none none\n"));
        /* Those of ls: the last is of the folder that it reads. */
        ck_assert(file_has("output", "\n0 1 2 3 SigBlk:\t0000000000000000\n"));
        wait_for_end();
        ck_assert(!file_has("log", "alert"));
}

TEST(an_event_of_no_worker_is_reported_with_empty_names)
{
        use_script("set -u; echo \"<$SQMGR_EVENT><$SQMGR_FLEET><$SQMGR_WORKER>\" >$d/output",
                   ALERT_TIMEOUT_USEC);
        report(EVENT_TIME_DOUBT, 0);
        wait_for("output", "<time-doubt><><>\n");
        wait_for_end();
}

TEST(only_events_that_matter_enough_are_reported)
{
        use_script("echo $SQMGR_EVENT >>$d/output", ALERT_TIMEOUT_USEC);
        report(EVENT_STARTED, 1);
        settings.alert_level = LOG_ERR;
        report(EVENT_STALE, 1);
        report(EVENT_CRASHED, 1);
        wait_for("output", "crashed\n");
        wait_for_end();
        ck_assert(!file_has("output", "sta"));
        settings.alert_level = LOG_INFO;
        report(EVENT_STARTED, 2);
        wait_for("output", "started\n");
        wait_for_end();
        settings.alert_command = NULL;
        report(EVENT_CRASHED, 2);
        ck_assert_ptr_null(runtime.children.first);
}

TEST(the_end_of_a_trouble_is_reported_where_the_trouble_is)
{
        use_script("echo $SQMGR_EVENT >>$d/output; cat >>$d/output", ALERT_TIMEOUT_USEC);
        report(EVENT_REDIS_DOWN, 0);
        report(EVENT_REDIS_UP, 0);
        wait_for("output", "\"event\":\"redis-up\",\"level\":\"info\"");
        report(EVENT_BEATS_AGAIN, 1);
        wait_for("output", "beats-again\n");
        report(EVENT_QUEUE_BACK, 0);
        wait_for("output", "queue-back\n");
        wait_for_end();
        settings.alert_level = LOG_ERR;
        report(EVENT_QUEUE_BACK, 1);
        report(EVENT_ACTIVE, 1);
        report(EVENT_REDIS_UP, 1);
        wait_for("output", "redis-up\n");
        wait_for_end();
        ck_assert_ptr_null(runtime.children.first);
        ck_assert(!file_has("output", "active\n"));
        ck_assert_uint_eq(count_in("output", "queue-back\n"), 1);
        ck_assert_uint_eq(count_in("output", "redis-up\n"), 2);
}

TEST(one_that_hangs_is_killed_with_what_it_started_and_the_next_is_reported)
{
        use_script("echo $SQMGR_EVENT >>$d/output\n"
                   "[ $SQMGR_EVENT = stale ] && exit\n"
                   "sleep 1000 &\n"
                   "echo $! >$d/pid; trap '' TERM; echo hangs >>$d/output; wait",
                   300 * USEC_PER_MSEC);
        report(EVENT_CRASHED, 1);
        report(EVENT_STALE, 1);
        wait_for_line("alert_command for 'crashed'", "hangs");
        /* On a slow machine it may be killed as well, before it has written anything. */
        time_t reported_by = time(NULL) + PATIENCE_SECONDS;
        while (!file_has("output", "stale\n") && !file_has("log", "alert_command for 'stale' killed")) {
                ck_assert(time(NULL) < reported_by);
                turn();
        }
        wait_for_end();
        /* It may have been killed before it came so far. */
        if (file_has("pid", "\n")) {
                char path[64];
                int pid;

                snprintf(path, sizeof(path), "%s/pid", dir);
                FILE *file = fopen(path, "re");
                ck_assert_ptr_nonnull(file);
                ck_assert_int_eq(fscanf(file, "%d", &pid), 1);
                ck_assert_int_eq(fclose(file), 0);
                /* It is init's to wait for. */
                time_t limit = time(NULL) + PATIENCE_SECONDS;
                snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
                for (bool lives = true; lives;) {
                        char text[8];
                        int fd = open(path, O_RDONLY | O_CLOEXEC);

                        lives = fd >= 0 && read(fd, text, sizeof(text)) > 0;
                        close_fd(fd);
                        ck_assert(time(NULL) < limit);
                }
        }
}

TEST(what_fails_is_logged)
{
        use_script("case $SQMGR_EVENT in crashed) echo no mail >&2; exit 3;; *) kill -KILL $$;; esac",
                   ALERT_TIMEOUT_USEC);
        report(EVENT_CRASHED, 1);
        wait_for_line("alert_command for 'crashed'", "fails");
        ck_assert(file_has("log", "no mail\n"));
        report(EVENT_STALE, 1);
        wait_for_line("alert_command for 'stale'", "is killed");
        strcpy(command, "/proc/nowhere/mail -s");
        report(EVENT_KILLED, 1);
        wait_for_line("alert_command for 'killed'", "cannot be run");
        wait_for_line("alert_command: ", "cannot be run, the reason");
        ck_assert_ptr_null(runtime.children.first);
}

TEST(in_a_storm_one_runs_at_a_time_and_the_rest_is_reported_to_be_lost)
{
        use_script("[ -e $d/runs ] && echo twice >>$d/output\n"
                   "echo >$d/runs\n"
                   "until [ -e $d/go ]; do sleep 0.01; done\n"
                   "rm $d/runs\n"
                   "echo \"$SQMGR_WORKER.\" >>$d/output",
                   ALERT_TIMEOUT_USEC);
        report(EVENT_CRASHED, 1);
        wait_for("runs", "\n");
        for (unsigned i = 1; i <= 10000; i++)
                report(EVENT_CRASHED, 1 + i % 200);
        wait_for_line("alerts dropped", "a storm");
        ck_assert_ptr_null(runtime.children.first->next);
        unit_write_file(dir, "go", "");
        wait_for("output", "web/100.\n");
        wait_for_end();
        ck_assert(!file_has("output", "twice"));
        ck_assert(!file_has("output", "web/102."));
}

TEST_MAIN("alerts", .each = {setup, teardown}, .timeout_seconds = 120)
