/* SPDX-License-Identifier: MIT */
/* Environment markers by which sqmgr recognizes its workers. */
#include "daemon/runtime/env_marker.h"
#include "base/environment.h"
#include "base/fd.h"
#include "base/parse.h"
#include "io/marker.h"
#include "model/fleet.h"
#include "model/names.h"
#include <string.h>

ssize_t env_markers_read(struct proc_facts *facts, const struct proc *proc,
                         char text[static ENV_MARKERS_MAX_BYTES], struct markers *ret)
{
        size_t length;
        ssize_t r = proc_facts_environment(facts, proc, text, ENV_MARKERS_MAX_BYTES, &length);
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
