/* SPDX-License-Identifier: MIT */
/* Replays a record: gives the planner what it saw, and compares what it decides with what it decided. */
#pragma once

#include "record/record_rules.h"

struct replay;

/* The largest number of changed settings. */
#define REPLAY_CHANGES_MAX 32
#define REPLAY_WHY_MAX     384

/* Checks the first RECORD_HEADER_SIZE bytes of a file. Returns 0 with the size of a slot, or -EBADMSG with
 * the reason in why. */
int replay_check_header(const uint8_t *bytes, size_t size, uint64_t *ret_slot_bytes,
                        char why[static REPLAY_WHY_MAX]);
/* Checks the whole file, and sorts its segments. Damaged ones are skipped, unless all are. bytes must outlive
 * the replay. Returns 0 with *ret; -EBADMSG with the reason in why; or -ENOMEM. */
int replay_new(const uint8_t *bytes, size_t size, const struct settings_surroundings *surroundings,
               struct replay **ret, char why[static REPLAY_WHY_MAX]);
struct replay *replay_free(struct replay *replay);
DEFINE_CLEANUP(struct replay *, replay_free)

/* Returns the number of segments that are damaged or truncated. */
size_t replay_damaged(const struct replay *replay);

/* Changes a setting for the replay: "KEY=VALUE" for all fleets or [sqmgr], "FLEET:KEY=VALUE" for one. text is
 * borrowed. Call before the first replay_next(). Returns 0; -EINVAL with the reason in why; or -ENOMEM. A
 * fleet that the record does not have is refused by replay_next(). */
int replay_set(struct replay *replay, const char *text, char why[static REPLAY_WHY_MAX]);

/* A pass. The pointers are valid until the next call. */
struct replay_step {
        const struct world *world; /* as the planner sees it in the replay, after its decision */
        usec_t now;                /* CLOCK_MONOTONIC of the recorded machine */
        uint64_t real_usec;        /* the same by the wall clock */
        bool begins;               /* the first pass of a segment */
        bool same;                 /* both decisions are the same, byte for byte */
        const struct decision *recorded, *replayed;
};

/* Replays the next pass. With changed settings, each pass begins with the recorded state: the answer says
 * what would have been decided at that moment. Only what follows from the memory of workers is judged anew by
 * the changed settings. What the passes cost is limited by the size of the segment: a record that asks for
 * more than REPLAY_WORK_PER_BYTE is refused. Returns 1 with *ret; 0 at the end; -EBADMSG or -EINVAL with the
 * reason in why; or -ENOMEM. */
int replay_next(struct replay *replay, struct replay_step *ret, char why[static REPLAY_WHY_MAX]);
