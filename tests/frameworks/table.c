/* SPDX-License-Identifier: MIT */
/* The table of frameworks of a sqmgr for tests: it has the probe alone, in the place of
 * src/frameworks/table.c. */
#include "frameworks/table.h"
#include "probe/probe.h"
#include <signal.h>

static const struct framework probe = {
        .traits = &probe_traits,
        .stop_signal = SIGTERM,
        .identity_parse = probe_identity_parse,
};

const struct traits *const framework_traits[] = {&probe_traits, NULL};

const struct traits *framework_traits_find(unsigned id)
{
        return id == probe_traits.id ? &probe_traits : NULL;
}

const struct framework *framework_of(_unused_ const struct traits *traits)
{
        return &probe;
}

/* The probe writes no heartbeat files. */
int framework_take_record(_unused_ const char *text, _unused_ size_t len,
                          _unused_ struct heartbeat_record *ret)
{
        return -EINVAL;
}
