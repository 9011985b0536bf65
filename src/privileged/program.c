/* SPDX-License-Identifier: MIT */
/* Executes the installed sqmgr; see the header. */
#include "privileged/program.h"
#include "base/fd.h"
#include "io/log.h"
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

pid_t program_fork(const char *name)
{
        sigset_t all, before;
        char comm[16] = "";

        sigfillset(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all, &before);
        (void)prctl(PR_GET_NAME, comm);
        (void)prctl(PR_SET_NAME, name);
        pid_t pid = fork();
        if (pid == 0)
                return 0;
        pid_t r = pid < 0 ? -errno : pid;
        (void)prctl(PR_SET_NAME, comm);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        return r;
}

/* Runs in the child. */
static _Noreturn void run_check(const struct program_check *check, int output_fd)
{
        _cleanup_free_ char *state = NULL;
        char *arguments[] = {(char *)check->program, (char *)"-c", (char *)check->config_path,
                             (char *)"--print-config", NULL};
        sigset_t none;

        sigemptyset(&none);
        if (!check->state_path || asprintf(&state, "--check-state=%s", check->state_path) >= 0) {
                arguments[3] = state ?: arguments[3];
                (void)sigprocmask(SIG_SETMASK, &none, NULL);
                (void)signal(SIGPIPE, SIG_DFL);
                (void)signal(SIGXFSZ, SIG_DFL);
                (void)setrlimit(RLIMIT_NOFILE, &check->nofile);
                if (dup2(output_fd, STDOUT_FILENO) >= 0 && dup2(output_fd, STDERR_FILENO) >= 0 &&
                    fd_close_range(STDERR_FILENO + 1, UINT_MAX, true) == 0)
                        execve(check->program, arguments, environ);
        }
        dprintf(output_fd, "%s: %s\n", check->program, strerrordesc_np(errno));
        _exit(127);
}

int program_check_start(const struct program_check *check, struct program_checking *ret)
{
        int pair[2] = {-1, -1};

        if (check->state_path ? pipe2(pair, O_CLOEXEC) < 0
                              : (pair[1] = open("/dev/null", O_WRONLY | O_CLOEXEC)) < 0)
                return -errno;
        _cleanup_close_ int read_fd = pair[0], write_fd = pair[1];
        if (read_fd >= 0 && fcntl(read_fd, F_SETFL, O_NONBLOCK) < 0)
                return -errno;
        pid_t pid = program_fork("sqmgr-check");
        if (pid == 0)
                run_check(check, write_fd);
        if (pid < 0)
                return pid;
        *ret = (struct program_checking){.pid = pid, .output_fd = TAKE_FD(read_fd)};
        return 0;
}

int program_replace(const char *program, char *const *argv, const struct rlimit *nofile)
{
        struct rlimit raised;

        if (getrlimit(RLIMIT_NOFILE, &raised) < 0 || setrlimit(RLIMIT_NOFILE, nofile) < 0)
                return -errno;
        log_info("re-exec: handing over to '%s'", program);
        execve(program, argv, environ);
        int r = -errno;
        (void)setrlimit(RLIMIT_NOFILE, &raised);
        return r;
}

int program_continue_as(int program_fd, char *const *argv)
{
        fexecve(program_fd, argv, environ);
        return -errno;
}

int program_adopt_orphans(void)
{
        return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 ? -errno : 0;
}
