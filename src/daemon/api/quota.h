/* SPDX-License-Identifier: MIT */
/* Limits on connections and buffered bytes per user and class. No read-only client and no operator can lock
 * out others or use unbounded memory. Clients of the read socket use nothing of the control socket's
 * quota. */
#pragma once

#include "wire/control.h"

#define QUOTA_CONNECTIONS_MAX 256
/* Limits on bytes buffered for all peers except the owner: unfinished calls (input) and unread replies
 * (output). */
#define QUOTA_INPUT_MAX  ((size_t)16 * 1024 * 1024)
#define QUOTA_OUTPUT_MAX ((size_t)64 * 1024 * 1024)

/* Limits of the read socket, which has no owner, and of one call there. */
#define QUOTA_VIEW_CONNECTIONS_MAX 64
#define QUOTA_VIEW_CALL_MAX        ((size_t)64 * 1024)
#define QUOTA_VIEW_INPUT_MAX       ((size_t)2 * 1024 * 1024)
#define QUOTA_VIEW_OUTPUT_MAX      ((size_t)16 * 1024 * 1024)

/* The peer of a connection. */
struct quota_peer {
        uid_t uid;
        enum control_access access; /* CONTROL_VIEW: connected to the read socket */
};

/* Connections in use on the socket that a new peer connects to. */
struct quota {
        unsigned total;
        unsigned others;  /* not of the owner (root and the user of sqmgr) */
        unsigned readers; /* of those, with read access only */
        unsigned same;    /* of the same user */
};

/* Adds the existing connection there to quota, as seen by the new peer. Ignores connections of the other
 * socket. */
void quota_count(struct quota *quota, const struct quota_peer *peer, const struct quota_peer *there);
/* Returns a sentence why peer is refused, or NULL if peer may connect. */
const char *quota_refuses(const struct quota *quota, const struct quota_peer *peer);

/* True if the bytes buffered for there count toward the limit of peer. */
bool quota_shares(const struct quota_peer *peer, const struct quota_peer *there);
/* Maximum of bytes that all sharing peers may have buffered, input and output. SIZE_MAX: unlimited, for the
 * owner. */
size_t quota_input_max(const struct quota_peer *peer);
size_t quota_output_max(const struct quota_peer *peer);
