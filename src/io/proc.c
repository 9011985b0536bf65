/* SPDX-License-Identifier: MIT */
/* Processes in /proc, each identified by a pidfd and its start time. */
#include "io/proc.h"
#include "base/fd.h"
#include "io/log_tail.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>

int probe_pidfd(int pidfd)
{
        return pidfd_send_signal(pidfd, 0, NULL, 0) < 0 && errno != EPERM ? -errno : 0;
}

bool probe_pid(pid_t pid)
{
        return pid > 0 && (kill(pid, 0) == 0 || errno != ESRCH);
}

bool probe_group(pid_t group)
{
        return group > 1 && kill(-group, 0) == 0;
}

/* Returns the text after the key at the start of a line, with blanks skipped; or NULL. */
static const char *procfile_value(const char *text, const char *key)
{
        size_t length = strlen(key);

        for (const char *line = text; line; line = strchr(line, '\n')) {
                line += *line == '\n';
                if (strncmp(line, key, length) == 0)
                        return line + length + strspn(line + length, " \t");
        }
        return NULL;
}

/* Reads the value of key as a number of that base. Returns 0, or -ENODATA if the key or its number is
 * missing. */
static int procfile_number(const char *text, const char *key, int base, uint64_t *ret)
{
        const char *value = procfile_value(text, key);

        if (!value || !isxdigit((unsigned char)value[0]))
                return -ENODATA;

        char *end;
        errno = 0;
        unsigned long long number = strtoull(value, &end, base);
        if (errno != 0 || end == value)
                return -ENODATA;
        *ret = number;
        return 0;
}

int procfile_last_pid(const char *text, const char *key, pid_t *ret)
{
        const char *value = procfile_value(text, key);
        pid_t last = 0;

        while (value && *value != '\n' && *value != '\0') {
                char *end;
                long pid = isdigit((unsigned char)*value) ? strtol(value, &end, 10) : 0;

                if (pid <= 0 || pid > INT_MAX)
                        return -ENODATA;
                last = (pid_t)pid;
                value = end + strspn(end, " \t");
        }
        if (last == 0)
                return -ENODATA;
        *ret = last;
        return 0;
}

int procfile_read_number(int fd, const char *key, uint64_t *ret)
{
        char text[16384];
        ssize_t length = fd_read_start(fd, text, sizeof(text));

        return length < 0 ? (int)length : procfile_number(text, key, 10, ret);
}

/* A line is `NUMBER:CONTROLLERS:PATH`; version 2 has `0::PATH`. */
static bool line_is_of(const char *line, const char *controllers, const char *path, const char *controller)
{
        char names[256], name[64];

        if (!controller)
                return strncmp(line, "0::", 3) == 0;
        snprintf(names, sizeof(names), ",%.*s,", (int)(path - controllers - 1), controllers);
        snprintf(name, sizeof(name), ",%s,", controller);
        return strstr(names, name);
}

int procfile_cgroup(const char *proc_root, const char *controller, char *path, size_t size)
{
        char file[PATH_MAX], text[4096];

        if ((size_t)snprintf(file, sizeof(file), "%s/self/cgroup", proc_root) >= sizeof(file))
                return -ENAMETOOLONG;
        ssize_t n = fd_read_file(AT_FDCWD, file, text, sizeof(text));
        if (n < 0)
                return (int)n;
        for (const char *line = text; line; line = strchr(line, '\n')) {
                line += *line == '\n';
                const char *controllers = strchr(line, ':');
                const char *group = controllers ? strchr(controllers + 1, ':') : NULL;
                if (!group)
                        break;
                if (!line_is_of(line, controllers + 1, group + 1, controller))
                        continue;
                size_t length = strcspn(++group, "\n");
                if (memmem(group, length, "/..", 3))
                        length = 0;
                return snprintf(path, size, "%.*s", (int)length, group) < (int)size ? 0 : -ENAMETOOLONG;
        }
        return -ENOENT;
}

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

