/* SPDX-License-Identifier: MIT */
/* What sqmgr-reader can still do in its sandbox, and what it cannot: each in a process of its own, made by
 * the test. */
#include "reader/name_services.h"
#include "reader/sandbox.h"
#include "unit.h"
#include <fcntl.h>
#include <grp.h>
#include <linux/netlink.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

/* Of a process that could not enter. */
#define NOT_ENTERED 200

/* Made before: a server, and a file below the folder of the test. */
static int listener = -1, open_file = -1;
static struct sockaddr_in address;
static char folder[] = "/tmp/test_sandbox.XXXXXX", file_path[64];

static const struct sandbox_needs redis_needs = {.network = true};

static void setup(void)
{
        socklen_t size = sizeof(address);

        ck_assert_ptr_nonnull(mkdtemp(folder));
        unit_write_file(folder, "file", "text\n");
        snprintf(file_path, sizeof(file_path), "%s/file", folder);
        open_file = open(file_path, O_WRONLY | O_CLOEXEC);
        ck_assert_int_ge(open_file, 0);
        address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
        ck_assert_int_eq(listen(listener, 4), 0);
        ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
}

static void teardown(void)
{
        listener = close_fd(listener);
        open_file = close_fd(open_file);
}

/* The status of a child that has entered and then returned what the function did: 0, or an errno. */
static int status_of(int (*function)(void))
{
        int status;

        pid_t pid = fork();
        if (pid == 0) {
                if (sandbox_limits() < 0 || sandbox_enter(&redis_needs) < 0)
                        _exit(NOT_ENTERED);
                _exit(function());
        }
        ck_assert_int_gt(pid, 0);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        return status;
}

static int result(long r)
{
        return r < 0 ? errno : 0;
}

static void *look_up(void *userdata)
{
        static const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
        struct addrinfo *list = NULL;
        int *ret = userdata;

        *ret = getaddrinfo("localhost", "6379", &hints, &list);
        if (*ret == 0)
                freeaddrinfo(list);
        return NULL;
}

static int resolves_localhost(void)
{
        int r = 1;

        look_up(&r);
        return r == 0 ? 0 : 1;
}

static int resolves_in_a_thread(void)
{
        pthread_t thread;
        int r = 1;

        int failed = pthread_create(&thread, NULL, look_up, &r);
        if (failed == 0)
                failed = pthread_join(thread, NULL);
        return failed != 0 ? failed : r == 0 ? 0 : 1;
}

static int connects(void)
{
        struct pollfd wait = {.events = POLLOUT};
        int one = 1;
        char byte = 'x';

        wait.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (wait.fd < 0 || setsockopt(wait.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0)
                return errno;
        if (connect(wait.fd, (struct sockaddr *)&address, sizeof(address)) < 0 && errno != EINPROGRESS)
                return errno;
        return poll(&wait, 1, -1) == 1 ? result(send(wait.fd, &byte, 1, 0)) : errno;
}

static int asks_for_its_addresses(void)
{
        struct sockaddr_nl any = {.nl_family = AF_NETLINK};

        int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
        return fd < 0 ? errno : result(bind(fd, (struct sockaddr *)&any, sizeof(any)));
}

static int waits_in_a_loop(void)
{
        struct itimerspec soon = {.it_value.tv_nsec = 1000};
        struct epoll_event event = {.events = EPOLLIN};

        int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        int loop = epoll_create1(EPOLL_CLOEXEC);
        if (timer < 0 || loop < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, timer, &event) < 0 ||
            timerfd_settime(timer, 0, &soon, NULL) < 0)
                return errno;
        return epoll_wait(loop, &event, 1, -1) == 1 ? 0 : errno;
}

/* The largest reply, as hiredis, its objects and the answer hold it. */
static int holds_the_largest_reply(void)
{
        enum { REPLY_BYTES = 32 << 20 };

        for (int i = 0; i < 4; i++) {
                char *p = malloc(REPLY_BYTES);
                if (!p)
                        return ENOMEM;
                memset(p, i + 1, REPLY_BYTES);
        }
        return 0;
}

static int reads_etc(void)
{
        return result(open("/etc/passwd", O_RDONLY | O_CLOEXEC));
}

static int aborts(void)
{
        abort();
}

static const struct {
        const char *what;
        int (*function)(void);
        int signal;
} permitted[] = {
        {"resolves localhost", resolves_localhost, 0},
        {"resolves in a thread", resolves_in_a_thread, 0},
        {"connects", connects, 0},
        {"asks for its addresses", asks_for_its_addresses, 0},
        {"waits in a loop", waits_in_a_loop, 0},
        {"holds the largest reply", holds_the_largest_reply, 0},
        {"reads /etc", reads_etc, 0},
        {"aborts", aborts, SIGABRT},
};

