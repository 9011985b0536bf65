/* SPDX-License-Identifier: MIT */
/* Finds processes of our service that belong to no worker; see the header. */
#include "daemon/takeover/unknown.h"
#include "base/fd.h"
#include "io/proc.h"
#include "io/procfile.h"
#include "model/fleet.h"
#include "model/world.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PROCS_MAX_BYTES ((size_t)1 << 20)
/* No chain of parents is longer in practice. */
#define ANCESTORS_MAX 128

static bool is_known(const struct world *world, pid_t pid)
{
        /* Also the session of a process that was started outside of our pid namespace. */
        if (pid == 0)
                return false;
        WORLD_FOREACH_FLEET(world, fleet) {
                FLEET_FOREACH_WORKER(fleet, worker)
                        if (worker->process.pid == pid || worker->process.heartbeat_pid == pid)
                                return true;
                for (size_t i = 0; i < TEMPLATES_MAX; i++)
                        if (fleet->templates[i].pid == pid)
                                return true;
        }
        return false;
}

/* A process that cannot be read has exited, and is not unknown. */
static bool is_unknown(const struct world *world, pid_t pid, uint64_t before, uint64_t *ret_start)
{
        pid_t above = pid;

        for (unsigned i = 0; i < ANCESTORS_MAX && above > 1; i++) {
                _cleanup_proc_ struct proc *proc = NULL;
                struct proc_place place;

                if (proc_open(above, &proc) < 0 || proc_has_exited(proc) || proc_place(proc, &place) < 0 ||
                    is_known(world, above) || is_known(world, place.session))
                        return false;
                if (above == pid)
                        *ret_start = place.start_time;
                if (*ret_start >= before)
                        return false;
                above = place.parent;
        }
        return true;
}

void unknown_read(const char *procs, uint64_t before, const struct world *world, struct unknown *ret)
{
        _cleanup_close_ int fd = open(procs, O_RDONLY | O_CLOEXEC);
        _cleanup_free_ char *text = NULL;
        size_t length;
        char *end;

        ret->n = 0;
        if (fd < 0 || fd_read_whole(fd, PROCS_MAX_BYTES, &text, &length) < 0)
                return;
        for (char *at = text; ret->n < UNKNOWN_MAX; at = end) {
                struct unknown_process *process = &ret->list[ret->n];

                process->pid = (pid_t)strtol(at, &end, 10);
                if (end == at)
                        break;
                ret->n += process->pid > 1 && is_unknown(world, process->pid, before, &process->start);
        }
}

void unknown_find(const struct world *world, struct unknown *ret)
{
        /* The mount points of version 2: alone, and beside version 1. */
        static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
        _cleanup_proc_ struct proc *self = NULL;
        char group[512], path[sizeof(group) + 64];

        if (procfile_cgroup("/proc", NULL, group, sizeof(group)) < 0 || proc_open(getpid(), &self) < 0)
                return;
        for (size_t i = 0; ret->n == 0 && i < ELEMENTSOF(roots); i++) {
                snprintf(path, sizeof(path), "%s%s/cgroup.procs", roots[i], group);
                unknown_read(path, proc_start_time(self), world, ret);
        }
}
