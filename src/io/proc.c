/* SPDX-License-Identifier: MIT */
/* Processes in /proc, each identified by a pidfd and its start time. */
#include "io/proc.h"

#include "base/fd.h"
#include "io/probe.h"
#include "io/procfile.h"
#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>

/* Practical limit of a chain of parents; bounds the loop while processes start and exit. */
#define ANCESTORS_MAX 128

struct proc {
        pid_t pid;
        int pidfd;
        int statm_fd; /* -1 until the first reading */
        uint64_t start_time;
};

/* Parses "PID (comm) S PPID ...". comm may contain blanks and parentheses, so fields are counted from the
 * last ')'. */
static int parse_stat(const char *text, struct proc_place *ret)
{
        struct proc_place place = {0};
        const char *begin = strchr(text, '('), *end = strrchr(text, ')');

        if (!begin || !end || end < begin ||
            sscanf(end + 1,
                   " %c %d %d %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64,
                   &place.state, &place.parent, &place.group, &place.session, &place.start_time) != 5)
                return -EBADMSG;
        snprintf(place.comm, sizeof(place.comm), "%.*s", (int)(end - begin - 1), begin + 1);
        *ret = place;
        return 0;
}

static int pid_read_stat(pid_t pid, struct proc_place *ret)
{
        char path[64], text[1024];

        snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
        ssize_t length = fd_read_file(AT_FDCWD, path, text, sizeof(text));
        if (length < 0)
                return length == -ENOENT ? -ESRCH : (int)length;
        return parse_stat(text, ret);
}

int proc_open(pid_t pid, struct proc **ret)
{
        struct proc_place place;

        if (pid <= 0)
                return -EINVAL;

        _cleanup_close_ int pidfd = pidfd_open(pid, 0);
        if (pidfd < 0)
                /* Either errno, depending on the kernel version, means that pid is a thread and not a
                 * process. */
                return errno == EINVAL || errno == ENOENT ? -ESRCH : -errno;
        int r = pid_read_stat(pid, &place);
        if (r < 0)
                return r;
        r = probe_pidfd(pidfd);
        if (r < 0)
                return r;

        struct proc *proc = malloc(sizeof(*proc));
        if (!proc)
                return -ENOMEM;
        *proc = (struct proc){
                .pid = pid,
                .pidfd = TAKE_FD(pidfd),
                .statm_fd = -1,
                .start_time = place.start_time,
        };
        *ret = proc;
        return 0;
}

struct proc *proc_close(struct proc *proc)
{
        if (!proc)
                return NULL;
        close_fd(proc->statm_fd);
        close_fd(proc->pidfd);
        free(proc);
        return NULL;
}

pid_t proc_pid(const struct proc *proc)
{
        return proc->pid;
}

int proc_pidfd(const struct proc *proc)
{
        return proc->pidfd;
}

bool proc_has_exited(const struct proc *proc)
{
        struct pollfd exited = {.fd = proc->pidfd, .events = POLLIN};

        return poll(&exited, 1, 0) > 0;
}

int proc_find(pid_t pid, uint64_t start, struct proc **ret)
{
        _cleanup_proc_ struct proc *proc = NULL;

        *ret = NULL;
        if (pid <= 0)
                return 0;
        int r = proc_open(pid, &proc);
        if (r < 0)
                return r == -ESRCH ? 0 : r;
        assert(proc);
        if (proc_start_time(proc) == start && !proc_has_exited(proc))
                *ret = TAKE_PTR(proc);
        return 0;
}

bool proc_is_alive(pid_t pid, uint64_t start)
{
        _cleanup_proc_ struct proc *proc = NULL;

        return proc_find(pid, start, &proc) == 0 && proc;
}

uint64_t proc_start_time(const struct proc *proc)
{
        return proc->start_time;
}

/* Opens a file below /proc/PID. If the process still holds its pid afterwards, the file belongs to this
 * process, even when the pid is used again later. */
