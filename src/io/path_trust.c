/* SPDX-License-Identifier: MIT */
/* Checks that nobody but root and ourselves can replace a file of ours. */
#include "io/path_trust.h"
#include "base/macro.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The maximum chain of links that the kernel follows, plus the path itself. */
#define LINKS_MAX 41

/* Names are truncated to this size in messages. */
#define NAME_SIZE 256

enum { PATH_TRUST_SAFE, PLACE_UNSAFE };

static void name_directory(int fd, char name[static NAME_SIZE])
{
        char link[64];

        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, name, NAME_SIZE - 1);
        name[MAX(length, 0)] = '\0';
}

static char *directory_of(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? strndup(path, MAX((size_t)(slash - path), (size_t)1)) : strdup(".");
}

/* The buffer for the sentence about an unsafe place. */
struct check {
        const char *path; /* as given by the caller */
        char *why;
        size_t size;
};

static bool is_foreign(const struct stat *status)
{
        return status->st_uid != 0 && status->st_uid != geteuid();
}

/* Returns PATH_TRUST_SAFE, or PLACE_UNSAFE with the sentence written. */
static int judge(const struct check *check, int fd, const struct stat *status, bool last)
{
        char name[NAME_SIZE];
        bool writable = (status->st_mode & (S_IWGRP | S_IWOTH)) && (last || !(status->st_mode & S_ISVTX));

        if (!is_foreign(status) && !writable)
                return PATH_TRUST_SAFE;
        name_directory(fd, name);
        snprintf(check->why, check->size,
                 is_foreign(status) ? "'%s': directory '%s' is owned by another user, who can replace files "
                                      "there; change its owner or use another directory"
                                    : "'%s': directory '%s' is writable by others, who can replace files "
                                      "there; change its mode or use another directory",
                 check->path, name);
        return PLACE_UNSAFE;
}

/* Goes upward by descriptors, so a concurrent rename cannot redirect the check. exists: path exists and
 * belongs to nobody else, so a sticky bit protects it. */
static int check_directories(const struct check *check, const char *path, bool exists)
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
                int r = judge(check, fd, &status, last);
                if (r != PATH_TRUST_SAFE)
                        return r;
                int parent = openat(fd, "..", flags);
                if (parent < 0)
                        return -errno;
                close_fd(fd);
                fd = parent;
                if (fstat(fd, &above) < 0)
                        return -errno;
                if (above.st_dev == status.st_dev && above.st_ino == status.st_ino)
                        return PATH_TRUST_SAFE;
                status = above;
        }
}

static int check_links(const struct check *check, const char *path, unsigned links);

/* Checks path and, if path is a link, its target. */
static int check_link(const struct check *check, const char *path, unsigned links)
{
        char target[PATH_MAX];
        _cleanup_free_ char *joined = NULL;
        struct stat status;

        if (lstat(path, &status) < 0)
                return -errno;
        if (!S_ISLNK(status.st_mode))
                return PATH_TRUST_SAFE;
        if (is_foreign(&status)) {
                snprintf(check->why, check->size,
                         "'%s': link '%.*s' is owned by another user, who can redirect it; change its owner "
                         "or use another path",
                         check->path, NAME_SIZE - 1, path);
                return PLACE_UNSAFE;
        }
        int r = check_directories(check, path, true);
        if (r != PATH_TRUST_SAFE)
                return r;
        ssize_t length = readlink(path, target, sizeof(target) - 1);
        if (length < 0)
                return -errno;
        target[length] = '\0';
        const char *slash = strrchr(path, '/');
        if (target[0] == '/' || !slash)
                return check_links(check, target, links);
        if (asprintf(&joined, "%.*s/%s", (int)(slash - path), path, target) < 0) {
                joined = NULL;
                return -ENOMEM;
        }
        return check_links(check, joined, links);
}

/* Each prefix of path may be a link. */
static int check_links(const struct check *check, const char *path, unsigned links)
{
        _cleanup_free_ char *text = strdup(path);
        int r = PATH_TRUST_SAFE;

        if (!text)
                return -ENOMEM;
        if (links == 0)
                return -ELOOP;
        for (char *p = text; *p != '\0' && r == PATH_TRUST_SAFE;) {
                p += strspn(p, "/");
                p += strcspn(p, "/");
                char behind = *p;
                *p = '\0';
                r = check_link(check, text, links - 1);
                *p = behind;
        }
        return r != PATH_TRUST_SAFE ? r : check_directories(check, path, true);
}

static int finish(const struct check *check, int r)
{
        if (r < 0)
                snprintf(check->why, check->size, "'%s': cannot check the directory: %s", check->path,
                         strerrordesc_np(-r));
        return r == PLACE_UNSAFE ? -EPERM : r;
}

int path_trust_explain(const char *path, char *why, size_t size)
{
        const struct check check = {.path = path, .why = why, .size = size};
        _cleanup_free_ char *directory = directory_of(path);
        int r = directory ? check_links(&check, directory, LINKS_MAX) : -ENOMEM;

        return finish(&check, r == PATH_TRUST_SAFE ? check_directories(&check, path, false) : r);
}

int path_trust_explain_file(const char *path, char *why, size_t size)
{
        const struct check check = {.path = path, .why = why, .size = size};

        return finish(&check, check_links(&check, path, LINKS_MAX));
}
