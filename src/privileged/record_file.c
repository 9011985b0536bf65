/* SPDX-License-Identifier: MIT */
/* The file of the record; see the header. */
#include "privileged/record_file.h"
#include "base/fd.h"
#include <fcntl.h>
#include <sys/stat.h>

int record_file_open(const char *path)
{
        struct stat status;

        /* Without O_NONBLOCK, opening a pipe would block forever. */
        _cleanup_close_ int fd =
                open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
        if (fd < 0)
                return -errno;
        if (fstat(fd, &status) < 0)
                return -errno;
        if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || status.st_nlink != 1 ||
            (status.st_mode & 077) != 0)
                return -EPERM;
        return TAKE_FD(fd);
}
