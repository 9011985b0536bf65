/* SPDX-License-Identifier: MIT */
/* Tests of daemon/runtime/proc_facts.h: with the program that reads, and with readers that hang, lie or die.
 */
/* promises: P8 */
#include "daemon/runtime/proc_facts.h"
#include "io/clock.h"
#include "io/log_tail.h"
#include "loop.h"
#include "privileged/proc_answer.h"
#include "privileged/proc_inspect.h"
#include "privileged/reader_start.h"
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

static struct children children;
static struct proc_facts *facts;
static struct proc *self;
static unsigned n_arrived, n_started, n_privileged;
static sd_event_source *reaper;
static usec_t skipped;  /* how much the clock is ahead */
static usec_t stood_at; /* when the clock was stopped; 0: it runs */

usec_t __real_clock_now(clockid_t clock);
usec_t __wrap_clock_now(clockid_t clock);

usec_t __wrap_clock_now(clockid_t clock)
{
        return (stood_at > 0 ? stood_at : __real_clock_now(clock)) + skipped;
}

/* How a reader answers the questions of a message. */
enum behavior { HONEST, SILENT, DIES, LIES, TOO_LONG, NOT_TERMINATED, REFUSES, HANGS_AT_FIRST };
static enum behavior behavior;
static uid_t hangs_for = (uid_t)-1;

static bool answer(int fd, const struct proc_question *question, enum behavior how, bool privileged)
{
        static struct proc_reply reply;

        proc_answer(question, -1, &reply);
        if (how == LIES)
                reply.id++;
        if (how == TOO_LONG)
                reply.length++;
        if (how == NOT_TERMINATED)
                reply.length--;
        if (how == REFUSES && !privileged) {
                reply.error = -EACCES;
                reply.length = 0;
        }
        return send(fd, &reply, offsetof(struct proc_reply, text) + reply.length - (how == TOO_LONG), 0) >= 0;
}

static _Noreturn void serve(int fd, enum behavior how, bool privileged)
{
        static struct proc_question questions[PROC_QUESTIONS_MAX];
        ssize_t n;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while ((n = recv(fd, questions, sizeof(questions), 0)) > 0) {
                if (how == DIES)
                        _exit(1);
                for (size_t i = 0; i < (size_t)n / sizeof(questions[0]); i++) {
                        while (how == SILENT ||
                               (how == HANGS_AT_FIRST && questions[i].subject == PROC_MEMORY))
                                pause();
                        answer(fd, &questions[i], how, privileged);
                }
        }
        _exit(0);
}

static int start_reader(int program_fd _unused_, const struct proc_reader_user *user, bool privileged,
                        pid_t *ret_pid, int *ret_fd)
{
        enum behavior how = user->uid == hangs_for ? SILENT : behavior;
        int pair[2];

        n_started++;
        n_privileged += privileged;
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        *ret_pid = fork();
        if (*ret_pid == 0) {
                close(pair[0]);
                serve(pair[1], how, privileged);
        }
        close(pair[1]);
        *ret_fd = pair[0];
        return 0;
}

static void on_arrived(void *userdata _unused_)
{
        n_arrived++;
}

static int on_child(sd_event_source *source _unused_, const struct signalfd_siginfo *signal _unused_,
                    void *userdata _unused_)
{
        siginfo_t info = {0};

        while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
                if (!children_reap(&children, info.si_pid))
                        waitid(P_PID, (id_t)info.si_pid, &info, WEXITED);
                info.si_pid = 0;
        }
        return 0;
}

static void make_facts(int (*start)(int program_fd, const struct proc_reader_user *user, bool privileged,
                                    pid_t *ret_pid, int *ret_fd),
                       int program_fd)
{
        const struct proc_facts_ops ops = {.start = start, .arrived = on_arrived};

        ck_assert_int_eq(proc_facts_new(event, &children, program_fd, &ops, &facts), 0);
}

