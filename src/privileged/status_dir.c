/* SPDX-License-Identifier: MIT */
/* The status directories, where workers write their heartbeats; see the header. */
#include "privileged/status_dir.h"
#include "base/fd.h"
#include "io/clock.h"
#include "model/worker.h"
#include "privileged/probe.h"
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Limit of one scan: any worker can create a million files. */
#define NAMES_MAX 1024
/* Temporary files older than this are abandoned. */
#define BESIDE_USEC USEC_PER_HOUR
/* A concurrent start or cleanup may create or remove a directory after its lookup. */
#define MAKE_TRIES 8

/* Opens one untrusted name: follows no links and no mounts, and stays below dir_fd. */
static int open_beneath(int dir_fd, const char *name, unsigned flags)
{
        const struct open_how how = {
                .flags = flags | O_CLOEXEC | O_NOFOLLOW,
                .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
        };
        long fd = syscall(SYS_openat2, dir_fd, name, &how, sizeof(how));

        return fd < 0 ? -errno : (int)fd;
}

static int check_ours(int fd, struct stat *ret)
{
        if (fstat(fd, ret) < 0)
                return -errno;
        return (ret->st_uid == 0 || ret->st_uid == geteuid()) && !(ret->st_mode & (S_IWGRP | S_IWOTH))
                       ? 0
                       : -EPERM;
}

/* make: create the parent if missing, and let others pass through it. */
static int open_parent(const char *parent, bool make)
{
        _cleanup_free_ char *above = strdup(parent);
        char *slash = above ? strrchr(above, '/') : NULL;
        struct stat status;

        if (!slash)
                return above ? -EINVAL : -ENOMEM;
        const char *name = parent + (slash - above) + 1;
        slash[slash == above] = '\0';
        _cleanup_close_ int above_fd = open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (above_fd < 0)
                return -errno;
        int r = check_ours(above_fd, &status);
        if (r < 0)
                return r;
        if (make && mkdirat(above_fd, name, 0711) < 0 && errno != EEXIST)
                return -errno;
        _cleanup_close_ int fd = open_beneath(above_fd, name, O_RDONLY | O_DIRECTORY);
        if (fd < 0)
                return fd;
        r = check_ours(fd, &status);
        /* Independent of the umask. */
        if (r == 0 && make && (status.st_mode & 0711) != 0711 && fchmod(fd, 0711) < 0)
                r = -errno;
        return r < 0 ? r : TAKE_FD(fd);
}

/* Returns false for a name of dots only: "." and ".." are existing directories. */
static bool names_a_place(const char *fleet)
{
        return fleet[strspn(fleet, ".")] != '\0';
}

/* With -ENOENT, name is the name under which to create the directory. */
static int find(int parent_fd, const char *fleet, uid_t uid, struct status_dir *ret,
                char name[static STATUS_NAME_MAX])
{
        struct stat status;

        snprintf(name, STATUS_NAME_MAX, "%s@%u", fleet, (unsigned)uid);
        _cleanup_close_ int fd = open_beneath(parent_fd, name, O_RDONLY | O_DIRECTORY);
        if (fd == -ENOENT && names_a_place(fleet)) {
                snprintf(name, STATUS_NAME_MAX, "%s", fleet);
                fd = open_beneath(parent_fd, name, O_RDONLY | O_DIRECTORY);
        }
        if (fd < 0)
                return fd;
        if (fstat(fd, &status) < 0)
                return -errno;
        *ret = (struct status_dir){.fd = TAKE_FD(fd), .owner = status.st_uid};
        return 0;
}

int status_dir_open(const char *parent, const char *fleet, uid_t uid, struct status_dir *ret)
{
        char name[STATUS_NAME_MAX];

        *ret = STATUS_DIR_NONE;
        _cleanup_close_ int parent_fd = open_parent(parent, false);
        return parent_fd < 0 ? parent_fd : find(parent_fd, fleet, uid, ret, name);
}

void status_dir_close(struct status_dir *dir)
{
        dir->fd = close_fd(dir->fd);
}

/* Creates the directory under a temporary name that no fleet can have, so it appears atomically. */
static int make(int parent_fd, const char *name, uid_t uid, gid_t gid)
{
        char beside[16];

        snprintf(beside, sizeof(beside), "@%d", (int)getpid());
        /* Left by a killed process that had our pid. */
        (void)unlinkat(parent_fd, beside, AT_REMOVEDIR);
        if (mkdirat(parent_fd, beside, 0700) < 0)
                return -errno;
        _cleanup_close_ int fd = open_beneath(parent_fd, beside, O_RDONLY | O_DIRECTORY);
        int r = MIN(fd, 0);

        if (r == 0 && (fchown(fd, uid, gid) < 0 || fchmod(fd, 0700) < 0 ||
                       renameat2(parent_fd, beside, parent_fd, name, RENAME_NOREPLACE) < 0))
                r = -errno;
        if (r < 0)
                (void)unlinkat(parent_fd, beside, AT_REMOVEDIR);
        return r;
}

