/* SPDX-License-Identifier: MIT */
/* Tests of io/proc.h against real processes. */
/* promises: P4 */
#include "io/log_tail.h"
#include "io/proc.h"
#include "io/signal.h"
#include "unit.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

/* Forks a child that runs prepare, reports it, and then waits to be ended. The child dies with the test. */
static pid_t spawn(void (*prepare)(void))
{
        int ready[2];
        char byte;

        ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
        pid_t pid = unit_fork_bound();
        if (pid == 0) {
                signal(SIGTERM, SIG_DFL); /* Check has its own handler */
                if (prepare)
                        prepare();
                (void)!write(ready[1], "", 1);
                for (;;)
                        pause();
        }
        close(ready[1]);
        ck_assert_int_eq(read(ready[0], &byte, 1), 1);
        close(ready[0]);
        return pid;
}

static void end(pid_t pid)
{
        unit_kill(pid);
}

/* Leaves an exited child that was not waited for. */
static pid_t spawn_zombie(void)
{
        siginfo_t info;
        pid_t pid = unit_fork();

        if (pid == 0)
                _exit(0);
        ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
        return pid;
}

TEST(names_process_by_pid_and_start_time)
{
        _cleanup_proc_ struct proc *one = NULL, *two = NULL;

        ck_assert_int_eq(proc_open(getpid(), &one), 0);
        ck_assert_int_eq(proc_open(getpid(), &two), 0);
        ck_assert_int_eq(proc_pid(one), getpid());
        ck_assert_uint_gt(proc_start_time(one), 0);
        ck_assert_uint_eq(proc_start_time(one), proc_start_time(two));
        ck_assert(fcntl(proc_pidfd(one), F_GETFD) & FD_CLOEXEC);
        ck_assert_int_eq(proc_open(0, &two), -EINVAL);
        ck_assert_int_eq(proc_open(-1, &two), -EINVAL);
}

TEST(process_that_was_waited_for_is_gone)
{
        _cleanup_proc_ struct proc *proc = NULL, *again = NULL;
        char title[64];
        uint64_t bytes, private;

        pid_t pid = spawn_zombie();
        ck_assert_int_eq(proc_open(pid, &proc), 0);
        ck_assert_int_eq(proc_title(proc, title, sizeof(title)), 0);
        ck_assert_str_eq(title, "");
        ck_assert_int_eq(proc_rss_bytes(proc, &bytes), -ESRCH);
        struct pollfd poll_fd = {.fd = proc_pidfd(proc), .events = POLLIN};
        ck_assert_int_eq(poll(&poll_fd, 1, 0), 1);

        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        ck_assert_int_eq(proc_title(proc, title, sizeof(title)), -ESRCH);
        ck_assert_int_eq(proc_rss_bytes(proc, &bytes), -ESRCH);
        ck_assert_int_eq(proc_mapped_bytes(proc, &bytes, &private), -ESRCH);
        ck_assert_int_eq(signal_process(proc, SIGTERM), -ESRCH);
        ck_assert_int_eq(proc_catches_signal(proc, SIGTERM), -ESRCH);
        ck_assert_int_eq(proc_open(pid, &again), -ESRCH);
        ck_assert_ptr_null(again);
}

/* Waits until a process that is forked now has another start time. */
static void pass_start_time(uint64_t start_time)
{
        uint64_t ticks_per_second = (uint64_t)sysconf(_SC_CLK_TCK);
        struct timespec now;

        do {
                sched_yield();
                clock_gettime(CLOCK_BOOTTIME, &now);
        } while ((uint64_t)now.tv_sec * ticks_per_second +
                         (uint64_t)now.tv_nsec / (1000000000 / ticks_per_second) <=
                 start_time + 1);
}

