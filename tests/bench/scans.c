/* SPDX-License-Identifier: MIT */
/* Simulates hosts that start workers at the same time and search for their heartbeats among many others.
 *
 * scans SOCKET MEMBERS HOSTS SECONDS turns|each: the set has MEMBERS identities. Each of HOSTS wants to scan
 * the set all the time, and polls every 250 ms. `turns`: hosts take turns, as in
 * src/frameworks/scan_permit.c. `each`: each host scans at every poll, as if it were alone; one client cannot
 * ask for more than Redis can serve. Prints, for each host that has scanned, the microseconds until the end
 * of its first scan. */
#include "base/macro.h"
#include "observe/scan_throttle.h"
#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define POLL_USEC        250000ULL
#define WORKERS_OF_HOST  50
#define NSEC_OF_IDENTITY 500

struct host {
        redisContext *redis;
        struct scan_throttle scan_throttle;
        usec_t scanned_at; /* 0: not yet */
};

static usec_t now_usec(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (usec_t)now.tv_sec * 1000000 + (usec_t)now.tv_nsec / 1000;
}

static void fail(const char *what)
{
        fprintf(stderr, "walks: %s\n", what);
        exit(EXIT_FAILURE);
}

static redisReply *receive(redisContext *redis, int type)
{
        redisReply *reply = NULL;

        if (redisGetReply(redis, (void **)&reply) != REDIS_OK || reply->type != type)
                fail(reply && reply->str ? reply->str : "Redis does not answer");
        return reply;
}

static void list_identities(redisContext *redis, unsigned long members)
{
        for (unsigned long i = 0; i < members; i++)
                redisAppendCommand(redis, "SADD processes host-%04lu:%lu:0123456789ab", i / WORKERS_OF_HOST,
                                   1000 + i % WORKERS_OF_HOST);
        for (unsigned long i = 0; i < members; i++)
                freeReplyObject(receive(redis, REDIS_REPLY_INTEGER));
}

static void scan(redisContext *redis, unsigned host)
{
        char cursor[32] = "0";

        do {
                redisAppendCommand(redis, "SSCAN processes %s MATCH host-%04u:* COUNT 1000", cursor, host);
                redisReply *reply = receive(redis, REDIS_REPLY_ARRAY);
                snprintf(cursor, sizeof(cursor), "%s", reply->element[0]->str);
                freeReplyObject(reply);
        } while (strcmp(cursor, "0") != 0);
}

static struct scan_throttle_reading read_pace(redisContext *redis)
{
        struct scan_throttle_reading reading = {.nsec = NSEC_OF_IDENTITY, .scans = 1};

        redisAppendCommand(redis, "SCARD processes");
        redisAppendCommand(redis, "INFO clients");
        redisReply *members = receive(redis, REDIS_REPLY_INTEGER);
        redisReply *clients = receive(redis, REDIS_REPLY_STRING);
        const char *count = strstr(clients->str, "\ntracking_clients:");
        if (!count)
                fail("this Redis does not tell tracking_clients");
        reading.members = (uint64_t)members->integer;
        reading.scanners = strtoull(strchr(count, ':') + 1, NULL, 10);
        freeReplyObject(members);
        freeReplyObject(clients);
        return reading;
}

static unsigned n_scans, n_readings;

static void look(struct host *host, unsigned index, bool turns)
{
        usec_t now = now_usec();

        if (turns) {
                if (host->scan_throttle.requested_at == 0) {
                        redisAppendCommand(host->redis, "CLIENT TRACKING ON OPTIN");
                        freeReplyObject(receive(host->redis, REDIS_REPLY_STATUS));
                }
                (void)scan_throttle_request(&host->scan_throttle, now, true);
                if (!scan_throttle_is_due(&host->scan_throttle, now))
                        return;
                n_readings++;
                const struct scan_throttle_reading reading = read_pace(host->redis);
                if (!scan_throttle_decide(&host->scan_throttle, &reading, (uint32_t)random() << 1, now))
                        return;
        }
        n_scans++;
        scan(host->redis, index);
        if (host->scanned_at == 0)
                host->scanned_at = now_usec();
}

static void wait_until(usec_t at)
{
        const struct timespec until = {.tv_sec = (time_t)(at / 1000000),
                                       .tv_nsec = (long)(at % 1000000 * 1000)};

        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
                ;
}

int main(int argc, char **argv)
{
        struct rlimit limit;

        if (argc != 6 || getrlimit(RLIMIT_NOFILE, &limit) < 0) {
                fprintf(stderr, "usage: %s SOCKET MEMBERS HOSTS SECONDS turns|each\n", argv[0]);
                return 2;
        }
        unsigned n = (unsigned)strtoul(argv[3], NULL, 10);
        bool turns = strcmp(argv[5], "turns") == 0;
        struct host *hosts = calloc(n, sizeof(*hosts));
        if (!hosts || n == 0)
                return EXIT_FAILURE;
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
        for (unsigned i = 0; i < n; i++) {
                hosts[i].redis = redisConnectUnix(argv[1]);
                if (!hosts[i].redis || hosts[i].redis->err)
                        fail("no connection");
        }
        list_identities(hosts[0].redis, strtoul(argv[2], NULL, 10));
        srandom((unsigned)now_usec());
        /* The measurement starts now. */
        fprintf(stderr, "playing\n");
        usec_t begun = now_usec(), end = begun + strtoull(argv[4], NULL, 10) * 1000000;
        for (uint64_t i = 0;; i++) {
                usec_t at = begun + i * POLL_USEC / n;

                if (MAX(at, now_usec()) >= end)
                        break;
                wait_until(at);
                look(&hosts[i % n], (unsigned)(i % n), turns);
        }
        for (unsigned i = 0; i < n; i++) {
                if (hosts[i].scanned_at != 0)
                        printf("%llu\n", (unsigned long long)(hosts[i].scanned_at - begun));
                redisFree(hosts[i].redis);
        }
        fprintf(stderr, "%u walks, %u readings\n", n_scans, n_readings);
        free(hosts);
        return EXIT_SUCCESS;
}
