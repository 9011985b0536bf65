/* SPDX-License-Identifier: MIT */
/* Pressure stall information; see the header. */
#include "io/psi.h"
#include "base/fd.h"
#include "io/procfile.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Without CAP_SYS_RESOURCE the window must be a multiple of two seconds. */
#define WINDOW_USEC 2000000U
#define PERCENT     100

struct psi {
        int fd;
        bool triggers;
        char path[PATH_MAX];
};

/* Guards the write of the trigger: only a file of the kernel may be written. */
static bool is_kernels(int fd)
{
        struct statfs its;

        return fstatfs(fd, &its) == 0 &&
               (its.f_type == PROC_SUPER_MAGIC || its.f_type == CGROUP2_SUPER_MAGIC);
}

/* Writing sets the trigger, which lasts as long as the descriptor. */
static int open_file(struct psi *psi, unsigned percent)
{
        char trigger[64];
        int n = snprintf(trigger, sizeof(trigger), "some %u %u", percent * (WINDOW_USEC / PERCENT),
                         WINDOW_USEC);

        psi->fd = open(psi->path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        /* The kernel expects the terminating NUL too. */
        if (psi->fd >= 0 && is_kernels(psi->fd) && write(psi->fd, trigger, (size_t)n + 1) == n + 1) {
                psi->triggers = true;
                return 0;
        }
        close_fd(psi->fd);
        psi->fd = open(psi->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        return psi->fd < 0 ? -errno : 0;
}

static int open_below(struct psi *psi, const char *cgroup_root, const char *group, unsigned percent)
{
        /* In a hybrid hierarchy, version 2 has a directory of its own. */
        static const char *const places[] = {"", "/unified"};

        for (size_t i = 0; i < ELEMENTSOF(places); i++) {
                int n = snprintf(psi->path, sizeof(psi->path), "%s%s%s/memory.pressure", cgroup_root,
                                 places[i], group);

                if (n > 0 && (size_t)n < sizeof(psi->path) && open_file(psi, percent) == 0)
                        return 0;
        }
        return -ENOENT;
}

/* In a container our group may be mounted as the root, although its name says otherwise. */
static int open_group(struct psi *psi, const char *proc_root, const char *cgroup_root, unsigned percent)
{
        char group[4096];

        if (procfile_cgroup(proc_root, NULL, group, sizeof(group)) == 0 && strlen(group) > 1 &&
            open_below(psi, cgroup_root, group, percent) == 0)
                return 0;
        return open_below(psi, cgroup_root, "", percent);
}

int psi_open(const char *proc_root, const char *cgroup_root, unsigned percent, struct psi **ret)
{
        struct psi *psi = calloc(1, sizeof(*psi));
        char text[16];
        int r;

        if (!psi)
                return -ENOMEM;
        proc_root = proc_root ?: "/proc";
        r = open_group(psi, proc_root, cgroup_root ?: "/sys/fs/cgroup", percent);
        if (r < 0) {
                int n = snprintf(psi->path, sizeof(psi->path), "%s/pressure/memory", proc_root);
                r = (size_t)n < sizeof(psi->path) ? open_file(psi, percent) : -ENAMETOOLONG;
        }
        /* Booted with psi=0, the kernel has the file but refuses to read it. */
        if (r == 0 && psi_read(psi, text, sizeof(text)) < 0)
                r = -EOPNOTSUPP;
        if (r < 0) {
                psi_close(psi);
                return r;
        }
        *ret = psi;
        return 0;
}

struct psi *psi_close(struct psi *psi)
{
        if (!psi)
                return NULL;
        close_fd(psi->fd);
        free(psi);
        return NULL;
}

int psi_trigger_fd(const struct psi *psi)
{
        return psi->triggers ? psi->fd : -1;
}

const char *psi_path(const struct psi *psi)
{
        return psi->path;
}

ssize_t psi_read(const struct psi *psi, char *text, size_t size)
{
        return fd_read_start(psi->fd, text, size);
}
