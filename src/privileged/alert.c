/* SPDX-License-Identifier: MIT */
/* Starts alert_command for an event. */
#include "privileged/alert.h"
#include "base/environment.h"
#include "base/fd.h"
#include "privileged/program.h"
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* Runs in the child, and ends the child. */
static _Noreturn void fail(const char *what, const char *name)
{
        dprintf(STDERR_FILENO, "alert_command: %s '%s': %s\n", what, name, strerrordesc_np(errno));
        _exit(127);
}

static void reset(const struct alert_request *request)
{
        sigset_t none;

        (void)setsid();
        for (int signo = 1; signo < NSIG; signo++)
                (void)signal(signo, SIG_DFL);
        sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)alarm(request->seconds);
        (void)setrlimit(RLIMIT_NOFILE, &request->nofile);
        /* The unit's OOMScoreAdjust= is for sqmgr alone. Without privileges, a higher value cannot be
         * lowered. */
        _cleanup_close_ int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
        if (fd >= 0)
                (void)fd_write_all(fd, "0", 1);
}

static const struct passwd *become_user(const char *name)
{
        errno = 0;
        const struct passwd *user = getpwnam(name);

        if (!user) {
                errno = errno == 0 ? ENOENT : errno;
                fail("cannot look up user", name);
        }
        if (geteuid() == 0 &&
            (initgroups(name, user->pw_gid) < 0 || setresgid(user->pw_gid, user->pw_gid, user->pw_gid) < 0 ||
             setresuid(user->pw_uid, user->pw_uid, user->pw_uid) < 0))
                fail("cannot become user", name);
        return user;
}

static int put_user(struct environment *environment, const struct passwd *user)
{
        if (environment_set(environment, "HOME", user->pw_dir) < 0 ||
            environment_set(environment, "USER", user->pw_name) < 0 ||
            environment_set(environment, "LOGNAME", user->pw_name) < 0 ||
            environment_set(environment, "SHELL", user->pw_shell) < 0)
                return -ENOMEM;
        return 0;
}

static _Noreturn void child_run(const struct alert_request *request, int input_fd)
{
        struct environment environment = {0};
        const struct passwd *user = NULL;

        reset(request);
        if (dup2(input_fd, STDIN_FILENO) < 0 || fd_close_range(STDERR_FILENO + 1, UINT_MAX, false) < 0)
                fail("cannot prepare", request->argv[0]);
        if (request->user)
                user = become_user(request->user);
        if (environment_put_inherited(&environment, environ) < 0 ||
            (user && put_user(&environment, user) < 0) ||
            environment_set(&environment, "SQMGR_EVENT", request->event) < 0 ||
            environment_set(&environment, "SQMGR_FLEET", request->fleet) < 0 ||
            environment_set(&environment, "SQMGR_WORKER", request->worker) < 0) {
                errno = ENOMEM;
                fail("cannot prepare", request->argv[0]);
        }
        environ = environment.list; /* execvp() takes PATH from here */
        execvp(request->argv[0], request->argv);
        fail("cannot run", request->argv[0]);
}

/* Returns a memory file. Unlike a pipe, it takes all of text at once, however little the command reads. */
static int make_input(const char *text)
{
        _cleanup_close_ int fd = memfd_create("sqmgr-alert", MFD_CLOEXEC);

        if (fd < 0)
                return -errno;
        int r = fd_write_all(fd, text, strlen(text));
        if (r >= 0)
                r = fd_write_all(fd, "\n", 1);
        if (r >= 0 && lseek(fd, 0, SEEK_SET) < 0)
                r = -errno;
        return r < 0 ? r : TAKE_FD(fd);
}

int alert_start(const struct alert_request *request, pid_t *ret)
{
        _cleanup_close_ int input_fd = make_input(request->input);

        if (input_fd < 0)
                return input_fd;
        pid_t pid = program_fork("sqmgr-alert");
        if (pid == 0)
                child_run(request, input_fd);
        if (pid > 0)
                *ret = pid;
        return MIN(pid, 0);
}
