/* SPDX-License-Identifier: MIT */
/* The minimum that a supervisor must do, to compare sqmgr with.
 *
 * floor COUNT COMMAND...: starts COUNT processes and replaces each that exits, by posix_spawn() and
 * pidfds. */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int fail(const char *what)
{
        perror(what);
        return EXIT_FAILURE;
}

static int spawn_one(int epoll, char **argv)
{
        struct epoll_event event = {.events = EPOLLIN};
        pid_t pid;

        int r = posix_spawn(&pid, argv[0], NULL, NULL, argv, environ);
        if (r != 0) {
                errno = r;
                return -1;
        }
        event.data.fd = pidfd_open(pid, 0);
        return event.data.fd < 0 ? -1 : epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
}

static int spawn(unsigned count, char **argv)
{
        struct rlimit limit;
        struct epoll_event event;
        siginfo_t info;

        int epoll = epoll_create1(EPOLL_CLOEXEC);
        if (epoll < 0 || getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return fail("floor");
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
                return fail("setrlimit");
        for (unsigned i = 0; i < count; i++)
                if (spawn_one(epoll, argv) < 0)
                        return fail("spawn");
        for (;;) {
                int n = epoll_wait(epoll, &event, 1, -1);
                if (n < 0 && errno != EINTR)
                        return fail("epoll_wait");
                if (n <= 0)
                        continue;
                if (waitid(P_PIDFD, (id_t)event.data.fd, &info, WEXITED) < 0)
                        return fail("waitid");
                close(event.data.fd);
                if (spawn_one(epoll, argv) < 0)
                        return fail("spawn");
        }
}

int main(int argc, char **argv)
{
        if (argc >= 3)
                return spawn((unsigned)strtoul(argv[1], NULL, 10), argv + 2);
        fprintf(stderr, "usage: %s COUNT COMMAND...\n", argv[0]);
        return 2;
}
