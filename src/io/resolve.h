/* SPDX-License-Identifier: MIT */
/* Looks up the addresses of a host name without blocking the loop: a thread of its own asks. */
#pragma once

#include "base/macro.h"
#include <systemd/sd-event.h>

#define RESOLVE_ADDRESSES_MAX 8
#define RESOLVE_ADDRESS_SIZE  80 /* numeric, with an IPv6 zone */

struct resolve_answer {
        int error; /* of getaddrinfo(): 0, or a value for gai_strerror() */
        unsigned n_addresses;
        char addresses[RESOLVE_ADDRESSES_MAX][RESOLVE_ADDRESS_SIZE];
};

struct resolve;

/* Called once, from the loop; the query may be freed in it. */
typedef void (*resolve_fn)(const struct resolve_answer *answer, void *userdata);

/* Is it an address in digits, which needs no look-up? */
bool resolve_is_numeric(const char *host);

/* Begins a query, to be freed by resolve_free(), also after its answer. Returns 0 or -errno. */
int resolve_start(sd_event *event, const char *host, resolve_fn callback, void *userdata,
                  struct resolve **ret);

/* Ends the query; where no answer has come, none will. The thread ends by itself. Returns NULL. */
struct resolve *resolve_free(struct resolve *resolve);
