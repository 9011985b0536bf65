/* SPDX-License-Identifier: MIT */
/* Reads the processes of a worker in namespaces of its own. */
#pragma once

#include "daemon/runtime/proc_facts.h"
#include "frameworks/inside.h"

struct worker;

/* Reads what struct inside contains. unique: the host name that this start of the worker was given; "": none.
 * facts and user are those of proc_facts_environment(), which returns -EINPROGRESS and -ETIMEDOUT. Returns 0
 * or -errno; -ESRCH: the worker has exited. */
int inside_read(struct proc_facts *facts, const struct worker *worker, uid_t user, const char *unique,
                struct inside *ret);
