/* SPDX-License-Identifier: MIT */
/* Counters of the HTTP server, for the metrics. */
#pragma once

#include <stdint.h>

struct http_counts {
        unsigned connections, streams; /* open now; streams are also counted as connections */
        uint64_t requests;
        uint64_t refused; /* connections closed to free a slot or after a timeout */
};
