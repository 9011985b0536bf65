/* SPDX-License-Identifier: MIT */
/* Environment markers by which sqmgr recognizes its workers. */
#include "daemon/runtime/env_marker.h"
#include "base/environment.h"
#include "base/parse.h"
#include "privileged/proc_inspect.h"

ssize_t env_markers_read(struct proc_facts *facts, const struct proc *proc, uid_t user,
                         char text[static ENV_MARKERS_MAX_BYTES], struct markers *ret)
{
        size_t length;
        ssize_t r = proc_facts_environment(facts, proc, user, text, ENV_MARKERS_MAX_BYTES, &length);
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
