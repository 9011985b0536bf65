/* SPDX-License-Identifier: MIT */
/* Decides when a host may scan the set of all identities; see the header. */
#include "observe/scan_throttle.h"

/* The scans of all hosts together may take one part in this many of Redis' time. */
#define SHARE 20

usec_t scan_throttle_gap(const struct scan_throttle_reading *reading)
{
        uint64_t usec;

        if (__builtin_mul_overflow(reading->members, reading->scanners, &usec) ||
            __builtin_mul_overflow(usec, (uint64_t)reading->nsec * reading->scans * SHARE, &usec))
                return SCAN_THROTTLE_GAP_MAX_USEC;
        return MIN(usec / 1000, SCAN_THROTTLE_GAP_MAX_USEC);
}

bool scan_throttle_request(struct scan_throttle *scan_throttle, usec_t now, bool may_find)
{
        if (!may_find && scan_throttle->gap > SCAN_THROTTLE_CONTENDED_USEC) {
                scan_throttle->requested_at = 0;
                return false;
        }
        if (scan_throttle->requested_at == 0) {
                scan_throttle->requested_at = scan_throttle->ask_at = now;
                scan_throttle->read_at = 0;
        }
        return true;
}

void scan_throttle_cancel(struct scan_throttle *scan_throttle)
{
        scan_throttle->requested_at = scan_throttle->gap = 0;
}

bool scan_throttle_is_due(const struct scan_throttle *scan_throttle, usec_t now)
{
        return scan_throttle->requested_at != 0 && now >= scan_throttle->ask_at;
}

static bool is_drawn(usec_t span, usec_t gap, uint32_t lot)
{
        return span >= gap || lot < (span << 32) / gap;
}

bool scan_throttle_decide(struct scan_throttle *scan_throttle, const struct scan_throttle_reading *reading,
                          uint32_t lot, usec_t now)
{
        usec_t gap = scan_throttle_gap(reading);
        bool scans;

        if (scan_throttle->read_at == 0)
                scans = gap <= SCAN_THROTTLE_AT_ONCE_USEC && usec_sub(now, scan_throttle->scanned_at) >= gap;
        else
                /* Other hosts may have joined or left at any time since. */
                scans = is_drawn(usec_sub(now, scan_throttle->read_at), MAX(scan_throttle->gap, gap), lot);
        if (scans)
                scan_throttle->scanned_at = now;
        scan_throttle->gap = gap;
        scan_throttle->read_at = now;
        scan_throttle->ask_at = usec_add(now, MIN(gap, MAX(SCAN_THROTTLE_RETRY_USEC, gap / 50)));
        return scans;
}
