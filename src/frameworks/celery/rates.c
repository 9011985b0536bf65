/* SPDX-License-Identifier: MIT */
/* Counts the tasks that a worker begins; see the header. */
#include "frameworks/celery/rates.h"
#include "base/macro.h"

/* Tasks that a node begins between two heartbeats, and within a part of the window. */
#define BEGUN_MAX UINT64_C(100000)

void celery_work_count(struct celery_work *work, uint64_t before, uint64_t processed, usec_t now)
{
        if (work->since[1] == 0 || processed < before) {
                *work = (struct celery_work){.since[1] = now};
                return;
        }
        if (usec_sub(now, work->since[1]) >= CELERY_RATE_PART_USEC) {
                work->since[0] = work->since[1];
                work->begun[0] = work->begun[1];
                work->since[1] = now;
                work->begun[1] = 0;
        }
        if (processed == before)
                return;
        work->begun[1] = MIN(work->begun[1] + MIN(processed - before, BEGUN_MAX), BEGUN_MAX);
        work->begun_at = now;
}

double celery_work_rate(const struct celery_work *work, usec_t now)
{
        usec_t since = work->since[0] ?: work->since[1], elapsed = usec_sub(now, since);

        if (since == 0 || elapsed < CELERY_RATE_MIN_USEC)
                return -1;
        return (double)(work->begun[0] + work->begun[1]) * (double)USEC_PER_SEC / (double)elapsed;
}
