/* SPDX-License-Identifier: MIT */
/* Whose turn it is to walk; see the header. */
#include "frameworks/gate.h"
#include "base/macro.h"
#include "frameworks/decode.h"
#include "io/clock.h"
#include <hiredis/hiredis.h>
#include <limits.h>
#include <string.h>
#include <sys/random.h>

#define COUNT_FIELD "\ntracking_clients:"

void gate_init(struct gate *gate, struct redis *redis, unsigned nsec, gate_fn callback, void *userdata)
{
        *gate = (struct gate){
                .redis = redis, .callback = callback, .userdata = userdata, .reading = {.nsec = nsec}};
}

void gate_connected(struct gate *gate)
{
        gate->counted = gate->blind = false;
}

bool gate_is_crowded(const struct gate *gate)
{
        return gate->pace.gap > PACE_CROWD_USEC;
}

/* What cannot be sent is lost with the connection. */
static void leave(struct gate *gate)
{
        const char *const off[] = {"CLIENT", "TRACKING", "OFF"};

        if (gate->counted)
                (void)redis_command_forbiddable(gate->redis, NULL, NULL, ELEMENTSOF(off), off, NULL);
        gate->counted = false;
}

bool gate_wish(struct gate *gate, usec_t now, bool may_find)
{
        if (pace_wish(&gate->pace, now, may_find))
                return gate->blind || pace_asks(&gate->pace, now);
        leave(gate);
        return false;
}

void gate_rest(struct gate *gate)
{
        pace_rest(&gate->pace);
        leave(gate);
}

/* An error may pass, as BUSY does; one of these stays. */
static bool is_refused(const redisReply *reply)
{
        return reply->type == REDIS_REPLY_ERROR &&
               (strncmp(reply->str, "NOPERM", 6) == 0 || strncmp(reply->str, "ERR", 3) == 0);
}

static void replied(struct gate *gate)
{
        if (--gate->pending == 0)
                gate->callback(gate->open, gate->userdata);
}

static void on_counted(_unused_ struct redis *redis, const redisReply *reply, void *userdata)
{
        struct gate *gate = userdata;

        gate->blind |= reply && is_refused(reply);
        replied(gate);
}

static void on_members(_unused_ struct redis *redis, const redisReply *reply, void *userdata)
{
        struct gate *gate = userdata;

        gate->read = reply && reply->type == REDIS_REPLY_INTEGER && reply->integer >= 0;
        if (gate->read)
                gate->reading.members = (uint64_t)reply->integer;
        gate->blind |= reply && is_refused(reply);
        replied(gate);
}

/* Returns 0 where it is not told. */
static uint64_t count_walkers(const redisReply *reply)
{
        unsigned long long n;
        const char *at = reply->type == REDIS_REPLY_STRING ? strstr(reply->str, COUNT_FIELD) : NULL;

        if (!at)
                return 0;
        at += strlen(COUNT_FIELD);
        return decode_count(at, strspn(at, "0123456789"), UINT_MAX, &n) ? n : 0;
}

static void on_walkers(_unused_ struct redis *redis, const redisReply *reply, void *userdata)
{
        struct gate *gate = userdata;
        usec_t now = clock_now(CLOCK_MONOTONIC);
        uint32_t lot = 0;

        (void)getrandom(&lot, sizeof(lot), GRND_NONBLOCK);
        gate->reading.walkers = reply ? count_walkers(reply) : 0;
        gate->blind |= reply && (is_refused(reply) ||
                                 (reply->type == REDIS_REPLY_STRING && gate->reading.walkers == 0));
        gate->open = reply && (gate->blind || (gate->read && gate->reading.walkers > 0 &&
                                               pace_read(&gate->pace, &gate->reading, lot, now)));
        replied(gate);
}

static int send(struct gate *gate, redis_reply_fn callback, int argc, const char *const argv[])
{
        int r = redis_command_forbiddable(gate->redis, callback, gate, argc, argv, NULL);

        gate->pending += r == 0;
        return r;
}

int gate_ask(struct gate *gate, const char *set_key, unsigned walks)
{
        const char *const on[] = {"CLIENT", "TRACKING", "ON", "OPTIN"};
        const char *const members[] = {"SCARD", set_key};
        const char *const walkers[] = {"INFO", "clients"};
        int r = 0;

        if (gate->blind)
                return 1;
        gate->reading.walks = walks;
        gate->read = gate->open = false;
        if (!gate->counted)
                gate->counted = (r = send(gate, on_counted, ELEMENTSOF(on), on)) == 0;
        if (r == 0)
                r = send(gate, on_members, ELEMENTSOF(members), members);
        if (r == 0)
                r = send(gate, on_walkers, ELEMENTSOF(walkers), walkers);
        return gate->pending > 0 ? 0 : r;
}
