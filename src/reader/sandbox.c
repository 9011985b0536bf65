/* SPDX-License-Identifier: MIT */
/* Sets the limits of the process, and drops its rights in the right order; see the header. */
#include "reader/sandbox.h"
#include "base/macro.h"
#include "reader/name_services.h"
#include "reader/sandbox_needs.h"
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Names with a blank behind each. */
static const char allowed[] =
        /* memory; mmap() and mprotect() are in conditions[] */
        "brk madvise mremap munmap "
        /* open files, and attributes of files by name; open() and openat() are in conditions[] */
        "_llseek access close dup faccessat faccessat2 fstat fstat64 fstatat64 fstatfs fstatfs64 getdents64 "
        "lseek "
        "lstat lstat64 newfstatat pread64 read readlink readlinkat readv stat stat64 statfs statfs64 statx "
        "write writev "
        /* sockets */
        "connect getpeername getsockname getsockopt recv recvfrom recvmmsg recvmmsg_time64 recvmsg send "
        "sendmmsg sendmsg sendto shutdown "
        /* the loop */
        "_newselect epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd2 pipe2 "
        "poll ppoll ppoll_time64 pselect6 pselect6_time64 select signalfd4 timerfd_create timerfd_gettime "
        "timerfd_gettime64 timerfd_settime timerfd_settime64 "
        /* threads, the signals of the process itself, its end */
        "exit exit_group futex futex_time64 gettid restart_syscall rseq rt_sigaction rt_sigprocmask "
        "rt_sigreturn rt_sigtimedwait rt_sigtimedwait_time64 sched_getaffinity sched_yield set_robust_list "
        "sigaltstack sigreturn "
        /* clocks */
        "clock_getres clock_getres_time64 clock_gettime clock_gettime64 clock_nanosleep "
        "clock_nanosleep_time64 gettimeofday nanosleep time "
        /* the process and the machine */
        "getegid geteuid getgid getpid getppid getrandom getrlimit getuid sysinfo ugetrlimit uname "
/* On these processors the arguments of these calls are in memory, which a filter cannot read. */
#ifdef __s390__
        "mmap "
#endif
#if defined(__i386__) || defined(__s390__)
        "bind setsockopt socket socketpair "
#endif
        ;

/* No library of the reader calls these: only a process that was taken over does. */
static const char fatal[] =
        /* other programs and processes */
        "execve execveat fork kill pidfd_getfd pidfd_open pidfd_send_signal process_madvise process_vm_readv "
        "process_vm_writev ptrace rt_sigqueueinfo rt_tgsigqueueinfo tkill vfork "
        /* other users, namespaces and file systems */
        "capset chroot fsmount fsopen mount mount_setattr move_mount open_tree pivot_root setfsgid "
        "setfsgid32 "
        "setfsuid setfsuid32 setgid setgid32 setgroups setgroups32 setns setregid setregid32 setresgid "
        "setresgid32 setresuid setresuid32 setreuid setreuid32 setuid setuid32 umount umount2 unshare "
        /* parts of the kernel that are of no use here */
        "add_key bpf delete_module finit_module init_module io_uring_enter io_uring_register io_uring_setup "
        "kexec_file_load kexec_load keyctl perf_event_open personality request_key userfaultfd ";

/* A call that is allowed with these arguments only. The second one may be left out. */
struct condition {
        const char *call;
        struct scmp_arg_cmp arguments[2];
};
#define EQUAL(n, value)                                                                                      \
        {                                                                                                    \
                .arg = (n), .op = SCMP_CMP_EQ, .datum_a = (scmp_datum_t)(value)                              \
        }
#define MASKED(n, mask, value)                                                                               \
        {                                                                                                    \
                .arg = (n), .op = SCMP_CMP_MASKED_EQ, .datum_a = (scmp_datum_t)(mask),                       \
                .datum_b = (scmp_datum_t)(value)                                                             \
        }
#define SOCKET_OPTION(level, name)                                                                           \
        {                                                                                                    \
                "setsockopt",                                                                                \
                {                                                                                            \
                        EQUAL(1, level), EQUAL(2, name)                                                      \
                }                                                                                            \
        }