/* Returns 0 with *ret, to be closed, or -errno. */
static int open_directory(const struct proc *proc, const char *name, DIR **ret)
{
        _cleanup_close_ int fd = proc_open_file(proc, name, O_DIRECTORY);

        if (fd < 0)
                return fd;
        *ret = fdopendir(fd);
        if (!*ret)
                return -errno;
        (void)TAKE_FD(fd);
        return 0;
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

        _cleanup_closedir_ DIR *tasks = NULL;
        int r = open_directory(proc, "task", &tasks);
        if (!tasks)
                return r;
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

ssize_t proc_environment(const struct proc *proc, char *text, size_t size)
{
        ssize_t length = proc_read_file(proc, "environ", text, size);

        /* Drop a truncated last entry, which would have another meaning. */
        if (length == (ssize_t)size - 1)
                while (length > 0 && text[length - 1] != '\0')
                        text[--length] = '\0';
        return length;
}

/* Returns 0 if the process can read its standard output, -EACCES if not, or -errno. */
static int output_is_readable(const struct proc *proc)
{
        char text[256];
        uint64_t flags;

        ssize_t length = proc_read_file(proc, "fdinfo/1", text, sizeof(text));
        int r = length < 0 ? (int)length : procfile_number(text, "flags:", 8, &flags);
        if (r < 0)
                return r;
        return (flags & O_PATH) || (flags & O_ACCMODE) == O_WRONLY ? -EACCES : 0;
}

int proc_open_output(const struct proc *proc)
{
        mode_t type;

        /* A file server can delay open(), read() and close() of its files forever, even
         * below an overlay. O_PATH does not reach the file server. */
        _cleanup_close_ int fd = proc_open_file(proc, "fd/1", O_PATH);
        if (fd < 0)
                return fd;
        int r = fd_type(fd, &type, NULL);
        if (r < 0)
                return r;
        if (!S_ISREG(type))
                return -ENODEV;
        r = output_is_readable(proc);
        return r < 0 ? r : TAKE_FD(fd);
}

int log_tail_read(int log_fd, uint64_t start_bytes, const pid_t pids[static 2], char *lines, size_t size)
{
        char text[LOG_TAIL_LOOK_BACK_BYTES], path[64];
        mode_t type;
        struct stat st;

        int r = fd_type(log_fd, &type, NULL);
        if (r < 0)
                return r;
        if (!S_ISREG(type)) {
                lines[0] = '\0';
                return 0;
        }
        snprintf(path, sizeof(path), "/proc/self/fd/%d", log_fd);
        _cleanup_close_ int fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        uint64_t end = (uint64_t)st.st_size;
        /* A log that is now shorter was truncated by log rotation: all of it is new. */
        uint64_t start = end < start_bytes ? 0 : start_bytes;
        uint64_t from = end - start > sizeof(text) ? end - sizeof(text) : start;
        ssize_t n = TEMP_FAILURE_RETRY(pread(fd, text, (size_t)(end - from), (off_t)from));
        if (n < 0)
                return -errno;

        log_tail_cut(text, (size_t)n, pids, lines, size);
        return 0;
}

int proc_mapped_bytes(const struct proc *proc, uint64_t *ret_pss, uint64_t *ret_private)
{
        char text[4096];
        uint64_t pss = 0, clean = 0, dirty = 0;

        ssize_t length = proc_read_file(proc, "smaps_rollup", text, sizeof(text));
        if (length < 0)
                return (int)length;
        int r = procfile_number(text, "Pss:", 10, &pss);
        if (r == 0)
                r = procfile_number(text, "Private_Clean:", 10, &clean);
        if (r == 0)
                r = procfile_number(text, "Private_Dirty:", 10, &dirty);
        if (r < 0)
                return r;
        *ret_pss = pss * 1024;
        *ret_private = (clean + dirty) * 1024;
        return 0;
}

/* A process with more descriptors or sockets than that shows only some of its peers. */
#define DESCRIPTORS_MAX 4096
#define SOCKETS_MAX     256
/* Lines of /proc/PID/net/tcp that are read: all sockets of a network namespace. */
#define CONNECTIONS_MAX 65536
#define TCP_ESTABLISHED 1

struct sockets {
        uint64_t inodes[SOCKETS_MAX];
        size_t n;
};

static int read_sockets(const struct proc *proc, struct sockets *ret)
{
        char link[32];
        unsigned long long inode;

        ret->n = 0;
        _cleanup_closedir_ DIR *list = NULL;
        int r = open_directory(proc, "fd", &list);
        if (!list)
                return r;
        const struct dirent *entry;
        for (unsigned i = 0; i < DESCRIPTORS_MAX && ret->n < SOCKETS_MAX && (entry = readdir(list)); i++) {
                ssize_t length = readlinkat(dirfd(list), entry->d_name, link, sizeof(link) - 1);

                link[MAX(length, 0)] = '\0';
                if (length > 0 && sscanf(link, "socket:[%llu]", &inode) == 1)
                        ret->inodes[ret->n++] = inode;
        }
        return 0;
}

static void add_peer(const char *peer, char text[static PROC_PEERS_MAX])
{
        size_t used = strlen(text), length = strlen(peer);
        const char *at = strstr(text, peer);

        if (!(at && (at[length] == ',' || at[length] == '\0')) && used + length + 3 <= PROC_PEERS_MAX)
                snprintf(text + used, PROC_PEERS_MAX - used, "%s%s", used > 0 ? ", " : "", peer);
}

/* Takes the address of a line: hexadecimal words in the order of this machine's memory. */
static void take_connection(const char *line, const struct sockets *sockets, char text[static PROC_PEERS_MAX])
{
        char address[33], name[INET6_ADDRSTRLEN], peer[INET6_ADDRSTRLEN + 16];
        unsigned long long inode;
        unsigned port, state;
        uint32_t words[4] = {0};

        if (sscanf(line, " %*u: %*32[0-9A-F]:%*x %32[0-9A-F]:%x %x %*x:%*x %*x:%*x %*x %*u %*u %llu", address,
                   &port, &state, &inode) != 4 ||
            state != TCP_ESTABLISHED)
                return;
        size_t n = strlen(address) / 8;
        for (size_t i = 0; i < n; i++)
                (void)sscanf(address + 8 * i, "%8x", &words[i]);
        bool own = false;
        for (size_t i = 0; i < sockets->n; i++)
                own |= sockets->inodes[i] == inode;
        if (!own || !inet_ntop(n > 1 ? AF_INET6 : AF_INET, words, name, sizeof(name)))
                return;
        snprintf(peer, sizeof(peer), n > 1 ? "[%s]:%u" : "%s:%u", name, port);
        add_peer(peer, text);
}

int proc_peers(const struct proc *proc, char text[static PROC_PEERS_MAX])
{
        static const char *const files[] = {"net/tcp", "net/tcp6"};
        struct sockets sockets;
        char line[512];

        text[0] = '\0';
        int r = read_sockets(proc, &sockets);
        for (size_t i = 0; i < ELEMENTSOF(files) && r == 0; i++) {
                int fd = proc_open_file(proc, files[i], 0);
                FILE *file = fd < 0 ? NULL : fdopen(fd, "re");

                if (!file)
                        close_fd(fd);
                for (unsigned n = 0; file && n < CONNECTIONS_MAX && fgets(line, sizeof(line), file); n++)
                        take_connection(line, &sockets, text);
                if (file)
                        (void)fclose(file);
        }
        return r;
}

int proc_program(const struct proc *proc, char *path, size_t size)
{
        char link[64];

        snprintf(link, sizeof(link), "/proc/%d/exe", (int)proc_pid(proc));
        ssize_t length = readlink(link, path, size - 1);
        if (length < 0)
                return errno == ENOENT ? -ESRCH : -errno;
        path[length] = '\0';
        return probe_pidfd(proc_pidfd(proc));
}

/* Returns 1 if the process is in another namespace of this kind than we are, 0 if not, or -errno. */
static int is_in_other(const struct proc *proc, const char *kind)
{
        char path[64], own[64];
        struct stat its, ours;

        snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)proc_pid(proc), kind);
        snprintf(own, sizeof(own), "/proc/self/ns/%s", kind);
        if (stat(path, &its) < 0)
                return errno == ENOENT ? -ESRCH : -errno;
        if (stat(own, &ours) < 0)
                return -errno;
        return its.st_ino != ours.st_ino;
}

