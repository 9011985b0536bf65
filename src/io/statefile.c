/* SPDX-License-Identifier: MIT */
/* The state file, trusted only if nobody else can have written it. */
#include "io/statefile.h"
#include "base/fd.h"
#include "base/text.h"
#include "continuity/state.h"
#include "io/ledger_file.h"
#include "io/listen.h"
#include <fcntl.h>
#include <sys/file.h>

/* The file is written under its path with this suffix, and then exchanged. The old file stays under the
 * suffix: its space is reserved for the next write. */
#define BESIDE ".new"

#define STAT_BLOCK_BYTES 512 /* unit of st_blocks on all file systems */

static int check_trust(int fd, const char *path, struct stat *ret_status, char *why, size_t why_size)
{
        struct stat status;

        if (fstat(fd, &status) < 0) {
                snprintf(why, why_size, "cannot access '%s': %s", path, strerror(errno));
        } else if (!S_ISREG(status.st_mode)) {
                snprintf(why, why_size, "'%s' is not a regular file", path);
        } else if (status.st_uid != geteuid()) {
                snprintf(why, why_size, "'%s' is owned by user %u, not by sqmgr's user (%u)", path,
                         (unsigned)status.st_uid, (unsigned)geteuid());
        } else if (status.st_mode & (S_IWGRP | S_IWOTH)) {
                snprintf(why, why_size, "'%s' is writable by others (mode %04o)", path,
                         (unsigned)status.st_mode & 07777);
        } else {
                *ret_status = status;
                return STATEFILE_READ;
        }
        return STATEFILE_LOST;
}

static int refuse_open(int error, const char *path, char *why, size_t why_size)
{
        if (error == ENOENT) {
                snprintf(why, why_size, "'%s' does not exist", path);
                return STATEFILE_MISSING;
        }
        if (error == ELOOP) {
                snprintf(why, why_size, "'%s' is a symbolic link", path);
                return STATEFILE_LOST;
        }
        snprintf(why, why_size, "cannot open '%s': %s", path, strerror(error));
        /* The content is not lost: a later start can read the file. */
        return is_shortage(-error) ? -error : STATEFILE_LOST;
}

int statefile_read(const char *path, char **ret, size_t *ret_size, char *why, size_t why_size)
{
        struct stat status;

        /* Without O_NONBLOCK, opening a pipe would block forever. */
        _cleanup_close_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0)
                return refuse_open(errno, path, why, why_size);
        int r = check_trust(fd, path, &status, why, why_size);
        if (r != STATEFILE_READ)
                return r;
        r = fd_read_whole(fd, STATE_BYTES_MAX, ret, ret_size);
        if (r == -ENOMEM)
                return r;
        if (r == -EFBIG) {
                snprintf(why, why_size, "'%s' is too large for a state file of sqmgr", path);
                return STATEFILE_LOST;
        }
        if (r < 0) {
                snprintf(why, why_size, "cannot read '%s': %s", path, strerror(-r));
                return STATEFILE_LOST;
        }
        return STATEFILE_READ;
}

/* Opens the file to write, beside the state. Reuses the previous state if trusted, because its space is
 * allocated even if the disk is full. Otherwise creates a file, with *ret_status all 0. Returns a descriptor
 * or -errno. */
static int open_beside(const char *beside, struct stat *ret_status)
{
        char why[256];

        _cleanup_close_ int fd = open(beside, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd >= 0 && check_trust(fd, beside, ret_status, why, sizeof(why)) == STATEFILE_READ &&
            ret_status->st_nlink == 1)
                return TAKE_FD(fd);
        /* After a failed open for lack of descriptors or memory, keep the file and its space for a later
         * attempt. */
        if (fd < 0 && is_shortage(-errno))
                return -errno;
        if (unlink(beside) < 0 && errno != ENOENT)
                return -errno;
        *ret_status = (struct stat){0};
        int new_fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
        return new_fd < 0 ? -errno : new_fd;
}

/* Exchanges the files, so that the next write has space again. If that fails, or path is not a regular file,
 * replaces path. */
static int put_in_place(const char *beside, const char *path)
{
        struct stat status;

        if (lstat(path, &status) == 0 && S_ISREG(status.st_mode) &&
            renameat2(AT_FDCWD, beside, AT_FDCWD, path, RENAME_EXCHANGE) == 0)
                return 0;
        return rename(beside, path) < 0 ? -errno : 0;
}

/* Takes the lock of those that write the file: the one of an earlier sqmgr may still wait for the disk. The
 * lock file stays, so that they go in the order in which they came. Returns a descriptor or -errno. */
