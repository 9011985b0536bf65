/* SPDX-License-Identifier: MIT */
/* Waits for the exit of a process; see the header. */
#include "io/proc_watch.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>

int proc_watch(const struct proc *proc, sd_event *event, sd_event_io_handler_t exited, void *userdata,
               sd_event_source **ret)
{
        int pidfd = proc_pidfd(proc), flags = fcntl(pidfd, F_GETFL);

        /* proc_open() has set the flag, which means that the process is only read. */
        if (flags < 0 || fcntl(pidfd, F_SETFL, flags & ~O_NONBLOCK) < 0)
                return -errno;
        return sd_event_add_io(event, ret, pidfd, EPOLLIN, exited, userdata);
}
