/* SPDX-License-Identifier: MIT */
/* The user that reader processes run as. */
#include "io/reader_user.h"
#include "base/macro.h"

int reader_user(uid_t *ret_uid, gid_t *ret_gid)
{
        *ret_uid = geteuid() == 0 ? 65534 : geteuid();
        *ret_gid = geteuid() == 0 ? 65534 : getegid();
        return 0;
}
