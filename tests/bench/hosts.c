/* SPDX-License-Identifier: MIT */
/* Simulates the load of many hosts on one Redis: the reads of each sqmgr, and the heartbeats of its workers.
 *
 * hosts SOCKET HOSTS WORKERS SECONDS reads|beats|both: HOSTS with WORKERS each, every 5 s, spread evenly.
 * Each host has one connection for its reads, sent in one pipeline like those of a reader. Heartbeats are
 * sent one after another like Sidekiq's, without its connections. Prints for each pipeline of reads the
 * microseconds from its first byte to its last reply. */
#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define INTERVAL_USEC 5000000LL

static const char info[] =
        "{\"hostname\":\"a-host-of-many\",\"started_at\":1795238801.0820885,\"pid\":12345,\"tag\":\"app\","
        "\"concurrency\":5,\"queues\":[\"default\",\"mailers\"],\"labels\":[],\"identity\":\"a-host:1:"
        "0123456789ab\"}";

static long long now_usec(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static void name_worker(char *text, size_t size, unsigned host, unsigned worker)
{
        snprintf(text, size, "host-%04u:%u:0123456789ab", host, worker + 1000);
}

static int receive(redisContext *redis, unsigned n)
{
        for (unsigned i = 0; i < n; i++) {
                redisReply *reply = NULL;

                if (redisGetReply(redis, (void **)&reply) != REDIS_OK)
                        return -1;
                freeReplyObject(reply);
        }
        return 0;
}

static int read_host(redisContext *redis, unsigned host, unsigned workers)
{
        char name[64];

        for (unsigned i = 0; i < workers; i++) {
                name_worker(name, sizeof(name), host, i);
                const char *argv[] = {"HMGET", name, "busy", "beat", "quiet", "concurrency"};
                redisAppendCommandArgv(redis, 6, argv, NULL);
        }
        return receive(redis, workers);
}

/* Sends the heartbeats of a host, a transaction for each worker like Sidekiq 6 and 7. */
static int heartbeat_host(redisContext *redis, unsigned host, unsigned workers)
{
        char name[64];

        for (unsigned i = 0; i < workers; i++) {
                name_worker(name, sizeof(name), host, i);
                redisAppendCommand(redis, "MULTI");
                redisAppendCommand(redis, "SADD processes %s", name);
                redisAppendCommand(redis, "EXISTS %s", name);
                redisAppendCommand(
                        redis, "HMSET %s info %s busy 1 beat %lld.123456 rtt_us 100 quiet false rss 200000",
                        name, info, now_usec());
                redisAppendCommand(redis, "EXPIRE %s 60", name);
                redisAppendCommand(redis, "RPOP %s-signals", name);
                redisAppendCommand(redis, "DEL %s:work", name);
                redisAppendCommand(redis, "HSET %s:work t1 %s", name, info);
                redisAppendCommand(redis, "EXPIRE %s:work 60", name);
                redisAppendCommand(redis, "EXEC");
                if (receive(redis, 10) < 0)
                        return -1;
        }
        return 0;
}

static redisContext *connect_to(const char *socket)
{
        redisContext *redis = redisConnectUnix(socket);

        if (redis && !redis->err)
                return redis;
        fprintf(stderr, "hosts: no connection to %s: %s\n", socket, redis ? redis->errstr : "no memory");
        exit(EXIT_FAILURE);
}

static void wait_until(long long at)
{
        const struct timespec until = {.tv_sec = at / 1000000, .tv_nsec = at % 1000000 * 1000};

        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
                ;
}

int main(int argc, char **argv)
{
        struct rlimit limit;

        if (argc != 6 || getrlimit(RLIMIT_NOFILE, &limit) < 0) {
                fprintf(stderr, "usage: %s SOCKET HOSTS WORKERS SECONDS reads|beats|both\n", argv[0]);
                return 2;
        }
        unsigned hosts = (unsigned)strtoul(argv[2], NULL, 10);
        unsigned workers = (unsigned)strtoul(argv[3], NULL, 10);
        bool reads = strcmp(argv[5], "beats") != 0, heartbeats = strcmp(argv[5], "reads") != 0;

        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
        redisContext **connections = calloc(hosts, sizeof(redisContext *));
        redisContext *writer = connect_to(argv[1]);
        if (!connections)
                return EXIT_FAILURE;
        for (unsigned i = 0; i < hosts; i++) {
                connections[i] = connect_to(argv[1]);
                if (heartbeat_host(writer, i, workers) < 0)
                        return EXIT_FAILURE;
        }
        /* The measurement starts now. */
        fprintf(stderr, "playing\n");
        long long begun = now_usec(), end = begun + strtoll(argv[4], NULL, 10) * 1000000;
        for (long long i = 0;; i++) {
                long long at = begun + i * INTERVAL_USEC / hosts;
                unsigned host = (unsigned)(i % hosts);

                if (at >= end)
                        break;
                wait_until(at);
                if (heartbeats && heartbeat_host(writer, (host + hosts / 2) % hosts, workers) < 0)
                        return EXIT_FAILURE;
                if (!reads)
                        continue;
                long long before = now_usec();
                if (read_host(connections[host], host, workers) < 0)
                        return EXIT_FAILURE;
                printf("%lld\n", now_usec() - before);
        }
        fprintf(stderr, "late by %lld ms at the end\n", (now_usec() - end) / 1000);
        for (unsigned i = 0; i < hosts; i++)
                redisFree(connections[i]);
        redisFree(writer);
        free(connections);
        return EXIT_SUCCESS;
}