static int find_or_make(const char *parent, const char *fleet, uid_t uid, gid_t gid, struct status_dir *ret,
                        char name[static STATUS_NAME_MAX])
{
        _cleanup_close_ int parent_fd = open_parent(parent, true);
        if (parent_fd < 0)
                return parent_fd;

        int r = find(parent_fd, fleet, uid, ret, name);
        if (r == 0 && ret->owner == uid)
                return 0;
        if (r == 0) {
                status_dir_close(ret);
                if (strchr(name, '@'))
                        return -EPERM;
                /* Workers of the fleet's former user still use the plain name. */
                snprintf(name, STATUS_NAME_MAX, "%s@%u", fleet, (unsigned)uid);
                r = -ENOENT;
        }
        if (r == -ENOENT)
                r = make(parent_fd, name, uid, gid);
        return r == 0 ? find(parent_fd, fleet, uid, ret, name) : r;
}

int status_dir_make(const char *parent, const char *fleet, uid_t uid, gid_t gid, struct status_dir *ret,
                    char name[static STATUS_NAME_MAX])
{
        int r = -EAGAIN;

        *ret = STATUS_DIR_NONE;
        for (unsigned i = 0; i < MAKE_TRIES && (r == -EAGAIN || r == -ENOENT || r == -EEXIST); i++)
                r = find_or_make(parent, fleet, uid, gid, ret, name);
        return r;
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

/* Calls each() for the names in a directory, up to a limit. Returns 0 or -errno. */
static int each_name(int fd, void (*each)(int fd, const char *name, void *userdata), void *userdata)
{
        _cleanup_close_ int own_fd = open_beneath(fd, ".", O_RDONLY | O_DIRECTORY);
        if (own_fd < 0)
                return own_fd;
        _cleanup_closedir_ DIR *dir = fdopendir(own_fd);
        if (!dir)
                return -errno;
        (void)TAKE_FD(own_fd);
        const struct dirent *entry;
        for (unsigned n = 0; n < NAMES_MAX && (entry = readdir(dir)); n++)
                if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                        each(fd, entry->d_name, userdata);
        return 0;
}

static void sweep_name(int fd, const char *name, _unused_ void *userdata)
{
        if (is_given_up(fd, name))
                (void)unlinkat(fd, name, 0);
}

void status_dir_sweep(const struct status_dir *dir)
{
        (void)each_name(dir->fd, sweep_name, NULL);
}

static void remove_name(int fd, const char *name, _unused_ void *userdata)
{
        if (unlinkat(fd, name, 0) < 0 && (errno == EISDIR || errno == EPERM))
                (void)unlinkat(fd, name, AT_REMOVEDIR);
}

/* Returns true if the mode is as make() set it. */
static bool is_as_made(int fd)
{
        struct stat status;

        return fstat(fd, &status) == 0 && (status.st_mode & 07777) == 0700;
}

struct tidy {
        bool (*keep)(const char *fleet, void *userdata);
        void *userdata;
};

static void tidy_name(int parent_fd, const char *name, void *userdata)
{
        const struct tidy *tidy = userdata;
        char fleet[256];
        int length = (int)strcspn(name, "@");

        snprintf(fleet, sizeof(fleet), "%.*s", length, name);
        /* Keep a directory that a running start is creating. */
        if (length == 0 ? !process_is_gone(name + 1) : tidy->keep(fleet, tidy->userdata))
                return;
        _cleanup_close_ int fd = open_beneath(parent_fd, name, O_RDONLY | O_DIRECTORY);
        if (fd < 0 || !is_as_made(fd))
                return;
        (void)each_name(fd, remove_name, NULL);
        (void)unlinkat(parent_fd, name, AT_REMOVEDIR);
}

int status_dirs_tidy(const char *parent, bool (*keep)(const char *fleet, void *userdata), void *userdata)
{
        struct tidy tidy = {.keep = keep, .userdata = userdata};
        _cleanup_close_ int fd = open_parent(parent, false);

        return fd < 0 ? fd : each_name(fd, tidy_name, &tidy);
}

/* Opening must not wait for the other end of a pipe, nor for the holder of a lease on the file. */
static enum heartbeat_fault open_file(const struct status_dir *dir, pid_t pid, int *ret_fd)
{
        char name[16];

        snprintf(name, sizeof(name), "%d", (int)pid);
        *ret_fd = open_beneath(dir->fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
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

int status_file_read(const struct status_dir *dir, pid_t pid, char text[static STATUS_FILE_MAX_BYTES + 1],
                     size_t *ret_length)
{
        _cleanup_close_ int fd = -1;
        struct stat before, after;

        enum heartbeat_fault fault = open_file(dir, pid, &fd);
        if (fault != HEARTBEAT_FAULT_NONE)
                return fault;
        if (fstat(fd, &before) < 0)
                return HEARTBEAT_FAULT_UNREADABLE;
        if (!S_ISREG(before.st_mode))
                return HEARTBEAT_FAULT_KIND;
        if (before.st_uid != dir->owner)
                return HEARTBEAT_FAULT_OWNER;
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

bool status_file_is_begun(const struct status_dir *dir, pid_t pid)
{
        struct stat status;
        char name[16];

        snprintf(name, sizeof(name), ".%d", (int)pid);
        return fstatat(dir->fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

void status_file_remove(const struct status_dir *dir, pid_t pid)
{
        char name[16];

        snprintf(name, sizeof(name), "%d", (int)pid);
        (void)unlinkat(dir->fd, name, 0);
}