#define SOCKET_TYPE_MASK 0xf
/* O_TMPFILE includes O_DIRECTORY, which does not write. */
#define WRITING (O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))
/* Reads, writes and makes files that have a name. */
#define CREATING_ONLY (O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))
#define THREAD        (CLONE_THREAD | CLONE_VM | CLONE_SIGHAND)
#define NAMESPACES                                                                                           \
        (CLONE_NEWCGROUP | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUSER |        \
         CLONE_NEWUTS | CLONE_PTRACE | CLONE_PARENT)
#ifdef __s390__
#define CLONE_FLAGS_ARGUMENT 1
#else
#define CLONE_FLAGS_ARGUMENT 0
#endif

static const struct condition conditions[] = {
/* Memory that is private, so that RLIMIT_DATA counts it, and never code. */
#ifndef __s390__
        {"mmap", {MASKED(2, PROT_EXEC, 0), MASKED(3, MAP_TYPE, MAP_PRIVATE)}},
#endif
        {"mmap2", {MASKED(2, PROT_EXEC, 0), MASKED(3, MAP_TYPE, MAP_PRIVATE)}},
        {"mprotect", {MASKED(2, PROT_EXEC, 0)}},
        {"open", {MASKED(1, WRITING, 0)}},
        {"openat", {MASKED(2, WRITING, 0)}},
        /* F_SETOWN could send signals. */
        {"fcntl", {EQUAL(1, F_GETFD)}},
        {"fcntl", {EQUAL(1, F_SETFD)}},
        {"fcntl", {EQUAL(1, F_GETFL)}},
        {"fcntl", {EQUAL(1, F_SETFL)}},
        {"fcntl", {EQUAL(1, F_DUPFD_CLOEXEC)}},
        {"fcntl64", {EQUAL(1, F_GETFD)}},
        {"fcntl64", {EQUAL(1, F_SETFD)}},
        {"fcntl64", {EQUAL(1, F_GETFL)}},
        {"fcntl64", {EQUAL(1, F_SETFL)}},
        {"fcntl64", {EQUAL(1, F_DUPFD_CLOEXEC)}},
        /* Bytes received, non-blocking mode, and interfaces, which an IPv6 address may name. */
        {"ioctl", {EQUAL(1, FIONREAD)}},
        {"ioctl", {EQUAL(1, FIONBIO)}},
        {"ioctl", {EQUAL(1, SIOCGIFINDEX)}},
        {"ioctl", {EQUAL(1, SIOCGIFNAME)}},
        SOCKET_OPTION(SOL_SOCKET, SO_KEEPALIVE),
        SOCKET_OPTION(SOL_SOCKET, SO_PASSCRED),
        SOCKET_OPTION(SOL_SOCKET, SO_RCVBUF),
        SOCKET_OPTION(SOL_SOCKET, SO_RCVTIMEO),
        SOCKET_OPTION(SOL_SOCKET, SO_SNDBUF),
        SOCKET_OPTION(SOL_SOCKET, SO_SNDTIMEO),
        SOCKET_OPTION(IPPROTO_TCP, TCP_KEEPCNT),
        SOCKET_OPTION(IPPROTO_TCP, TCP_KEEPIDLE),
        SOCKET_OPTION(IPPROTO_TCP, TCP_KEEPINTVL),
        SOCKET_OPTION(IPPROTO_TCP, TCP_NODELAY),
        SOCKET_OPTION(IPPROTO_TCP, TCP_USER_TIMEOUT),
        SOCKET_OPTION(IPPROTO_IP, IP_RECVERR),
        SOCKET_OPTION(IPPROTO_IPV6, IPV6_RECVERR),
        /* Reading the process's own limits only. */
        {"prlimit64", {EQUAL(0, 0), EQUAL(2, 0)}},
};

