/* SPDX-License-Identifier: MIT */
/* What a command leaves behind that goes to the background. */
#pragma once

#include "daemon/runtime/runtime.h"
#include "io/proc.h"

struct orphan_search; /* a search for one */
struct worker;

/* heir: handed over, to be closed; NULL: there is none. The search is over and freed by then. */
typedef void (*orphan_fn)(struct worker *worker, struct proc *orphan);

/* Looks for what lives on of a worker whose process, which was uid's, has exited before any of it beat: an
 * orphan that has come to us as the subreaper, of the same user and of that very start. Where failed, as its
 * exit status says, what it left behind is the worker only if it shows that it has booted. done is called
 * once, later, unless orphan_search_free(*ret) comes first. Returns 0 or -errno. */
int orphan_search_start(struct runtime *runtime, struct worker *worker, uid_t uid, bool failed,
                        orphan_fn done, struct orphan_search **ret);
struct orphan_search *orphan_search_free(struct orphan_search *orphan_search);
