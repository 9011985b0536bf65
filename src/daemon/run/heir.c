/* SPDX-License-Identifier: MIT */
/* What a command leaves behind that goes to the background. */
#include "daemon/run/heir.h"
#include "base/environment.h"
#include <string.h>
#include <unistd.h>

struct search {
        const struct crew *crew;
        const struct worker *worker;
        struct proc *heir;
};

static int look_at_process(pid_t pid, void *userdata)
{
        struct search *search = userdata;
        const struct worker *worker = search->worker;
        _cleanup_proc_ struct proc *proc = NULL;
        _cleanup_free_ char *text = NULL;
        size_t length = 0;

        if (pid == getpid() || pid == worker->pid || proc_open(pid, &proc) < 0 || proc_has_exited(proc) ||
            proc_environment(proc, &text, &length) < 0)
                return 0;
        const char *instance = environment_find(text, length, "SQMGR_INSTANCE");
        const char *mark = environment_find(text, length, "SQMGR_WORKER");
        if (!instance || strcmp(instance, search->crew->instance) != 0 || !mark ||
            strcmp(mark, WORKER_ID(worker)) != 0)
                return 0;
        search->heir = TAKE_PTR(proc);
        return 1;
}

struct proc *heir_find(const struct crew *crew, const struct worker *worker)
{
        struct search search = {.crew = crew, .worker = worker};

        (void)proc_tree_each(getpid(), look_at_process, &search);
        return search.heir;
}
