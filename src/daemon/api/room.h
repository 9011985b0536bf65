/* SPDX-License-Identifier: MIT */
/* How much of the control socket one may have: so that nobody who may only read, and no operator, keeps out
 * another, or takes up memory without bound. */
#pragma once

#include "wire/control.h"

#define ROOM_CONNECTIONS_MAX 256
/* Of the bytes that wait for those who are not the owner: calls that have not come to their end, and replies
 * that are not read. */
#define ROOM_INPUT_MAX  ((size_t)16 * 1024 * 1024)
#define ROOM_OUTPUT_MAX ((size_t)64 * 1024 * 1024)

/* Whose a connection is. */
struct room_peer {
        uid_t uid;
        enum control_access access;
};

/* What is taken already. */
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
