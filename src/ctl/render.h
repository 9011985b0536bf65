/* SPDX-License-Identifier: MIT */
/* Shows what sqmgr tells of its fleets and of events: sentences and tables for people. What returns an int
 * returns CTL_DONE or an exit code. */
#pragma once

#include "ctl/screen.h"
#include "wire/json.h"

/* What GetStatus tells. */
int render_status(FILE *out, json_t *status, const struct view *view);
/* A table of workers; threshold: the memory_threshold of their fleet, 0 where there is none. */
int render_workers(FILE *out, json_t *workers, long long threshold, const struct view *view);
/* One event with its time: a line, where nothing limits its length. */
void render_event(FILE *out, json_t *event, const struct view *view);
