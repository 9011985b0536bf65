/* SPDX-License-Identifier: MIT */
/* Calls of the script by which hosts agree in Redis whose turn it is (rollout_hosts/script_rules.h). */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct redis;
struct rollout_reply;
struct rollout_word;

/* Who asks, of which group, with what is known of its newest epoch. Nothing of it has to stay after a call.
 */
struct rollout_caller {
        struct redis *redis;
        const char *namespace; /* NULL: none */
        const char *group;
        const char *host;
        const char *instance; /* tells machines of one name apart; without a blank */
        uint64_t number;      /* of the newest epoch that the host knows; 0: none */
        const char *id;       /* of that; "" where there is none */
};

/* The answer. reply: NULL where there is none, error: a sentence then, with its remedy where there is one,
 * else NULL. words: as rollout_reply_host() takes them, n of them; all of it is only there during the call.
 */
struct rollout_answer {
        const struct rollout_reply *reply;
        const struct rollout_word *words;
        size_t n;
        const char *error;
};
/* Called once for each call that was accepted, never from within it. In it everything is allowed. */
typedef void (*rollout_call_fn)(const struct rollout_answer *answer, void *userdata);

/* Both return 0, or what redis_command() does: callback is not called then. */

/* words: the operation, and what follows behind the words of the caller, up to the first that is NULL; see
 * rollout_hosts/script_rules.h. */
int rollout_call(const struct rollout_caller *caller, const char *const words[], rollout_call_fn callback,
                 void *userdata);
/* A glance at the epoch, without the script: the reply has number, id and state alone, and of the caller
 * redis, namespace and group alone count. */
int rollout_call_glance(const struct rollout_caller *caller, rollout_call_fn callback, void *userdata);
