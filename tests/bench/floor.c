/* SPDX-License-Identifier: MIT */
/* The minimum that a supervisor must do, to compare sqmgr with.
 *
 * floor spawn COUNT COMMAND...: starts COUNT processes and replaces each that exits, by posix_spawn() and
 * pidfds.
 *
 * floor look SOCKET INTERVAL_MS ROUNDS: reads the heartbeats, in one pipeline, and the memory of each
 * `IDENTITY PID` on standard input. Prints the nanoseconds of CPU time of each round. */
#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int fail(const char *what)
{
        perror(what);
        return EXIT_FAILURE;
}

static long long now_nsec(clockid_t clock)
{
        struct timespec now;

        clock_gettime(clock, &now);
        return now.tv_sec * 1000000000LL + now.tv_nsec;
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

struct seen {
        char identity[256];
        int statm;
        unsigned long long pages;
};

static int ask_all(redisContext *redis, const struct seen *seen, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                const char *argv[] = {"HMGET", seen[i].identity, "busy", "beat", "quiet", "concurrency"};

                if (redisAppendCommandArgv(redis, 6, argv, NULL) != REDIS_OK)
                        return -1;
        }
        for (size_t i = 0; i < n; i++) {
                redisReply *reply = NULL;

                if (redisGetReply(redis, (void **)&reply) != REDIS_OK)
                        return -1;
                bool heartbeats = reply->type == REDIS_REPLY_ARRAY && reply->elements == 4 &&
                                  reply->element[1]->type == REDIS_REPLY_STRING;
                freeReplyObject(reply);
                if (!heartbeats) {
                        errno = ENODATA;
                        return -1;
                }
        }
        return 0;
}

static int read_memory(struct seen *seen)
{
        char text[128];

        ssize_t length = pread(seen->statm, text, sizeof(text) - 1, 0);
        if (length < 0)
                return -1;
        text[length] = '\0';
        return sscanf(text, "%*s %llu", &seen->pages) == 1 ? 0 : -1;
}

static int look(const char *socket, long interval_ms, long rounds)
{
        struct seen *seen = NULL;
        size_t n = 0;
        struct seen one = {.statm = -1};
        char path[64];
        int pid;

        while (scanf("%255s %d", one.identity, &pid) == 2) {
                struct seen *more = reallocarray(seen, n + 1, sizeof(*seen));
                if (!more)
                        return fail("floor");
                seen = more;
                snprintf(path, sizeof(path), "/proc/%d/statm", pid);
                one.statm = open(path, O_RDONLY | O_CLOEXEC);
                if (one.statm < 0)
                        return fail(path);
                seen[n++] = one;
        }
        redisContext *redis = redisConnectUnix(socket);
        if (!redis || redis->err)
                return fail(socket);
        const struct timespec pause = {.tv_sec = interval_ms / 1000, .tv_nsec = interval_ms % 1000 * 1000000};
        for (long round = 0; round < rounds; round++) {
                long long before = now_nsec(CLOCK_PROCESS_CPUTIME_ID);
                if (ask_all(redis, seen, n) < 0)
                        return fail("redis");
                for (size_t i = 0; i < n; i++)
                        if (read_memory(&seen[i]) < 0)
                                return fail("statm");
                printf("%lld\n", now_nsec(CLOCK_PROCESS_CPUTIME_ID) - before);
                fflush(stdout);
                nanosleep(&pause, NULL);
        }
        redisFree(redis);
        free(seen);
        return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
        if (argc >= 4 && strcmp(argv[1], "spawn") == 0)
                return spawn((unsigned)strtoul(argv[2], NULL, 10), argv + 3);
        if (argc == 5 && strcmp(argv[1], "look") == 0)
                return look(argv[2], strtol(argv[3], NULL, 10), strtol(argv[4], NULL, 10));
        fprintf(stderr, "usage: %s spawn COUNT COMMAND...|look SOCKET INTERVAL_MS ROUNDS\n", argv[0]);
        return 2;
}
