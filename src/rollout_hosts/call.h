/* SPDX-License-Identifier: MIT */
/* Calls of the script that assigns leases to hosts in Redis (rollout_hosts/script_rules.h). */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct error_report; /* wire/quoted.h */
struct field;
struct reader;
struct rollout_reply;

/* The caller's host, its group, and the newest rollout that the host knows. Nothing needs to outlive the
 * call. */
struct rollout_caller {
        struct reader *reader;
        const char *group;
        const char *host;
        const char *instance; /* distinguishes machines with the same name; contains no blank */
        uint64_t number;      /* of the newest rollout that the host knows; 0: none */
        const char *id;       /* of that rollout; "": none */
};

/* The answer, valid only during the callback. reply: NULL on failure. error: on failure, with a remedy if
 * there is one; else NULL. words: n words in the form that rollout_reply_host() takes. */
struct rollout_answer {
        const struct rollout_reply *reply;
        const struct field *words;
        size_t n;
        const struct error_report *error;
};
/* Called once for each accepted call, never from within the call. Every call is allowed within the
 * callback. */
typedef void (*rollout_call_fn)(const struct rollout_answer *answer, void *userdata);

/* Both functions below return 0, or an error of reader_ask(): the callback is not called then. */

/* words: the operation, then its arguments after those of the caller, NULL-terminated; see
 * rollout_hosts/script_rules.h. */
int rollout_call(const struct rollout_caller *caller, const char *const words[], rollout_call_fn callback,
                 void *userdata);
/* Reads the rollout without the script: the reply has only number, id and state. Only reader and group
 * of the caller are used. */
int rollout_call_glance(const struct rollout_caller *caller, rollout_call_fn callback, void *userdata);