TEST(never_takes_a_later_process_of_the_same_pid_for_its_own)
{
        _cleanup_proc_ struct proc *old = NULL, *new = NULL;
        char title[64];
        uint64_t bytes, private;
        unsigned threads;
        uid_t uid;

        pid_t pid = spawn(NULL);
        ck_assert_int_eq(proc_open(pid, &old), 0);
        ck_assert_int_eq(proc_rss_bytes(old, &bytes), 0);
        pass_start_time(proc_start_time(old));
        end(pid);

        struct clone_args args = {.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&pid, .set_tid_size = 1};
        long reused = syscall(SYS_clone3, &args, sizeof(args));
        if (reused == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;)
                        pause();
        }
        if (reused < 0) {
                fprintf(stderr, "skipped: a process of a chosen pid needs root: %m\n");
                return;
        }
        ck_assert_int_eq(reused, pid);

        ck_assert_int_eq(proc_title(old, title, sizeof(title)), -ESRCH);
        ck_assert_int_eq(proc_uid(old, &uid), -ESRCH);
        ck_assert_int_eq(proc_rss_bytes(old, &bytes), -ESRCH);
        ck_assert_int_eq(proc_mapped_bytes(old, &bytes, &private), -ESRCH);
        ck_assert_int_eq(proc_count_threads(old, NULL, NULL, &threads), -ESRCH);
        ck_assert_int_eq(proc_catches_signal(old, SIGTERM), -ESRCH);
        ck_assert_int_eq(signal_process(old, SIGKILL), -ESRCH);
        ck_assert_int_eq(proc_open(pid, &new), 0);
        ck_assert_uint_ne(proc_start_time(new), proc_start_time(old));
        ck_assert_int_eq(proc_has_ancestor(pid, pid, proc_start_time(new)), 1);
        ck_assert_int_eq(proc_has_ancestor(pid, pid, proc_start_time(old)), 0);
        end(pid);
}

static void *name_thread(void *name)
{
        prctl(PR_SET_NAME, name);
        return NULL;
}

static pthread_barrier_t barrier;

static void *stay_named(void *name)
{
        name_thread(name);
        pthread_barrier_wait(&barrier);
        for (;;)
                pause();
        return NULL;
}

static void start_threads(void)
{
        static const char *const names[] = {"processor", "processor", "processor", "sidekiq.heartbe",
                                            "a) b ("};
        pthread_t thread;

        pthread_barrier_init(&barrier, NULL, ELEMENTSOF(names) + 1);
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (pthread_create(&thread, NULL, stay_named, (void *)names[i]) != 0)
                        _exit(1);
        pthread_barrier_wait(&barrier);
}

static bool equals(const char *comm, void *userdata)
{
        return strcmp(comm, userdata) == 0;
}

TEST(counts_threads_by_name)
{
        _cleanup_proc_ struct proc *proc = NULL;
        unsigned count;

        pid_t pid = spawn(start_threads);
        ck_assert_int_eq(proc_open(pid, &proc), 0);
        ck_assert_int_eq(proc_count_threads(proc, equals, (void *)"processor", &count), 0);
        ck_assert_uint_eq(count, 3);
        ck_assert_int_eq(proc_count_threads(proc, equals, (void *)"sidekiq.heartbe", &count), 0);
        ck_assert_uint_eq(count, 1);
        ck_assert_int_eq(proc_count_threads(proc, equals, (void *)"a) b (", &count), 0);
        ck_assert_uint_eq(count, 1);
        ck_assert_int_eq(proc_count_threads(proc, equals, (void *)"none", &count), 0);
        ck_assert_uint_eq(count, 0);
        end(pid);
}

/* "None" would be taken for a witness. */
TEST(counts_no_threads_without_descriptors)
{
        _cleanup_proc_ struct proc *proc = NULL;
        struct rlimit before;
        unsigned count = 99;

        pid_t pid = spawn(start_threads);
        ck_assert_int_eq(proc_open(pid, &proc), 0);
        for (unsigned left = 0; left < 2; left++) {
                unit_leave_descriptors(left, &before);
                int r = proc_count_threads(proc, equals, (void *)"processor", &count);
                ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
                ck_assert_int_eq(r, -EMFILE);
        }
        ck_assert_uint_eq(count, 99);
        end(pid);
}

