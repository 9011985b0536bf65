/* SPDX-License-Identifier: MIT */
/* Counts the hosts that scan. A host is counted while its connection has CLIENT TRACKING on, with OPTIN: no
 * key is tracked that way, but Redis counts the clients that have tracking on. Nothing is written, and a host
 * that dies is not counted any more. A Redis before 6, or one whose ACL forbids these commands, gives no
 * count. */
#include "frameworks/decode.h"
#include "frameworks/heartbeat_format.h"
#include "frameworks/redis_ask.h"
#include "redis/redis_command.h"
#include "redis/redis_info.h"
#include <string.h>

/* NOPERM and ERR are permanent; other errors, such as BUSY, may pass. */
static bool is_refused(const redisReply *reply)
{
        return reply->type == REDIS_REPLY_ERROR &&
               (strncmp(reply->str, "NOPERM", 6) == 0 || strncmp(reply->str, "ERR", 3) == 0);
}

/* Returns 0 if Redis does not report the count. */
static uint64_t count_scanners(const redisReply *reply)
{
        uint64_t n =
                reply->type == REDIS_REPLY_STRING ? redis_info_number(reply->str, "tracking_clients") : 0;

        return n <= UINT32_MAX ? n : 0;
}

/* The answer, gathered from several replies. */
struct scanners_ask {
        struct ask *ask;
        struct answer_scanners answer;
};

/* Returns true, after ending the ask, if the connection was lost. */
static bool is_lost(struct scanners_ask *scanners, const redisReply *reply)
{
        if (reply)
                return false;
        (void)ask_failed(scanners->ask, NULL);
        free(scanners);
        return true;
}

/* Sends a command of the ask, or ends it. r: an error before. */
static void send_next(struct scanners_ask *scanners, redis_reply_fn callback, struct redis_command *command,
                      int r)
{
        struct ask *ask = scanners->ask;

        if (r >= 0) {
                r = redis_command_forbiddable(ask_redis(ask), callback, scanners, command->argc,
                                              command->argv, NULL);
                command_clear(command);
        }
        if (r >= 0)
                return;
        free(scanners);
        ask_fail_errno(ask, r);
}

static void on_scanners(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct scanners_ask *scanners = userdata;
        struct ask *ask = scanners->ask;
        struct answer answer = {0};

        if (is_lost(scanners, reply))
                return;
        answer.scanners = scanners->answer;
        answer.scanners.scanners = count_scanners(reply);
        answer.scanners.blind |=
                is_refused(reply) || (reply->type == REDIS_REPLY_STRING && answer.scanners.scanners == 0);
        free(scanners);
        ask_done(ask, &answer);
}

static void on_members(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct redis_command info = {.argv = {"INFO", "clients"}, .argc = 2};
        struct scanners_ask *scanners = userdata;
        struct answer_scanners *answer = &scanners->answer;

        if (is_lost(scanners, reply))
                return;
        answer->blind |= is_refused(reply);
        answer->members_known = reply->type == REDIS_REPLY_INTEGER && reply->integer >= 0;
        if (answer->members_known)
                answer->members = (uint64_t)MIN(reply->integer, (long long)UINT32_MAX);
        send_next(scanners, on_scanners, &info, 0);
}

static void ask_members(struct scanners_ask *scanners)
{
        const struct heartbeat_format *heartbeats = ask_format(scanners->ask)->heartbeats;
        const char *namespace = ask_namespace(scanners->ask);
        struct redis_command command;
        int r = command_make(&command, heartbeats->key(namespace, heartbeats->set, NULL), WORDS("SCARD"));

        send_next(scanners, on_members, &command, r);
}

static void on_joined(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct scanners_ask *scanners = userdata;

        if (is_lost(scanners, reply))
                return;
        scanners->answer.blind = is_refused(reply);
        ask_members(scanners);
}

void ask_scanners(struct ask *ask)
{
        struct redis_command join = {.argv = {"CLIENT", "TRACKING", "ON", "OPTIN"}, .argc = 4};
        struct scanners_ask *scanners = calloc(1, sizeof(*scanners));

        if (!scanners) {
                ask_fail_errno(ask, -ENOMEM);
                return;
        }
        scanners->ask = ask;
        if (ask_query(ask)->numbers[0] != 0)
                send_next(scanners, on_joined, &join, 0);
        else
                ask_members(scanners);
}

static void on_left(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        ask_done_unless_failed(userdata, reply);
}

void ask_scan_leave(struct ask *ask)
{
        struct redis_command leave = {.argv = {"CLIENT", "TRACKING", "OFF"}, .argc = 3};

        ask_command(ask, on_left, &leave, true);
}
