/* SPDX-License-Identifier: MIT */
/* Autoscaling: the count of workers of a fleet follows its queues. */
#pragma once

#include "autoscaling/autoscale_rules.h"
#include "daemon/runtime/runtime.h"

struct subsystem;

/* poll() starts a reading of each Redis with fleets that need one. observe() evaluates the replies since, and
 * marks the saved state as changed if a count has changed. */
extern const struct subsystem autoscaling_subsystem;

/* Processes of one server that accept jobs there and are not workers of this host. */
struct consumer_list {
        struct consumer *list; /* owned; the consumers whose heartbeat was requested */
        size_t n_read;         /* with a heartbeat */
        size_t n_found;        /* identities that are not ours, requested or not */
};

/* The autoscaling state of one link, owned by the link. */
struct scaled_link {
        struct link_user user; /* the first member */
        struct link *link;     /* not owned */

        struct queues_reading demanded; /* the last reading until it is evaluated */
        bool asked;                     /* a reading is in progress */
        bool for_sleepers;              /* the reading in progress names only their queues */
        bool missed;                    /* a regular reading was due meanwhile */
        bool answered;
        bool of_sleepers; /* the answer is about the queues of sleeping fleets only */
        bool error_reported;

        size_t pending; /* queries of the count of foreign consumers in progress */
        unsigned pages; /* of that count */
        bool failed;
        char cursor[ANSWER_CURSOR_MAX];   /* of the next page; "": none */
        usec_t begun_at, next_at;         /* next_at: 0: no count has ended or failed yet */
        usec_t counted_at, counted_until; /* end of the last count; its result is valid until then; 0: none */
        struct consumer_list now, counted;
};

/* NULL: no fleet at this link has been autoscaled yet. */
struct scaled_link *scaled_link_of(const struct link *link);

/* Starts a count of the foreign consumers if one is due. A count runs periodically at a bounded share of the
 * server's capacity. Each count scans all identities page by page, and sends one query per foreign identity.
 * The framework of the link is one whose workers report their queues. */
void foreign_consumers_poll(struct scaled_link *scaled, usec_t now);
/* Returns the result of the last count. names: a list as in struct autoscale. */
struct foreign_count foreign_consumers_count(const struct scaled_link *scaled, const char *names, usec_t now);
