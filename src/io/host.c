/* SPDX-License-Identifier: MIT */
/* Memory and OOM kills of this machine; see the header. */
#include "io/host.h"

#include "base/fd.h"
#include "io/proc.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Maximum depth of nested control groups that is read. */
#define LEVELS_MAX 16

struct proc_host {
        int meminfo_fd;
        int vmstat_fd;          /* -1: not available */
        int levels[LEVELS_MAX]; /* directory of our control group, then its parents */
        size_t n_levels;
        bool v1;
};

static const struct {
        const char *limit, *usage, *cache;
} cgroup_files[] = {
        [false] = {"memory.max", "memory.current", "inactive_file"},
        [true] = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
};

/* Opens the directories of our group and its parents. A missing or unreadable directory sets no limit. */
static void host_open_levels(struct proc_host *host, const char *proc_root, const char *cgroup_root)
{
        char group[4096], path[PATH_MAX];

        /* If both versions are mounted, version 1 has the limits. */
        host->v1 = procfile_cgroup(proc_root, "memory", group, sizeof(group)) == 0;
        if (!host->v1 && procfile_cgroup(proc_root, NULL, group, sizeof(group)) < 0)
                return;
        for (char *slash = strcmp(group, "/") == 0 ? group : group + strlen(group);
             slash && host->n_levels < LEVELS_MAX; slash = strrchr(group, '/')) {
                *slash = '\0';
                snprintf(path, sizeof(path), "%s%s%s", cgroup_root, host->v1 ? "/memory" : "", group);
                int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
                if (fd >= 0)
                        host->levels[host->n_levels++] = fd;
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

/* key is "" for a file with one number. Returns false if the file is missing or contains "max". */
static bool level_read_number(int dir_fd, const char *file, const char *key, uint64_t *ret)
{
        _cleanup_close_ int fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC | O_NOCTTY);

        return fd >= 0 && procfile_read_number(fd, key, ret) == 0;
}

/* Returns the lowest limit of all levels, and the least memory left under one of them, each at most
 * `most`. */
static void host_read_limits(const struct proc_host *host, uint64_t most, uint64_t *ret_limit,
                             uint64_t *ret_left)
{
        uint64_t lowest = most, least = most;

        for (size_t i = 0; i < host->n_levels; i++) {
                int fd = host->levels[i];
                uint64_t limit, usage, cache = 0;

                if (!level_read_number(fd, cgroup_files[host->v1].limit, "", &limit))
                        continue;
                lowest = MIN(lowest, limit);
                if (!level_read_number(fd, cgroup_files[host->v1].usage, "", &usage))
                        continue;
                (void)level_read_number(fd, "memory.stat", cgroup_files[host->v1].cache, &cache);
                usage -= MIN(usage, cache);
                least = MIN(least, limit - MIN(limit, usage));
        }
        *ret_limit = lowest;
        *ret_left = least;
}

/* Returns the value of a line of meminfo, lowered to the limits. */
static int host_read(const struct proc_host *host, const char *key, uint64_t *ret_limit, uint64_t *ret_left)
{
        uint64_t kib;
        int r = procfile_read_number(host->meminfo_fd, key, &kib);

        if (r == 0)
                host_read_limits(host, kib * 1024, ret_limit, ret_left);
        return r;
}

int proc_available_memory_bytes(const struct proc_host *host, uint64_t *ret_bytes)
{
        uint64_t limit;

        return host_read(host, "MemAvailable:", &limit, ret_bytes);
}

int proc_total_memory_bytes(const struct proc_host *host, uint64_t *ret_bytes)
{
        uint64_t left;

        return host_read(host, "MemTotal:", ret_bytes, &left);
}

int proc_oom_kills(const struct proc_host *host, uint64_t *ret)
{
        return host->vmstat_fd < 0 ? -ENODATA : procfile_read_number(host->vmstat_fd, "oom_kill ", ret);
}

bool host_is_container(void)
{
        static const char *const signs[] = {"/run/systemd/container", "/run/.containerenv", "/.dockerenv"};
        bool is_container = getenv("container") || getenv("KUBERNETES_SERVICE_HOST");

        FOREACH_ELEMENT(sign, signs)
                is_container |= access(*sign, F_OK) == 0;
        return is_container;
}
