/* SPDX-License-Identifier: MIT */
/* What Sidekiq 5 to 8 looks like from outside: its keys and heartbeat in Redis, its process title, the names
 * of its threads. */
#pragma once

#include "frameworks/decode.h"
#include "frameworks/title.h"
#include <jansson.h>

struct heartbeat;

extern const struct traits sidekiq_traits;
extern const struct framework sidekiq_framework; /* in sidekiq_redis.c */

#define SIDEKIQ_CAPSULES_MAX 16
#define SIDEKIQ_COMM_MAX     15 /* bytes of a thread's name that the kernel keeps */

/* The set of identities. */
#define SIDEKIQ_PROCESSES "processes"

/* What a worker told of itself in the `info` field; it does not change in its life. */
struct sidekiq_info {
        unsigned concurrency; /* 0: not told (8.1.2 on has a field of its own for it) */
        size_t n_capsules;    /* 0: not told (before 8.0.9); beyond SIDEKIQ_CAPSULES_MAX they are left out */
        char capsules[SIDEKIQ_CAPSULES_MAX][SIDEKIQ_COMM_MAX + 1]; /* names, cut */
        /* From which it takes: names, each ended by a NUL, the last by two. What is beyond SIDEKIQ_QUEUES_MAX
         * bytes is left out, and a name that is empty or holds a NUL. */
        char queues[];
};

/* The fields of a heartbeat that are read each time. */
enum sidekiq_field {
        SIDEKIQ_BUSY,
        SIDEKIQ_HEARTBEAT,
        SIDEKIQ_QUIET,
        SIDEKIQ_CONCURRENCY,
        SIDEKIQ_RSS,
        _SIDEKIQ_FIELD_MAX,
};

/* Takes apart `HOST:PID:NONCE`; the host may hold colons. Returns true with the length of the host at the
 * start of text, and the pid. */
bool sidekiq_identity_parse(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid);

/* Decodes a heartbeat; concurrency may be missing, and so may rss, of which nonsense counts as missing. Of
 * *ret, the work list stays unknown. Returns false, with *ret untouched, where there is none, fields are
 * missing, or they say what Sidekiq never says. */
bool sidekiq_heartbeat_decode(const struct field fields[static _SIDEKIQ_FIELD_MAX], struct heartbeat *ret);

/* A stamp in JSON: seconds since 1970 up to 7, with a fraction or without, and whole milliseconds from 8.0
 * on. Returns false where it is none. */
bool sidekiq_stamp_decode(const json_t *stamp, uint64_t *ret_usec);

/* Decodes the `info` field. Returns 0 with *ret to be freed; -EINVAL where it is no JSON object, or -ENOMEM.
 * What it does not tell, or tells in another type, counts as not told. */
#define SIDEKIQ_QUEUES_MAX 4096
int sidekiq_info_decode(const struct field *field, struct sidekiq_info **ret);

/* Is a thread of this name one that runs jobs? info may be NULL: then there is the one capsule `default`. */
bool sidekiq_thread_is_processor(const char *comm, const struct sidekiq_info *info);

/* `sidekiq VERSION TAG [N of M busy]`: written at each beat, so whoever carries it has booted. While it
 * boots, the title is still the command line. Returns false where the title is not that of a booted Sidekiq.
 */
bool sidekiq_title_parse(const char *title, struct title *ret);
