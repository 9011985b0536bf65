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

/* Whether it is counted shows in the count. */
static int have_counted(struct gate *gate, bool counted)
{
        const char *const on[] = {"CLIENT", "TRACKING", "ON", "OPTIN"};
        const char *const off[] = {"CLIENT", "TRACKING", "OFF"};
        int r = counted ? redis_command_forbiddable(gate->redis, NULL, NULL, ELEMENTSOF(on), on, NULL)
                        : redis_command_forbiddable(gate->redis, NULL, NULL, ELEMENTSOF(off), off, NULL);

        if (r == 0)
                gate->counted = counted;
        return r;
}

/* What cannot be sent is lost with the connection. */
static void leave(struct gate *gate)
{
        if (gate->counted)
                (void)have_counted(gate, false);
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

static void on_members(_unused_ struct redis *redis, const redisReply *reply, void *userdata)
{
        struct gate *gate = userdata;

        gate->read = reply && reply->type == REDIS_REPLY_INTEGER && reply->integer >= 0;
        if (gate->read)
                gate->reading.members = (uint64_t)reply->integer;
        gate->blind |= reply && is_refused(reply);
        if (gate->halved)
                gate->callback(false, gate->userdata);
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
        bool open = reply && (gate->blind || (gate->read && gate->reading.walkers > 0 &&
                                              pace_read(&gate->pace, &gate->reading, lot, now)));
        gate->callback(open, gate->userdata);
}

int gate_ask(struct gate *gate, const char *set_key, unsigned walks)
{
        const char *const members[] = {"SCARD", set_key};
        const char *const walkers[] = {"INFO", "clients"};

        if (gate->blind)
                return 1;
        gate->reading.walks = walks;
        int r = gate->counted ? 0 : have_counted(gate, true);
        if (r < 0)
                return r;
        r = redis_command_forbiddable(gate->redis, on_members, gate, ELEMENTSOF(members), members, NULL);
        if (r < 0)
                return r;
        gate->halved = redis_command_forbiddable(gate->redis, on_walkers, gate, ELEMENTSOF(walkers), walkers,
                                                 NULL) < 0;
        return 0;
}
