/* SPDX-License-Identifier: MIT */
/* Limits on the clients of the HTTP server, and its counters for the metrics. */
#pragma once

#include "base/macro.h"

struct http_counts {
        unsigned connections, streams; /* open now; streams are also counted as connections */
        uint64_t requests;
        uint64_t refused; /* connections closed to free a slot or after a timeout */
};

struct http_limits {
        unsigned connections;
        unsigned streams;    /* maximum streams among the connections */
        usec_t wait_usec;    /* for reading a whole request, from the last response or the start of the
                                connection */
        usec_t answer_usec;  /* for the client to read a whole response */
        usec_t message_usec; /* for the client to read a whole message of a stream */
        size_t unread_bytes; /* of all texts together that clients are reading; a text that many clients read
                                counts once */
};
