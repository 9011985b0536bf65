/* SPDX-License-Identifier: MIT */
/* Autoscaling: the count of workers of a fleet follows its queues. */
#pragma once

#include "daemon/runtime/runtime.h"

struct foreign_consumers;
struct subsystem;

/* poll() starts a reading of each Redis with fleets that need one. observe() evaluates the replies since, and
 * marks the saved state as changed if a count has changed. */
extern const struct subsystem autoscaling_subsystem;

/* The autoscaling state of one link, owned by the link. */
struct scaled_link {
        struct link_user user; /* the first member */
        struct link *link;     /* not owned */
        struct foreign_consumers *foreign;
        struct queues_reading demanded; /* the last reading until it is evaluated */
        bool asked;                     /* a reading is in progress */
        bool for_sleepers;              /* the reading in progress names only their queues */
        bool missed;                    /* a regular reading was due meanwhile */
        bool answered;
        bool of_sleepers; /* the answer is about the queues of sleeping fleets only */
        bool error_reported;
};

/* NULL: no fleet at this link has been autoscaled yet. */
struct scaled_link *scaled_link_of(const struct link *link);
