/* SPDX-License-Identifier: MIT */
/* Whose turn it is to walk; see the header. */
#include "frameworks/gate.h"
#include "base/macro.h"
#include "frameworks/decode.h"
#include "io/asks.h"
#include "io/clock.h"
#include "io/redis.h"
#include <hiredis/hiredis.h>
#include <limits.h>
#include <string.h>
#include <sys/random.h>

#define COUNT_FIELD "\ntracking_clients:"

void gate_connected(struct gate *gate)
{
        gate->counted = gate->blind = false;
}

bool gate_is_crowded(const struct gate *gate)
{
        return gate->scan_throttle.gap > SCAN_THROTTLE_CONTENDED_USEC;
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
        if (scan_throttle_request(&gate->scan_throttle, now, may_find))
                return gate->blind || scan_throttle_is_due(&gate->scan_throttle, now);
        leave(gate);
        return false;
}

void gate_rest(struct gate *gate)
{
        scan_throttle_cancel(&gate->scan_throttle);
        leave(gate);
}

/* An error may pass, as BUSY does; one of these stays. */
static bool is_refused(const redisReply *reply)
{
        return reply->type == REDIS_REPLY_ERROR &&
               (strncmp(reply->str, "NOPERM", 6) == 0 || strncmp(reply->str, "ERR", 3) == 0);
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

static void take_walkers(struct gate *gate, const redisReply *reply)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);
        uint32_t lot = 0;

        (void)getrandom(&lot, sizeof(lot), GRND_NONBLOCK);
        gate->reading.scanners = count_walkers(reply);
        gate->blind |= reply->type == REDIS_REPLY_STRING && gate->reading.scanners == 0;
        gate->open = gate->blind || (gate->read && gate->reading.scanners > 0 &&
                                     scan_throttle_decide(&gate->scan_throttle, &gate->reading, lot, now));
}

enum { ASK_COUNTED, ASK_MEMBERS, ASK_WALKERS };

static void on_reply(const redisReply *reply, size_t tag, void *userdata)
{
        struct gate *gate = userdata;

        if (!reply)
                return;
        gate->blind |= is_refused(reply);
        if (tag == ASK_MEMBERS && reply->type == REDIS_REPLY_INTEGER && reply->integer >= 0) {
                gate->read = true;
                gate->reading.members = (uint64_t)reply->integer;
        }
        if (tag == ASK_WALKERS)
                take_walkers(gate, reply);
}

static void on_done(void *userdata)
{
        struct gate *gate = userdata;

        gate->callback(gate->open, gate->userdata);
}

int gate_init(struct gate *gate, struct redis *redis, unsigned nsec, gate_fn callback, void *userdata)
{
        static const struct asks_ops ops = {.reply = on_reply, .done = on_done};

        *gate = (struct gate){
                .redis = redis, .callback = callback, .userdata = userdata, .reading = {.nsec = nsec}};
        return asks_new(&ops, gate, &gate->asks);
}

int gate_ask(struct gate *gate, const char *set_key, unsigned scans)
{
        const char *const on[] = {"CLIENT", "TRACKING", "ON", "OPTIN"};
        const char *const members[] = {"SCARD", set_key};
        const char *const scanners[] = {"INFO", "clients"};
        int r = 0;

        if (gate->blind)
                return 1;
        gate->reading.scans = scans;
        gate->read = gate->open = false;
        if (!gate->counted)
                gate->counted =
                        (r = asks_add(gate->asks, gate->redis, ASK_COUNTED, ELEMENTSOF(on), on, NULL)) == 0;
        if (r == 0)
                r = asks_add(gate->asks, gate->redis, ASK_MEMBERS, ELEMENTSOF(members), members, NULL);
        if (r == 0)
                r = asks_add(gate->asks, gate->redis, ASK_WALKERS, ELEMENTSOF(scanners), scanners, NULL);
        return asks_pending(gate->asks) > 0 ? 0 : r;
}
