/* SPDX-License-Identifier: MIT */
/* Decides whether a record belongs to a process; see the header. */
#include "model/birth.h"
#include "model/world.h"

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
