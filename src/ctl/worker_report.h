/* SPDX-License-Identifier: MIT */
/* The story of one worker: its events and its current state. No I/O. */
#pragma once

#include "ctl/screen.h"
#include "wire/json.h"

struct worker_report {
        const char *id;         /* borrowed */
        json_t *status;         /* borrowed; so are fleet and worker */
        json_t *fleet, *worker; /* from status; NULL: not found */
        json_t *events;         /* owned: events of the worker, of its fleet and of sqmgr, oldest first */
        size_t n_own;           /* number of events of the worker */
        bool from_start;        /* events begin with the worker's start */
        bool earlier_workers;   /* an earlier worker had the same id */
};

/* Collects the worker's events and state from the replies of GetEvents and GetStatus. After a failure *ret
 * owns at most events. Returns 0, or -ENOMEM. */
int worker_report_find(struct worker_report *ret, const char *id, json_t *status, json_t *events);

/* Prints the report. */
void worker_report_print(FILE *out, const struct worker_report *worker_report, const struct view *view);
