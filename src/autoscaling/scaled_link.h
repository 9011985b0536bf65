/* SPDX-License-Identifier: MIT */
/* The autoscaling state of one link, owned by the link. */
#pragma once

#include "daemon/runtime/links.h"

struct foreign_consumers;

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
