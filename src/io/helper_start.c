/* SPDX-License-Identifier: MIT */
/* Starts the helper programs; see the header. */
#include "io/helper_start.h"
#include "base/fd.h"
#include "io/launcher.h"
#include <sys/socket.h>

int helper_start(int program_fd, const char *name, pid_t *ret_pid, int *ret_fd)
{
        _cleanup_launch_job_ struct launch_job *job = NULL;
        char *argv[] = {(char *)name, NULL};
        const struct launch_plan plan = {.fleet = {.argv = argv}};
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        _cleanup_close_ int ours = pair[0];
        _cleanup_close_ int theirs = pair[1];
        int r = launch_job_new(&plan, &job);
        if (r < 0)
                return r;
        job->program_fd = program_fd;
        job->input_fd = theirs;
        pid_t pid = launcher_start(TAKE_PTR(job));
        if (pid < 0)
                return pid == -EBUSY ? -EAGAIN : pid;
        *ret_pid = pid;
        *ret_fd = TAKE_FD(ours);
        return 0;
}
