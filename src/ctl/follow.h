/* SPDX-License-Identifier: MIT */
/* Waits until something in sqmgr has ended, by one call with many replies or by the same call each second.
 * Shows each reply, and reconnects after the connection was lost. */
#pragma once

#include "ctl/client.h"
#include "ctl/screen.h"

struct follow {
        struct ctl *ctl;
        void *userdata;
        /* Sends the call by client_send(). */
        int (*send)(struct follow *follow);
        /* Shows a reply, keeps it by follow_keep(), and sets ended if the wait is over. */
        int (*take)(struct follow *follow, json_t *reply);
        /* Called instead of take() when no reply came. CTL_LOST was not printed yet. Returns CTL_DONE to
         * repeat the call. */
        int (*fail)(struct follow *follow, int code);
        /* If live: paints the last reply. userdata is the struct follow. */
        void (*draw)(FILE *out, const struct view *view, void *userdata);
        int (*end)(struct follow *follow); /* prints the outcome; may be NULL */
        const char *what;     /* name of the operation that continues without us, "restart"; NULL: none */
        const char *detached; /* printed when a signal ends the wait; NULL: a signal is the normal end */
        bool each_second;     /* repeat the call; else one call has all replies */
        bool quiet;           /* keep errors in why, print none */
        bool live, whole;     /* paint the last reply; on the whole terminal, where `q` quits */

        bool ended, painted;
        usec_t until;   /* deadline for reconnecting and for the next call */
        usec_t next_at; /* earliest time of the next call */
        json_t *reply;  /* the last reply, owned; may be NULL */
        char why[512];  /* why reply is not current; "": it is */
};

/* Runs until the wait is over. The first call may have been sent already. Returns an exit code and releases
 * the last reply. */
int follow_run(struct follow *follow);

/* Replaces the last reply by a new reference to reply. */
void follow_keep(struct follow *follow, json_t *reply);

/* Called by fail() for a lost connection: prints that once. Returns CTL_DONE while there is time to
 * reconnect, then CTL_LOST. */
int follow_away(struct follow *follow);
