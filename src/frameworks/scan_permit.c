/* SPDX-License-Identifier: MIT */
/* Decides whether this host may scan now; see the header. */
#include "frameworks/scan_permit.h"
#include "io/clock.h"
#include "servers/server.h"
#include <sys/random.h>

void scan_permit_connected(struct scan_permit *scan_permit)
{
        scan_permit->counted = scan_permit->blind = false;
}

bool scan_permit_is_contended(const struct scan_permit *scan_permit)
{
        return scan_permit->scan_throttle.gap > SCAN_THROTTLE_CONTENDED_USEC;
}

/* An error is ignored: if the query cannot be sent, the connection is lost and this host is not counted. */
static void leave(struct scan_permit *scan_permit)
{
        const struct query query = {.kind = QUERY_SCAN_LEAVE};

        if (scan_permit->counted)
                (void)reader_ask(scan_permit->reader, &query, NULL, NULL);
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

static bool decide(struct scan_permit *scan_permit, const struct answer_scanners *answer)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);
        uint32_t lot = 0;

        (void)getrandom(&lot, sizeof(lot), GRND_NONBLOCK);
        scan_permit->reading.members = answer->members;
        scan_permit->reading.scanners = answer->scanners;
        scan_permit->blind |= answer->blind;
        return scan_permit->blind ||
               (answer->members_known && answer->scanners > 0 &&
                scan_throttle_decide(&scan_permit->scan_throttle, &scan_permit->reading, lot, now));
}

static void on_scanners(struct answer *answer, void *userdata)
{
        struct scan_permit *scan_permit = userdata;

        scan_permit->callback(answer->status == ANSWER_OK && decide(scan_permit, &answer->scanners),
                              scan_permit->userdata);
}

void scan_permit_init(struct scan_permit *scan_permit, struct reader *reader, unsigned nsec,
                      scan_permit_fn callback, void *userdata)
{
        *scan_permit = (struct scan_permit){
                .reader = reader, .callback = callback, .userdata = userdata, .reading = {.nsec = nsec}};
}

int scan_permit_request(struct scan_permit *scan_permit, unsigned scans)
{
        const struct query query = {.kind = QUERY_SCANNERS, .numbers = {!scan_permit->counted}};

        if (scan_permit->blind)
                return 1;
        scan_permit->reading.scans = scans;
        int r = reader_ask(scan_permit->reader, &query, on_scanners, scan_permit);
        scan_permit->counted |= r == 0;
        return r;
}
