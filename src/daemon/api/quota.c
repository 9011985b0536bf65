/* SPDX-License-Identifier: MIT */
/* The share of the socket that each class of clients may use: connections, calls, memory. */
#include "daemon/api/quota.h"
#include "wire/varlink.h"

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

const struct quota quotas[_CONTROL_ACCESS_MAX] = {
        /* A viewer's connection gets one call, so that other clients wait for one at most. */
        [CONTROL_VIEW] = {QUOTA_ACCEPT_PRIORITY + 10, QUOTA_VIEWERS_MAX, QUOTA_VIEWERS_MAX / 2, 1, 64 * KIB,
                          2 * MIB, 16 * MIB},
        [CONTROL_OPERATE] = {QUOTA_ACCEPT_PRIORITY + 5, QUOTA_OPERATORS_MAX, QUOTA_OPERATORS_MAX / 2, 16,
                             VARLINK_CALL_MAX, 16 * MIB, 64 * MIB},
        /* The user of sqmgr, whose workers could connect, too, leaves some connections to root. */
        [CONTROL_OWN] = {QUOTA_ACCEPT_PRIORITY, QUOTA_OWNERS_MAX, QUOTA_OWNERS_MAX - 16, 16, VARLINK_CALL_MAX,
                         SIZE_MAX, SIZE_MAX},
};