/* Permitted to a reader that connects to other machines. */
static const struct condition network_conditions[] = {
        {"socket", {EQUAL(0, AF_INET), MASKED(1, SOCKET_TYPE_MASK, SOCK_STREAM)}},
        {"socket", {EQUAL(0, AF_INET), MASKED(1, SOCKET_TYPE_MASK, SOCK_DGRAM)}},
        {"socket", {EQUAL(0, AF_INET6), MASKED(1, SOCKET_TYPE_MASK, SOCK_STREAM)}},
        {"socket", {EQUAL(0, AF_INET6), MASKED(1, SOCKET_TYPE_MASK, SOCK_DGRAM)}},
        /* getaddrinfo() asks the kernel for the machine's own addresses, to sort its results. The size limits
         * bind() to netlink addresses: network addresses are larger. */
        {"socket", {EQUAL(0, AF_NETLINK), EQUAL(2, NETLINK_ROUTE)}},
        {"bind", {EQUAL(2, sizeof(struct sockaddr_nl))}},
        {"socketpair", {EQUAL(0, AF_UNIX)}},
        /* Names are looked up in threads. Threads only, no processes. A filter cannot read the flags of
         * clone3(), which fails with ENOSYS: the C library then calls clone(). */
        {"clone", {MASKED(CLONE_FLAGS_ARGUMENT, THREAD | NAMESPACES, THREAD)}},
};

/* Permitted to a reader that connects to Unix sockets, or whose name service modules do. */
static const struct condition unix_socket_conditions[] = {
        {"socket", {EQUAL(0, AF_UNIX), MASKED(1, SOCKET_TYPE_MASK, SOCK_STREAM)}},
};

/* Permitted to a reader of a SQLite file. Landlock limits these calls to the folder of the file. */
static const char folder_allowed[] = "fchmod fdatasync fsync ftruncate ftruncate64 pwrite64 unlink unlinkat ";

static const struct condition folder_conditions[] = {
        {"open", {MASKED(1, CREATING_ONLY, 0)}},
        {"openat", {MASKED(2, CREATING_ONLY, 0)}},
        /* The memory that processes share beside a file in WAL mode, never code. */
        {"mmap", {MASKED(2, PROT_EXEC, 0), MASKED(3, MAP_TYPE, MAP_SHARED)}},
        {"mmap2", {MASKED(2, PROT_EXEC, 0), MASKED(3, MAP_TYPE, MAP_SHARED)}},
        /* Without waiting. */
        {"fcntl", {EQUAL(1, F_GETLK)}},
        {"fcntl", {EQUAL(1, F_SETLK)}},
        {"fcntl64", {EQUAL(1, F_GETLK)}},
        {"fcntl64", {EQUAL(1, F_SETLK)}},
};

static int add_rule(scmp_filter_ctx filter, uint32_t action, const char *name,
                    const struct condition *condition)
{
        int call = seccomp_syscall_resolve_name(name);
        unsigned n = !condition ? 0 : condition->arguments[1].op ? 2 : 1;

        if (call == __NR_SCMP_ERROR)
                return 0;
        int r = seccomp_rule_add_array(filter, action, call, n, condition ? condition->arguments : NULL);
        return r == -EDOM ? 0 : r;
}

static int add_condition(scmp_filter_ctx filter, const struct condition *condition)
{
        return add_rule(filter, SCMP_ACT_ALLOW, condition->call, condition);
}

static int add_names(scmp_filter_ctx filter, uint32_t action, const char *names)
{
        char name[32];
        int r = 0;

        for (size_t n; r == 0 && *names != '\0'; names += n + 1) {
                n = strcspn(names, " ");
                snprintf(name, sizeof(name), "%.*s", (int)n, names);
                r = add_rule(filter, action, name, NULL);
        }
        return r;
}

static int add_conditions(scmp_filter_ctx filter, const struct condition *list, size_t n)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < n; i++)
                r = add_condition(filter, &list[i]);
        return r;
}

