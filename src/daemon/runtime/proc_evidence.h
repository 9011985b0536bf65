/* SPDX-License-Identifier: MIT */
/* What /proc tells of a framework: titles and threads; and of the machine, the work of its OOM killer. */
#pragma once

#include "frameworks/table.h"
#include "io/host.h"
#include "io/proc.h"

struct world;

/* True where the process carries a title that only a worker that beats has. */
bool proc_evidence_read_title(const struct proc *proc, const struct framework *framework, struct title *ret);

/* Does its title or do its threads show that this process is a worker of the framework's? Returns 1, 0, or
 * -errno where there was no descriptor or memory to find out with. */
int proc_evidence_has_booted(const struct proc *proc, const struct framework *framework);
/* The same of one that is a worker or runs a job for one. */
int proc_evidence_runs_jobs(const struct proc *proc, const struct framework *framework);

/* Observes how often the kernel's OOM killer was at work so far. */
void proc_evidence_observe_oom_kills(const struct proc_host *host, struct world *world, usec_t now);
