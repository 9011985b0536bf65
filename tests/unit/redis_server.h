/* SPDX-License-Identifier: MIT */
/* A real redis-server for tests, on a socket in a directory of its own, and a loop. */
#pragma once

#include "loop.h"
#include "redis/redis.h"
#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* For the deadlines that are not what a test is about. */
#define SERVER_PATIENCE (30 * USEC_PER_SEC)

static char server_directory[] = "/tmp/sqmgr-test.XXXXXX";
static char server_socket[64], server_url[80];
static pid_t server_pid; /* of the last one started; 0: none */

/* Around a whole test case, in the process that outlives the tests. */
static inline void server_directory_make(void)
{
        strcpy(server_directory + strlen(server_directory) - 6, "XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(server_directory));
        snprintf(server_socket, sizeof(server_socket), "%s/redis", server_directory);
        snprintf(server_url, sizeof(server_url), "unix://%s", server_socket);
}

static inline void server_directory_remove(void)
{
        (void)unlink(server_socket);
        ck_assert_int_eq(rmdir(server_directory), 0);
}

/* The same of tests that leave more there than the server's own files; and what they left between two. */
static inline void server_directory_remove_all(void)
{
        unit_remove_tree(server_directory);
}

static inline void server_directory_empty(void)
{
        server_directory_remove_all();
        ck_assert_int_eq(mkdir(server_directory, 0700), 0);
}

static inline void server_kill(void)
{
        if (server_pid == 0)
                return;
        unit_kill(server_pid);
        server_pid = 0;
}

/* port: TCP, or 0. option and value: one more, or NULL. */
static inline void server_start(int port, const char *option, const char *value)
{
        char text[16];

        snprintf(text, sizeof(text), "%d", port);
        (void)unlink(server_socket); /* of one that was killed */
        server_pid = unit_fork_bound();
        if (server_pid > 0)
                return;
        if (!freopen("/dev/null", "w", stdout))
                _exit(1);
        execlp("redis-server", "redis-server", "--port", text, "--bind", "127.0.0.1", "--unixsocket",
               server_socket, "--dir", server_directory, "--save", "", option, value, (char *)NULL);
        _exit(127);
}

static inline int free_port(void)
{
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t len = sizeof(address);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, len), 0);
        ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &len), 0);
        close_fd(fd);
        return ntohs(address.sin_port);
}

/* A command of the test itself. Returns the reply, to be freed, or NULL where the server does not answer. */
_printf_(1, 2) static inline redisReply *server_ask(const char *format, ...)
{
        redisContext *context = redisConnectUnix(server_socket);
        redisReply *reply = NULL;
        va_list arguments;

        va_start(arguments, format);
        if (context && !context->err)
                reply = redisvCommand(context, format, arguments);
        va_end(arguments);
        redisFree(context);
        return reply;
}

#define server_do(...)                                                                                       \
        do {                                                                                                 \
                redisReply *_reply = server_ask(__VA_ARGS__);                                                \
                ck_assert_ptr_nonnull(_reply);                                                               \
                ck_assert_msg(_reply->type != REDIS_REPLY_ERROR, "%s", _reply->str);                         \
                freeReplyObject(_reply);                                                                     \
        } while (0)

/* Waits until the server started last answers. */
static inline void server_wait(void)
{
        redisReply *reply;

        while (!(reply = server_ask("PING")))
                (void)usleep(10000);
        freeReplyObject(reply);
}

/* With a port of its own, beside the socket. Another process may take a free one before it does: then it
 * ends, and another one is tried. Returns the port. */
static inline int server_start_with_port(void)
{
        for (;;) {
                int port = free_port();

                server_start(port, NULL, NULL);
                while (waitpid(server_pid, NULL, WNOHANG) == 0) {
                        redisReply *reply = server_ask("PING");

                        if (reply) {
                                freeReplyObject(reply);
                                return port;
                        }
                        (void)usleep(10000);
                }
        }
}

static inline void loop_start(void)
{
        (void)unlink(server_socket); /* of the test before */
        signal(SIGPIPE, SIG_IGN);
        ck_assert_int_ge(sd_event_new(&event), 0);
}

static inline void loop_end(void)
{
        event = sd_event_unref(event);
        server_kill();
}

/* A connection to the server started last, which is up. */
static inline struct redis *server_connect(usec_t timeout)
{
        const struct redis_settings settings = {
                .url = server_url,
                .timeout = timeout,
        };
        struct redis *connected;

        ck_assert_int_eq(redis_new(event, &settings, NULL, NULL, NULL, &connected), 0);
        run_until(redis_state(connected) == READER_STATE_CONNECTED);
        return connected;
}

/* Automake takes this exit status for a skipped test. */
static inline bool server_is_missing(void)
{
        if (system("command -v redis-server >/dev/null") == 0)
                return false;
        fprintf(stderr, "skipped: redis-server is not installed\n");
        return true;
}

/* How often the server has begun to run this command. */
static inline long long server_calls(const char *command)
{
        redisReply *reply = server_ask("INFO commandstats");
        char name[48];

        ck_assert_ptr_nonnull(reply);
        snprintf(name, sizeof(name), "cmdstat_%s:calls=", command);
        const char *line = strstr(reply->str, name);
        long long n = line ? strtoll(line + strlen(name), NULL, 10) : 0;
        freeReplyObject(reply);
        return n;
}
