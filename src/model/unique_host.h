/* SPDX-License-Identifier: MIT */
/* The host name that a worker of a fleet with `namespaced = yes` reports in its heartbeats, so that no other
 * process on any host has the same one. It is derived, not stored: the next sqmgr derives the same. Pure. */
#pragma once

#include "base/macro.h"
#include <stddef.h>

/* Maximum size, with a host name of 255 bytes. */
#define UNIQUE_HOST_MAX 336

struct unique_host {
        const char *boot_id;
        const char *instance;
        const char *fleet;
        unsigned index;
        usec_t started_at; /* identifies the start */
};

/* Writes `FLEET.INDEX.TOKEN` behind the name of this host and a colon: an identity that begins with `HOST:`
 * is known to be of that host. Returns text. */
const char *unique_host(const struct unique_host *of, const char *host, char text[static UNIQUE_HOST_MAX]);

/* Returns the length of the name of the host itself at the start of such a name, or of any other name. */
size_t unique_host_base(const char *text, size_t len);
