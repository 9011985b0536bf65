/* SPDX-License-Identifier: MIT */
/* Well-known programs for fleets of framework plain: `preset = NAME`. */
#pragma once

#include "base/usec.h"

enum {
        PRESET_NONE = -1,
        PRESET_CELERY,
        PRESET_HUEY,
        PRESET_GOOD_JOB,
        PRESET_SOLID_QUEUE,
        PRESET_DELAYED_JOB,
        PRESET_QUE,
        PRESET_DRAMATIQ,
        PRESET_PUMA,
        _PRESET_MAX,
};

struct preset {
        int stop_signal;
        usec_t stop_usec; /* the longest time to exit, with a margin; 0: as long as the jobs take */
};

extern const struct preset presets[_PRESET_MAX];
