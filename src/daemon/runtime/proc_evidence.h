/* SPDX-License-Identifier: MIT */
/* Evidence in /proc of a framework's workers: titles and threads. Also the count of OOM kills of this
 * machine. */
#pragma once

#include "daemon/runtime/proc_facts.h"
#include "frameworks/table.h"
#include "io/host.h"

struct worker;
struct world;

/* facts is that of proc_facts_title(), which returns -EINPROGRESS and -ETIMEDOUT. */

/* Parses the title. Returns 1 with *ret if only a worker that sends heartbeats has such a title; 0 if not, or
 * if the title cannot be read; -EINPROGRESS; or -ETIMEDOUT. */
int proc_evidence_read_title(struct proc_facts *facts, const struct proc *proc,
                             const struct framework *framework, struct title *ret);

/* Checks by title and threads whether the process is a booted worker of this framework. Returns 1, 0,
 * -EINPROGRESS, -ETIMEDOUT, or -errno when descriptors or memory are short. */
int proc_evidence_has_booted(struct proc_facts *facts, const struct proc *proc,
                             const struct framework *framework);
/* Like proc_evidence_has_booted(), but also accepts a process that runs a job for a worker. */
int proc_evidence_runs_jobs(struct proc_facts *facts, const struct proc *proc,
                            const struct framework *framework);

/* Observes the total of OOM kills by the kernel. */
void proc_evidence_observe_oom_kills(const struct proc_host *host, struct world *world, usec_t now);

/* Untrusted: any process can set these variables. NULL: missing. */
struct markers {
        const char *instance, *worker, *generation;
        usec_t started_at; /* time of the start of this worker; 0: missing */
};

/* Reads the markers of a process, which then point into text. facts is that of
 * proc_facts_environment(). Returns as that. */
ssize_t env_markers_read(struct proc_facts *facts, const struct proc *proc,
                         char text[static PROC_ENVIRONMENT_MAX], struct markers *ret);

/* Returns true if the markers are those of this start of the worker, by the sqmgr with this instance. */
bool env_markers_are_of(const struct markers *markers, const char *instance, const struct worker *worker);
