/* SPDX-License-Identifier: MIT */
/* Reads the processes of a worker in namespaces of its own; see the header. */
#include "daemon/runtime/inside_read.h"
#include "base/environment.h"
#include "daemon/runtime/env_marker.h"
#include "io/proc.h"
#include "model/fleet.h"
#include "privileged/proc_inspect.h"
#include <stdio.h>
#include <string.h>

static_assert(PROC_HOST_NAME_MAX == INSIDE_HOST_MAX, "the same name");

/* Returns 0 to continue, or 1 once the list is full. */
static int add_process(pid_t pid, void *userdata)
{
        struct inside *inside = userdata;
        struct inside_process process = {.pid = pid};
        _cleanup_proc_ struct proc *proc = NULL;

        if (inside->n == INSIDE_PROCESSES_MAX) {
                inside->complete = false;
                return 1;
        }
        /* A process that has exited is not needed. */
        int r = proc_open(pid, &proc);
        if (r >= 0)
                r = proc_own_pid(proc, &process.own_pid);
        if (r < 0) {
                inside->complete &= r == -ESRCH || r == -ENODATA;
                return 0;
        }
        /* Without the right to read the host name, workers are matched by their unique name alone. */
        if (proc_host_name(proc, process.host) < 0)
                process.host[0] = '\0';
        inside->list[inside->n++] = process;
        return 0;
}

/* Returns true if the names differ by that of the host at most, which may have been renamed meanwhile. */
static bool is_same_unique(const char *value, const char *unique)
{
        size_t a = unique_host_base(value, strlen(value)), b = unique_host_base(unique, strlen(unique));

        return unique[b] != '\0' && strcmp(value + a, unique + b) == 0;
}

/* Reads the value of the variable for the host name in the environment with which the worker was started. */
static int read_variable(struct proc_facts *facts, const struct worker *worker, uid_t user,
                         struct inside *inside)
{
        const char *name = worker->fleet->settings->traits->host_variable;
        _cleanup_proc_ struct proc *proc = NULL;
        size_t length = 0;

        if (!name)
                return 0;
        _cleanup_free_ char *text = malloc(ENV_MARKERS_MAX_BYTES);
        int r = text ? proc_find(worker->process.pid, worker->process.start, &proc) : -ENOMEM;
        if (r < 0 || !proc)
                return r < 0 ? r : -ESRCH;
        ssize_t n = proc_facts_environment(facts, proc, user, text, ENV_MARKERS_MAX_BYTES, &length);
        if (n < 0)
                return (int)n;
        const char *value = environment_find(text, length, name);
        if (!value)
                return 0;
        if (is_same_unique(value, inside->unique))
                snprintf(inside->unique, sizeof(inside->unique), "%s", value);
        else if (strlen(value) < sizeof(inside->variable))
                snprintf(inside->variable, sizeof(inside->variable), "%s", value);
        return 0;
}

int inside_read(struct proc_facts *facts, const struct worker *worker, uid_t user, const char *unique,
                struct inside *ret)
{
        *ret = (struct inside){.complete = true};
        snprintf(ret->unique, sizeof(ret->unique), "%s", unique);
        int r = read_variable(facts, worker, user, ret);
        if (r >= 0)
                r = proc_tree_each(worker->process.pid, add_process, ret);
        return r < 0 ? r : 0;
}
