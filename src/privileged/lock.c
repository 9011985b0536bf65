/* SPDX-License-Identifier: MIT */
/* A lock file that contains the pid of its holder. */
#include "privileged/lock.h"
#include "base/fd.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

int lock_take(const char *path, int *ret_fd, pid_t *ret_holder)
{
        /* Mode 0600: anyone who can open the file could lock it. */
        _cleanup_close_ int fd =
                open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        struct stat status;
        char text[32];

        if (fd < 0 || fstat(fd, &status) < 0)
                return -errno;
        if (!S_ISREG(status.st_mode))
                return -EEXIST;
        /* Unlike flock() or F_OFD_SETLK, this lock belongs to the process: copies of fd in its children do
         * not hold it. */
        if (fcntl(fd, F_SETLK, &lock) < 0) {
                if ((errno != EAGAIN && errno != EACCES) || fcntl(fd, F_GETLK, &lock) < 0)
                        return -errno;
                *ret_holder = MAX(lock.l_pid, 0);
                return LOCK_HELD;
        }

        int length = snprintf(text, sizeof(text), "%d\n", (int)getpid());
        /* On a full disk the pid may not fit. Overwriting the previous holder's pid needs no new space. */
        bool reported = pwrite(fd, text, (size_t)length, 0) == length;
        (void)!ftruncate(fd, reported ? length : 0);
        *ret_fd = TAKE_FD(fd);
        return LOCK_TAKEN;
}

bool lock_is_in_place(int fd, const char *path)
{
        struct stat locked, there;

        return fstat(fd, &locked) == 0 && lstat(path, &there) == 0 && locked.st_dev == there.st_dev &&
               locked.st_ino == there.st_ino;
}
