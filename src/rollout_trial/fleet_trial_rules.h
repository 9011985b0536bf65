/* SPDX-License-Identifier: MIT */
/* The trial of a fleet: which workers are new and old, what their jobs came to since the last window, and
 * what follows from the verdict. No I/O, no clock. */
#pragma once

#include "rollout_trial/trial_rules.h"
#include <stddef.h>
#include <sys/types.h>

struct codec_reader;
struct codec_writer;
struct fleet;

/* The report of a worker when the current window began. */
struct trial_seen {
        unsigned index;
        pid_t pid; /* pid and start time identify the process uniquely */
        uint64_t start;
        struct trial_counts counts;
};

struct fleet_trial {
        uint64_t generation; /* the one that is judged; 0: none was yet */
        struct trial trial;
        enum trial_verdict verdict;
        usec_t window_at;        /* when the current window began; 0: not yet */
        struct trial_seen *seen; /* owned, ordered by index */
        size_t n_seen;
};

/* Returns true if restarts of the fleet are judged: rollout_trial is set, and old workers remain to compare
 * with. */
bool fleet_is_tried(const struct fleet *fleet);
/* Begins, continues or ends the trial of a running restart, and sets fleet->rollout.limit. now:
 * CLOCK_MONOTONIC. Call before each pass. If memory is short, the trial continues later. */
void fleet_trial_observe(struct fleet *fleet, usec_t now);
/* Frees fleet->trial. */
void fleet_trial_forget(struct fleet *fleet);

/* Writes the trial of a running restart, if any. */
void fleet_trial_pack(const struct fleet *fleet, struct codec_writer *writer);
/* Bytes that are wrong are ignored. */
void fleet_trial_unpack(struct fleet *fleet, struct codec_reader *reader);

/* "62 of 1000 jobs failed in new workers (6.2%), 100 of 5000 in old ones (2.0%)". Returns text. */
#define TRIAL_TEXT_MAX 160
const char *trial_text(const struct trial *trial, char text[static TRIAL_TEXT_MAX]);
const char *trial_verdict_name(enum trial_verdict value); /* "running", "passed", "worse", "too_few" */
