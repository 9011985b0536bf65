/* SPDX-License-Identifier: MIT */
/* Decides whether a record belongs to a process, by the time at which its writer registered. */
#pragma once

#include "base/macro.h"

struct world;

/* A process of this age may have booted, even if /proc does not show a boot. */
#define BIRTH_UNSEEN_BOOT_USEC (10 * USEC_PER_SEC)

/* More than the age of any heartbeat that still counts, and less than time zones differ. */
#define BIRTH_CLOCK_USEC (10 * USEC_PER_MIN)

/* The times of a record, and of the process with its pid. All are in microseconds. */
struct birth {
        uint64_t born_usec; /* when the writer of the record registered, by the writer's wall clock; 0: not
                               recorded */
        uint64_t sent_usec; /* when the writer wrote the record last, by the same clock; for
                               birth_is_foreign() */
        usec_t started_at;  /* when the process was started, by CLOCK_BOOTTIME */
        bool booted;        /* /proc shows that the process has booted */
        usec_t monotonic, boottime, realtime; /* the clocks now */
};

/* Returns true if the process has booted, and the record was registered since the process was started: the
 * writer is then this process, or one of another host that shares the host name and the pid. The second kind
 * shows itself: a booted process has a record too, so a scan that begins from now on finds both.
 *
 * Returns false while the wall clock proves nothing. After a step back, the record of a dead process may look
 * newer than it is, until it has expired: lasts_usec is how long a record lasts without its writer. */
bool birth_is_own(const struct birth *birth, const struct world *world, usec_t lasts_usec);

/* Returns true if another process has registered the record: the record is older than the process. Processes
 * of another host that shares the host name and the pid are distinguished by that, unless they registered
 * later than the process was started, or less than CLOCK_STEP_USEC before.
 *
 * Returns false while the clocks prove nothing: the wall clock was stepped since the process was started, or
 * may have been before this sqmgr began; or the last heartbeat is further than BIRTH_CLOCK_USEC from now, as
 * if the writer's times are in another time zone. */
bool birth_is_foreign(const struct birth *birth, const struct world *world);
