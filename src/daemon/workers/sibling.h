/* SPDX-License-Identifier: MIT */
/* Finds processes of a worker besides the one that sent heartbeats. */
#pragma once

#include "daemon/workers/process.h"

/* Searches for another process of the worker's command that is a booted worker or runs a job. Candidates are
 * below the main process and, with left, those left behind in its group: for these, all of /proc is scanned
 * while the group exists. A process of another worker is no candidate. Returns 1 with *ret, to be closed (ret
 * may be NULL); 0 if there is none; -EINPROGRESS or -ETIMEDOUT as proc_facts_title(); -errno when descriptors
 * or memory are short. */
int sibling_find(struct process *process, bool left, struct proc **ret);
