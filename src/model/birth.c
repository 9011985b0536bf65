/* SPDX-License-Identifier: MIT */
/* Decides whether a record belongs to a process; see the header. */
#include "model/birth.h"
#include "model/world.h"
#include <stdlib.h>

/* /proc rounds the start of a process down to a hundredth of a second. */
#define START_USEC (10 * USEC_PER_MSEC)

/* Returns true if the wall clock was not stepped back within lasts_usec: all records that still exist were
 * written after the last step. */
static bool clock_is_steady(const struct birth *birth, const struct world *world, usec_t lasts_usec)
{
        const struct doubt *doubt = &world->doubt;

        /* doubt->stepped_back_at does not show a step since the last tick. */
        if (doubt_steps_back(doubt, birth->boottime, birth->realtime))
                return false;
        return doubt->stepped_back_at == 0 || usec_sub(birth->monotonic, doubt->stepped_back_at) > lasts_usec;
}

bool birth_is_own(const struct birth *birth, const struct world *world, usec_t lasts_usec)
{
        usec_t age = usec_sub(birth->boottime, birth->started_at);

        return birth->born_usec != 0 && birth->born_usec <= birth->realtime &&
               birth->born_usec >= usec_sub(birth->realtime, age) &&
               (birth->booted || age >= BIRTH_UNSEEN_BOOT_USEC) && clock_is_steady(birth, world, lasts_usec);
}

bool birth_is_foreign(const struct birth *birth, const struct world *world)
{
        const struct doubt *doubt = &world->doubt;
        int64_t lag = (int64_t)(birth->realtime - birth->boottime);
        int64_t started_at = (int64_t)birth->started_at + doubt->steady_lag;

        return birth->born_usec != 0 && doubt->due != 0 &&
               birth->started_at + START_USEC >= doubt->steady_since &&
               llabs(lag - doubt->steady_lag) <= CLOCK_STEP_USEC &&
               llabs((int64_t)(birth->realtime - birth->sent_usec)) <= (int64_t)BIRTH_CLOCK_USEC &&
               (int64_t)birth->born_usec + CLOCK_STEP_USEC < started_at;
}
