/* SPDX-License-Identifier: MIT */
/* The data of the plots: ring buffers of fixed size in one block of memory, which a file can hold byte for
 * byte. No I/O, no clock.
 *
 * The position of a slot in its ring is time / step modulo the ring's length. Each slot contains its time and
 * its owner. No head pointer can become wrong after a crash or a clock change. Outdated slots are detected
 * by their time. A wrong clock destroys only the slots that it overwrites. Each record has a checksum.
 *
 * A sample is added to the slots of all three ranges. For memory and latency the maximum counts, for busy
 * threads the mean. For active workers the minimum counts: a dip of five seconds must be visible in a
 * month. */
#pragma once

#include "web/instances.h"

struct history;

#define HISTORY_FLEETS  64
#define HISTORY_MARKS   512
#define HISTORY_VERSION 1

enum history_range {
        HISTORY_HOUR,  /* steps of 5 s */
        HISTORY_DAY,   /* steps of 1 min */
        HISTORY_MONTH, /* steps of 10 min, 30 days */
        _HISTORY_RANGE_MAX
};

/* Returns the range named "hour", "day" or "month", or -EINVAL. */
int history_range_find(const char *name);

/* 13.2 MiB of address space; 203 KiB are in use for each fleet that was ever seen. */

/* Returns an empty history, to be freed with free(), or NULL if memory is short. */
struct history *history_new(void);

/* NAN: unknown; negative and infinite values count as unknown, too. Strings are copied. Strings that are too
 * long are cut, and invalid UTF-8 is replaced by '?'. */
struct history_sample {
        const char *socket, *fleet;
        double memory_bytes, active, busy, latency_seconds;
};

/* Adds the samples of all fleets of all instances at that time. A new fleet gets a free place, or the place
 * of the fleet not seen for the longest time, at least ten minutes. Otherwise the new fleet is left out. */
void history_add(struct history *history, usec_t realtime, const struct history_sample *samples, size_t n);

/* Adds a mark for an event at that time. When all HISTORY_MARKS are in use, the oldest mark of the fleet with
 * the most marks is replaced. A fleet that crashes all day does not displace the marks of other fleets. fleet
 * may be NULL. */
void history_mark(struct history *history, usec_t realtime, const char *socket, const char *fleet,
                  const char *event, const char *text);
/* Returns the time of the newest mark of that socket, ignoring marks after now; 0: none. */
usec_t history_newest_mark(const struct history *history, const char *socket, usec_t now);

/* Returns a new reference, or NULL if memory is short.
 *
 * {"range":"hour","step_seconds":5,"end":SECONDS,"left_out":0,"fleets":[{"socket":"...","name":"...",
 * "memory_bytes":[..],"active":[..],"busy":[..],"latency_seconds":[..]}],
 * "marks":[{"at":SECONDS,"socket":"...","fleet":"..."|null,"event":"...","text":"..."}]}
 *
 * All arrays have the same length, the oldest value first; null: unknown. The last value belongs to the slot
 * that begins at `end`, the current one. Fleets without data in the range are omitted. `left_out` counts
 * fleets of the last sample without a place. Fleets are sorted by socket and name, marks by time. */
json_t *history_json(const struct history *history, enum history_range range, usec_t now);

/* For history_file.c: the HISTORY_BYTES bytes of the history. The first HISTORY_HEADER bytes are the same for
 * this version and type of machine. The first HISTORY_MAGIC bytes are the same in all versions. If all bytes
 * after the header are 0, the history is empty. */
#define HISTORY_MAGIC 8
extern const size_t HISTORY_BYTES, HISTORY_HEADER;
uint8_t *history_bytes(struct history *history);
bool history_is_zero(const void *bytes, size_t size);

/* Call after bytes from a file were copied to history_bytes() after the header. Drops all records that
 * history_add() and history_mark() could not have written. Returns the number of damaged records. */
size_t history_adopt(struct history *history);

struct history_change {
        size_t offset, size; /* in history_bytes() */
};

/* Returns the number of changes since history_saved(), with *ret set to the list in the order of writing.
 * *ret is borrowed until the next call. */
size_t history_changes(const struct history *history, const struct history_change **ret);
void history_saved(struct history *history);

/* Makes a sample of each fleet of the reachable instances. latency_seconds is the highest latency of all
 * queues that the fleet's sqmgr reports, because sqmgr does not report which queues a fleet serves. Free
 * *ret; its strings are borrowed from the instances. Returns the number of samples, or -ENOMEM. */
ssize_t history_feed_samples(const struct instances *instances, struct history_sample **ret);

/* Returns the mark's name for an event (`restart`, `crash`, `halt`, ...), or NULL if the event has no
 * mark. */
const char *history_feed_mark_name(const char *event);
