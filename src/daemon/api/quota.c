/* SPDX-License-Identifier: MIT */
/* Limits on connections and buffered bytes per user and class. */
#include "daemon/api/quota.h"

/* Connections reserved for the owner, the limit of one other user, and the limit of all with read access
 * only. */
#define OWNER_CONNECTIONS 16
#define USER_CONNECTIONS  64
#define READERS_MAX       (QUOTA_CONNECTIONS_MAX / 2)
/* Limit of one user on the read socket. */
#define VIEW_CONNECTIONS (QUOTA_VIEW_CONNECTIONS_MAX / 2)

static const char full[] = "too many connections; try again later";
static const char too_many[] = "this user has too many connections; close some of them";

static bool is_view(const struct quota_peer *peer)
{
        return peer->access == CONTROL_VIEW;
}

void quota_count(struct quota *quota, const struct quota_peer *peer, const struct quota_peer *there)
{
        if (is_view(peer) != is_view(there))
                return;
        quota->total++;
        quota->others += there->access != CONTROL_OWN;
        quota->readers += there->access == CONTROL_READ;
        quota->same += there->uid == peer->uid;
}

const char *quota_refuses(const struct quota *quota, const struct quota_peer *peer)
{
        if (is_view(peer))
                return quota->total >= QUOTA_VIEW_CONNECTIONS_MAX ? full
                       : quota->same >= VIEW_CONNECTIONS          ? too_many
                                                                  : NULL;
        if (quota->total >= QUOTA_CONNECTIONS_MAX)
                return full;
        if (peer->access == CONTROL_OWN)
                return NULL;
        if (quota->same >= USER_CONNECTIONS)
                return too_many;
        if (quota->others >= QUOTA_CONNECTIONS_MAX - OWNER_CONNECTIONS ||
            (peer->access == CONTROL_READ && quota->readers >= READERS_MAX))
                return full;
        return NULL;
}

bool quota_shares(const struct quota_peer *peer, const struct quota_peer *there)
{
        return there->access != CONTROL_OWN && is_view(peer) == is_view(there);
}

size_t quota_input_max(const struct quota_peer *peer)
{
        if (peer->access == CONTROL_OWN)
                return SIZE_MAX;
        return is_view(peer) ? QUOTA_VIEW_INPUT_MAX : QUOTA_INPUT_MAX;
}

size_t quota_output_max(const struct quota_peer *peer)
{
        if (peer->access == CONTROL_OWN)
                return SIZE_MAX;
        return is_view(peer) ? QUOTA_VIEW_OUTPUT_MAX : QUOTA_OUTPUT_MAX;
}
