/* SPDX-License-Identifier: MIT */
/* How much of the control socket one may have. */
#include "daemon/api/room.h"

/* Of the connections: those that the owner alone may have, those that one other user may, and those of all
 * who may only read. */
#define OWNER_PLACES 16
#define USER_PLACES  64
#define READERS_MAX  (ROOM_CONNECTIONS_MAX / 2)

void room_count(struct room *room, const struct room_peer *peer, const struct room_peer *there)
{
        room->total++;
        room->others += there->access != CONTROL_OWN;
        room->readers += there->access == CONTROL_READ;
        room->same += there->uid == peer->uid;
}

const char *room_refuses(const struct room *room, const struct room_peer *peer)
{
        static const char full[] = "there are too many connections already: try again later";

        if (room->total >= ROOM_CONNECTIONS_MAX)
                return full;
        if (peer->access == CONTROL_OWN)
                return NULL;
        if (room->same >= USER_PLACES)
                return "this user has too many connections already: end some of them";
        if (room->others >= ROOM_CONNECTIONS_MAX - OWNER_PLACES ||
            (peer->access == CONTROL_READ && room->readers >= READERS_MAX))
                return full;
        return NULL;
}
