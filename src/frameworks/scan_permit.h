/* SPDX-License-Identifier: MIT */
/* Coordinates the scans of sets of identities by the hosts of one server (observe/scan_throttle.h).
 *
 * A host that wants to scan has the server count its connection (reader/scan_asks.c). If the server gives no
 * such count, each host scans as if it were alone. */
#pragma once

#include "observe/scan_throttle.h"

struct reader;

/* open: the scan may be made now. Called once for each scan_permit_request() that returned 0, also if the
 * connection was lost, and never from within that call. reader_free() calls back from within, too. */
typedef void (*scan_permit_fn)(bool open, void *userdata);

struct scan_permit {
        struct reader *reader; /* not owned */
        scan_permit_fn callback;
        void *userdata;
        struct scan_throttle scan_throttle;
        struct scan_throttle_reading reading; /* the reading in progress */
        bool counted;                         /* the host is among the scanners */
        bool blind;                           /* the server gives no count */
};

/* nsec: see scan_throttle_reading. scan_permit must stay valid until the callback of each
 * scan_permit_request() has run. */
void scan_permit_init(struct scan_permit *scan_permit, struct reader *reader, unsigned nsec,
                      scan_permit_fn callback, void *userdata);
/* Call for each new connection: the server does not count this host any more, and may be one that gives a
 * count. */
void scan_permit_connected(struct scan_permit *scan_permit);
/* True if many hosts wanted to scan at the last reading. */
bool scan_permit_is_contended(const struct scan_permit *scan_permit);
/* Requests a scan; see scan_throttle_request(). Returns true if scan_permit_request() is due. */
bool scan_permit_want(struct scan_permit *scan_permit, usec_t now, bool may_find);
/* Returns 0: the callback follows; 1: scan at once, the callback is not called; -ENOTCONN or -ENOMEM.
 * scans: see scan_throttle_reading. */
int scan_permit_request(struct scan_permit *scan_permit, unsigned scans);
/* Withdraws the request for a scan. */
void scan_permit_cancel(struct scan_permit *scan_permit);
