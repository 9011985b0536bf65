/* SPDX-License-Identifier: MIT */
/* Counts the processes of one server that accept jobs there and are not workers of this host. A count runs
 * periodically at a bounded share of the server's capacity. Each count scans all identities page by page, and
 * sends one query per foreign identity. */
#pragma once

#include "frameworks/framework.h"
#include "servers/server.h"

struct foreign_consumers;

struct foreign_count {
        bool unread;         /* the first count has not ended yet */
        usec_t counted_at;   /* when the last count that did not fail ended */
        bool any;            /* foreign processes exist, for any queue */
        unsigned serving;    /* accept jobs from at least one of these queues */
        double idle;         /* idle threads of the processes in serving */
        double partial_idle; /* idle threads of those that serve only some of these queues */
        double threads;      /* threads of those that serve all of these queues */
};

/* framework: one whose workers report their queues. is_ours: true if the process of this identity is ours.
 * reader must outlive the object. Returns 0 with *ret, which the caller frees with
 * foreign_consumers_free(), or -ENOMEM. */
int foreign_consumers_new(const struct framework *framework, struct reader *reader,
                          bool (*is_ours)(const char *identity, size_t len, void *userdata), void *userdata,
                          struct foreign_consumers **ret);
/* Starts a count if one is due. */
void foreign_consumers_poll(struct foreign_consumers *consumers, usec_t now);
/* Reads the result of the last count. names: a list as in struct autoscale. Returns false if there was no
 * count, or the last one is too old. */
bool foreign_consumers_count(const struct foreign_consumers *consumers, const char *names, usec_t now,
                             struct foreign_count *ret);
/* Takes NULL. Returns NULL. */
struct foreign_consumers *foreign_consumers_free(struct foreign_consumers *consumers);