TEST_LOOP(does_what_a_connection_needs, (int)ELEMENTSOF(permitted))
{
        int status = status_of(permitted[_i].function);

        if (permitted[_i].signal != 0)
                ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == permitted[_i].signal, "%s: %x",
                              permitted[_i].what, (unsigned)status);
        else
                ck_assert_msg(status == 0, "%s: %x", permitted[_i].what, (unsigned)status);
}

static int opens_for_writing(void)
{
        return result(open("/dev/null", O_WRONLY | O_CLOEXEC));
}

static int opens_for_both(void)
{
        return result(open(file_path, O_RDWR | O_CLOEXEC));
}

/* Opened before, as standard error may be. */
static int writes_to_a_file(void)
{
        return result(write(open_file, "x", 1));
}

static int truncates(void)
{
        return result(open(file_path, O_RDONLY | O_TRUNC | O_CLOEXEC));
}

static int makes_a_file(void)
{
        char path[80];

        snprintf(path, sizeof(path), "%s.new", file_path);
        return result(open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0600));
}

static int makes_a_nameless_file(void)
{
        return result(open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
}

static int removes_a_file(void)
{
        return result(unlink(file_path));
}

static int makes_a_memfd(void)
{
        return result(memfd_create("x", MFD_CLOEXEC));
}

static int listens(void)
{
        struct sockaddr_in any = {.sin_family = AF_INET};

        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        return result(bind(fd, (struct sockaddr *)&any, sizeof(any)));
}

static int accepts(void)
{
        return result(accept(listener, NULL, NULL));
}

static int makes_a_raw_socket(void)
{
        return result(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP));
}

static int makes_a_packet_socket(void)
{
        return result(socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

static int asks_another_part_of_netlink(void)
{
        return result(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_AUDIT));
}

static int forks(void)
{
        pid_t pid = fork();

        if (pid == 0)
                _exit(0);
        return result(pid);
}

static int makes_a_thread_with_a_namespace(void)
{
        unsigned long flags = CLONE_THREAD | CLONE_VM | CLONE_SIGHAND | CLONE_NEWNET;
        static char stack[4096];

        return result(syscall(SYS_clone, flags, stack + sizeof(stack), NULL, NULL, 0));
}

static int maps_code(void)
{
        void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        return p == MAP_FAILED ? errno : 0;
}

static int turns_data_into_code(void)
{
        void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        return p == MAP_FAILED ? 0 : result(mprotect(p, 4096, PROT_READ | PROT_EXEC));
}

static int maps_shared_memory(void)
{
        void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        return p == MAP_FAILED ? errno : 0;
}

static int takes_too_much_memory(void)
{
        void *p = malloc((size_t)300 << 20);

        return p ? 0 : errno;
}

static int reserves_too_many_addresses(void)
{
        void *p = mmap(NULL, (size_t)1 << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        return p == MAP_FAILED ? errno : 0;
}

static int opens_many(void)
{
        for (int i = 0; i < 100; i++)
                if (open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0)
                        return errno;
        return 0;
}

static int raises_a_limit(void)
{
        struct rlimit limit = {0, 0};

        return result(setrlimit(RLIMIT_STACK, &limit));
}

static int takes_signals_of_a_socket(void)
{
        return result(fcntl(listener, F_SETOWN, getppid()));
}

static const struct {
        const char *what;
        int (*function)(void);
} refused[] = {
        {"opens for writing", opens_for_writing},
        {"opens for both", opens_for_both},
        {"writes to a file", writes_to_a_file},
        {"truncates", truncates},
        {"makes a file", makes_a_file},
        {"makes a nameless file", makes_a_nameless_file},
        {"removes a file", removes_a_file},
        {"makes a memfd", makes_a_memfd},
        {"listens", listens},
        {"accepts", accepts},
        {"makes a raw socket", makes_a_raw_socket},
        {"makes a packet socket", makes_a_packet_socket},
        {"asks another part of netlink", asks_another_part_of_netlink},
        {"forks", forks},
        {"makes a thread with a namespace", makes_a_thread_with_a_namespace},
        {"maps code", maps_code},
        {"turns data into code", turns_data_into_code},
        {"maps shared memory", maps_shared_memory},
        {"takes too much memory", takes_too_much_memory},
        {"reserves too many addresses", reserves_too_many_addresses},
        {"opens many", opens_many},
        {"raises a limit", raises_a_limit},
        {"takes signals of a socket", takes_signals_of_a_socket},
};

TEST_LOOP(is_refused_what_it_does_not_need, (int)ELEMENTSOF(refused))
{
        int status = status_of(refused[_i].function);

        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != NOT_ENTERED,
                      "%s: %x", refused[_i].what, (unsigned)status);
        ck_assert_int_eq(access(file_path, F_OK), 0);
}

static int runs_a_program(void)
{
        execl("/bin/true", "true", (char *)NULL);
        return 0;
}

static int traces(void)
{
        (void)ptrace(PTRACE_SEIZE, getppid(), NULL, NULL);
        return 0;
}

static int signals_its_parent(void)
{
        (void)kill(getppid(), 0);
        return 0;
}

static int signals_itself_by_kill(void)
{
        (void)kill(getpid(), 0);
        return 0;
}

static int reads_memory_of_its_parent(void)
{
        char byte;
        struct iovec ours = {&byte, 1}, theirs = {&byte, 1};

        (void)process_vm_readv(getppid(), &ours, 1, &theirs, 1, 0);
        return 0;
}

static int becomes_another_user(void)
{
        (void)syscall(SYS_setresuid, 1, 1, 1);
        return 0;
}

static int makes_a_namespace(void)
{
        (void)unshare(CLONE_NEWUSER);
        return 0;
}

static int makes_a_ring(void)
{
        (void)syscall(SYS_io_uring_setup, 1, NULL);
        return 0;
}

static int (*const fatal[])(void) = {
        runs_a_program,
        traces,
        signals_its_parent,
        signals_itself_by_kill,
        reads_memory_of_its_parent,
        becomes_another_user,
        makes_a_namespace,
        makes_a_ring,
};

TEST_LOOP(ends_where_only_an_attacker_would_go, (int)ELEMENTSOF(fatal))
{
        int status = status_of(fatal[_i]);

        ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "%d: %x", _i, (unsigned)status);
}

