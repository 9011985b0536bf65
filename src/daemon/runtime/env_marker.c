/* SPDX-License-Identifier: MIT */
/* Environment markers by which sqmgr recognizes its workers. */
#include "daemon/runtime/env_marker.h"
#include "base/environment.h"
#include "base/parse.h"
#include "privileged/proc_inspect.h"

ssize_t env_markers_read(const struct proc *proc, char text[static ENV_MARKERS_MAX_BYTES],
                         struct markers *ret)
{
        ssize_t r = proc_environment(proc, text, ENV_MARKERS_MAX_BYTES);
        size_t length = r > 0 ? (size_t)r : 0;
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
