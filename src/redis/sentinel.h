/* SPDX-License-Identifier: MIT */
/* Asks Sentinels for the address of the master, and subscribes to one of them for failovers. Never blocks the
 * loop. */
#pragma once

#include "wire/quoted.h"
#include <systemd/sd-event.h>

struct redis_settings;
struct sentinel;
struct tls;

/* All callbacks run from the loop, never from within a function of this file. A callback may do anything. */
struct sentinel_ops {
        /* The subscribed Sentinel names this master: as its answer, after a failover, or because another
         * Sentinel replaced the subscribed one. host, a name or an address, is valid during the call. The
         * caller must verify that the server is a master. */
        void (*on_master)(const char *host, unsigned port, void *userdata);
        /* No Sentinel could name the master after sentinel_locate(). */
        void (*on_none)(const struct error_report *why, void *userdata);
};

/* Copies sentinels, master_name, sentinel_password and the timeouts from settings. tls is for the connections
 * to Sentinels; NULL: no TLS. ops and tls must stay valid. Returns 0 with *ret to be freed by
 * sentinel_free(); or -errno. */
int sentinel_new(sd_event *event, const struct redis_settings *settings, struct tls *tls,
                 const struct sentinel_ops *ops, void *userdata, struct sentinel **ret);
/* See redis_on_decoding(). */
void sentinel_on_decoding(struct sentinel *sentinel, void (*decoding)(bool begins, void *userdata),
                          void *userdata);
/* Returns NULL. */
struct sentinel *sentinel_free(struct sentinel *sentinel);

/* Asks the Sentinels one after another, starting with the last that answered. on_master() follows the first
 * answer; on_none() follows if none answers. */
void sentinel_locate(struct sentinel *sentinel);
/* Reports that the named server is not a master. The next sentinel_locate() starts with the next Sentinel. */
void sentinel_distrust(struct sentinel *sentinel);