/* Only Landlock knows names. */
static int reads_tmp(void)
{
        return result(open(file_path, O_RDONLY | O_CLOEXEC));
}

static int reads_proc(void)
{
        return result(open("/proc/self/environ", O_RDONLY | O_CLOEXEC));
}

TEST(reads_no_other_files_where_the_kernel_has_landlock)
{
        if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) < 0)
                return;
        ck_assert_int_eq(WEXITSTATUS(status_of(reads_tmp)), EACCES);
        ck_assert_int_eq(WEXITSTATUS(status_of(reads_proc)), EACCES);
}

static int dumpable(void)
{
        return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
}

TEST(limits_alone_keep_out_others_of_the_same_user)
{
        int status;

        pid_t pid = fork();
        if (pid == 0) {
                if (sandbox_limits() < 0)
                        _exit(NOT_ENTERED);
                _exit(dumpable() != 0);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
}

static void *wait_for_a_signal(void *userdata _unused_)
{
        (void)pause();
        return NULL;
}

TEST(a_second_thread_would_keep_its_rights_and_is_refused)
{
        int status;

        pid_t pid = fork();
        if (pid == 0) {
                pthread_t thread;

                if (pthread_create(&thread, NULL, wait_for_a_signal, NULL) != 0)
                        _exit(NOT_ENTERED);
                _exit(-sandbox_enter(&redis_needs));
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFEXITED(status));
        ck_assert_int_eq(WEXITSTATUS(status), EBUSY);
}

/* A module may connect to its service; what is part of the C library does not. */
static const struct {
        const char *text;
        bool needs_unix_sockets;
} services[] = {
        {"passwd: files systemd\nhosts: files dns\n", false},
        {"hosts:          files myhostname [ !UNAVAIL=return NOTFOUND=return ] dns\n", false},
        {"  hosts:\tfiles mymachines resolve [!UNAVAIL=return] dns\n", true},
        {"hosts: files mdns4_minimal [NOTFOUND=return] dns\n", true},
        {"#hosts: resolve\nhosts: files # resolve\n", false},
        {"hosts: ../../tmp/evil files", false},
        {"hosts: [never ends", false},
        {"", false},
};

TEST_LOOP(only_modules_that_ask_a_service_need_unix_sockets, (int)ELEMENTSOF(services))
{
        bool needs = !services[_i].needs_unix_sockets;

        unit_write_file(folder, "nsswitch.conf", services[_i].text);
        snprintf(file_path, sizeof(file_path), "%s/nsswitch.conf", folder);
        ck_assert_int_eq(name_services_load(file_path, &needs), 0);
        ck_assert_int_eq(needs, services[_i].needs_unix_sockets);
}

TEST(without_nsswitch_conf_there_is_no_module)
{
        bool needs = true;

        snprintf(file_path, sizeof(file_path), "%s/none", folder);
        ck_assert_int_eq(name_services_load(file_path, &needs), 0);
        ck_assert(!needs);
}

static bool sandbox_is_missing(void)
{
        const char *why = NULL;

        if (sandbox_is_off())
                why = "a build with sanitizers has no sandbox";
        else if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0)
                why = "this kernel has no seccomp";
        if (why)
                printf("skipped: %s\n", why);
        return why;
}

TEST_MAIN("sandbox", .each = {setup, teardown}, .is_missing = sandbox_is_missing)
