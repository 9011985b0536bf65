/* SPDX-License-Identifier: MIT */
/* Where files of ours stand: may others put something else in their place? */
#include "io/place.h"
#include "base/macro.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void name_directory(int fd, char *where, size_t size)
{
        char link[64];

        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, where, size - 1);
        where[MAX(length, 0)] = '\0';
}

static int judge(const struct stat *status, bool last)
{
        if (status->st_uid != 0 && status->st_uid != geteuid())
                return PLACE_OWNER;
        if ((status->st_mode & (S_IWGRP | S_IWOTH)) && (last || !(status->st_mode & S_ISVTX)))
                return PLACE_WRITABLE;
        return PLACE_SAFE;
}

/* By descriptors, from below: what is moved meanwhile is not looked at by a name that means another thing. */
int place_check(const char *path, char *where, size_t size)
{
        static const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
        _cleanup_free_ char *directory = strdup(path);
        char *slash = directory ? strrchr(directory, '/') : NULL;
        struct stat status, above;

        if (!directory)
                return -ENOMEM;
        if (slash)
                slash[slash == directory] = '\0';
        _cleanup_close_ int fd = open(slash ? directory : ".", flags);
        if (fd < 0 || fstat(fd, &status) < 0)
                return -errno;
        for (bool last = true;; last = false) {
                int r = judge(&status, last);
                if (r != PLACE_SAFE) {
                        name_directory(fd, where, size);
                        return r;
                }
                int parent = openat(fd, "..", flags);
                if (parent < 0)
                        return -errno;
                close_fd(fd);
                fd = parent;
                if (fstat(fd, &above) < 0)
                        return -errno;
                if (above.st_dev == status.st_dev && above.st_ino == status.st_ino)
                        return PLACE_SAFE;
                status = above;
        }
}

int place_explain(const char *path, char *why, size_t size)
{
        char where[256];
        int r = place_check(path, where, sizeof(where));

        if (r == PLACE_OWNER)
                snprintf(why, size,
                         "'%s': the directory '%s' belongs to another user, who could put something else "
                         "there",
                         path, where);
        else if (r == PLACE_WRITABLE)
                snprintf(why, size,
                         "'%s': others may write to the directory '%s', and put something else there", path,
                         where);
        else if (r < 0)
                snprintf(why, size, "'%s': cannot look at its directory: %s", path, strerrordesc_np(-r));
        return r > 0 ? -EPERM : r;
}