static void setup(void)
{
        sigset_t mask;

        sigemptyset(&mask);
        sigaddset(&mask, SIGCHLD);
        ck_assert_int_eq(sigprocmask(SIG_BLOCK, &mask, NULL), 0);
        ck_assert_int_ge(sd_event_new(&event), 0);
        ck_assert_int_ge(sd_event_add_signal(event, &reaper, SIGCHLD, on_child, NULL), 0);
        ck_assert_int_eq(proc_open(getpid(), &self), 0);
        n_arrived = n_started = n_privileged = 0;
        behavior = HONEST;
        hangs_for = (uid_t)-1;
        skipped = stood_at = 0;
}

static void teardown(void)
{
        self = proc_close(self);
        facts = proc_facts_free(facts);
        reaper = sd_event_source_unref(reaper);
        event = sd_event_unref(event);
        while (waitpid(-1, NULL, 0) > 0)
                ;
}

static int title_of(const struct proc *proc, uid_t user)
{
        char title[4096];

        return proc_facts_title(facts, proc, user, title, sizeof(title));
}

TEST(an_answer_comes_later_and_counts_for_a_moment)
{
        char title[4096], own[4096];

        make_facts(start_reader, -1);
        ck_assert_int_eq(proc_title(self, own, sizeof(own)), 0);
        ck_assert_int_eq(title_of(self, 1), -EINPROGRESS);
        ck_assert_int_eq(title_of(self, 1), -EINPROGRESS);
        run_until(n_arrived > 0);
        ck_assert_int_eq(proc_facts_title(facts, self, 1, title, sizeof(title)), 0);
        ck_assert_str_eq(title, own);
        skipped += USEC_PER_SEC;
        ck_assert_int_eq(title_of(self, 1), -EINPROGRESS);
        ck_assert_uint_eq(n_started, 1);
}

TEST(what_was_asked_before_a_time_does_not_count)
{
        make_facts(start_reader, -1);
        ck_assert_int_eq(title_of(self, 1), -EINPROGRESS);
        run_until(n_arrived > 0);
        proc_facts_expire(facts, self, 1);
        ck_assert_int_eq(title_of(self, 1), 0);
        proc_facts_expire(facts, self, clock_now(CLOCK_MONOTONIC));
        ck_assert_int_eq(title_of(self, 1), -EINPROGRESS);
}

TEST(without_readers_it_is_read_at_once)
{
        ck_assert_int_eq(title_of(self, 1), 0);
}

TEST(one_that_hangs_delays_its_user_alone)
{
        make_facts(start_reader, -1);
        hangs_for = 1;
        ck_assert_int_eq(title_of(self, 1), -EINPROGRESS);
        _cleanup_proc_ struct proc *other = NULL;
        ck_assert_int_eq(proc_open(getppid(), &other), 0);
        ck_assert_int_eq(title_of(other, 2), -EINPROGRESS);
        run_until(n_arrived > 0);
        ck_assert_int_eq(title_of(other, 2), 0);
        ck_assert_int_eq(title_of(self, 1), -EINPROGRESS);
        skipped += 3 * USEC_PER_SEC;
        run_until(title_of(self, 1) == -ETIMEDOUT);
        /* No other question follows at once. */
        ck_assert_int_eq(title_of(self, 1), -ETIMEDOUT);
}

TEST(the_reader_is_started_again_and_what_hangs_is_blamed)
{
        uint64_t pss, private;

        make_facts(start_reader, -1);
        behavior = HANGS_AT_FIRST;
        ck_assert_int_eq(proc_facts_memory(facts, self, 1, &pss, &private), -EINPROGRESS);
        run_until(n_started == 1);
        skipped += 1500 * USEC_PER_MSEC;
        /* Asked of the same reader, which comes to that no more. */
        ck_assert_int_eq(title_of(self, 1), -EINPROGRESS);
        skipped += 600 * USEC_PER_MSEC;
        run_until(proc_facts_memory(facts, self, 1, &pss, &private) == -ETIMEDOUT);
        skipped += USEC_PER_SEC;
        run_until(title_of(self, 1) != -EINPROGRESS);
        ck_assert_int_eq(title_of(self, 1), 0);
        ck_assert_uint_eq(n_started, 2);
}

