/* SPDX-License-Identifier: MIT */
/* The share of the socket that each class of clients may use: connections, calls, memory. No class uses
 * anything of another's. */
#pragma once

#include "wire/control.h"
#include <stdint.h>

/* Maximum of connections: of viewers, of operators, and of root and the user of sqmgr. */
#define QUOTA_VIEWERS_MAX     64
#define QUOTA_OPERATORS_MAX   128
#define QUOTA_OWNERS_MAX      128
#define QUOTA_CONNECTIONS_MAX (QUOTA_VIEWERS_MAX + QUOTA_OPERATORS_MAX + QUOTA_OWNERS_MAX)

/* The priority of new connections: after events of fleets, and with the owner's calls. */
#define QUOTA_ACCEPT_PRIORITY 10

struct quota {
        int64_t priority;
        unsigned connections, of_user; /* of the class, and of one user in it */
        unsigned calls;                /* per connection and loop iteration */
        size_t call_max;               /* bytes of one call */
        /* Bytes buffered for the class: calls that have not ended, and unread replies. SIZE_MAX: no limit. */
        size_t input_max, output_max;
};

/* By class. CONTROL_NONE has nothing. */
extern const struct quota quotas[_CONTROL_ACCESS_MAX];
