/* SPDX-License-Identifier: MIT */
/* What the plots show: rings of fixed size, as one piece of memory that a file can hold byte for byte. No
 * I/O, no clock.
 *
 * A slot stands where its time puts it (time / step, modulo the length of the ring) and says which time and
 * whose it is: so there is no head that a crash or a step of the clock could leave wrong, what is too old is
 * known by itself, and of what a wrong clock wrote over only those slots are lost. Each record has its
 * checksum.
 *
 * A sample is folded into the slots of all three ranges: of memory and latency the greatest counts, of active
 * workers the fewest (a dip of five seconds must be seen in a month), of busy threads the mean. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include <jansson.h>

#define HISTORY_FLEETS  64
#define HISTORY_MARKS   512
#define HISTORY_VERSION 1

enum history_range {
        HISTORY_HOUR,  /* 5 s each */
        HISTORY_DAY,   /* 1 min */
        HISTORY_MONTH, /* 10 min, 30 days */
        _HISTORY_RANGE_MAX
};

/* The range of that name, "hour", "day" or "month"; or -EINVAL. */
int history_range_find(const char *name);

/* 13.2 MiB of address space, of which 203 KiB are in use for each fleet that was ever seen. */
struct history;

/* Returns 0 with *ret to be freed by history_free(), or -ENOMEM. */
int history_new(struct history **ret);
/* Returns NULL, as history may be. */
struct history *history_free(struct history *history);

DEFINE_CLEANUP(struct history *, history_free)
#define _cleanup_history_ _cleanup_(history_free_pointer)

/* What is unknown is NAN; so is taken what is negative or no finite number. The strings are copied, what is
 * too long for its place cut, and what is no text in UTF-8 replaced by '?'. */
struct history_sample {
        const char *socket, *fleet;
        double memory_bytes, active, busy, latency_seconds;
};

/* Folds in what was seen at that time: all fleets of all instances together. A fleet that is new takes a free
 * place, or that of the one not seen for longest, if that is ten minutes at least; else it is left out. */
void history_add(struct history *history, usec_t realtime, const struct history_sample *samples, size_t n);

/* Something that happened then. Of more than HISTORY_MARKS the oldest of the fleet that has most of them
 * gives way, so that one that crashes all day leaves the marks of the others. fleet may be NULL. */
void history_mark(struct history *history, usec_t realtime, const char *socket, const char *fleet,
                  const char *event, const char *text);

/* A new reference, or NULL: out of memory.
 *
 * {"range":"hour","step_seconds":5,"end":SECONDS,"left_out":0,"fleets":[{"socket":"...","name":"...",
 * "memory_bytes":[..],"active":[..],"busy":[..],"latency_seconds":[..]}],"marks":[{"at":SECONDS,"socket":"...",
 * "fleet":"..."|null,"event":"...","text":"..."}]}
 *
 * The arrays are all as long, the oldest first, null where nothing is known; the last value is of the slot
 * that begins at `end`, that of now. Fleets that were not seen in the range are left out; `left_out` counts
 * those of the last sample for which there is no place. Fleets are sorted by socket and name, marks by time.
 */
json_t *history_json(const struct history *history, enum history_range range, usec_t now);

/* For history_file.c: the bytes, HISTORY_BYTES of them. They begin with HISTORY_HEADER bytes that are the
 * same wherever a history of this version and kind of machine is; all 0 behind these is a history of nothing.
 */
extern const size_t HISTORY_BYTES, HISTORY_HEADER;
uint8_t *history_bytes(struct history *history);
bool history_is_zero(const void *bytes, size_t size);

enum history_kind {
        HISTORY_NONE,  /* these bytes do not begin a history */
        HISTORY_OTHER, /* of another version or kind of machine, or its header is damaged */
        HISTORY_THIS,
};
enum history_kind history_kind(const uint8_t *bytes, size_t size);

/* What was put into history_bytes() behind the header came from a file: drops what does not stand as
 * history_add() and history_mark() would have written it. Returns how many records were damaged. */
size_t history_adopt(struct history *history);

struct history_change {
        size_t offset, size; /* of history_bytes() */
};

/* What has changed since history_saved(), in the order in which it is to be written. *ret is borrowed until
 * the next call. Returns how many. */
size_t history_changes(const struct history *history, const struct history_change **ret);
void history_saved(struct history *history);