int proc_is_elsewhere(const struct proc *proc)
{
        return is_in_other(proc, "pid");
}

int proc_host_name(const struct proc *proc, char name[static PROC_HOST_NAME_MAX])
{
        int r = is_in_other(proc, "uts");

        if (r != 0)
                return r < 0 ? r : -EPERM;
        /* gethostname() fails only for a buffer that is too small. */
        name[0] = '\0';
        (void)gethostname(name, PROC_HOST_NAME_MAX - 1);
        name[PROC_HOST_NAME_MAX - 1] = '\0';
        return 0;
}

/* Limit for the children of a thread: one line with at most 8 bytes per child in practice. The limit exceeds
 * the kernel's pid_max. */
#define CHILDREN_MAX_BYTES ((size_t)64 << 20)

struct pids {
        pid_t *list;
        size_t n, allocated;
};

static void pids_done(struct pids *pids)
{
        free(pids->list);
}
#define _cleanup_pids_ _cleanup_(pids_done)

static int add_pid(struct pids *pids, pid_t pid)
{
        if (!ARRAY_RESERVE(pids->list, pids->n, pids->allocated))
                return -ENOMEM;
        pids->list[pids->n++] = pid;
        return 0;
}

/* Adds every directory entry whose name is a number. */
static int add_entries(struct pids *pids, const char *path)
{
        _cleanup_closedir_ DIR *dir = opendir(path);
        int r = 0;

        if (!dir)
                return -errno;
        for (const struct dirent *entry; r == 0 && (entry = readdir(dir));)
                if (isdigit((unsigned char)entry->d_name[0]))
                        r = add_pid(pids, (pid_t)strtol(entry->d_name, NULL, 10));
        return r;
}

