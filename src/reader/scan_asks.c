/* SPDX-License-Identifier: MIT */
/* Counts the hosts that scan. A host is counted while its connection has CLIENT TRACKING on, with OPTIN: no
 * key is tracked that way, but Redis counts the clients that have tracking on. Nothing is written, and a host
 * that dies is not counted any more. A Redis before 6, or one whose ACL forbids these commands, gives no
 * count. */
#include "frameworks/decode.h"
#include "frameworks/heartbeat_format.h"
#include "reader/redis_ask.h"
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

static void on_scanners(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct ask *ask = userdata;
        struct answer_scanners *answer = &ask->answer.scanners;

        if (!reply) {
                (void)ask_failed(ask, NULL);
                return;
        }
        answer->scanners = count_scanners(reply);
        answer->blind |= is_refused(reply) || (reply->type == REDIS_REPLY_STRING && answer->scanners == 0);
        ask_done(ask);
}

static void ask_count(struct ask *ask)
{
        struct redis_command info = {.argv = {"INFO", "clients"}, .argc = 2};

        ask_command(ask, on_scanners, &info, true);
}

static void on_members(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct ask *ask = userdata;
        struct answer_scanners *answer = &ask->answer.scanners;

        if (!reply) {
                (void)ask_failed(ask, NULL);
                return;
        }
        answer->blind |= is_refused(reply);
        answer->members_known = reply->type == REDIS_REPLY_INTEGER && reply->integer >= 0;
        if (answer->members_known)
                answer->members = (uint64_t)MIN(reply->integer, (long long)UINT32_MAX);
        ask_count(ask);
}

static void ask_members(struct ask *ask)
{
        const struct heartbeat_format *heartbeats = ask_format(ask)->heartbeats;
        struct redis_command command;

        if (command_make(&command, heartbeats->key(ask_namespace(ask), heartbeats->set, NULL),
                         WORDS("SCARD")) < 0)
                ask_fail_errno(ask, -ENOMEM);
        else
                ask_command(ask, on_members, &command, true);
}

static void on_joined(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct ask *ask = userdata;

        if (!reply) {
                (void)ask_failed(ask, NULL);
                return;
        }
        ask->answer.scanners.blind = is_refused(reply);
        ask_members(ask);
}

void ask_scanners(struct ask *ask)
{
        struct redis_command join = {.argv = {"CLIENT", "TRACKING", "ON", "OPTIN"}, .argc = 4};

        if (ask_query(ask)->numbers[0] != 0)
                ask_command(ask, on_joined, &join, true);
        else
                ask_members(ask);
}

static void on_left(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct ask *ask = userdata;

        if (!ask_failed(ask, reply))
                ask_done(ask);
}

void ask_scan_leave(struct ask *ask)
{
        struct redis_command leave = {.argv = {"CLIENT", "TRACKING", "OFF"}, .argc = 3};

        ask_command(ask, on_left, &leave, true);
}