static const enum behavior faults[] = {DIES, LIES, TOO_LONG, NOT_TERMINATED};

TEST_LOOP(an_answer_that_cannot_be_is_none, ELEMENTSOF(faults))
{
        make_facts(start_reader, -1);
        behavior = faults[_i];
        ck_assert_int_eq(title_of(self, 1), -EINPROGRESS);
        run_until(n_started == 1);
        /* The reader is ended, and started again after a pause. */
        behavior = HONEST;
        for (int turns = 0; turns < 5; turns++)
                sd_event_run(event, 10 * USEC_PER_MSEC);
        ck_assert_uint_eq(n_started, 1);
        skipped += 1100 * USEC_PER_MSEC;
        _cleanup_proc_ struct proc *other = NULL;
        ck_assert_int_eq(proc_open(getppid(), &other), 0);
        ck_assert_int_eq(title_of(other, 1), -EINPROGRESS);
        run_until(n_arrived > 0);
        /* On a busy machine the first question may be late by now, and is asked again. */
        run_until(title_of(self, 1) == 0);
        ck_assert_uint_eq(n_started, 2);
}

TEST(where_the_users_rights_do_not_suffice_one_that_may_trace_is_asked)
{
        make_facts(start_reader, -1);
        behavior = REFUSES;
        ck_assert_int_eq(title_of(self, 1), -EINPROGRESS);
        run_until(title_of(self, 1) != -EINPROGRESS);
        ck_assert_int_eq(title_of(self, 1), 0);
        ck_assert_uint_eq(n_started, 2);
        ck_assert_uint_eq(n_privileged, 1);
}

TEST(many_are_asked_at_once_and_each_is_answered)
{
        enum { N = 300 };
        pid_t pids[N];
        struct proc *procs[N];

        make_facts(start_reader, -1);
        /* With a stopped clock no question expires, however slowly the machine starts 300 processes. */
        stood_at = clock_now(CLOCK_MONOTONIC);
        for (size_t i = 0; i < N; i++) {
                pids[i] = fork();
                if (pids[i] == 0) {
                        prctl(PR_SET_PDEATHSIG, SIGKILL);
                        for (;;)
                                pause();
                }
                ck_assert_int_eq(proc_open(pids[i], &procs[i]), 0);
                ck_assert_int_eq(title_of(procs[i], 1), -EINPROGRESS);
        }
        run_until(n_arrived > 0);
        for (size_t i = 0; i < N; i++) {
                ck_assert_int_eq(title_of(procs[i], 1), 0);
                proc_close(procs[i]);
                kill(pids[i], SIGKILL);
        }
        ck_assert_uint_eq(n_started, 1);
}

TEST(at_the_start_the_answers_are_waited_for_but_not_for_ever)
{
        make_facts(start_reader, -1);
        ck_assert_int_eq(title_of(self, 1), -EINPROGRESS);
        proc_facts_wait(facts, usec_add(clock_now(CLOCK_MONOTONIC), 100 * USEC_PER_SEC));
        ck_assert_int_eq(title_of(self, 1), 0);
        hangs_for = 2;
        _cleanup_proc_ struct proc *other = NULL;
        ck_assert_int_eq(proc_open(getppid(), &other), 0);
        ck_assert_int_eq(title_of(other, 2), -EINPROGRESS);
        proc_facts_wait(facts, usec_add(clock_now(CLOCK_MONOTONIC), 50 * USEC_PER_MSEC));
        ck_assert_int_eq(title_of(other, 2), -EINPROGRESS);
}

static struct proc_reader_user started_with;

