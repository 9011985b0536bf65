/* SPDX-License-Identifier: MIT */
/* The story of one worker: its events, and what is known of it now. No I/O. */
#pragma once

#include "ctl/screen.h"
#include "wire/json.h"

struct worker_report {
        const char *id;         /* borrowed */
        json_t *status;         /* borrowed; so are the two below */
        json_t *fleet, *worker; /* of status; NULL: not there */
        json_t *events;         /* owned: its own and those of its fleet and of all, oldest first */
        size_t n_own;           /* its own among them */
        bool from_start;        /* they begin with its start */
        bool earlier_lives;     /* others have had its id */
};

/* Finds in the replies of GetStatus and GetEvents what there is of the worker. *ret holds no more than what
 * is borrowed where it fails, but for the events. Returns 0, or -ENOMEM. */
int worker_report_find(struct worker_report *ret, const char *id, json_t *status, json_t *events);

/* Tells it. */
void worker_report_print(FILE *out, const struct worker_report *worker_report, const struct view *view);
