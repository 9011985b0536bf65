/* SPDX-License-Identifier: MIT */
/* The heartbeat of a worker that implements sqmgr-heartbeat(7), in Redis or in a file. */
#pragma once

#include "frameworks/decode.h"

struct heartbeat;
struct heartbeat_record;

extern const struct traits native_traits;
extern const struct framework native_framework;

/* The set of identities, and the key prefix of their hashes. */
#define NATIVE_WORKERS "sqmgr:workers"
#define NATIVE_WORKER  "sqmgr:worker"

/* The fields that are read. `version` and `tag` are only for humans. */
enum native_field {
        NATIVE_V,
        NATIVE_HEARTBEAT,
        NATIVE_BUSY,
        NATIVE_QUIET,
        NATIVE_START,
        NATIVE_CONCURRENCY,
        NATIVE_QUIET_SIG,
        NATIVE_RESUME_SIG,
        NATIVE_STOP_SIG,
        NATIVE_PROCESSED,
        NATIVE_FAILED,
        _NATIVE_REDIS_MAX, /* the fields from here on are read from files only */
        NATIVE_LOOKED = _NATIVE_REDIS_MAX,
        NATIVE_POLLING,
        _NATIVE_FIELD_MAX,
};

extern const char *const native_field_names[_NATIVE_FIELD_MAX];

/* Splits `HOST:PID`; the host may contain colons. Returns true with the length of the host at the start of
 * text, and the pid. */
bool native_identity_parse(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid);

/* Decodes a record. Returns false, with *ret untouched, if the record is invalid: a field is missing or
 * wrong, the version is another, or a signal must not be sent. Invalid outcomes count as missing. */
bool native_decode(const struct field fields[static _NATIVE_FIELD_MAX], struct heartbeat *ret);

#define NATIVE_ITEMS_MAX 64 /* of each kind in a file */

/* The lines of a file; the values point into its text. */
struct native_lines {
        struct field fields[_NATIVE_FIELD_MAX];
        struct native_items {
                struct field list[NATIVE_ITEMS_MAX];
                size_t n;
        } jobs, queues;
};

/* Splits a file of `FIELD=VALUE` lines. Returns false if a line has another form, a known field occurs twice,
 * there are too many jobs or queues, or the last line has no newline. */
bool native_split(const char *text, size_t len, struct native_lines *ret);

/* Decodes a file, see framework_take_record(). All texts in *ret are printable. */
int native_take_record(const char *text, size_t len, struct heartbeat_record *ret);
