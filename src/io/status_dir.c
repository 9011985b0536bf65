/* SPDX-License-Identifier: MIT */
/* The status directories, where workers write their heartbeats; see the header. */
#include "io/status_dir.h"
#include "base/fd.h"
#include "io/clock.h"
#include "io/proc.h"
#include "model/worker.h"
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>

/* Limit of one scan: any worker can create a million files. */
#define NAMES_MAX 1024
/* Temporary files older than this are abandoned. */
#define BESIDE_USEC USEC_PER_HOUR

/* Opens one name that workers may have made: follows no links and no mounts, and stays below dir_fd. */
static int open_beneath(int dir_fd, const char *name, unsigned flags)
{
        const struct open_how how = {
                .flags = flags | O_CLOEXEC | O_NOFOLLOW,
                .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
        };
        long fd = syscall(SYS_openat2, dir_fd, name, &how, sizeof(how));

        return fd < 0 ? -errno : (int)fd;
}

static int open_ours(int parent_fd, const char *name)
{
        struct stat status;

        _cleanup_close_ int fd = open_beneath(parent_fd, name, O_RDONLY | O_DIRECTORY);
        if (fd < 0)
                return fd;
        if (fstat(fd, &status) < 0)
                return -errno;
        return status.st_uid != geteuid() ? -EPERM : TAKE_FD(fd);
}

static int open_parent(const char *parent)
{
        int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

        return fd < 0 ? -errno : fd;
}

int status_dir_open(const char *parent, const char *fleet)
{
        _cleanup_close_ int parent_fd = open_parent(parent);

        return parent_fd < 0 ? parent_fd : open_ours(parent_fd, fleet);
}

int status_dir_make(const char *parent, const char *fleet)
{
        if (mkdir(parent, 0700) < 0 && errno != EEXIST)
                return -errno;
        _cleanup_close_ int parent_fd = open_parent(parent);
        if (parent_fd < 0)
                return parent_fd;
        return mkdirat(parent_fd, fleet, 0700) < 0 && errno != EEXIST ? -errno : open_ours(parent_fd, fleet);
}

static bool is_pid(const char *name)
{
        return name[strspn(name, "0123456789")] == '\0';
}

static bool process_is_gone(const char *pid)
{
        long number = strtol(pid, NULL, 10);

        return number <= 0 || number > INT32_MAX || !probe_pid((pid_t)number);
}

static bool is_given_up(int dir_fd, const char *name)
{
        struct stat status;

        if (is_pid(name) || (name[0] == '.' && is_pid(name + 1)))
                return process_is_gone(name + (name[0] == '.'));
        return fstatat(dir_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
               usec_add((usec_t)status.st_mtim.tv_sec * USEC_PER_SEC, BESIDE_USEC) <
                       clock_now(CLOCK_REALTIME);
}

void status_dir_sweep(int dir_fd)
{
        _cleanup_close_ int own_fd = open_beneath(dir_fd, ".", O_RDONLY | O_DIRECTORY);
        _cleanup_closedir_ DIR *dir = own_fd < 0 ? NULL : fdopendir(own_fd);
        const struct dirent *entry;

        if (!dir)
                return;
        (void)TAKE_FD(own_fd);
        for (unsigned n = 0; n < NAMES_MAX && (entry = readdir(dir)); n++)
                if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                    is_given_up(dir_fd, entry->d_name))
                        (void)unlinkat(dir_fd, entry->d_name, 0);
}

/* Opening must not wait for the other end of a pipe, nor for the holder of a lease on the file. */
static enum heartbeat_fault open_file(int dir_fd, pid_t pid, int *ret_fd)
{
        char name[16];

        snprintf(name, sizeof(name), "%d", (int)pid);
        *ret_fd = open_beneath(dir_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        switch (*ret_fd) {
        case -ENOENT:
                return HEARTBEAT_FAULT_MISSING;
        case -ELOOP: /* a link */
        case -EXDEV: /* a mount */
        case -ENXIO: /* a socket */
                return HEARTBEAT_FAULT_KIND;
        default:
                return *ret_fd < 0 ? HEARTBEAT_FAULT_UNREADABLE : HEARTBEAT_FAULT_NONE;
        }
}

static bool is_changed(const struct stat *before, const struct stat *after)
{
        return before->st_size != after->st_size || before->st_mtim.tv_sec != after->st_mtim.tv_sec ||
               before->st_mtim.tv_nsec != after->st_mtim.tv_nsec;
}

int status_file_read(int dir_fd, pid_t pid, char text[static STATUS_FILE_MAX_BYTES + 1], size_t *ret_length)
{
        _cleanup_close_ int fd = -1;
        struct stat before, after;

        enum heartbeat_fault fault = open_file(dir_fd, pid, &fd);
        if (fault != HEARTBEAT_FAULT_NONE)
                return fault;
        if (fstat(fd, &before) < 0)
                return HEARTBEAT_FAULT_UNREADABLE;
        if (!S_ISREG(before.st_mode))
                return HEARTBEAT_FAULT_KIND;
        if (before.st_size > (off_t)STATUS_FILE_MAX_BYTES)
                return HEARTBEAT_FAULT_SIZE;
        ssize_t length = fd_read_start(fd, text, STATUS_FILE_MAX_BYTES + 1);
        if (length < 0 || fstat(fd, &after) < 0)
                return HEARTBEAT_FAULT_UNREADABLE;
        if (length != before.st_size || is_changed(&before, &after))
                return HEARTBEAT_FAULT_CHANGES;
        *ret_length = (size_t)length;
        return HEARTBEAT_FAULT_NONE;
}

bool status_file_is_begun(int dir_fd, pid_t pid)
{
        struct stat status;
        char name[16];

        snprintf(name, sizeof(name), ".%d", (int)pid);
        return fstatat(dir_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

void status_file_remove(int dir_fd, pid_t pid)
{
        char name[16];

        snprintf(name, sizeof(name), "%d", (int)pid);
        (void)unlinkat(dir_fd, name, 0);
}