static void *open_own_thread(void *userdata _unused_)
{
        struct proc *proc;

        return (void *)(intptr_t)proc_open(gettid(), &proc);
}

TEST(thread_is_no_process)
{
        pthread_t thread;
        void *result;

        ck_assert_int_eq(pthread_create(&thread, NULL, open_own_thread, NULL), 0);
        ck_assert_int_eq(pthread_join(thread, &result), 0);
        ck_assert_int_eq((intptr_t)result, -ESRCH);
}

static void take_confusing_name(void)
{
        name_thread((void *)") S 1 (x) (");
}

TEST(name_with_parentheses_and_blanks_does_not_confuse)
{
        _cleanup_proc_ struct proc *self = NULL, *plain = NULL, *odd = NULL;

        ck_assert_int_eq(proc_open(getpid(), &self), 0);
        pid_t pid = spawn(NULL), odd_pid = spawn(take_confusing_name);
        ck_assert_int_eq(proc_open(pid, &plain), 0);
        ck_assert_int_eq(proc_open(odd_pid, &odd), 0);
        ck_assert_uint_ge(proc_start_time(odd), proc_start_time(plain));
        ck_assert_uint_le(proc_start_time(odd), proc_start_time(plain) + 1000);
        ck_assert_int_eq(proc_has_ancestor(odd_pid, getpid(), proc_start_time(self)), 1);
        end(pid);
        end(odd_pid);
}

TEST(title_has_blanks_for_nuls_and_no_padding)
{
        static const char *const argv[] = {"/bin/sh", "-c", "read x", "sidekiq 6.4.1  app [0 of 5 busy] ",
                                           "  ",      NULL};
        _cleanup_proc_ struct proc *proc = NULL;
        char title[128], byte;
        int input[2], executed[2];

        ck_assert_int_eq(pipe2(input, O_CLOEXEC), 0);
        ck_assert_int_eq(pipe2(executed, O_CLOEXEC), 0);
        pid_t pid = unit_fork();
        if (pid == 0) {
                dup2(input[0], STDIN_FILENO);
                execv(argv[0], (char *const *)argv);
                _exit(127);
        }
        close(executed[1]);
        ck_assert_int_eq(read(executed[0], &byte, 1), 0);

        ck_assert_int_eq(proc_open(pid, &proc), 0);
        ck_assert_int_eq(proc_title(proc, title, sizeof(title)), 0);
        ck_assert_str_eq(title, "/bin/sh -c read x sidekiq 6.4.1  app [0 of 5 busy]");
        ck_assert_int_eq(proc_title(proc, title, 8), 0);
        ck_assert_str_eq(title, "/bin/sh");
        close(input[1]);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        close(input[0]);
        close(executed[0]);
}

#define MANY_BYTES ((size_t)48 << 20)

