/* SPDX-License-Identifier: MIT */
/* Decides whether this host may scan now; see the header. */
#include "frameworks/scan_permit.h"
#include "base/macro.h"
#include "frameworks/decode.h"
#include "io/clock.h"
#include "redis/redis.h"
#include "redis/redis_batch.h"
#include <hiredis/hiredis.h>
#include <limits.h>
#include <string.h>
#include <sys/random.h>

#define COUNT_FIELD "\ntracking_clients:"

void scan_permit_connected(struct scan_permit *scan_permit)
{
        scan_permit->counted = scan_permit->blind = false;
}

bool scan_permit_is_contended(const struct scan_permit *scan_permit)
{
        return scan_permit->scan_throttle.gap > SCAN_THROTTLE_CONTENDED_USEC;
}

/* An error is ignored: if the command cannot be sent, the connection is lost and tracking with it. */
static void leave(struct scan_permit *scan_permit)
{
        const char *const off[] = {"CLIENT", "TRACKING", "OFF"};

        if (scan_permit->counted)
                (void)redis_command_forbiddable(scan_permit->redis, NULL, NULL, ELEMENTSOF(off), off, NULL);
        scan_permit->counted = false;
}

bool scan_permit_want(struct scan_permit *scan_permit, usec_t now, bool may_find)
{
        if (scan_throttle_request(&scan_permit->scan_throttle, now, may_find))
                return scan_permit->blind || scan_throttle_is_due(&scan_permit->scan_throttle, now);
        leave(scan_permit);
        return false;
}

void scan_permit_cancel(struct scan_permit *scan_permit)
{
        scan_throttle_cancel(&scan_permit->scan_throttle);
        leave(scan_permit);
}

/* NOPERM and ERR are permanent; other errors, such as BUSY, may pass. */
static bool is_refused(const redisReply *reply)
{
        return reply->type == REDIS_REPLY_ERROR &&
               (strncmp(reply->str, "NOPERM", 6) == 0 || strncmp(reply->str, "ERR", 3) == 0);
}

/* Returns 0 if Redis does not report the count. */
static uint64_t count_scanners(const redisReply *reply)
{
        unsigned long long n;
        const char *at = reply->type == REDIS_REPLY_STRING ? strstr(reply->str, COUNT_FIELD) : NULL;

        if (!at)
                return 0;
        at += strlen(COUNT_FIELD);
        return decode_count(at, strspn(at, "0123456789"), UINT_MAX, &n) ? n : 0;
}

static void take_scanners(struct scan_permit *scan_permit, const redisReply *reply)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);
        uint32_t lot = 0;

        (void)getrandom(&lot, sizeof(lot), GRND_NONBLOCK);
        scan_permit->reading.scanners = count_scanners(reply);
        scan_permit->blind |= reply->type == REDIS_REPLY_STRING && scan_permit->reading.scanners == 0;
        scan_permit->open = scan_permit->blind || (scan_permit->read && scan_permit->reading.scanners > 0 &&
                                                   scan_throttle_decide(&scan_permit->scan_throttle,
                                                                        &scan_permit->reading, lot, now));
}

enum { ASK_COUNTED, ASK_MEMBERS, ASK_SCANNERS };

static void on_reply(const redisReply *reply, size_t tag, void *userdata)
{
        struct scan_permit *scan_permit = userdata;

        if (!reply)
                return;
        scan_permit->blind |= is_refused(reply);
        if (tag == ASK_MEMBERS && reply->type == REDIS_REPLY_INTEGER && reply->integer >= 0) {
                scan_permit->read = true;
                scan_permit->reading.members = (uint64_t)reply->integer;
        }
        if (tag == ASK_SCANNERS)
                take_scanners(scan_permit, reply);
}

static void on_done(void *userdata)
{
        struct scan_permit *scan_permit = userdata;

        scan_permit->callback(scan_permit->open, scan_permit->userdata);
}

int scan_permit_init(struct scan_permit *scan_permit, struct redis *redis, unsigned nsec,
                     scan_permit_fn callback, void *userdata)
{
        static const struct redis_batch_ops ops = {.reply = on_reply, .done = on_done};

        *scan_permit = (struct scan_permit){
                .redis = redis, .callback = callback, .userdata = userdata, .reading = {.nsec = nsec}};
        return redis_batch_new(&ops, scan_permit, &scan_permit->redis_batch);
}

int scan_permit_request(struct scan_permit *scan_permit, const char *set_key, unsigned scans)
{
        const char *const on[] = {"CLIENT", "TRACKING", "ON", "OPTIN"};
        const char *const members[] = {"SCARD", set_key};
        const char *const scanners[] = {"INFO", "clients"};
        int r = 0;

        if (scan_permit->blind)
                return 1;
        scan_permit->reading.scans = scans;
        scan_permit->read = scan_permit->open = false;
        if (!scan_permit->counted)
                scan_permit->counted = (r = redis_batch_add(scan_permit->redis_batch, scan_permit->redis,
                                                            ASK_COUNTED, ELEMENTSOF(on), on, NULL)) == 0;
        if (r == 0)
                r = redis_batch_add(scan_permit->redis_batch, scan_permit->redis, ASK_MEMBERS,
                                    ELEMENTSOF(members), members, NULL);
        if (r == 0)
                r = redis_batch_add(scan_permit->redis_batch, scan_permit->redis, ASK_SCANNERS,
                                    ELEMENTSOF(scanners), scanners, NULL);
        return redis_batch_pending(scan_permit->redis_batch) > 0 ? 0 : r;
}
