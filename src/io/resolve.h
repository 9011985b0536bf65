/* SPDX-License-Identifier: MIT */
/* Resolves a host name in a thread of its own, without blocking the loop. */
#pragma once

#include "base/macro.h"
#include <sys/socket.h>
#include <systemd/sd-event.h>

#define RESOLVE_ADDRESSES_MAX 8
#define RESOLVE_ADDRESS_SIZE  80 /* numeric, with an IPv6 zone */

struct resolve_answer {
        int error; /* result of getaddrinfo(): 0, or a value for gai_strerror() */
        unsigned n_addresses;
        char addresses[RESOLVE_ADDRESSES_MAX][RESOLVE_ADDRESS_SIZE];
};

struct resolve;

/* Called once, from the loop. The callback may free the query. */
typedef void (*resolve_fn)(const struct resolve_answer *answer, void *userdata);

/* Returns true if host is a numeric address, which needs no lookup. */
bool resolve_is_numeric(const char *host);

/* Sets the address that a numeric host and a port mean. Returns its length; 0: host is not numeric. */
socklen_t resolve_numeric(const char *host, unsigned port, struct sockaddr_storage *ret);

/* Looks the host up within this call, for as long as the name servers take. */
void resolve_and_wait(const char *host, struct resolve_answer *ret);

/* Starts a query, to be freed by resolve_free() even after the callback. Returns 0 or -errno. */
int resolve_start(sd_event *event, const char *host, resolve_fn callback, void *userdata,
                  struct resolve **ret);

/* Frees the query. A callback that is still due is not called. The thread ends by itself. Returns NULL. */
struct resolve *resolve_free(struct resolve *resolve);
