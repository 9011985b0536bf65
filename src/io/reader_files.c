/* SPDX-License-Identifier: MIT */
/* The user of the readers, and their files for TLS, which sqmgr reads for them. */
#include "io/reader_files.h"
#include "base/fd.h"
#include "io/users.h"
#include "queries/configuration.h"
#include <fcntl.h>
#include <unistd.h>

#define READER_USER "sqmgr-reader"
/* The kernel's overflow uid, which exists on every system. */
#define NOBODY 65534

void reader_user(uid_t *ret_uid, gid_t *ret_gid)
{
        *ret_uid = geteuid();
        *ret_gid = getegid();
        /* A user sqmgr-reader with the rights of root would be no sandbox. */
        if (*ret_uid == 0 && (!users_find(READER_USER, ret_uid, ret_gid) || *ret_uid == 0 || *ret_gid == 0)) {
                *ret_uid = NOBODY;
                *ret_gid = NOBODY;
        }
}

int reader_files_read(struct reader_configuration *configuration)
{
        FOREACH_ELEMENT(file, configuration->files) {
                if (!file->name)
                        continue;
                _cleanup_close_ int fd = open(file->name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
                int r = fd < 0 ? -errno
                               : fd_read_whole(fd, READER_FILE_BYTES_MAX, &file->bytes, &file->length);

                if (r < 0)
                        return r;
        }
        return 0;
}
