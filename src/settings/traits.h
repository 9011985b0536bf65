/* SPDX-License-Identifier: MIT */
/* What settings and model must know of a framework: data, given by the framework's own folder. */
#pragma once

#include "base/usec.h"

struct traits {
        const char *name;     /* as the ini file has it */
        unsigned id;          /* stands in state files: never changed, never given again */
        usec_t shutdown_usec; /* its own time for running jobs once it is told to stop */
        usec_t stale_usec;    /* a beat unchanged for longer is no evidence */
};
