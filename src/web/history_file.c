/* SPDX-License-Identifier: MIT */
/* The file that keeps the history across restarts. */
#include "web/history_file.h"
#include "base/parse.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define CHUNK 65536

struct history_file {
        int fd;
        bool has_space; /* disk space for the whole file is allocated */
        bool fails;
        char path[]; /* for messages */
};

static int refuse(char *why, const char *path, const char *what)
{
        snprintf(why, HISTORY_FILE_WHY_MAX,
                 "'%s' %s; the history is only kept in memory and lost when sqmgr-web ends", path, what);
        return HISTORY_FILE_REFUSED;
}

static int refuse_errno(char *why, const char *path, const char *what, int error)
{
        char text[256];

        snprintf(text, sizeof(text), "%s: %s", what, strerror(error));
        return refuse(why, path, text);
}

/* Checks owner, mode and lock: no other user or program may write the file. */
static int check(int fd, const char *path, char *why, off_t *ret_size)
{
        struct stat status;

        if (fstat(fd, &status) < 0)
                return refuse_errno(why, path, "cannot be examined", errno);
        if (!S_ISREG(status.st_mode))
                return refuse(why, path, "is not a regular file");
        if (status.st_uid != geteuid())
                return refuse(why, path, "belongs to another user");
        if (status.st_mode & (S_IWGRP | S_IWOTH))
                return refuse(why, path, "is writable by other users");
        if (status.st_nlink != 1)
                return refuse(why, path, "has more than one hard link");
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                return errno == EWOULDBLOCK ? refuse(why, path, "is used by another program")
                                            : refuse_errno(why, path, "cannot be locked", errno);
        *ret_size = status.st_size;
        return HISTORY_FILE_READ;
}

/* Blocks of zeros are not copied: untouched memory of bytes needs no pages. Returns 0 or -errno. */
static int read_bytes(int fd, uint8_t *bytes, size_t size)
{
        uint8_t chunk[CHUNK];
        size_t at = HISTORY_HEADER;

        while (at < size) {
                ssize_t length = pread(fd, chunk, MIN(sizeof(chunk), size - at), (off_t)at);

                if (length < 0 && errno == EINTR)
                        continue;
                if (length <= 0)
                        return length == 0 ? 0 : -errno;
                if (!history_is_zero(chunk, (size_t)length))
                        memcpy(bytes + at, chunk, (size_t)length);
                at += (size_t)length;
        }
        return 0;
}

/* Returns 0 or -errno. */
static int write_at(int fd, const uint8_t *bytes, size_t offset, size_t size)
{
        while (size > 0) {
                ssize_t length = pwrite(fd, bytes + offset, size, (off_t)offset);

                if (length < 0 && errno == EINTR)
                        continue;
                if (length <= 0)
                        return length == 0 ? -EIO : -errno;
                offset += (size_t)length;
                size -= (size_t)length;
        }
        return 0;
}

/* Writes the header last: after a crash before that, the file counts as empty. Returns 0 or -errno. */
static int begin(int fd, const uint8_t *bytes)
{
        if (ftruncate(fd, 0) < 0 || ftruncate(fd, (off_t)HISTORY_BYTES) < 0)
                return -errno;
        return write_at(fd, bytes, 0, HISTORY_HEADER);
}

static int read_history(int fd, const char *path, struct history *history, char *why)
{
        int r = read_bytes(fd, history_bytes(history), HISTORY_BYTES);
        if (r < 0) {
                /* Drop a partially read history, which was not validated. */
                memset(history_bytes(history) + HISTORY_HEADER, 0, HISTORY_BYTES - HISTORY_HEADER);
                return refuse_errno(why, path, "cannot be read", -r);
        }
        /* Extend a truncated file: the missing part is 0. */
        if (ftruncate(fd, (off_t)HISTORY_BYTES) < 0)
                return refuse_errno(why, path, "cannot be resized", errno);
        size_t n_damaged = history_adopt(history);
        if (n_damaged == 0)
                return HISTORY_FILE_READ;
        snprintf(why, HISTORY_FILE_WHY_MAX, "history '%s': %zu damaged value%s dropped", path, n_damaged,
                 plural(n_damaged));
        return HISTORY_FILE_DAMAGED;
}

