/* SPDX-License-Identifier: MIT */
/* The marker of a worker as the name of a descriptor; see the header. */
#include "io/marker.h"
#include "base/environment.h"
#include "io/proc.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define NOEXEC_SEAL 8U /* MFD_NOEXEC_SEAL, which older headers lack */

char *marker_name(const struct environment *environment, char text[static MARKER_MAX])
{
        static const char *const names[] = {"SQMGR_INSTANCE", "SQMGR_WORKER", "SQMGR_GENERATION",
                                            "SQMGR_START"};
        size_t length = 0;

        for (size_t i = 0; i < ELEMENTSOF(names) && length < MARKER_MAX; i++)
                length += (size_t)snprintf(text + length, MARKER_MAX - length, "%s%s=%s", i > 0 ? " " : "",
                                           names[i], environment_get(environment, names[i]) ?: "");
        return text;
}

void marker_put(const char *name)
{
        int fd = memfd_create(name, MFD_CLOEXEC | NOEXEC_SEAL);

        /* The kernel is too old for the flag. */
        if (fd < 0 && errno == EINVAL)
                fd = memfd_create(name, MFD_CLOEXEC);
        if (fd >= 0)
                (void)dup2(fd, MARKER_FD);
        close_fd(fd);
}

ssize_t marker_read(const struct proc *proc, char text[static MARKER_MAX])
{
        static const char begin[] = "/memfd:SQMGR_";
        char link[64], target[sizeof(begin) + MARKER_MAX];

        snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)proc_pid(proc), MARKER_FD);
        ssize_t length = readlink(link, target, sizeof(target) - 1);
        if (length < 0)
                return errno == ENOENT ? 0 : -errno;
        target[length] = '\0';
        if (strncmp(target, begin, strlen(begin)) != 0)
                return 0;
        length = snprintf(text, MARKER_MAX, "%s ", target + strlen("/memfd:"));
        for (char *blank = text; (blank = strchr(blank, ' ')); blank++)
                *blank = '\0';
        int r = probe_pidfd(proc_pidfd(proc));
        return r < 0 ? r : MIN(length, (ssize_t)MARKER_MAX - 1);
}
