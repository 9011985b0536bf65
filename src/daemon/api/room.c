/* SPDX-License-Identifier: MIT */
/* How much of the sockets one may have. */
#include "daemon/api/room.h"

/* Of the connections: those that the owner alone may have, those that one other user may, and those of all
 * who may only read. */
#define OWNER_PLACES 16
#define USER_PLACES  64
#define READERS_MAX  (ROOM_CONNECTIONS_MAX / 2)
/* Of the read socket's, those that one user may have. */
#define VIEW_PLACES (ROOM_VIEW_CONNECTIONS_MAX / 2)

static const char full[] = "there are too many connections already: try again later";
static const char too_many[] = "this user has too many connections already: end some of them";

static bool is_view(const struct room_peer *peer)
{
        return peer->access == CONTROL_VIEW;
}

void room_count(struct room *room, const struct room_peer *peer, const struct room_peer *there)
{
        if (is_view(peer) != is_view(there))
                return;
        room->total++;
        room->others += there->access != CONTROL_OWN;
        room->readers += there->access == CONTROL_READ;
        room->same += there->uid == peer->uid;
}

const char *room_refuses(const struct room *room, const struct room_peer *peer)
{
        if (is_view(peer))
                return room->total >= ROOM_VIEW_CONNECTIONS_MAX ? full
                       : room->same >= VIEW_PLACES              ? too_many
                                                                : NULL;
        if (room->total >= ROOM_CONNECTIONS_MAX)
                return full;
        if (peer->access == CONTROL_OWN)
                return NULL;
        if (room->same >= USER_PLACES)
                return too_many;
        if (room->others >= ROOM_CONNECTIONS_MAX - OWNER_PLACES ||
            (peer->access == CONTROL_READ && room->readers >= READERS_MAX))
                return full;
        return NULL;
}

bool room_shares(const struct room_peer *peer, const struct room_peer *there)
{
        return there->access != CONTROL_OWN && is_view(peer) == is_view(there);
}

size_t room_input_max(const struct room_peer *peer)
{
        if (peer->access == CONTROL_OWN)
                return SIZE_MAX;
        return is_view(peer) ? ROOM_VIEW_INPUT_MAX : ROOM_INPUT_MAX;
}

size_t room_output_max(const struct room_peer *peer)
{
        if (peer->access == CONTROL_OWN)
                return SIZE_MAX;
        return is_view(peer) ? ROOM_VIEW_OUTPUT_MAX : ROOM_OUTPUT_MAX;
}
