/* SPDX-License-Identifier: MIT */
/* Sidekiq 5 to 8 as its machine shows it: its identity, its process title, its thread names; and its data in
 * Redis. */
#pragma once

#include "frameworks/decode.h"
#include "frameworks/framework.h"
#include "model/heartbeat_info.h"

struct heartbeat;

extern const struct traits sidekiq_traits;
extern const struct framework sidekiq_framework;
extern const struct requeue_format sidekiq_requeue;

/* Splits `HOST:PID:NONCE`; the host may contain colons. Returns true with the length of the host at the
 * start of text, and the pid. */
bool sidekiq_identity_parse(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid);

/* True if a thread of this name runs jobs. info may be NULL: the only capsule is then `default`. */
bool sidekiq_thread_is_processor(const char *comm, const struct heartbeat_info *info);

/* Parses `sidekiq VERSION TAG [N of M busy]`. Sidekiq sets this title at each heartbeat, so it proves that
 * the process has booted. The title of a booting process is its command line. Returns false if the title
 * is not that of a booted Sidekiq. */
bool sidekiq_title_parse(const char *title, struct title *ret);

/* The set of identities. */
#define SIDEKIQ_PROCESSES "processes"

/* The heartbeat fields that each poll reads. */
enum sidekiq_field {
        SIDEKIQ_BUSY,
        SIDEKIQ_HEARTBEAT,
        SIDEKIQ_QUIET,
        SIDEKIQ_CONCURRENCY,
        SIDEKIQ_RSS,
        /* Written by sqmgr-outcomes.rb: */
        SIDEKIQ_PROCESSED,
        SIDEKIQ_FAILED,
        SIDEKIQ_FAILED_CLASS,
        SIDEKIQ_FAILED_CLASS_COUNT,
        _SIDEKIQ_FIELD_MAX,
};

/* Decodes a heartbeat. concurrency, rss and outcomes are optional; an invalid rss, and invalid
 * outcomes, count as missing. The work list
 * in *ret stays unknown. Returns false, with *ret untouched, if a required field is missing or a field has
 * a value that Sidekiq never writes. */
bool sidekiq_heartbeat_decode(const struct field fields[static _SIDEKIQ_FIELD_MAX], struct heartbeat *ret);

/* Decodes a JSON timestamp: Unix seconds, with or without a fraction, up to 7; whole milliseconds from 8.0
 * on. Returns false if stamp is not a timestamp. */
bool sidekiq_stamp_decode(const json_t *stamp, uint64_t *ret_usec);

/* Decodes the `info` field. Returns 0 with *ret, which the caller frees; -EINVAL if field is not a JSON
 * object; or -ENOMEM. Missing members and members of another type count as not reported. So does all of an
 * info longer than SIDEKIQ_INFO_MAX bytes: *ret is then empty, and callers need not read the info again. */
#define SIDEKIQ_INFO_MAX ((size_t)64 * 1024)
int sidekiq_info_decode(const struct field *field, struct heartbeat_info **ret);
