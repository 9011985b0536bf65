/* SPDX-License-Identifier: MIT */
/* When a host may walk through the set of all identities; see the header. */
#include "observe/pace.h"
#include "base/macro.h"

/* All hosts' walks together may take one part in so many of Redis' time. */
#define SHARE 20

usec_t pace_gap(const struct pace_reading *reading)
{
        uint64_t usec;

        if (__builtin_mul_overflow(reading->members, reading->walkers, &usec) ||
            __builtin_mul_overflow(usec, (uint64_t)reading->nsec * reading->walks * SHARE, &usec))
                return PACE_GAP_MAX_USEC;
        return MIN(usec / 1000, PACE_GAP_MAX_USEC);
}

bool pace_wish(struct pace *pace, usec_t now, bool may_find)
{
        if (!may_find && pace->gap > PACE_CROWD_USEC) {
                pace->wished_at = 0;
                return false;
        }
        if (pace->wished_at == 0) {
                pace->wished_at = pace->ask_at = now;
                pace->read_at = 0;
        }
        return true;
}

void pace_rest(struct pace *pace)
{
        pace->wished_at = pace->gap = 0;
}

bool pace_asks(const struct pace *pace, usec_t now)
{
        return pace->wished_at != 0 && now >= pace->ask_at;
}

static bool is_drawn(usec_t span, usec_t gap, uint32_t lot)
{
        return span >= gap || lot < (span << 32) / gap;
}

bool pace_read(struct pace *pace, const struct pace_reading *reading, uint32_t lot, usec_t now)
{
        usec_t gap = pace_gap(reading);
        bool walks;

        if (pace->read_at == 0)
                walks = gap <= PACE_AT_ONCE_USEC && usec_sub(now, pace->walked_at) >= gap;
        else
                /* Others may have come or gone at any time since. */
                walks = is_drawn(usec_sub(now, pace->read_at), MAX(pace->gap, gap), lot);
        if (walks)
                pace->walked_at = now;
        pace->gap = gap;
        pace->read_at = now;
        pace->ask_at = usec_add(now, MIN(gap, MAX(PACE_ASK_USEC, gap / 50)));
        return walks;
}
