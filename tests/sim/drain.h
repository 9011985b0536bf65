/* SPDX-License-Identifier: MIT */
/* Drains that do not end: sqmgr is asked to exit and killed in the middle of its drain, twice in a row. */
#pragma once

struct sim;

/* Adds the drains to the schedule of some worlds. */
void drains_open(struct sim *sim);
/* sqmgr has started, and adopted the workers of the last one. */
void drains_continued(struct sim *sim);
/* Checks that a worker that the last sqmgr has quieted keeps its place only until two of its heartbeats were
 * read that say idle. */
void drains_check(struct sim *sim, unsigned number);