/* Rules that depend on this process. */
static int add_own(scmp_filter_ctx filter, const struct sandbox_needs *needs)
{
        /* abort() sends a signal to the process itself. */
        const struct condition signal = {"tgkill", {EQUAL(0, getpid())}};
        int r = add_condition(filter, &signal);

        if (r == 0 && needs->network)
                r = add_conditions(filter, network_conditions, ELEMENTSOF(network_conditions));
        if (r == 0 && needs->unix_sockets)
                r = add_conditions(filter, unix_socket_conditions, ELEMENTSOF(unix_socket_conditions));
        if (r == 0 && needs->folder)
                r = add_names(filter, SCMP_ACT_ALLOW, folder_allowed);
        if (r == 0 && needs->folder)
                r = add_conditions(filter, folder_conditions, ELEMENTSOF(folder_conditions));
        return r;
}

static int add_rules(scmp_filter_ctx filter, const struct sandbox_needs *needs)
{
        /* End the process at a call of another architecture, such as a 32-bit call. */
        int r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);

        /* Return the errors of the kernel unchanged. */
        if (r == 0)
                r = seccomp_attr_set(filter, SCMP_FLTATR_API_SYSRAWRC, 1);
        if (r == 0)
                r = add_names(filter, SCMP_ACT_ALLOW, allowed);
        if (r == 0)
                r = add_names(filter, SCMP_ACT_KILL_PROCESS, fatal);
        if (r == 0)
                r = add_conditions(filter, conditions, ELEMENTSOF(conditions));
        return r == 0 ? add_own(filter, needs) : r;
}

/* Installs the filter. A call that is not on the list fails with ENOSYS. The C library then falls back, as on
 * an older kernel, so an updated library does not end the reader. A call that no library makes here ends the
 * process with SIGSYS, and the kernel's audit log names the call. Returns 0 or -errno. */
static int syscall_filter_install(const struct sandbox_needs *needs)
{
        scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));

        if (!filter)
                return -ENOMEM;
        int r = add_rules(filter, needs);
        if (r == 0)
                r = seccomp_load(filter);
        seccomp_release(filter);
        return r;
}

/* The largest reply (io/reply_limit.h) is in memory up to three times: in the buffer of hiredis, as hiredis
 * objects, and in the answer to sqmgr. That takes 96 MiB, and 26 MiB for 262,144 objects. The remaining
 * memory is for decoded JSON, TLS, and threads that still wait for a name server, with 8 MiB of stack
 * each. */
#define DATA_MAX_BYTES ((rlim_t)256 << 20)
/* Bounds the memory that RLIMIT_DATA does not count: libraries, reserved malloc arenas (64 MiB per thread),
 * and page tables of read-only memory. */
#define ADDRESSES_MAX_BYTES ((rlim_t)1 << 30)
/* Four sockets for each lookup that still waits, besides those of the reader. */
#define DESCRIPTORS_MAX 64

struct limit {
        int resource;
        rlim_t value;
};

/* A limit that is lower already stays. */
static int lower(const struct limit *limit)
{
        struct rlimit now;

        if (getrlimit((__rlimit_resource_t)limit->resource, &now) < 0)
                return -errno;
        now.rlim_max = MIN(now.rlim_max, limit->value);
        now.rlim_cur = MIN(now.rlim_cur, limit->value);
        return setrlimit((__rlimit_resource_t)limit->resource, &now) < 0 ? -errno : 0;
}

