/* SPDX-License-Identifier: MIT */
/* How much of the sockets one may have: so that nobody who may only read, and no operator, keeps out another,
 * or takes up memory without bound; and whoever is on the read socket takes nothing of the control socket's.
 */
#pragma once

#include "wire/control.h"

#define ROOM_CONNECTIONS_MAX 256
/* Of the bytes that wait for those who are not the owner: calls that have not come to their end, and replies
 * that are not read. */
#define ROOM_INPUT_MAX  ((size_t)16 * 1024 * 1024)
#define ROOM_OUTPUT_MAX ((size_t)64 * 1024 * 1024)

/* The same of the read socket, which has no owner: and of one call there. */
#define ROOM_VIEW_CONNECTIONS_MAX 64
#define ROOM_VIEW_CALL_MAX        ((size_t)64 * 1024)
#define ROOM_VIEW_INPUT_MAX       ((size_t)2 * 1024 * 1024)
#define ROOM_VIEW_OUTPUT_MAX      ((size_t)16 * 1024 * 1024)

/* Whose a connection is. */
struct room_peer {
        uid_t uid;
        enum control_access access; /* CONTROL_VIEW: it is one of the read socket's */
};

/* What is taken already of the socket that one connects to. */
struct room {
        unsigned total;
        unsigned others;  /* of them, not of the owner's: root and the user of sqmgr */
        unsigned readers; /* of others, who may only read */
        unsigned same;    /* of the same user */
};

/* Counts one that is there in, as one of peer's sees it. */
void room_count(struct room *room, const struct room_peer *peer, const struct room_peer *there);
/* Why peer has no place, a sentence; NULL: he has. */
const char *room_refuses(const struct room *room, const struct room_peer *peer);

/* Do the bytes of there count where peer wants room for some? */
bool room_shares(const struct room_peer *peer, const struct room_peer *there);
/* How many all that share it may have waiting for them, of input and output; SIZE_MAX: the owner's are not
 * counted. */
size_t room_input_max(const struct room_peer *peer);
size_t room_output_max(const struct room_peer *peer);
