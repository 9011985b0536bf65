/* SPDX-License-Identifier: MIT */
/* Where files of ours stand: may others put something else in their place? */
#include "io/place.h"
#include "base/macro.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Of one that leads to another, as many as the kernel follows, and the path itself. */
#define LINKS_MAX 41

static void name_directory(int fd, char *where, size_t size)
{
        char link[64];

        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, where, size - 1);
        where[MAX(length, 0)] = '\0';
}

static char *directory_of(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? strndup(path, MAX((size_t)(slash - path), (size_t)1)) : strdup(".");
}

static int judge(const struct stat *status, bool last)
{
        if (status->st_uid != 0 && status->st_uid != geteuid())
                return PLACE_OWNER;
        if ((status->st_mode & (S_IWGRP | S_IWOTH)) && (last || !(status->st_mode & S_ISVTX)))
                return PLACE_WRITABLE;
        return PLACE_SAFE;
}

/* By descriptors, from below: what is moved meanwhile is not looked at by a name that means another thing.
 * exists: path itself is there, and not another user's, so that the sticky bit guards it. */
static int check_directories(const char *path, bool exists, char *where, size_t size)
{
        static const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
        _cleanup_free_ char *directory = directory_of(path);
        struct stat status, above;

        if (!directory)
                return -ENOMEM;
        _cleanup_close_ int fd = open(directory, flags);
        if (fd < 0 || fstat(fd, &status) < 0)
                return -errno;
        for (bool last = !exists;; last = false) {
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

static int check_links(const char *path, unsigned links, char *where, size_t size);

/* path: what it leads to is looked at, too, where it is a link. */
static int check_link(const char *path, unsigned links, char *where, size_t size)
{
        char target[PATH_MAX];
        _cleanup_free_ char *joined = NULL;
        struct stat status;

        if (lstat(path, &status) < 0)
                return -errno;
        if (!S_ISLNK(status.st_mode))
                return PLACE_SAFE;
        if (status.st_uid != 0 && status.st_uid != geteuid()) {
                snprintf(where, size, "%s", path);
                return PLACE_LINK;
        }
        int r = check_directories(path, true, where, size);
        if (r != PLACE_SAFE)
                return r;
        ssize_t length = readlink(path, target, sizeof(target) - 1);
        if (length < 0)
                return -errno;
        target[length] = '\0';
        const char *slash = strrchr(path, '/');
        if (target[0] == '/' || !slash)
                return check_links(target, links, where, size);
        if (asprintf(&joined, "%.*s/%s", (int)(slash - path), path, target) < 0) {
                joined = NULL;
                return -ENOMEM;
        }
        return check_links(joined, links, where, size);
}

/* Each beginning of path may be a link. */
static int check_links(const char *path, unsigned links, char *where, size_t size)
{
        _cleanup_free_ char *text = strdup(path);
        int r = PLACE_SAFE;

        if (!text)
                return -ENOMEM;
        if (links == 0)
                return -ELOOP;
        for (char *p = text; *p != '\0' && r == PLACE_SAFE;) {
                p += strspn(p, "/");
                p += strcspn(p, "/");
                char behind = *p;
                *p = '\0';
                r = check_link(text, links - 1, where, size);
                *p = behind;
        }
        return r != PLACE_SAFE ? r : check_directories(path, true, where, size);
}

int place_check(const char *path, char *where, size_t size)
{
        _cleanup_free_ char *directory = directory_of(path);

        if (!directory)
                return -ENOMEM;
        int r = check_links(directory, LINKS_MAX, where, size);
        return r != PLACE_SAFE ? r : check_directories(path, false, where, size);
}

int place_check_file(const char *path, char *where, size_t size)
{
        return check_links(path, LINKS_MAX, where, size);
}

static int explain(int r, const char *path, const char *where, char *why, size_t size)
{
        if (r == PLACE_OWNER)
                snprintf(why, size,
                         "'%s': the directory '%s' belongs to another user, who could put something else "
                         "there",
                         path, where);
        else if (r == PLACE_LINK)
                snprintf(why, size,
                         "'%s': the link '%s' belongs to another user, who could have it lead elsewhere",
                         path, where);
        else if (r == PLACE_WRITABLE)
                snprintf(why, size,
                         "'%s': others may write to the directory '%s', and put something else there", path,
                         where);
        else if (r < 0)
                snprintf(why, size, "'%s': cannot look at its directory: %s", path, strerrordesc_np(-r));
        return r > 0 ? -EPERM : r;
}

int place_explain(const char *path, char *why, size_t size)
{
        char where[256];

        return explain(place_check(path, where, sizeof(where)), path, where, why, size);
}

int place_explain_file(const char *path, char *why, size_t size)
{
        char where[256];

        return explain(place_check_file(path, where, sizeof(where)), path, where, why, size);
}