static int add_children_of_thread(struct pids *tree, pid_t pid, pid_t tid)
{
        _cleanup_free_ char *text = NULL;
        char path[64];
        size_t length;

        snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)tid);
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        int r = fd < 0 ? -errno : fd_read_whole(fd, CHILDREN_MAX_BYTES, &text, &length);
        if (r < 0)
                return r == -ENOENT || r == -ESRCH ? 0 : r;

        char *end;
        for (const char *p = text; p && r == 0; p = end) {
                long child = strtol(p, &end, 10);
                if (end == p)
                        break;
                r = add_pid(tree, (pid_t)child);
        }
        return r;
}

/* Adds the children of parent: from the `children` files of its threads, which a kernel without
 * CONFIG_PROC_CHILDREN lacks. */
static int add_children(struct pids *tree, pid_t parent)
{
        _cleanup_pids_ struct pids threads = {0};
        char path[64];

        if (access("/proc/thread-self/children", R_OK) < 0)
                return -EOPNOTSUPP;
        snprintf(path, sizeof(path), "/proc/%d/task", (int)parent);
        int r = add_entries(&threads, path);
        for (size_t i = 0; i < threads.n && r == 0; i++)
                r = add_children_of_thread(tree, parent, threads.list[i]);
        return r == -ENOENT || r == -ESRCH ? 0 : r;
}

/* Moves the pids to the caller. r is the result of what added them. */
static int take_pids(int r, struct pids *pids, pid_t **ret, size_t *ret_n)
{
        if (r < 0)
                return r;
        *ret = TAKE_PTR(pids->list);
        *ret_n = pids->n;
        return 0;
}

int proc_all(pid_t **ret, size_t *ret_n)
{
        _cleanup_pids_ struct pids all = {0};

        return take_pids(add_entries(&all, "/proc"), &all, ret, ret_n);
}

int proc_children(pid_t pid, pid_t **ret, size_t *ret_n)
{
        _cleanup_pids_ struct pids children = {0};

        return take_pids(add_children(&children, pid), &children, ret, ret_n);
}

/* A process that is reparented during the scan could occur twice. */
static bool is_known(const struct pids *pids, size_t i)
{
        size_t k = 0;

        while (pids->list[k] != pids->list[i])
                k++;
        return k < i;
}

int proc_tree_each(pid_t pid, int (*each)(pid_t pid, void *userdata), void *userdata)
{
        _cleanup_pids_ struct pids tree = {0};
        int r = add_pid(&tree, pid);

        for (size_t i = 0; i < tree.n && r == 0; i++) {
                pid_t member = tree.list[i];
                if (is_known(&tree, i))
                        continue;
                /* Read the children first: if each() ends the process, they can no longer be found. */
                r = add_children(&tree, member);
                if (r == 0)
                        r = each(member, userdata);
        }
        return r;
}

int proc_group_each(pid_t group, int (*each)(pid_t pid, void *userdata), void *userdata)
{
        _cleanup_pids_ struct pids all = {0};
        int r = add_entries(&all, "/proc");

        for (size_t i = 0; i < all.n && r == 0; i++)
                if (getpgid(all.list[i]) == group)
                        r = each(all.list[i], userdata);
        return r;
}
