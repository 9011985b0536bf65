/* SPDX-License-Identifier: MIT */
/* The list of system calls, by libseccomp; see the header. Calls are named, not numbered: a name that this
 * processor or this libseccomp does not have is left out. */
#include "reader/syscall_filter.h"
#include "base/macro.h"
#include <fcntl.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

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

int syscall_filter_install(const struct sandbox_needs *needs)
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
