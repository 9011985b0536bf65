/* SPDX-License-Identifier: MIT */
/* A socket on which connections are taken: TCP, or at a path. */
#pragma once

#include "web/address.h"
#include <systemd/sd-event.h>

struct web_listener {
        int fd;
        struct address address;
        sd_event_source *io; /* whoever opens it adds it */
};

/* Returns 0 with *listener filled, or -errno with a sentence in error. */
int web_listener_open(struct web_listener *listener, const struct address *address, char *error,
                      size_t error_size);
/* Closes it, and removes the path. */
void web_listener_close(struct web_listener *listener);
