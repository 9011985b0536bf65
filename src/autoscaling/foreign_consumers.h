/* SPDX-License-Identifier: MIT */
/* Counts the processes of one Redis that take jobs there and are no workers of this host's, now and then, at
 * a bounded share of what Redis can do: by a scan of all identities, page by page, and one command for each
 * that is foreign. */
#pragma once

#include "frameworks/framework.h"

struct foreign_consumers;

struct foreign_count {
        bool any;         /* there are some, whatever they serve */
        unsigned serving; /* those that take from these queues */
        double idle;      /* their threads that run nothing */
};

/* framework: one that tells its queues. is_ours: the process of this identity is one of ours. redis must
 * outlive it. Returns 0 with *ret to be freed by foreign_consumers_free(), or -ENOMEM. */
int foreign_consumers_new(const struct framework *framework, struct redis *redis, const char *namespace,
                          bool (*is_ours)(const char *identity, size_t len, void *userdata), void *userdata,
                          struct foreign_consumers **ret);
/* Begins a count where one is due. */
void foreign_consumers_poll(struct foreign_consumers *consumers, usec_t now);
/* As they were counted last. names: a list as struct autoscale has them. is_reported: whether that one, which
 * takes from these queues, is known otherwise, and left out of all but `any`; NULL: none is. Returns false
 * where they were not counted, or that was long ago. */
bool foreign_consumers_count(const struct foreign_consumers *consumers, const char *names, usec_t now,
                             bool (*is_reported)(const char *host, const char *queues, void *userdata),
                             void *userdata, struct foreign_count *ret);
/* Takes NULL, and returns it. */
struct foreign_consumers *foreign_consumers_free(struct foreign_consumers *consumers);