static int proc_open_file(const struct proc *proc, const char *name, int flags)
{
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/%s", (int)proc->pid, name);
        _cleanup_close_ int fd = open(path, flags | O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? -ESRCH : -errno;
        int r = probe_pidfd(proc->pidfd);
        if (r < 0)
                return r;
        return TAKE_FD(fd);
}

static ssize_t proc_read_file(const struct proc *proc, const char *name, char *text, size_t size)
{
        _cleanup_close_ int fd = proc_open_file(proc, name, 0);
        if (fd < 0)
                return fd;
        return fd_read_start(fd, text, size);
}

/* Reads the number of a key in a file below /proc/PID. */
static int proc_read_number(const struct proc *proc, const char *name, const char *key, int base,
                            uint64_t *ret)
{
        char text[8192];
        ssize_t length = proc_read_file(proc, name, text, sizeof(text));

        return length < 0 ? (int)length : procfile_number(text, key, base, ret);
}

/* The /proc files of an undumpable process belong to root, whoever runs it (see proc(5)). */
int proc_uid(const struct proc *proc, uid_t *ret)
{
        struct stat status;
        uint64_t uid;

        _cleanup_close_ int fd = proc_open_file(proc, "", O_PATH | O_DIRECTORY);
        if (fd < 0)
                return fd;
        if (fstat(fd, &status) < 0)
                return -errno;
        *ret = status.st_uid;
        if (status.st_uid != 0)
                return 0;
        int r = proc_read_number(proc, "status", "Uid:", 10, &uid);
        if (r == 0)
                *ret = (uid_t)uid;
        return r;
}

int proc_own_pid(const struct proc *proc, pid_t *ret)
{
        char text[8192];
        ssize_t length = proc_read_file(proc, "status", text, sizeof(text));

        return length < 0 ? (int)length : procfile_last_pid(text, "NSpid:", ret);
}

int proc_place(const struct proc *proc, struct proc_place *ret)
{
        char text[1024];
        ssize_t length = proc_read_file(proc, "stat", text, sizeof(text));

        return length < 0 ? (int)length : parse_stat(text, ret);
}

int proc_cgroup(const struct proc *proc, char *text, size_t size)
{
        ssize_t length = proc_read_file(proc, "cgroup", text, size);

        if (length < 0)
                return (int)length;
        return (size_t)length == size - 1 ? -ENOBUFS : 0;
}

int proc_rss_bytes(struct proc *proc, uint64_t *ret_bytes)
{
        char text[128];

        if (proc->statm_fd < 0) {
                int fd = proc_open_file(proc, "statm", 0);
                if (fd < 0)
                        return fd;
                proc->statm_fd = fd;
        }
        /* A single pread() on a kept descriptor: this is the most frequent call of all. */
        ssize_t length = pread(proc->statm_fd, text, sizeof(text) - 1, 0);
        if (length < 0)
                return -errno;
        text[length] = '\0';
        const char *resident = strchr(text, ' ');
        if (!resident)
                return -EBADMSG;
        uint64_t pages = strtoull(resident, NULL, 10);
        if (pages == 0)
                return -ESRCH;
        *ret_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
        return 0;
}

int proc_title(const struct proc *proc, char *title, size_t size)
{
        ssize_t length = proc_read_file(proc, "cmdline", title, size);
        if (length < 0)
                return (int)length;

        for (ssize_t i = 0; i < length; i++)
                if (title[i] == '\0')
                        title[i] = ' ';
        while (length > 0 && isspace((unsigned char)title[length - 1]))
                length--;
        title[length] = '\0';
        return 0;
}

int proc_count_threads(const struct proc *proc, bool (*match)(const char *comm, void *userdata),
                       void *userdata, unsigned *ret)
{
        unsigned count = 0;

        int fd = proc_open_file(proc, "task", O_DIRECTORY);
        if (fd < 0)
                return fd;
        _cleanup_closedir_ DIR *tasks = fdopendir(fd);
        if (!tasks) {
                close_fd(fd);
                return -errno;
        }

        for (const struct dirent *entry; (entry = readdir(tasks));) {
                char path[64], comm[64];

                if (!isdigit((unsigned char)entry->d_name[0]))
                        continue;
                snprintf(path, sizeof(path), "%.32s/comm", entry->d_name);
                /* A thread that exits meanwhile does not count. */
                ssize_t length = fd_read_file(dirfd(tasks), path, comm, sizeof(comm));
                if (is_shortage((int)length))
                        return (int)length;
                if (length <= 0)
                        continue;
                if (comm[length - 1] == '\n')
                        comm[length - 1] = '\0';
                count += match(comm, userdata);
        }
        *ret = count;
        return 0;
}

/* Returns whether the signal is in the set that /proc/PID/status shows under this key, or -errno. */
static int signal_is_in(const struct proc *proc, const char *key, int signo)
{
        uint64_t set;

        if (signo < 1 || signo > 64)
                return -EINVAL;
        int r = proc_read_number(proc, "status", key, 16, &set);
        return r < 0 ? r : (int)((set >> (signo - 1)) & 1);
}

int proc_catches_signal(const struct proc *proc, int signo)
{
        return signal_is_in(proc, "SigCgt:", signo);
}

int proc_signal_is_pending(const struct proc *proc, int signo)
{
        return signal_is_in(proc, "ShdPnd:", signo);
}

int proc_sleeps(const struct proc *proc, bool *ret_asleep, uint64_t *ret_times)
{
        char text[8192];

        ssize_t length = proc_read_file(proc, "status", text, sizeof(text));
        if (length < 0)
                return (int)length;
        const char *state = procfile_value(text, "State:");
        *ret_asleep = state && state[0] == 'S';
        return procfile_number(text, "voluntary_ctxt_switches:", 10, ret_times);
}

int proc_has_ancestor(pid_t pid, pid_t ancestor_pid, uint64_t ancestor_start)
{
        if (pid <= 0 || ancestor_pid <= 0)
                return -EINVAL;

        for (unsigned i = 0; i < ANCESTORS_MAX && pid > 0; i++) {
                struct proc_place place;

                int r = pid_read_stat(pid, &place);
                if (r < 0)
                        return r;
                if (pid == ancestor_pid)
                        return place.start_time == ancestor_start;
                pid = place.parent;
        }
        return 0;
}
