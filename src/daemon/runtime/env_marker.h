/* SPDX-License-Identifier: MIT */
/* Environment markers by which sqmgr recognizes its workers. */
#pragma once

#include "base/macro.h"
#include "daemon/runtime/proc_facts.h"

/* Maximum of an environment that is read. Our markers come first, but a shell in between may have reordered
 * them, and a foreign environment may be huge. */
#define ENV_MARKERS_MAX_BYTES ((size_t)128 << 10)

struct worker;

/* Untrusted: any process can set these variables. NULL: missing. */
struct markers {
        const char *instance, *worker, *generation;
        usec_t started_at; /* time of the start of this worker; 0: missing */
};

/* Reads the markers of a process, which then point into text. facts is that of
 * proc_facts_environment(). Returns the number of bytes read, which may be 0 during execve(), or -errno. */
ssize_t env_markers_read(struct proc_facts *facts, const struct proc *proc,
                         char text[static ENV_MARKERS_MAX_BYTES], struct markers *ret);

/* Returns true if the markers are those of this start of the worker, by the sqmgr with this instance. */
bool env_markers_are_of(const struct markers *markers, const char *instance, const struct worker *worker);
