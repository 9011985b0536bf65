/* SPDX-License-Identifier: MIT */
/* What a worker that speaks sqmgr-heartbeat(7) tells of itself, be it in Redis or in a file. */
#pragma once

#include "frameworks/decode.h"

struct heartbeat;

extern const struct traits native_traits;
extern const struct framework native_framework; /* in native_redis.c */

/* The set of identities, and what the keys of their hashes begin with. */
#define NATIVE_WORKERS "sqmgr:workers"
#define NATIVE_WORKER  "sqmgr:worker"

/* The fields that are read. `version` and `tag` are for people. */
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
        _NATIVE_FIELD_MAX,
};

extern const char *const native_field_names[_NATIVE_FIELD_MAX];

/* Takes apart `HOST:PID`; the host may hold colons. Returns true with the length of the host at the start of
 * text, and the pid. */
bool native_identity_parse(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid);

/* Decodes a record. Returns false, with *ret untouched, where it is none: something is missing, is of another
 * version, or names a signal that is not to be sent. */
bool native_decode(const struct field fields[static _NATIVE_FIELD_MAX], struct heartbeat *ret);

/* The same of the text of a file. */
bool native_take_record(const char *text, size_t len, struct heartbeat *ret);

/* Takes a file apart, `FIELD=VALUE` lines, to fields that point into text. Returns false where there are
 * other lines, a field comes twice, or the last line does not end. */
bool native_lines(const char *text, size_t len, struct field ret[static _NATIVE_FIELD_MAX]);