static int start_reader_of(int program_fd, const struct proc_reader_user *user, bool privileged,
                           pid_t *ret_pid, int *ret_fd)
{
        started_with = *user;
        return start_reader(program_fd, user, privileged, ret_pid, ret_fd);
}

TEST(a_reader_with_groups_that_the_user_no_longer_has_is_replaced)
{
        uid_t own = getuid();
        struct proc_reader_user user;

        make_facts(start_reader_of, -1);
        ck_assert_int_eq(title_of(self, own), -EINPROGRESS);
        run_until(n_arrived > 0);
        proc_reader_user_of(self, own, &user);
        ck_assert_uint_eq(started_with.gid, user.gid);
        ck_assert_uint_eq(started_with.since, proc_start_time(self));

        /* A process that was started later has the same groups, and one that was started earlier has others.
         */
        user.since++;
        proc_facts_know_user(facts, &user);
        struct proc_reader_user old = user;
        old.groups[0] = 60124;
        old.n_groups = 1;
        old.since -= 2;
        proc_facts_know_user(facts, &old);
        skipped += USEC_PER_SEC;
        ck_assert_int_eq(title_of(self, own), -EINPROGRESS);
        run_until(title_of(self, own) == 0);
        ck_assert_uint_eq(n_started, 1);

        old.since = user.since + 1;
        proc_facts_know_user(facts, &old);
        skipped += USEC_PER_SEC;
        ck_assert_int_eq(title_of(self, own), -EINPROGRESS);
        run_until(title_of(self, own) == 0);
        ck_assert_uint_eq(n_started, 2);
        ck_assert_uint_eq(started_with.n_groups, 1);
        ck_assert_uint_eq(started_with.groups[0], 60124);
}

TEST(the_groups_of_another_users_process_are_not_taken)
{
        struct proc_reader_user user;

        proc_reader_user_of(self, getuid() + 1, &user);
        ck_assert_uint_eq(user.gid, 65534);
        ck_assert_uint_eq(user.n_groups, 0);
        ck_assert_uint_eq(user.since, 0);
}

static pid_t target;

static int log_tail_of(const struct proc *proc, int fd, uint64_t start_bytes,
                       char lines[static LOG_TAIL_MAX_BYTES + 1])
{
        const struct proc_log log = {.fd = fd, .start_bytes = start_bytes, .other_pid = LOG_TAIL_ANY_PID};

        return proc_facts_log_tail(facts, proc, 60123, &log, lines, LOG_TAIL_MAX_BYTES + 1);
}

/* A process of another user with a marker, a log, and some memory. */
static void start_target(uid_t uid)
{
        int ready[2];
        char byte;

        ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
        target = fork();
        if (target == 0) {
                static char sleep_name[] = "sleep", seconds[] = "1000", marker[] = "SQMGR_WORKER=web/1",
                            other[] = "SECRET=1";
                char *const argv[] = {sleep_name, seconds, NULL}, *const environment[] = {other, marker,
                                                                                          NULL};

                if (setgid(uid) < 0 || setuid(uid) < 0)
                        _exit(1);
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                execve("/bin/sleep", argv, environment);
                _exit(1);
        }
        close(ready[1]);
        (void)!read(ready[0], &byte, 1);
        close(ready[0]);
}