static void use_memory(void)
{
        void *p = mmap(NULL, MANY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
                _exit(1);
        memset(p, 1, MANY_BYTES);
}

TEST(measures_memory)
{
        _cleanup_proc_ struct proc *small = NULL, *large = NULL;
        uint64_t small_rss, rss, pss, private;

        pid_t small_pid = spawn(NULL), large_pid = spawn(use_memory);
        ck_assert_int_eq(proc_open(small_pid, &small), 0);
        ck_assert_int_eq(proc_open(large_pid, &large), 0);
        ck_assert_int_eq(proc_rss_bytes(small, &small_rss), 0);
        ck_assert_int_eq(proc_rss_bytes(large, &rss), 0);
        ck_assert_int_eq(proc_mapped_bytes(large, &pss, &private), 0);
        ck_assert_uint_gt(small_rss, 0);
        ck_assert_uint_ge(rss, MANY_BYTES);
        ck_assert_uint_ge(pss, MANY_BYTES);
        ck_assert_uint_le(pss, rss + ((size_t)4 << 20));
        end(small_pid);
        end(large_pid);
}

static void ignore_signal(int signo _unused_)
{
}

static void catch_some_signals(void)
{
        signal(SIGTSTP, ignore_signal);
        signal(SIGUSR1, SIG_IGN);
        signal(SIGRTMAX, ignore_signal);
}

TEST(reports_caught_signals_from_ignored_and_default_ones)
{
        _cleanup_proc_ struct proc *proc = NULL;

        pid_t pid = spawn(catch_some_signals);
        ck_assert_int_eq(proc_open(pid, &proc), 0);
        ck_assert_int_eq(proc_catches_signal(proc, SIGTSTP), 1);
        ck_assert_int_eq(proc_catches_signal(proc, SIGRTMAX), 1);
        ck_assert_int_eq(proc_catches_signal(proc, SIGUSR1), 0);
        ck_assert_int_eq(proc_catches_signal(proc, SIGTTIN), 0);
        ck_assert_int_eq(proc_catches_signal(proc, 0), -EINVAL);
        ck_assert_int_eq(proc_catches_signal(proc, 65), -EINVAL);
        end(pid);
}

static void lead_and_be_named(void)
{
        (void)setpgid(0, 0);
        prctl(PR_SET_NAME, "a) b (c");
}

TEST(reports_where_a_process_stands)
{
        _cleanup_proc_ struct proc *proc = NULL;
        struct proc_place place;
        pid_t pid = spawn(lead_and_be_named);

        ck_assert_int_eq(proc_open(pid, &proc), 0);
        ck_assert_int_eq(proc_place(proc, &place), 0);
        ck_assert_int_eq(place.parent, getpid());
        ck_assert_int_eq(place.group, pid);
        ck_assert_int_eq(place.session, getsid(0));
        ck_assert_str_eq(place.comm, "a) b (c");
        end(pid);
        ck_assert_int_eq(proc_place(proc, &place), -ESRCH);
}

TEST(reads_the_environment_of_a_command)
{
        _cleanup_proc_ struct proc *proc = NULL;
        char text[64];
        char *const environment[] = {(char *)"A=1", (char *)"B=two words", NULL};
        int input[2], output[2];
        char byte;

        ck_assert_int_eq(pipe2(input, O_CLOEXEC), 0);
        ck_assert_int_eq(pipe2(output, O_CLOEXEC), 0);
        pid_t pid = unit_fork_bound();
        if (pid == 0) {
                dup2(input[0], STDIN_FILENO);
                dup2(output[1], STDOUT_FILENO);
                execle("/bin/sh", "sh", "-c", "echo; read -r line", NULL, environment);
                _exit(127);
        }
        close(output[1]);
        ck_assert_int_eq(read(output[0], &byte, 1), 1);
        close(output[0]);
        ck_assert_int_eq(proc_open(pid, &proc), 0);
        ck_assert_int_eq(proc_environment(proc, text, sizeof(text)), 16);
        ck_assert_int_eq(memcmp(text, "A=1\0B=two words", 16), 0);
        /* What is cut is left out, for it would say something else. */
        ck_assert_int_eq(proc_environment(proc, text, 15), 4);
        ck_assert_int_eq(memcmp(text, "A=1", 4), 0);
        end(pid);
        close(input[0]);
        close(input[1]);
}

static bool is_listed(pid_t pid)
{
        _cleanup_free_ pid_t *pids = NULL;
        size_t n;

        ck_assert_int_eq(proc_all(&pids, &n), 0);
        for (size_t i = 0; i < n; i++)
                if (pids[i] == pid)
                        return true;
        return false;
}

TEST(finds_each_process)
{
        pid_t pid = spawn(NULL);

        ck_assert(is_listed(pid));
        end(pid);
        ck_assert(!is_listed(pid));
}

struct visits {
        pid_t pids[16];
        size_t n;
        size_t stop_at;
};

static int visit(pid_t pid, void *userdata)
{
        struct visits *visits = userdata;

        ck_assert_uint_lt(visits->n, ELEMENTSOF(visits->pids));
        visits->pids[visits->n++] = pid;
        return visits->n == visits->stop_at ? 7 : 0;
}

static size_t visit_place(const struct visits *visits, pid_t pid)
{
        for (size_t i = 0; i < visits->n; i++)
                if (visits->pids[i] == pid)
                        return i;
        ck_abort_msg("process %d was not visited", (int)pid);
}

static pid_t group;

static void join_group(void)
{
        ck_assert_int_eq(setpgid(0, group), 0);
}

TEST(finds_each_process_of_a_group)
{
        struct visits visits = {0};

        group = 0;
        pid_t leader = spawn(join_group), stranger = spawn(join_group);
        group = leader;
        pid_t member = spawn(join_group);
        ck_assert_int_eq(proc_group_each(leader, visit, &visits), 0);
        ck_assert_uint_eq(visits.n, 2);
        ck_assert_uint_ne(visit_place(&visits, leader), visit_place(&visits, member));
        end(leader);
        visits.n = 0;
        ck_assert_int_eq(proc_group_each(leader, visit, &visits), 0);
        ck_assert_uint_eq(visits.n, 1);
        ck_assert_uint_eq(visit_place(&visits, member), 0);
        end(stranger);
        end(member);
}

static void become_another_unseen(void)
{
        if (setresuid(65534, 65534, 65534) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
                _exit(1);
}

TEST(reports_the_user_of_one_whose_files_are_roots)
{
        _cleanup_proc_ struct proc *proc = NULL;
        uid_t uid;

        if (geteuid() != 0) {
                puts("skipped: only root can run a process as another user");
                return;
        }
        pid_t pid = spawn(become_another_unseen);
        ck_assert_int_eq(proc_open(pid, &proc), 0);
        ck_assert_int_eq(proc_uid(proc, &uid), 0);
        ck_assert_uint_eq(uid, 65534);
        end(pid);
}

TEST(signals_and_reports_the_user)
{
        _cleanup_proc_ struct proc *proc = NULL;
        int status;
        uid_t uid;

        pid_t pid = spawn(NULL);
        ck_assert_int_eq(proc_open(pid, &proc), 0);
        ck_assert_int_eq(proc_uid(proc, &uid), 0);
        ck_assert_uint_eq(uid, getuid());
        ck_assert_int_eq(signal_process(proc, SIGTERM), 0);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFSIGNALED(status));
        ck_assert_int_eq(WTERMSIG(status), SIGTERM);
}

/* Of the family: [0] its head, [1] and [2] its children, [2] forked by a thread, [3] a child of [1]. */
static pid_t *family;

/* Notes the new process in the parent alone, as the family's list is shared. Returns fork()'s result. */
static pid_t fork_member(size_t member)
{
        pid_t pid = fork();

        if (pid == 0)
                prctl(PR_SET_PDEATHSIG, SIGKILL);
        else
                family[member] = pid;
        return pid;
}

static void *fork_from_thread(void *userdata _unused_)
{
        if (fork_member(2) != 0)
                pthread_barrier_wait(&barrier);
        for (;;)
                pause();
        return NULL;
}

static void start_family(void)
{
        pthread_t thread;
        int ready[2];
        char byte;

        if (pipe(ready) < 0)
                _exit(1);
        if (fork_member(1) == 0) {
                if (fork_member(3) != 0)
                        (void)!write(ready[1], "", 1);
                for (;;)
                        pause();
        }
        if (read(ready[0], &byte, 1) != 1)
                _exit(1);
        pthread_barrier_init(&barrier, NULL, 2);
        if (pthread_create(&thread, NULL, fork_from_thread, NULL) != 0)
                _exit(1);
        pthread_barrier_wait(&barrier);
}

static struct sockaddr_in listener;

static void connect_twice(void)
{
        for (unsigned i = 0; i < 2; i++) {
                int fd = socket(AF_INET, SOCK_STREAM, 0);

                if (fd < 0 || connect(fd, (struct sockaddr *)&listener, sizeof(listener)) < 0)
                        _exit(1);
        }
}

TEST(lists_the_servers_that_a_process_is_connected_to)
{
        _cleanup_proc_ struct proc *proc = NULL, *idle = NULL;
        char peers[PROC_PEERS_MAX], expected[PROC_PEERS_MAX];
        socklen_t size = sizeof(listener);

        listener = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(bind(fd, (struct sockaddr *)&listener, size), 0);
        ck_assert_int_eq(listen(fd, 5), 0);
        ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&listener, &size), 0);
        pid_t pid = spawn(connect_twice);
        ck_assert_int_eq(proc_open(pid, &proc), 0);
        ck_assert_int_eq(proc_peers(proc, peers), 0);
        snprintf(expected, sizeof(expected), "127.0.0.1:%u", ntohs(listener.sin_port));
        ck_assert_str_eq(peers, expected);
        close(fd);
        pid_t other = spawn(NULL);
        ck_assert_int_eq(proc_open(other, &idle), 0);
        ck_assert_int_eq(proc_peers(idle, peers), 0);
        ck_assert_str_eq(peers, "");
        end(pid);
        end(other);
}

