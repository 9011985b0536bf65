/* SPDX-License-Identifier: MIT */
/* A listening socket: TCP, or Unix at a path. */
#pragma once

#include "web/address.h"
#include <systemd/sd-event.h>

struct web_listener {
        int fd;
        struct address address;
        sd_event_source *io; /* added by the caller */
};

/* Returns 0 with *listener set, or -errno with a sentence in error. */
int web_listener_open(struct web_listener *listener, const struct address *address, char *error,
                      size_t error_size);
/* Closes the socket and removes its path. */
void web_listener_close(struct web_listener *listener);
