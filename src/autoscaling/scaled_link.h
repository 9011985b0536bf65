/* SPDX-License-Identifier: MIT */
/* What autoscaling keeps of one link; the link owns it. */
#pragma once

#include "daemon/runtime/links.h"
#include "frameworks/queue_reader.h"

struct foreign_consumers;
struct scaling_share;

struct scaled_link {
        struct link_user user; /* the first member */
        struct link *link;     /* not owned */
        struct queue_reader *demand;
        struct foreign_consumers *foreign;
        struct scaling_share *scaling_share; /* owned; NULL: no fleet shares a need with other hosts */
        struct queues_reading demanded; /* what was read last, until that is folded in; without its error */
        bool answered;
        bool error_reported;
};
