/* SPDX-License-Identifier: MIT */
/* Tests of daemon/runtime/proc_facts.h: with the program that reads, and with readers that hang or die. */
/* promises: P8 */
#include "daemon/runtime/proc_facts.h"
#include "io/clock.h"
#include "io/log_tail.h"
#include "io/program.h"
#include "loop.h"
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

static struct children children;
static struct proc_facts *facts;
static struct proc *self;
static unsigned n_arrived, n_started;
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
enum behavior { HONEST, SILENT, DIES, HANGS_AT_FIRST };
static enum behavior behavior;

static void answer(int fd, const struct proc_question *question)
{
        static struct proc_reply reply;

        proc_answer(question, -1, &reply);
        (void)!send(fd, &reply, offsetof(struct proc_reply, text) + reply.length, 0);
}

static _Noreturn void serve(int fd, enum behavior how)
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
                        answer(fd, &questions[i]);
                }
        }
        _exit(0);
}

static int start_reader(int program_fd _unused_, const char *name _unused_, pid_t *ret_pid, int *ret_fd)
{
        int pair[2];

        n_started++;
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        *ret_pid = fork();
        if (*ret_pid == 0) {
                close(pair[0]);
                serve(pair[1], behavior);
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

static void make_facts(int (*start)(int program_fd, const char *name, pid_t *ret_pid, int *ret_fd),
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
        n_arrived = n_started = 0;
        behavior = HONEST;
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

static int title_of(const struct proc *proc)
{
        char title[4096];

        return proc_facts_title(facts, proc, title, sizeof(title));
}

TEST(an_answer_comes_later_and_counts_for_a_moment)
{
        char title[4096], own[4096];

        make_facts(start_reader, -1);
        ck_assert_int_eq(proc_title(self, own, sizeof(own)), 0);
        ck_assert_int_eq(title_of(self), -EINPROGRESS);
        ck_assert_int_eq(title_of(self), -EINPROGRESS);
        run_until(n_arrived > 0);
        ck_assert_int_eq(proc_facts_title(facts, self, title, sizeof(title)), 0);
        ck_assert_str_eq(title, own);
        skipped += USEC_PER_SEC;
        ck_assert_int_eq(title_of(self), -EINPROGRESS);
        ck_assert_uint_eq(n_started, 1);
}

TEST(what_was_asked_before_a_time_does_not_count)
{
        make_facts(start_reader, -1);
        ck_assert_int_eq(title_of(self), -EINPROGRESS);
        run_until(n_arrived > 0);
        proc_facts_expire(facts, self, 1);
        ck_assert_int_eq(title_of(self), 0);
        proc_facts_expire(facts, self, clock_now(CLOCK_MONOTONIC));
        ck_assert_int_eq(title_of(self), -EINPROGRESS);
}

TEST(without_readers_it_is_read_at_once)
{
        ck_assert_int_eq(title_of(self), 0);
}

TEST(the_reader_is_started_again_and_what_hangs_is_blamed)
{
        uint64_t pss, private;

        make_facts(start_reader, -1);
        behavior = HANGS_AT_FIRST;
        ck_assert_int_eq(proc_facts_memory(facts, self, &pss, &private), -EINPROGRESS);
        run_until(n_started == 1);
        skipped += 1500 * USEC_PER_MSEC;
        /* Asked of the same reader, which comes to that no more. */
        ck_assert_int_eq(title_of(self), -EINPROGRESS);
        skipped += 600 * USEC_PER_MSEC;
        run_until(proc_facts_memory(facts, self, &pss, &private) == -ETIMEDOUT);
        /* No other question follows at once. */
        ck_assert_int_eq(proc_facts_memory(facts, self, &pss, &private), -ETIMEDOUT);
        skipped += USEC_PER_SEC;
        run_until(title_of(self) != -EINPROGRESS);
        ck_assert_int_eq(title_of(self), 0);
        ck_assert_uint_eq(n_started, 2);
}

TEST(a_reader_that_dies_is_started_again_after_a_pause)
{
        make_facts(start_reader, -1);
        behavior = DIES;
        ck_assert_int_eq(title_of(self), -EINPROGRESS);
        run_until(n_started == 1);
        behavior = HONEST;
        for (int turns = 0; turns < 5; turns++)
                sd_event_run(event, 10 * USEC_PER_MSEC);
        ck_assert_uint_eq(n_started, 1);
        skipped += 1100 * USEC_PER_MSEC;
        _cleanup_proc_ struct proc *other = NULL;
        ck_assert_int_eq(proc_open(getppid(), &other), 0);
        ck_assert_int_eq(title_of(other), -EINPROGRESS);
        run_until(n_arrived > 0);
        /* On a busy machine the first question may be late by now, and is asked again. */
        run_until(title_of(self) == 0);
        ck_assert_uint_eq(n_started, 2);
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
                ck_assert_int_eq(title_of(procs[i]), -EINPROGRESS);
        }
        run_until(n_arrived > 0);
        for (size_t i = 0; i < N; i++) {
                ck_assert_int_eq(title_of(procs[i]), 0);
                proc_close(procs[i]);
                kill(pids[i], SIGKILL);
        }
        ck_assert_uint_eq(n_started, 1);
}

TEST(at_the_start_the_answers_are_waited_for_but_not_for_ever)
{
        make_facts(start_reader, -1);
        ck_assert_int_eq(title_of(self), -EINPROGRESS);
        proc_facts_wait(facts, usec_add(clock_now(CLOCK_MONOTONIC), 100 * USEC_PER_SEC));
        ck_assert_int_eq(title_of(self), 0);
        facts = proc_facts_free(facts);
        behavior = SILENT;
        make_facts(start_reader, -1);
        _cleanup_proc_ struct proc *other = NULL;
        ck_assert_int_eq(proc_open(getppid(), &other), 0);
        ck_assert_int_eq(title_of(other), -EINPROGRESS);
        proc_facts_wait(facts, usec_add(clock_now(CLOCK_MONOTONIC), 50 * USEC_PER_MSEC));
        ck_assert_int_eq(title_of(other), -EINPROGRESS);
}

static pid_t target;

static int log_tail_of(const struct proc *proc, int fd, uint64_t start_bytes,
                       char lines[static LOG_TAIL_MAX_BYTES + 1])
{
        const struct proc_log log = {.fd = fd, .start_bytes = start_bytes, .other_pid = LOG_TAIL_ANY_PID};

        return proc_facts_log_tail(facts, proc, &log, lines, LOG_TAIL_MAX_BYTES + 1);
}

/* A process with a marker and some memory. */
static void start_target(void)
{
        int ready[2];
        char byte;

        ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
        target = fork();
        if (target == 0) {
                static char sleep_name[] = "sleep", seconds[] = "1000", marker[] = "SQMGR_WORKER=web/1",
                            host[] = "DYNO=x.1", other[] = "SECRET=1";
                char *const argv[] = {sleep_name, seconds, NULL}, *const environment[] = {other, marker, host,
                                                                                          NULL};

                prctl(PR_SET_PDEATHSIG, SIGKILL);
                execve("/bin/sleep", argv, environment);
                _exit(1);
        }
        close(ready[1]);
        (void)!read(ready[0], &byte, 1);
        close(ready[0]);
}

TEST(the_program_hands_out_no_more_than_asked)
{
        char title[4096], environment[PROC_ENVIRONMENT_MAX], lines[1024], path[64];
        uint64_t pss, private;
        size_t length;

        int program_fd = open("sqmgr-proc-reader", O_PATH | O_CLOEXEC);
        ck_assert_int_ge(program_fd, 0);
        make_facts(helper_start, program_fd);
        start_target();
        _cleanup_proc_ struct proc *proc = NULL;
        ck_assert_int_eq(proc_open(target, &proc), 0);
        int log_fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        ck_assert_int_eq(write(log_fd, "first\nlast\n", 11), 11);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", log_fd);
        int held = open(path, O_PATH | O_CLOEXEC);
        ck_assert_int_ge(held, 0);

        ck_assert_int_eq(proc_facts_title(facts, proc, title, sizeof(title)), -EINPROGRESS);
        ck_assert_int_eq(proc_facts_memory(facts, proc, &pss, &private), -EINPROGRESS);
        ck_assert_int_eq(proc_facts_environment(facts, proc, environment, &length), -EINPROGRESS);
        ck_assert_int_eq(log_tail_of(proc, held, 6, lines), -EINPROGRESS);
        run_until(n_arrived > 0 && title_of(proc) == 0 &&
                  proc_facts_memory(facts, proc, &pss, &private) == 0 &&
                  log_tail_of(proc, held, 6, lines) == 0);
        ck_assert_int_eq(proc_facts_title(facts, proc, title, sizeof(title)), 0);
        ck_assert_str_eq(title, "sleep 1000");
        ck_assert_uint_gt(pss, 0);
        ck_assert_str_eq(lines, "last");
        ck_assert_int_gt(proc_facts_environment(facts, proc, environment, &length), 0);
        static const char expected[] = "SQMGR_WORKER=web/1\0DYNO=x.1";
        ck_assert_uint_eq(length, sizeof(expected));
        ck_assert_mem_eq(environment, expected, sizeof(expected));
        close(held);
        close(log_fd);
        kill(target, SIGKILL);
}

TEST_MAIN("proc_facts", .each = {setup, teardown})
