/* SPDX-License-Identifier: MIT */
/* Asks Sentinels where the master is, and listens to one of them for its moves. It never blocks the loop. */
#pragma once

#include <systemd/sd-event.h>

struct redis_settings;
struct sentinel;
struct tls;

/* All are called from the loop, never from within a function of this file; everything is allowed in them. */
struct sentinel_ops {
        /* The Sentinel that is listened to names this master: it was asked, or says that the master moved, or
         * another one took its place. host, a name or an address, is valid for the call. Whether it is a
         * master is for the caller to see. */
        void (*on_master)(const char *host, unsigned port, void *userdata);
        /* None of them could say, after sentinel_locate(). why: a sentence without secrets. */
        void (*on_none)(const char *why, void *userdata);
};

/* Of the settings sentinels, master_name, sentinel_password and the timeouts are used, and copied. tls, which
 * must stay as ops must: for the Sentinels, NULL: without. Returns 0 with *ret to be freed by
 * sentinel_free(); or -errno. */
int sentinel_new(sd_event *event, const struct redis_settings *settings, struct tls *tls,
                 const struct sentinel_ops *ops, void *userdata, struct sentinel **ret);
/* Returns NULL. */
struct sentinel *sentinel_free(struct sentinel *sentinel);

/* Asks them in turn, the one that answered last first, until one answers: then on_master() follows; else
 * on_none(). */
void sentinel_locate(struct sentinel *sentinel);
/* What was named last is no master: the next in turn is asked first. */
void sentinel_doubt(struct sentinel *sentinel);
