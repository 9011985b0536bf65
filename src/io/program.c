/* SPDX-License-Identifier: MIT */
/* Starts programs of our own; see the header. */
#include "io/program.h"
#include "base/fd.h"
#include "io/launcher.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>

int program_check_start(const struct program_check *check, struct program_checking *ret)
{
        _cleanup_free_ char *state = NULL;
        _cleanup_launch_job_ struct launch_job *job = NULL;
        char *argv[] = {(char *)check->program, (char *)"-c", (char *)check->config_path,
                        (char *)"--print-config", NULL};
        const struct launch_plan plan = {
                .kind = LAUNCH_CHECK,
                .fleet = {.argv = argv, .log = (char *)"inherit"},
                .nofile = check->nofile,
                .environment = environ,
        };
        int pair[2] = {-1, -1};

        if (check->state_path && asprintf(&state, "--check-state=%s", check->state_path) < 0)
                return -ENOMEM;
        argv[3] = state ?: argv[3];
        if (check->state_path ? pipe2(pair, O_CLOEXEC) < 0
                              : (pair[1] = open("/dev/null", O_WRONLY | O_CLOEXEC)) < 0)
                return -errno;
        _cleanup_close_ int read_fd = pair[0], write_fd = pair[1];
        if (read_fd >= 0 && fcntl(read_fd, F_SETFL, O_NONBLOCK) < 0)
                return -errno;
        int r = launch_job_new(&plan, &job);
        if (r < 0)
                return r;
        job->output_fd = write_fd;
        pid_t pid = launcher_start(TAKE_PTR(job));
        if (pid < 0)
                return pid;
        *ret = (struct program_checking){.pid = pid, .output_fd = TAKE_FD(read_fd)};
        return 0;
}

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
