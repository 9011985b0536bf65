/* SPDX-License-Identifier: MIT */
/* What the script of a rollout over many hosts answers, decoded; and the text that an order of it is sealed
 * over. All that is read from Redis may be forged: it is bounded, and fit to be shown. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include "rollout_hosts/script_rules.h"

enum rollout_verdict {
        ROLLOUT_VERDICT_OK,
        ROLLOUT_VERDICT_OLD,    /* Redis has a newer epoch, or another one of this number */
        ROLLOUT_VERDICT_BEHIND, /* Redis has an older one: it has lost what this host has seen */
        ROLLOUT_VERDICT_TAKEN,  /* another machine speaks for a host of this name */
        ROLLOUT_VERDICT_FULL,   /* there are as many hosts as there may be, or its name is too long */
        ROLLOUT_VERDICT_UNKNOWN,
        _ROLLOUT_VERDICT_MAX,
};

enum epoch_state {
        EPOCH_NONE, /* nothing was begun, or Redis has lost it */
        EPOCH_RUNNING,
        EPOCH_HALTED,
        EPOCH_DONE,
        EPOCH_ABORTED,
        _EPOCH_STATE_MAX,
};

/* As the script numbers them. */
enum host_lease {
        HOST_LEASE_WAITING,
        HOST_LEASE_ROLLING,
        HOST_LEASE_LOST,
        HOST_LEASE_FAILED,
        HOST_LEASE_DONE,
        _HOST_LEASE_MAX,
        HOST_LEASE_NONE = -1, /* not known to Redis */
};

/* A reply that has more is none of the script's. */
#define ROLLOUT_REPLY_WORDS_MAX (_ROLLOUT_REPLY_MAX + ROLLOUT_HOSTS_MAX * ROLLOUT_HOST_WORDS)

#define ROLLOUT_ID_MAX    32
#define ROLLOUT_SHARE_MAX 16
#define ROLLOUT_MAC_MAX   64

struct rollout_reply {
        enum rollout_verdict verdict;
        uint64_t number; /* of the epoch in Redis; 0: none */
        uint64_t high;   /* the highest that a host has told Redis of beyond it; 0: none */
        char id[ROLLOUT_ID_MAX + 1];
        enum epoch_state state;
        enum host_lease mine;
        uint32_t canary_seconds, failures;
        char asked[ROLLOUT_SHARE_MAX + 1]; /* how many hosts at once, as that was set: `3`, `10%` */
        char release[ROLLOUT_TEXT_MAX + 1];
        char error[ROLLOUT_TEXT_MAX + 1];
        char left[ROLLOUT_TEXT_MAX + 1]; /* hosts that are waited for no longer, each with a space in front */
        char mac[ROLLOUT_MAC_MAX + 1], end_mac[ROLLOUT_MAC_MAX + 1];
        char by[ROLLOUT_TEXT_MAX + 1]; /* the host on which it was begun; not sealed */
        usec_t age_usec;               /* since it was */
};

/* One of the hosts that `show` names. */
struct rollout_host {
        char name[ROLLOUT_TEXT_MAX + 1];
        enum host_lease lease;
        usec_t state_usec, seen_usec; /* how long it is in its state, and since when it was not heard of */
        char text[ROLLOUT_TEXT_MAX +
                  1]; /* rolling: how far it is; failed, lost: why; done: "" once drained */
};

struct rollout_word {
        const char *text;
        size_t len;
};

/* Returns 0, or -EBADMSG where that is no reply of the script: *ret is not touched then. */
int rollout_reply_decode(const struct rollout_word words[], size_t n, struct rollout_reply *ret);
/* The same of the first fields of the epoch as they stand in Redis, of which any may be missing. */
void rollout_reply_glance(const struct rollout_word *number, const struct rollout_word *id,
                          const struct rollout_word *state, struct rollout_reply *ret);
/* The host of that index. Returns 0; -ENOENT: there are no more; -EBADMSG. */
int rollout_reply_host(const struct rollout_word words[], size_t n, size_t index, struct rollout_host *ret);

const char *epoch_state_name(enum epoch_state state);
const char *host_lease_name(enum host_lease lease);

/* What an order of the group is sealed over: `begin` of this epoch, all that it carries with it; `abort` of
 * it. The group's name has no line break. Returns it, to be freed, or NULL where memory is short. */
char *rollout_reply_seal_text(const char *order, const char *group, const struct rollout_reply *epoch);

/* How long a running epoch will still take, as its hosts that are done tell it; USEC_INFINITY: nothing does.
 */
usec_t rollout_reply_left_usec(const struct rollout_reply *epoch, const struct rollout_host hosts[],
                               size_t n_hosts);
