/* SPDX-License-Identifier: MIT */
/* The user that sqmgr-reader runs as; see the header. */
#include "io/reader_user.h"
#include "base/macro.h"
#include "io/users.h"

#define READER_USER "sqmgr-reader"
/* The kernel's overflow uid, which exists on every system. */
#define NOBODY 65534

int reader_user(uid_t *ret_uid, gid_t *ret_gid)
{
        uid_t uid = geteuid();
        gid_t gid = getegid();

        /* A user sqmgr-reader with the rights of root would be no sandbox. */
        if (uid == 0 && (!users_find(READER_USER, &uid, &gid) || uid == 0 || gid == 0)) {
                uid = NOBODY;
                gid = NOBODY;
        }
        *ret_uid = uid;
        *ret_gid = gid;
        return 0;
}
