/* SPDX-License-Identifier: MIT */
/* What the server counts, and the metrics tell. */
#pragma once

#include <stdint.h>

struct http_counts {
        unsigned connections, streams; /* open now; streams are connections, too */
        uint64_t requests;
        uint64_t refused; /* connections ended to make room, or for taking too long */
};