static int lock_writers(const char *path)
{
        _cleanup_free_ char *lock = text_format("%s.lock", path);

        if (!lock)
                return -ENOMEM;
        _cleanup_close_ int fd = open(lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
        return fd < 0 || flock(fd, LOCK_EX) < 0 ? -errno : TAKE_FD(fd);
}

static int sync_folder(const char *path)
{
        _cleanup_free_ char *folder = strndup(path, (size_t)(strrchr(path, '/') - path + 1));

        if (!folder)
                return -ENOMEM;
        _cleanup_close_ int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 || fdatasync(fd) < 0 ? -errno : 0;
}

static int write_file(const char *path, const uint8_t *bytes, size_t size, bool synced)
{
        _cleanup_free_ char *beside = text_format("%s" BESIDE, path);
        struct stat before = {0};

        if (!beside)
                return -ENOMEM;
        _cleanup_close_ int fd = open_beside(beside, &before);
        if (fd < 0)
                return fd;
        int r = fd_write_all(fd, bytes, size);
        if (r == 0 && before.st_size > (off_t)size && ftruncate(fd, (off_t)size) < 0)
                r = -errno;
        /* The umask may have removed our own permissions. */
        if (r == 0 && (before.st_mode & 07777) != 0600 && fchmod(fd, 0600) < 0)
                r = -errno;
        /* Reserve space for twice the state: a restart doubles the workers. */
        if (r == 0 && before.st_blocks * STAT_BLOCK_BYTES < (off_t)(2 * size))
                (void)fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)(2 * size));
        if (r == 0 && synced && fdatasync(fd) < 0)
                r = -errno;
        if (r == 0)
                r = put_in_place(beside, path);
        return r == 0 && synced ? sync_folder(path) : r;
}

/* No fsync(): the loop must not wait for a disk, and the content is useless after a reboot. A rename is
 * atomic for all readers during this boot. */
int statefile_write(const char *path, const uint8_t *bytes, size_t size)
{
        return write_file(path, bytes, size, false);
}

/* Only sqmgr's own directory is private: it may share those above with others. */
static int make_folders(const char *path)
{
        _cleanup_free_ char *folder = strdup(path);
        int r = 0;

        if (!folder)
                return -ENOMEM;
        for (char *at = strchr(folder + 1, '/'); at; at = strchr(at + 1, '/')) {
                *at = '\0';
                r = mkdir(folder, strchr(path + (at - folder) + 1, '/') ? 0755 : 0700) < 0 ? -errno : 0;
                *at = '/';
        }
        return r == -EEXIST ? 0 : r;
}

int statefile_write_synced(const char *path, bool makes_folders, const uint8_t *bytes, size_t size)
{
        _cleanup_close_ int lock_fd = lock_writers(path);

        if (lock_fd == -ENOENT && makes_folders) {
                int r = make_folders(path);
                lock_fd = r < 0 ? r : lock_writers(path);
        }
        return lock_fd < 0 ? lock_fd : write_file(path, bytes, size, true);
}

/* Copies a file that can be trusted; the copy of a missing file is none. */
static int copy_file(const char *from, const char *to)
{
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        char why[512];

        int r = statefile_read(from, &text, &size, why, sizeof(why));
        if (r == STATEFILE_READ)
                return statefile_write(to, (const uint8_t *)text, size);
        if (r == STATEFILE_MISSING)
                return unlink(to) < 0 && errno != ENOENT ? -errno : 0;
        return r < 0 ? r : -EPERM;
}

/* The state comes last, when the ledger is complete. */
static int move_state(const char *old, const char *path)
{
        char ledger[2][PATH_MAX + sizeof(LEDGER_SUFFIX)], error[512];
        _cleanup_close_ int lock_fd = -1;

        if (access(old, F_OK) < 0)
                return 0;
        snprintf(ledger[0], sizeof(ledger[0]), "%s" LEDGER_SUFFIX, old);
        snprintf(ledger[1], sizeof(ledger[1]), "%s" LEDGER_SUFFIX, path);
        int r = listener_lock(old, &lock_fd, error, sizeof(error));
        if (r == 0)
                r = copy_file(ledger[0], ledger[1]);
        if (r == 0)
                r = copy_file(old, path);
        if (r < 0)
                return r;
        (void)unlink(ledger[0]);
        return unlink(old) < 0 ? -errno : 1;
}

/* Replaces the link atomically. */
static int link_to(const char *path, const char *link)
{
        char beside[PATH_MAX];

        if ((size_t)snprintf(beside, sizeof(beside), "%s" BESIDE, link) >= sizeof(beside))
                return -ENAMETOOLONG;
        (void)unlink(beside);
        return symlink(path, beside) < 0 || rename(beside, link) < 0 ? -errno : 0;
}

int statefile_follow(const char *link, const char *path, char old[static PATH_MAX])
{
        ssize_t length = readlink(link, old, PATH_MAX - 1);

        old[MAX(length, (ssize_t)0)] = '\0';
        if (strcmp(old, path) == 0)
                return 0;
        int r = length > 0 ? move_state(old, path) : 0;
        int linked = link_to(path, link);
        return r != 0 ? r : linked;
}
