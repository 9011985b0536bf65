/* SPDX-License-Identifier: MIT */
/* Reads what only root and the user of a process may read of it; see the header. */
#include "io/proc_inspect.h"
#include "base/fd.h"
#include "io/log_tail.h"
#include "io/probe.h"
#include "io/proc.h"
#include "io/procfile.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens a file below /proc/PID. A process that holds its pid afterwards held it before, too. */
static int open_file(const struct proc *proc, const char *name, int flags)
{
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/%s", (int)proc_pid(proc), name);
        _cleanup_close_ int fd = open(path, flags | O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? -ESRCH : -errno;
        int r = probe_pidfd(proc_pidfd(proc));
        return r < 0 ? r : TAKE_FD(fd);
}

/* Returns 0 with *ret, to be closed, or -errno. */
static int open_directory(const struct proc *proc, const char *name, DIR **ret)
{
        _cleanup_close_ int fd = open_file(proc, name, O_DIRECTORY);

        if (fd < 0)
                return fd;
        *ret = fdopendir(fd);
        if (!*ret)
                return -errno;
        (void)TAKE_FD(fd);
        return 0;
}

static ssize_t read_file(const struct proc *proc, const char *name, char *text, size_t size)
{
        _cleanup_close_ int fd = open_file(proc, name, 0);

        return fd < 0 ? fd : fd_read_start(fd, text, size);
}

ssize_t proc_environment(const struct proc *proc, char *text, size_t size)
{
        ssize_t length = read_file(proc, "environ", text, size);

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

        ssize_t length = read_file(proc, "fdinfo/1", text, sizeof(text));
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
        _cleanup_close_ int fd = open_file(proc, "fd/1", O_PATH);
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

        ssize_t length = read_file(proc, "smaps_rollup", text, sizeof(text));
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
                int fd = open_file(proc, files[i], 0);
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