TEST(the_program_reads_as_that_user_and_hands_out_no_more_than_asked)
{
        char title[4096], environment[4096], lines[1024], path[64];
        uint64_t pss, private;
        size_t length;
        const uid_t user = 60123;

        if (geteuid() != 0) {
                fprintf(stderr, "skipped: it needs root to become another user\n");
                return;
        }
        int program_fd = open("sqmgr-proc-reader", O_PATH | O_CLOEXEC);
        ck_assert_int_ge(program_fd, 0);
        make_facts(proc_reader_start, program_fd);
        start_target(user);
        _cleanup_proc_ struct proc *proc = NULL;
        ck_assert_int_eq(proc_open(target, &proc), 0);
        int log_fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        ck_assert_int_eq(write(log_fd, "first\nlast\n", 11), 11);
        ck_assert_int_eq(fchown(log_fd, user, user), 0);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", log_fd);
        int held = open(path, O_PATH | O_CLOEXEC);
        ck_assert_int_ge(held, 0);

        ck_assert_int_eq(proc_facts_title(facts, proc, user, title, sizeof(title)), -EINPROGRESS);
        ck_assert_int_eq(proc_facts_memory(facts, proc, user, &pss, &private), -EINPROGRESS);
        ck_assert_int_eq(proc_facts_environment(facts, proc, user, environment, sizeof(environment), &length),
                         -EINPROGRESS);
        ck_assert_int_eq(log_tail_of(proc, held, 6, lines), -EINPROGRESS);
        run_until(n_arrived > 0 && title_of(proc, user) == 0 &&
                  proc_facts_memory(facts, proc, user, &pss, &private) == 0 &&
                  log_tail_of(proc, held, 6, lines) == 0);
        ck_assert_int_eq(proc_facts_title(facts, proc, user, title, sizeof(title)), 0);
        ck_assert_str_eq(title, "sleep 1000");
        ck_assert_uint_gt(pss, 0);
        ck_assert_str_eq(lines, "last");
        ck_assert_int_gt(proc_facts_environment(facts, proc, user, environment, sizeof(environment), &length),
                         0);
        ck_assert_uint_eq(length, strlen("SQMGR_WORKER=web/1") + 1);
        ck_assert_str_eq(environment, "SQMGR_WORKER=web/1");
        close(held);
        close(log_fd);
        kill(target, SIGKILL);
}

TEST(what_the_user_may_not_read_is_not_read_for_him)
{
        char lines[1024], path[64];
        const uid_t user = 60123;

        if (geteuid() != 0) {
                fprintf(stderr, "skipped: it needs root to become another user\n");
                return;
        }
        int program_fd = open("sqmgr-proc-reader", O_PATH | O_CLOEXEC);
        make_facts(proc_reader_start, program_fd);
        start_target(user);
        _cleanup_proc_ struct proc *proc = NULL;
        ck_assert_int_eq(proc_open(target, &proc), 0);
        int log_fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        ck_assert_int_eq(write(log_fd, "root's\n", 7), 7);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", log_fd);
        int held = open(path, O_PATH | O_CLOEXEC);

        ck_assert_int_eq(log_tail_of(proc, held, 0, lines), -EINPROGRESS);
        run_until(n_arrived > 0);
        ck_assert_int_eq(log_tail_of(proc, held, 0, lines), -EACCES);
        close(held);
        close(log_fd);
        kill(target, SIGKILL);
}

/* Runs as root of a user namespace, in a UTS namespace that belongs to the outer user namespace. */
static _Noreturn void read_without_a_way_back(void)
{
        char name[PROC_HOST_NAME_MAX];
        _cleanup_proc_ struct proc *other = NULL;
        int fds[2];

        if (unshare(CLONE_NEWUSER) < 0)
                _exit(2);
        pid_t pid = pipe(fds) == 0 ? fork() : -1;
        if (pid == 0) {
                bool is_inside = unshare(CLONE_NEWUTS) == 0 && write(fds[1], "x", 1) == 1;

                while (is_inside)
                        pause();
                _exit(1);
        }
        close(fds[1]);
        if (pid < 0 || read(fds[0], name, 1) != 1)
                _exit(3);
        int r = proc_open(pid, &other) ?: proc_host_name(other, name);
        kill(pid, SIGKILL);
        _exit(r == -EPERM ? 0 : 1);
}

TEST(no_uts_namespace_is_entered_without_a_way_back)
{
        int status;
        pid_t pid = fork();

        ck_assert_int_ge(pid, 0);
        if (pid == 0)
                read_without_a_way_back();
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
                fprintf(stderr, "no user namespaces\n");
        else
                ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", (unsigned)status);
}

TEST_MAIN("proc_facts", .each = {setup, teardown})
