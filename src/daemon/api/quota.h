/* SPDX-License-Identifier: MIT */
/* How much of the sockets one may have: so that nobody who may only read, and no operator, keeps out another,
 * or takes up memory without bound; and whoever is on the read socket takes nothing of the control socket's.
 */
#pragma once

#include "wire/control.h"

#define QUOTA_CONNECTIONS_MAX 256
/* Of the bytes that wait for those who are not the owner: calls that have not come to their end, and replies
 * that are not read. */
#define QUOTA_INPUT_MAX  ((size_t)16 * 1024 * 1024)
#define QUOTA_OUTPUT_MAX ((size_t)64 * 1024 * 1024)

/* The same of the read socket, which has no owner: and of one call there. */
#define QUOTA_VIEW_CONNECTIONS_MAX 64
#define QUOTA_VIEW_CALL_MAX        ((size_t)64 * 1024)
#define QUOTA_VIEW_INPUT_MAX       ((size_t)2 * 1024 * 1024)
#define QUOTA_VIEW_OUTPUT_MAX      ((size_t)16 * 1024 * 1024)

/* Whose a connection is. */
struct quota_peer {
        uid_t uid;
        enum control_access access; /* CONTROL_VIEW: it is one of the read socket's */
};

/* What is taken already of the socket that one connects to. */
struct quota {
        unsigned total;
        unsigned others;  /* of them, not of the owner's: root and the user of sqmgr */
        unsigned readers; /* of others, who may only read */
        unsigned same;    /* of the same user */
};

/* Counts one that is there in, as one of peer's sees it. */
void quota_count(struct quota *quota, const struct quota_peer *peer, const struct quota_peer *there);
/* Why peer has no place, a sentence; NULL: he has. */
const char *quota_refuses(const struct quota *quota, const struct quota_peer *peer);

/* Do the bytes of there count where peer wants room for some? */
bool quota_shares(const struct quota_peer *peer, const struct quota_peer *there);
/* How many all that share it may have waiting for them, of input and output; SIZE_MAX: the owner's are not
 * counted. */
size_t quota_input_max(const struct quota_peer *peer);
size_t quota_output_max(const struct quota_peer *peer);
