/* SPDX-License-Identifier: MIT */
/* How much memory there is, and how often the kernel had to kill for want of it; see the header. */
#include "io/host.h"

#include "base/fd.h"
#include "io/procfile.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Control groups nest; more levels than this are not looked at. */
#define LEVELS_MAX 16

struct proc_host {
        int meminfo_fd;
        int vmstat_fd;          /* -1: there is none */
        int levels[LEVELS_MAX]; /* our control group's directory, then those above it */
        size_t n_levels;
        bool v1;
};

static const struct {
        const char *limit, *usage, *cache;
} cgroup_files[] = {
        [false] = {"memory.max", "memory.current", "inactive_file"},
        [true] = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
};

/* Finds our group in the text of /proc/self/cgroup: `0::/path`, or in version 1 `4:cpu,memory:/path`, which
 * goes first where both are mounted. Returns the path, up to the line's end, or NULL. */
static const char *cgroup_find_path(const char *text, bool *ret_v1)
{
        const char *v2 = NULL;

        for (const char *line = text; line; line = strchr(line, '\n')) {
                line += *line == '\n';
                const char *controllers = strchr(line, ':');
                const char *path = controllers ? strchr(controllers + 1, ':') : NULL;
                if (!path)
                        break;

                char names[256];
                snprintf(names, sizeof(names), ",%.*s,", (int)(path - controllers - 1), controllers + 1);
                if (strstr(names, ",memory,")) {
                        *ret_v1 = true;
                        return path + 1;
                }
                if (strncmp(line, "0::", 3) == 0)
                        v2 = path + 1;
        }
        *ret_v1 = false;
        return v2;
}

/* Opens the directories of our group and of those above it. One that is missing or closed to us sets no
 * limit. */
static void host_open_levels(struct proc_host *host, const char *proc_root, const char *cgroup_root)
{
        char file[PATH_MAX], text[4096], path[PATH_MAX];

        snprintf(file, sizeof(file), "%s/self/cgroup", proc_root);
        if (fd_read_file(AT_FDCWD, file, text, sizeof(text)) < 0)
                return;
        const char *group = cgroup_find_path(text, &host->v1);
        if (!group)
                return;

        int length = (int)strcspn(group, "\n");
        /* Seen from within a cgroup namespace, a group outside of it is told as "/../..": not to be reached.
         */
        if (memmem(group, (size_t)length, "/..", 3))
                length = 0;

        while (host->n_levels < LEVELS_MAX) {
                while (length > 0 && group[length - 1] == '/')
                        length--;
                snprintf(path, sizeof(path), "%s%s%.*s", cgroup_root, host->v1 ? "/memory" : "", length,
                         group);
                int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
                if (fd >= 0)
                        host->levels[host->n_levels++] = fd;
                if (length == 0)
                        break;
                while (length > 0 && group[length - 1] != '/')
                        length--;
        }
}

int proc_host_open(const char *proc_root, const char *cgroup_root, struct proc_host **ret)
{
        char path[PATH_MAX];

        if (!proc_root)
                proc_root = "/proc";
        snprintf(path, sizeof(path), "%s/meminfo", proc_root);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;

        struct proc_host *host = calloc(1, sizeof(*host));
        if (!host) {
                close_fd(fd);
                return -ENOMEM;
        }
        host->meminfo_fd = fd;
        snprintf(path, sizeof(path), "%s/vmstat", proc_root);
        host->vmstat_fd = open(path, O_RDONLY | O_CLOEXEC);
        host_open_levels(host, proc_root, cgroup_root ? cgroup_root : "/sys/fs/cgroup");
        *ret = host;
        return 0;
}

struct proc_host *proc_host_close(struct proc_host *host)
{
        if (!host)
                return NULL;
        for (size_t i = 0; i < host->n_levels; i++)
                close_fd(host->levels[i]);
        close_fd(host->meminfo_fd);
        close_fd(host->vmstat_fd);
        free(host);
        return NULL;
}

/* Returns false where the file is missing or says "max". */
static bool level_read_number(int dir_fd, const char *file, uint64_t *ret)
{
        char text[64];

        return fd_read_file(dir_fd, file, text, sizeof(text)) > 0 && procfile_number(text, "", 10, ret) == 0;
}

/* The lowest limit of all levels, and the least that one of them leaves, each held at `most`. */
static void host_read_limits(const struct proc_host *host, uint64_t most, uint64_t *ret_limit,
                             uint64_t *ret_left)
{
        uint64_t lowest = most, least = most;

        for (size_t i = 0; i < host->n_levels; i++) {
                int fd = host->levels[i];
                uint64_t limit, usage, cache = 0;
                char text[8192];

                if (!level_read_number(fd, cgroup_files[host->v1].limit, &limit))
                        continue;
                lowest = MIN(lowest, limit);
                if (!level_read_number(fd, cgroup_files[host->v1].usage, &usage))
                        continue;
                if (fd_read_file(fd, "memory.stat", text, sizeof(text)) > 0)
                        (void)procfile_number(text, cgroup_files[host->v1].cache, 10, &cache);
                usage -= MIN(usage, cache);
                least = MIN(least, limit - MIN(limit, usage));
        }
        *ret_limit = lowest;
        *ret_left = least;
}

static int host_read_meminfo(const struct proc_host *host, const char *key, uint64_t *ret_bytes)
{
        char text[8192];
        uint64_t kib;

        ssize_t length = fd_read_start(host->meminfo_fd, text, sizeof(text));
        if (length < 0)
                return (int)length;
        int r = procfile_number(text, key, 10, &kib);
        if (r < 0)
                return r;
        *ret_bytes = kib * 1024;
        return 0;
}

int proc_available_memory_bytes(const struct proc_host *host, uint64_t *ret_bytes)
{
        uint64_t available, limit, left;

        int r = host_read_meminfo(host, "MemAvailable:", &available);
        if (r < 0)
                return r;
        host_read_limits(host, available, &limit, &left);
        *ret_bytes = left;
        return 0;
}

int proc_total_memory_bytes(const struct proc_host *host, uint64_t *ret_bytes)
{
        uint64_t total, limit, left;

        int r = host_read_meminfo(host, "MemTotal:", &total);
        if (r < 0)
                return r;
        host_read_limits(host, total, &limit, &left);
        *ret_bytes = limit;
        return 0;
}

int proc_oom_kills(const struct proc_host *host, uint64_t *ret)
{
        char text[16384];

        if (host->vmstat_fd < 0)
                return -ENODATA;
        ssize_t length = fd_read_start(host->vmstat_fd, text, sizeof(text));
        return length < 0 ? (int)length : procfile_number(text, "oom_kill ", 10, ret);
}
