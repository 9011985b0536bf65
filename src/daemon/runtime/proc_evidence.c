/* SPDX-License-Identifier: MIT */
/* Evidence in /proc of a framework's workers, and OOM kills of this machine. */
#include "daemon/runtime/proc_evidence.h"
#include "base/environment.h"
#include "base/fd.h"
#include "base/parse.h"
#include "io/marker.h"
#include "model/world.h"
#include "observe/observe.h"

int proc_evidence_read_title(struct proc_facts *facts, const struct proc *proc,
                             const struct framework *framework, struct title *ret)
{
        char text[1024];

        if (!framework->title_parse)
                return 0;
        int r = proc_facts_title(facts, proc, text, sizeof(text));
        if (r < 0)
                return proc_facts_is_unknown(r) ? r : 0;
        return framework->title_parse(text, ret);
}

/* Before the first heartbeat, the capsules of the worker are not known. */
static bool is_framework_thread(const char *comm, void *userdata)
{
        const struct framework *framework = userdata;

        return framework->thread_is_processor(comm, NULL);
}

static int read_evidence(struct proc_facts *facts, const struct proc *proc, const struct framework *framework,
                         bool children)
{
        struct title title;
        char text[4096];
        unsigned threads = 0;

        int r = proc_facts_title(facts, proc, text, sizeof(text));
        bool late = r == -ETIMEDOUT;

        if (r == -EINPROGRESS)
                return r;
        if (r == 0 && framework->title_parse && framework->title_parse(text, &title))
                return children || !title.maybe_child;
        /* A title that was too long for its space is truncated and may not parse: count threads instead. */
        if (!is_shortage(r) && framework->thread_is_processor)
                r = proc_count_threads(proc, is_framework_thread, (void *)framework, &threads);
        if (is_shortage(r))
                return r;
        return late && threads == 0 ? -ETIMEDOUT : threads > 0;
}

int proc_evidence_has_booted(struct proc_facts *facts, const struct proc *proc,
                             const struct framework *framework)
{
        return read_evidence(facts, proc, framework, false);
}

int proc_evidence_runs_jobs(struct proc_facts *facts, const struct proc *proc,
                            const struct framework *framework)
{
        return read_evidence(facts, proc, framework, true);
}

void proc_evidence_observe_oom_kills(const struct proc_host *host, struct world *world, usec_t now)
{
        uint64_t kills;

        if (proc_oom_kills(host, &kills) == 0)
                observe_oom_kills(world, kills, now);
}

ssize_t env_markers_read(struct proc_facts *facts, const struct proc *proc,
                         char text[static PROC_ENVIRONMENT_MAX], struct markers *ret)
{
        size_t length;
        ssize_t r = proc_facts_environment(facts, proc, text, &length);
        if (r >= 0 && !environment_find(text, length, "SQMGR_WORKER")) {
                ssize_t marked = marker_read(proc, text);
                length = (size_t)MAX(marked, (ssize_t)0);
                if (marked < 0 && is_shortage((int)marked))
                        return marked;
        }
        const char *started = environment_find(text, length, "SQMGR_START");

        *ret = (struct markers){
                .instance = environment_find(text, length, "SQMGR_INSTANCE"),
                .worker = environment_find(text, length, "SQMGR_WORKER"),
                .generation = environment_find(text, length, "SQMGR_GENERATION"),
        };
        if (started)
                (void)parse_unsigned(started, 1, UINT64_MAX, &ret->started_at);
        return r;
}

bool env_markers_are_of(const struct markers *markers, const char *instance, const struct worker *worker)
{
        return markers->instance && strcmp(markers->instance, instance) == 0 && markers->worker &&
               strcmp(markers->worker, WORKER_ID(worker)) == 0 && markers->started_at == worker->spawned_at;
}
