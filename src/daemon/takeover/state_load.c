/* SPDX-License-Identifier: MIT */
/* Reads the state that an earlier sqmgr left. */
#include "daemon/takeover/state_load.h"
#include "base/fd.h"
#include "continuity/state.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* Converts the result of state_unpack(). */
static int file_outcome(int r, const char *path, char *why, size_t why_size)
{
        static const char *const faults[] = {
                [STATE_TRUNCATED] = "is truncated",
                [STATE_GARBLED] = "is damaged, or is not a state file of sqmgr",
                [STATE_NEWER] = "was written by a later version of sqmgr",
        };

        if (r < 0)
                return r;
        if (r == STATE_READ)
                return STATEFILE_READ;
        snprintf(why, why_size, "'%s' %s", path, faults[r]);
        return STATEFILE_LOST;
}

int state_load(const char *path, const char *boot_id, usec_t now, struct state **ret, char *why,
               size_t why_size)
{
        _cleanup_free_ char *text = NULL;
        size_t length = 0;

        int r = statefile_read(path, &text, &length, why, why_size);
        if (r != STATEFILE_READ)
                return r;
        r = state_unpack((const uint8_t *)text, length, boot_id, now, ret);
        return file_outcome(r, path, why, why_size);
}

const char *state_load_boot_id(char boot_id[static BOOT_ID_MAX])
{
        ssize_t length = fd_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot_id, BOOT_ID_MAX);

        boot_id[length < 0 ? 0 : strcspn(boot_id, "\n")] = '\0';
        return boot_id;
}
