/* SPDX-License-Identifier: MIT */
/* Reads what only root and the user of a process may read of it; see the header. */
#include "privileged/proc_inspect.h"
#include "base/fd.h"
#include "io/proc.h"
#include "io/procfile.h"
#include "privileged/probe.h"
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens a file below /proc/PID. A process that holds its pid afterwards held it before, too. */
static int open_file(const struct proc *proc, const char *name, int flags)
{
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/%s", (int)proc_pid(proc), name);
        _cleanup_close_ int fd = open(path, flags | O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? -ESRCH : -errno;
        int r = probe_pidfd(proc_pidfd(proc));
        return r < 0 ? r : TAKE_FD(fd);
}

static ssize_t read_file(const struct proc *proc, const char *name, char *text, size_t size)
{
        _cleanup_close_ int fd = open_file(proc, name, 0);

        return fd < 0 ? fd : fd_read_start(fd, text, size);
}

ssize_t proc_environment(const struct proc *proc, char *text, size_t size)
{
        ssize_t length = read_file(proc, "environ", text, size);

        /* Drop a truncated last entry, which would have another meaning. */
        if (length == (ssize_t)size - 1)
                while (length > 0 && text[length - 1] != '\0')
                        text[--length] = '\0';
        return length;
}

int proc_open_output(const struct proc *proc)
{
        struct stat status;

        /* Duplicate the process's own descriptor. Opening /proc/PID/fd would turn a descriptor that the
         * process cannot read (O_PATH) into a readable one, and would open devices and FIFOs. */
        _cleanup_close_ int fd = pidfd_getfd(proc_pidfd(proc), STDOUT_FILENO, 0);
        if (fd < 0)
                return -errno;
        int flags = fcntl(fd, F_GETFL);
        if (flags < 0 || fstat(fd, &status) < 0)
                return -errno;
        if (!S_ISREG(status.st_mode) || fd_is_remote(fd))
                return -ENODEV;
        return (flags & O_PATH) || (flags & O_ACCMODE) == O_WRONLY ? -EACCES : TAKE_FD(fd);
}

int proc_pss_bytes(const struct proc *proc, uint64_t *ret_bytes)
{
        char text[4096];
        uint64_t kib;

        ssize_t length = read_file(proc, "smaps_rollup", text, sizeof(text));
        if (length < 0)
                return (int)length;
        int r = procfile_number(text, "Pss:", 10, &kib);
        if (r == 0)
                *ret_bytes = kib * 1024;
        return r;
}

int proc_private_bytes(const struct proc *proc, uint64_t *ret_bytes)
{
        char text[4096];
        uint64_t clean, dirty;

        ssize_t length = read_file(proc, "smaps_rollup", text, sizeof(text));
        if (length < 0)
                return (int)length;
        int r = procfile_number(text, "Private_Clean:", 10, &clean);
        if (r == 0)
                r = procfile_number(text, "Private_Dirty:", 10, &dirty);
        if (r == 0)
                *ret_bytes = (clean + dirty) * 1024;
        return r;
}

int proc_directory(const struct proc *proc, char *path, size_t size)
{
        char link[64];

        snprintf(link, sizeof(link), "/proc/%d/cwd", (int)proc_pid(proc));
        ssize_t length = readlink(link, path, size - 1);
        if (length < 0)
                return errno == ENOENT ? -ESRCH : -errno;
        path[length] = '\0';
        return probe_pidfd(proc_pidfd(proc));
}

int proc_pidfds_each(const struct proc *proc, int (*each)(pid_t pid, void *userdata), void *userdata)
{
        int r = 0;

        int fd = open_file(proc, "fdinfo", O_DIRECTORY);
        if (fd < 0)
                return fd;
        _cleanup_closedir_ DIR *list = fdopendir(fd);
        if (!list) {
                close_fd(fd);
                return -errno;
        }

        for (const struct dirent *entry; r == 0 && (entry = readdir(list));) {
                char text[512];
                uint64_t pid;

                if (!isdigit((unsigned char)entry->d_name[0]))
                        continue;
                /* A descriptor that is closed meanwhile does not count. */
                ssize_t length = fd_read_file(dirfd(list), entry->d_name, text, sizeof(text));
                if (is_shortage((int)length))
                        return (int)length;
                /* The number is -1 once the process was reaped, and 0 for one that we cannot see. */
                if (length > 0 && procfile_number(text, "Pid:", 10, &pid) == 0 && pid > 0 && pid <= INT32_MAX)
                        r = each((pid_t)pid, userdata);
        }
        return r;
}

int proc_is_elsewhere(const struct proc *proc)
{
        char path[64];
        struct stat its, ours;

        snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)proc_pid(proc));
        if (stat(path, &its) < 0)
                return errno == ENOENT ? -ESRCH : -errno;
        if (stat("/proc/self/ns/pid", &ours) < 0)
                return -errno;
        return its.st_ino != ours.st_ino;
}
