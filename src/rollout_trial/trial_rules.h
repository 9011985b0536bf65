/* SPDX-License-Identifier: MIT */
/* Judges a release by its jobs: compares how often jobs fail in the new workers of a restart and in the old
 * ones. No I/O, no clock.
 *
 * The test is an e-process. The jobs that ended since the last reading form a window. If the release makes no
 * difference, the F failures of a window are spread over the new and the old jobs by chance: the number of
 * failed new jobs is hypergeometric, whatever the failure rate is. The evidence of a window for an odds ratio
 * theta is the likelihood ratio of Fisher's noncentral hypergeometric distribution,
 *
 *     theta^f / E(theta^K),    K hypergeometric.
 *
 * Its expectation is at most 1 if the new release is not worse. So is that of the product over all windows,
 * and of a mixture over several theta. By Ville's inequality, the mixture ever reaches 1000 in at most one of
 * 1000 trials of releases that are not worse, however often it is computed (Grünwald et al., "Safe
 * Testing", 2024; Turner et al., "Generic E-Variables for Exact Sequential k-Sample Tests", 2024). A failure
 * rate that changes with time does no harm: jobs are compared with jobs of the same window.
 *
 * TRIALS=200 make check TESTS=tests/unit/test_trial_worlds prints how often such releases are halted in
 * simulated worlds, and after how many jobs. */
#pragma once

#include "base/macro.h"
#include <sys/types.h>

struct codec_reader;
struct codec_writer;
struct fleet;
struct subsystem;

/* Trials: a restart stops at a few new workers until their jobs show that the release is not worse. */
extern const struct subsystem rollout_trial_subsystem;

/* The evidence at which a release counts as worse. */
#define TRIAL_EVIDENCE 1000
/* New jobs, as many old ones, and windows after which a release that does not count as worse passes. */
#define TRIAL_ENOUGH  1000
#define TRIAL_WINDOWS 8
/* Fewer new or old jobs at the end of the time say nothing. */
#define TRIAL_FEWEST 100
/* A window with more jobs of either side is implausible, and is left out: no fleet ends 300,000 jobs in a
 * second. The largest window takes less than 1 ms to compute. */
#define TRIAL_WINDOW_MAX 10000000

/* The length of a window in a long trial: several reports of each worker. */
#define TRIAL_WINDOW_USEC (30 * USEC_PER_SEC)
/* The most that one window counts for. When an outage begins or ends, the reports of one side cover more of
 * it than those of the other: such a window must not decide. Limiting a factor keeps its expectation below 1.
 */
#define TRIAL_WINDOW_EVIDENCE_MAX 8

#define TRIAL_RATIOS 4

/* The jobs that ended, and of these the failed ones. */
struct trial_counts {
        uint64_t processed, failed;
};

/* All zeroes but begun_at at the beginning. */
struct trial {
        usec_t begun_at; /* CLOCK_MONOTONIC; 0: none */
        struct trial_counts new, old;
        unsigned windows;              /* in which jobs of both sides ended */
        double evidence[TRIAL_RATIOS]; /* the logarithm of each product */
};

enum trial_verdict {
        TRIAL_RUNNING,
        TRIAL_PASSED,
        TRIAL_WORSE,
        TRIAL_TOO_FEW, /* the time is over, and too few jobs have ended */
        _TRIAL_VERDICT_MAX,
};

/* Adds a window. Counts that cannot be are left out. */
void trial_add(struct trial *trial, const struct trial_counts *new, const struct trial_counts *old);
/* duration: rollout_trial. */
enum trial_verdict trial_judge(const struct trial *trial, usec_t duration, usec_t now);
/* Returns the evidence that the new release is worse: 1 says nothing, TRIAL_EVIDENCE is enough. */
double trial_evidence(const struct trial *trial);

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

/* Functions of struct subsystem. fleet_trial_pack() writes the trial of a running restart, if any. */
void fleet_trial_pack(const void *self, const struct fleet *fleet, struct codec_writer *writer);
void fleet_trial_unpack(void *self, struct fleet *fleet, struct codec_reader *reader);

/* "62 of 1000 jobs failed in new workers (6.2%), 100 of 5000 in old ones (2.0%)". Returns text. */
#define TRIAL_TEXT_MAX 160
const char *trial_text(const struct trial *trial, char text[static TRIAL_TEXT_MAX]);
const char *trial_verdict_name(enum trial_verdict value); /* "running", "passed", "worse", "too_few" */