static int apply_limits(void)
{
        static const struct limit limits[] = {
                {RLIMIT_DATA, DATA_MAX_BYTES},
                {RLIMIT_AS, ADDRESSES_MAX_BYTES},
                {RLIMIT_NOFILE, DESCRIPTORS_MAX},
                {RLIMIT_CORE, 0},
        };

        if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        FOREACH_ELEMENT(limit, limits) {
                int r = lower(limit);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Returns true if the process has a second thread, which would keep all rights. /proc/self/task has two
 * links, plus one per thread. Without /proc, returns false. */
static bool has_threads(void)
{
        struct stat tasks;

        return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 3;
}

/* As <linux/landlock.h> of a recent kernel has it. An older kernel accepts the size if the rest is 0. */
struct ruleset {
        uint64_t files, network, scoped;
};
#define FILES_TRUNCATE (1ULL << 14)
#define FILES_DEVICES  (1ULL << 15)
#define FILES_READ     (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define FILES_WRITE                                                                                          \
        (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE)
#define NETWORK_BIND_TCP        (1ULL << 0)
#define SCOPED_ABSTRACT_SOCKETS (1ULL << 0)
#define SCOPED_SIGNALS          (1ULL << 1)

/* Folders only: a rule for a file does not cover the file that replaces it. */
static const char *const readable[] = {
        "/etc", /* hosts, resolv.conf, nsswitch.conf, gai.conf, ssl */
        "/usr", /* certificates that /etc/ssl leads to; modules */
        "/lib",
        "/lib64",
        /* Targets of /etc/resolv.conf. */
        "/run/systemd/resolve",
        "/run/NetworkManager",
        "/run/resolvconf",
        "/run/connman",
};

static int make_ruleset(int version)
{
        struct ruleset ruleset = {.files = LANDLOCK_ACCESS_FS_REFER - 1};

        if (version >= 2)
                ruleset.files |= LANDLOCK_ACCESS_FS_REFER;
        if (version >= 3)
                ruleset.files |= FILES_TRUNCATE;
        if (version >= 4)
                ruleset.network = NETWORK_BIND_TCP;
        if (version >= 5)
                ruleset.files |= FILES_DEVICES;
        if (version >= 6)
                ruleset.scoped = SCOPED_ABSTRACT_SOCKETS | SCOPED_SIGNALS;
        int fd = (int)syscall(SYS_landlock_create_ruleset, &ruleset, sizeof(ruleset), 0);
        return fd < 0 ? -errno : fd;
}

static int allow(int ruleset, const char *path, uint64_t access)
{
        _cleanup_close_ int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = fd};

        if (fd < 0)
                return errno == ENOENT || errno == EACCES ? 0 : -errno;
        return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0 ? -errno : 0;
}

/* Restricts by Landlock which files the reader can open: from now on, the calling thread can open files by
 * name only for reading, and only below /etc, /usr and a few more folders. Files below folder, if it is not
 * NULL, can also be made, written and removed. Recent kernels also deny signals to other processes and their
 * abstract sockets. Threads started later inherit the restriction. Needs PR_SET_NO_NEW_PRIVS. Does nothing if
 * the kernel has no Landlock. By bare system calls: the C library has no functions for it. Returns 0 or
 * -errno. */
static int restrict_files(const char *folder)
{
        int version = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

        /* Not built in, not enabled, or refused by a container's own filter. */
        if (version < 0)
                return 0;
        _cleanup_close_ int ruleset = make_ruleset(version);
        if (ruleset < 0)
                return ruleset;
        FOREACH_ELEMENT(path, readable) {
                int r = allow(ruleset, *path, FILES_READ);
                if (r < 0)
                        return r;
        }
        if (folder) {
                int r = allow(ruleset, folder,
                              FILES_READ | FILES_WRITE | (version >= 3 ? FILES_TRUNCATE : 0));
                if (r < 0)
                        return r;
        }
        return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? -errno : 0;
}

static int enter(const struct sandbox_needs *needs)
{
        static const struct limit file_size = {RLIMIT_FSIZE, 0};
        struct sandbox_needs all = *needs;
        bool services_need_unix_sockets = false;
        int r = 0;

        if (has_threads())
                return -EBUSY;
        /* Standard error may be a file: at the file size limit, lose a log line rather than the process. */
        if (signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
                return -errno;
        if (needs->network)
                r = name_services_load("/etc/nsswitch.conf", &services_need_unix_sockets);
        all.unix_sockets |= services_need_unix_sockets;
        if (r == 0 && !needs->folder)
                r = lower(&file_size);
        if (r == 0)
                r = restrict_files(needs->folder);
        return r < 0 ? r : syscall_filter_install(&all);
}

/* gcc defines __SANITIZE_ADDRESS__; clang has __has_feature() instead. */
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

bool sandbox_is_off(void)
{
#ifdef __SANITIZE_ADDRESS__
        return true;
#else
        return false;
#endif
}

int sandbox_limits(void)
{
        return sandbox_is_off() ? 0 : apply_limits();
}

int sandbox_enter(const struct sandbox_needs *needs)
{
        return sandbox_is_off() ? 0 : enter(needs);
}
