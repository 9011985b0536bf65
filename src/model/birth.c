/* SPDX-License-Identifier: MIT */
/* Decides whether a record belongs to a process; see the header. */
#include "model/birth.h"
#include "model/world.h"

/* True if the wall clock was not stepped back while a record may have been written that still exists. */
static bool clock_is_steady(const struct birth *birth, const struct world *world, usec_t lasts_usec)
{
        const struct doubt *doubt = &world->doubt;

        /* A step since the last tick is not recorded yet. */
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