TEST(walks_a_process_and_its_descendants)
{
        _cleanup_proc_ struct proc *self = NULL, *child = NULL;
        struct visits visits = {0}, two = {.stop_at = 2};

        family = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ck_assert_ptr_ne(family, MAP_FAILED);
        family[0] = spawn(start_family);

        ck_assert_int_eq(proc_tree_each(family[0], visit, &visits), 0);
        ck_assert_uint_eq(visits.n, 4);
        ck_assert_uint_eq(visit_place(&visits, family[0]), 0);
        ck_assert_uint_gt(visit_place(&visits, family[2]), 0);
        ck_assert_uint_lt(visit_place(&visits, family[1]), visit_place(&visits, family[3]));
        ck_assert_int_eq(proc_tree_each(family[0], visit, &two), 7);
        ck_assert_uint_eq(two.n, 2);

        ck_assert_int_eq(proc_open(getpid(), &self), 0);
        ck_assert_int_eq(proc_open(family[1], &child), 0);
        ck_assert_int_eq(proc_has_ancestor(family[3], getpid(), proc_start_time(self)), 1);
        ck_assert_int_eq(proc_has_ancestor(family[3], family[1], proc_start_time(child)), 1);
        ck_assert_int_eq(proc_has_ancestor(family[1], family[1], proc_start_time(child)), 1);
        ck_assert_int_eq(proc_has_ancestor(family[3], family[1], proc_start_time(child) + 1), 0);
        ck_assert_int_eq(proc_has_ancestor(family[2], family[1], proc_start_time(child)), 0);
        ck_assert_int_eq(proc_has_ancestor(getpid(), family[1], proc_start_time(child)), 0);

        for (size_t i = 3; i > 0; i--)
                ck_assert_int_eq(kill(family[i], SIGKILL), 0);
        end(family[0]);
        munmap(family, 4096);
}

