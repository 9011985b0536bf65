/* SPDX-License-Identifier: MIT */
/* Waits for the end of something in sqmgr: one call that replies again and again, or the same call each
 * second. Each reply is shown, and a connection that is lost is made again. */
#pragma once

#include "ctl/ctl.h"
#include "ctl/screen.h"

struct follow {
        struct ctl *ctl;
        void *userdata;
        /* Sends the call by client_send(). */
        int (*send)(struct follow *follow);
        /* Shows a reply; follow_keep() makes it the last one. Sets ended where nothing more is waited for. */
        int (*take)(struct follow *follow, json_t *reply);
        /* No reply came, code says why: CTL_LOST and CTL_OLDER were not told. CTL_DONE: the call is repeated.
         */
        int (*fail)(struct follow *follow, int code);
        /* Paints the last reply, where live. userdata is the follow. */
        void (*draw)(FILE *out, const struct view *view, void *userdata);
        int (*end)(struct follow *follow); /* tells how it has ended; NULL: there is nothing to tell */
        const char *what;     /* "restart": what continues while the connection is lost; NULL: nothing */
        const char *detached; /* the sentence for a signal that ends it; NULL: that is how it ends well */
        bool each_second;     /* the call is repeated, else it replies until it has ended */
        bool quiet;           /* errors are not told, but kept in why */
        bool live, whole; /* the last reply is painted on the terminal; takes all of it, and `q` ends it */

        bool ended, painted;
        usec_t until;   /* a lost connection is not tried for longer, and the call not repeated later */
        usec_t next_at; /* the call is not sent before */
        json_t *reply;  /* the last one, owned; NULL: none came yet */
        char why[512];  /* why there is no newer one, "": there is */
};

/* Runs until it has ended. The call may have been sent before. Returns an exit code; what follow owns is
 * released. */
int follow_run(struct follow *follow);

void follow_keep(struct follow *follow, json_t *reply);

/* For fail(): the connection is lost, which is told once. Returns CTL_DONE, or CTL_LOST where it was tried
 * for long enough. */
int follow_away(struct follow *follow);