static int load(int fd, const char *path, off_t size, struct history *history, char *why)
{
        uint8_t header[64];

        assert(HISTORY_HEADER <= sizeof(header));
        ssize_t length = pread(fd, header, HISTORY_HEADER, 0);
        if (length < 0)
                return refuse_errno(why, path, "cannot be read", errno);
        if ((size_t)length == HISTORY_HEADER && memcmp(header, history_bytes(history), HISTORY_HEADER) == 0)
                return read_history(fd, path, history, why);
        bool is_other = (size_t)length == HISTORY_HEADER &&
                        memcmp(header, history_bytes(history), HISTORY_MAGIC) == 0;
        bool unfinished =
                size == 0 || (size == (off_t)HISTORY_BYTES && history_is_zero(header, (size_t)length));
        if (!is_other && !unfinished)
                return refuse(why, path, "is not a history of sqmgr-web and is left unchanged");
        int r = begin(fd, history_bytes(history));
        if (r < 0)
                return refuse_errno(why, path, "cannot be written", -r);
        if (!is_other)
                return HISTORY_FILE_READ;
        snprintf(why, HISTORY_FILE_WHY_MAX,
                 "history '%s' was written by another version of sqmgr-web; a new history starts", path);
        return HISTORY_FILE_ANEW;
}

int history_file_open(const char *path, struct history *history, struct history_file **ret,
                      char why[static HISTORY_FILE_WHY_MAX])
{
        off_t size;

        *ret = NULL;
        _cleanup_history_file_ struct history_file *file = calloc(1, sizeof(*file) + strlen(path) + 1);
        if (!file)
                return -ENOMEM;
        memcpy(file->path, path, strlen(path) + 1);
        /* Without O_NONBLOCK, opening a FIFO at this path could block forever. */
        file->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
        if (file->fd < 0)
                return errno == ELOOP ? refuse(why, path, "is a symbolic link")
                                      : refuse_errno(why, path, "cannot be opened", errno);
        int r = check(file->fd, path, why, &size);
        if (r == HISTORY_FILE_READ)
                r = load(file->fd, path, size, history, why);
        if (r != HISTORY_FILE_REFUSED)
                *ret = TAKE_PTR(file);
        return r;
}

struct history_file *history_file_close(struct history_file *file)
{
        if (file)
                file->fd = close_fd(file->fd);
        free(file);
        return NULL;
}

/* Allocates the space once, so that the history has room even if the disk fills up later. On file systems
 * without fallocate() (EOPNOTSUPP), each write may fail. Returns 0 or -errno. */
static int allocate_space(struct history_file *file)
{
        while (!file->has_space) {
                file->has_space = fallocate(file->fd, 0, 0, (off_t)HISTORY_BYTES) == 0 || errno == EOPNOTSUPP;
                if (!file->has_space && errno != EINTR)
                        return -errno;
        }
        return 0;
}

static int write_changes(struct history_file *file, struct history *history)
{
        const struct history_change *changes;
        size_t n = history_changes(history, &changes);
        int r = allocate_space(file);

        for (size_t i = 0; r == 0 && i < n; i++)
                r = write_at(file->fd, history_bytes(history), changes[i].offset, changes[i].size);
        return r;
}

enum history_file_change history_file_save(struct history_file *file, struct history *history,
                                           char why[static HISTORY_FILE_WHY_MAX])
{
        bool failed = file->fails;
        int r = write_changes(file, history);

        file->fails = r < 0;
        if (r == 0)
                history_saved(history);
        if (file->fails == failed)
                return HISTORY_FILE_AS_BEFORE;
        if (r < 0)
                snprintf(why, HISTORY_FILE_WHY_MAX,
                         "cannot write the history to '%s': %s; the history continues in memory", file->path,
                         strerror(-r));
        else
                snprintf(why, HISTORY_FILE_WHY_MAX, "history '%s' is writable again", file->path);
        return r < 0 ? HISTORY_FILE_FAILS : HISTORY_FILE_WORKS;
}