static char output_folder[] = "/tmp/test-proc.XXXXXX";
static char output_path[64];

/* What stands at its standard output, of a file that holds "said". */
static const struct {
        const char *what;
        int flags;
        bool fifo;
        int expected; /* 0: it can be read back */
} outputs[] = {
        {"a log that may be read", O_RDWR | O_APPEND, false, 0},
        {"a log that may be written to alone", O_WRONLY | O_APPEND, false, -EACCES},
        {"a file that it could not open", O_PATH, false, -EACCES},
        {"a FIFO", O_RDWR, true, -ENODEV},
        {"a FIFO by its path alone", O_PATH, true, -ENODEV},
};
static int output_case;

static void open_output(void)
{
        int fd = open(output_path, outputs[output_case].flags);

        if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0)
                _exit(1);
}

TEST_LOOP(reads_back_only_what_the_process_itself_could, ELEMENTSOF(outputs))
{
        _cleanup_proc_ struct proc *proc = NULL;
        char text[16] = "";

        output_case = _i;
        strcpy(output_folder + sizeof("/tmp/test-proc.") - 1, "XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(output_folder));
        snprintf(output_path, sizeof(output_path), "%s/output", output_folder);
        if (outputs[_i].fifo) {
                ck_assert_int_eq(mkfifo(output_path, 0600), 0);
        } else {
                int fd = open(output_path, O_CREAT | O_WRONLY, 0600);
                ck_assert_int_eq(write(fd, "said", 4), 4);
                close(fd);
        }
        pid_t pid = spawn(open_output);
        ck_assert_int_eq(proc_open(pid, &proc), 0);
        int fd = proc_open_output(proc);
        if (outputs[_i].expected != 0) {
                ck_assert_msg(fd == outputs[_i].expected, "%s: %d", outputs[_i].what, fd);
        } else {
                ck_assert_msg(fd >= 0, "%s: %d", outputs[_i].what, fd);
                /* Closing an O_PATH descriptor asks no file server. */
                ck_assert(fcntl(fd, F_GETFL) & O_PATH);
                ck_assert_int_eq(log_tail_read(fd, 0, (pid_t[2]){0}, text, sizeof(text)), 0);
                ck_assert_str_eq(text, "said");
                close(fd);
        }
        end(pid);
        unlink(output_path);
        rmdir(output_folder);
}

static void enter_uts_namespace(void)
{
        if (unshare(CLONE_NEWUTS) < 0 || sethostname("box", 3) < 0)
                _exit(1);
}

TEST(reads_the_host_name_unless_the_namespace_is_another)
{
        char ours[PROC_HOST_NAME_MAX], its[PROC_HOST_NAME_MAX];
        _cleanup_proc_ struct proc *own = NULL, *other = NULL;

        ck_assert_int_eq(gethostname(ours, sizeof(ours)), 0);
        ck_assert_int_eq(proc_open(getpid(), &own), 0);
        ck_assert_int_eq(proc_host_name(own, its), 0);
        ck_assert_str_eq(its, ours);
        if (geteuid() != 0) {
                fprintf(stderr, "not root: no UTS namespace\n");
                return;
        }
        pid_t pid = spawn(enter_uts_namespace);
        ck_assert_int_eq(proc_open(pid, &other), 0);
        ck_assert_int_eq(proc_host_name(other, its), -EPERM);
        end(pid);
        ck_assert_int_lt(proc_host_name(other, its), 0);
}

/* The child does not run prepare() in its own PID namespace: a child of it does. */
static void enter_pid_namespace(void)
{
        if (unshare(CLONE_NEWPID) < 0)
                _exit(1);
        pid_t pid = fork();
        if (pid < 0)
                _exit(1);
        if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;)
                        pause();
        }
}

static int take_last(pid_t pid, void *userdata)
{
        *(pid_t *)userdata = pid;
        return 0;
}

TEST(reads_the_pid_in_the_processs_own_namespace)
{
        _cleanup_proc_ struct proc *own = NULL, *other = NULL;
        pid_t pid, below = 0;

        ck_assert_int_eq(proc_open(getpid(), &own), 0);
        ck_assert_int_eq(proc_own_pid(own, &pid), 0);
        ck_assert_int_eq(pid, getpid());
        if (geteuid() != 0) {
                fprintf(stderr, "not root: no PID namespace\n");
                return;
        }
        pid_t parent = spawn(enter_pid_namespace);
        ck_assert_int_eq(proc_tree_each(parent, take_last, &below), 0);
        ck_assert_int_ne(below, parent);
        ck_assert_int_eq(proc_open(below, &other), 0);
        ck_assert_int_eq(proc_own_pid(other, &pid), 0);
        ck_assert_int_eq(pid, 1);
        end(parent);
}

TEST_MAIN("proc")
