/* SPDX-License-Identifier: MIT */
/* Measures the cost of many commands to a Redis at once, without a Redis: this program answers the login.
 *
 * ask-cost COMMANDS: Callgrind counts the instructions of bench_ask(). */
#include "redis/redis.h"
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

static int listen_at(const char *path)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};

        snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 1) < 0))
                fd = close_fd(fd);
        return fd;
}

/* Answers the only command of the login. */
static bool come_up(sd_event *event, struct redis *redis, int listener, int *ret_peer)
{
        static const char answer[] = ":0\r\n";
        char question[256];

        while (redis_state(redis) == READER_STATE_CONNECTING) {
                if (sd_event_run(event, UINT64_MAX) < 0)
                        return false;
                if (*ret_peer < 0) {
                        *ret_peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
                } else if (recv(*ret_peer, question, sizeof(question), MSG_DONTWAIT) > 0 &&
                           send(*ret_peer, answer, sizeof(answer) - 1, 0) < 0) {
                        return false;
                }
        }
        return redis_state(redis) == READER_STATE_CONNECTED;
}

/* Not static, so that callgrind finds it by name. */
int bench_ask(struct redis *redis, unsigned long n);
__attribute__((noinline)) int bench_ask(struct redis *redis, unsigned long n)
{
        static const char *const argv[] = {"LLEN", "queue:default"};
        int r = 0;

        for (unsigned long i = 0; i < n && r == 0; i++)
                r = redis_command_forbiddable(redis, NULL, NULL, ELEMENTSOF(argv), argv, NULL);
        return r;
}

static bool ask(const char *path, unsigned long n)
{
        char url[128];
        struct redis_settings settings = {.url = url, .timeout = USEC_PER_MIN};
        struct redis *redis = NULL;
        sd_event *event = NULL;
        int peer = -1;

        snprintf(url, sizeof(url), "unix://%s", path);
        int listener = listen_at(path);
        bool good = listener >= 0 && sd_event_default(&event) >= 0 &&
                    redis_new(event, &settings, NULL, NULL, NULL, &redis) >= 0 &&
                    come_up(event, redis, listener, &peer) && bench_ask(redis, n) == 0;
        redis_free(redis);
        sd_event_unref(event);
        close_fd(peer);
        close_fd(listener);
        return good;
}

int main(int argc, char **argv)
{
        char folder[] = "/tmp/sqmgr-ask.XXXXXX", path[64];

        if (argc != 2) {
                fprintf(stderr, "usage: %s COMMANDS\n", argv[0]);
                return 2;
        }
        (void)signal(SIGPIPE, SIG_IGN);
        if (!mkdtemp(folder))
                return EXIT_FAILURE;
        snprintf(path, sizeof(path), "%s/redis", folder);
        bool good = ask(path, strtoul(argv[1], NULL, 10));
        (void)unlink(path);
        (void)rmdir(folder);
        return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
