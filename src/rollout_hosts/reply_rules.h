/* SPDX-License-Identifier: MIT */
/* Decodes the replies of the script for rollouts of a group, and builds the text that the HMAC of an order
 * covers. Data from Redis may be forged: it is bounded and made safe to show. */
#pragma once

#include "base/field.h"
#include "base/macro.h"
#include "base/usec.h"
#include "rollout_hosts/script_rules.h"

enum rollout_verdict {
        ROLLOUT_VERDICT_OK,
        ROLLOUT_VERDICT_OLD,    /* Redis has a newer rollout, or another one of the same number */
        ROLLOUT_VERDICT_BEHIND, /* Redis has an older rollout: it has lost the one that this host knows */
        ROLLOUT_VERDICT_TAKEN,  /* another machine has this host's name */
        ROLLOUT_VERDICT_FULL,   /* the maximum of hosts is reached, or the host's name is too long */
        ROLLOUT_VERDICT_UNKNOWN,
        _ROLLOUT_VERDICT_MAX,
};

enum group_state {
        GROUP_NONE, /* no rollout was begun, or Redis has lost it */
        GROUP_RUNNING,
        GROUP_HALTED,
        GROUP_DONE,
        GROUP_ABORTED,
        _GROUP_STATE_MAX,
};

/* The values are the numbers that the script stores. */
enum host_lease {
        HOST_LEASE_WAITING,
        HOST_LEASE_ROLLING,
        HOST_LEASE_LOST,
        HOST_LEASE_FAILED,
        HOST_LEASE_DONE,
        _HOST_LEASE_MAX,
        HOST_LEASE_NONE = -1, /* unknown to Redis */
};

/* A longer reply is not from the script. */
#define ROLLOUT_REPLY_WORDS_MAX (_ROLLOUT_REPLY_MAX + ROLLOUT_HOSTS_MAX * ROLLOUT_HOST_WORDS)

#define ROLLOUT_ID_MAX    32
#define ROLLOUT_SHARE_MAX 16
#define ROLLOUT_MAC_MAX   64
/* Maximum length of the name of a Redis in orders, with its NUL. */
#define ROLLOUT_SERVER_MAX ROLLOUT_TEXT_MAX

struct rollout_reply {
        enum rollout_verdict verdict;
        uint64_t number;      /* of the rollout in Redis; 0: none */
        uint64_t high;        /* the highest number beyond it that a host has reported; 0: none */
        uint64_t now_seconds; /* by the clock of Redis; 0: not known */
        char id[ROLLOUT_ID_MAX + 1];
        enum group_state state;
        enum host_lease mine;
        uint32_t canary_seconds, failures;
        char asked[ROLLOUT_SHARE_MAX + 1]; /* hosts at once, as configured: `3`, `10%` */
        char release[ROLLOUT_TEXT_MAX + 1];
        char error[ROLLOUT_TEXT_MAX + 1];
        char left[ROLLOUT_TEXT_MAX + 1]; /* hosts that are no longer waited for, each preceded by a blank */
        char mac[ROLLOUT_MAC_MAX + 1], end_mac[ROLLOUT_MAC_MAX + 1];
        char by[ROLLOUT_TEXT_MAX + 1]; /* the host on which the rollout was begun; not covered by the HMAC */
        char server[ROLLOUT_SERVER_MAX + 1]; /* the Redis as the host calls it on which it was begun */
        usec_t age_usec;                     /* since the rollout was begun */
};

/* Returns the number, or 0 if it is more than ROLLOUT_SLACK_SECONDS beyond the clock of the Redis that
 * replied. Such a number was forged, or is from a Redis whose clock was wrong. Depends on the reply alone, so
 * that all hosts judge alike. */
uint64_t rollout_believed(uint64_t number, const struct rollout_reply *reply);
/* True if the reply shows a rollout with an id and a number that can be believed. */
bool rollout_is_believed(const struct rollout_reply *reply);

/* The progress of a restart: workers of a host, or hosts of a rollout. */
struct rollout_counts {
        uint32_t total, replaced, draining, failed;
};

/* A host as listed by `show`. */
struct rollout_host {
        char name[ROLLOUT_TEXT_MAX + 1];
        enum host_lease lease;
        usec_t state_usec, seen_usec;    /* time in its state; time since the host was last seen */
        char text[ROLLOUT_TEXT_MAX + 1]; /* rolling: progress; failed, lost: reason; for people */
        bool counts_known;               /* false: the host has not begun, or its version reports no counts */
        struct rollout_counts counts;    /* of workers, as last reported */
};

/* True if old workers of a host that is done still finish their jobs. */
bool rollout_host_drains(const struct rollout_host *host);

/* Returns 0, or -EBADMSG with *ret untouched if the words are not a reply of the script. */
int rollout_reply_decode(const struct field words[], size_t n, struct rollout_reply *ret);
/* Decodes number, id and state of the rollout as stored in Redis; any of them may be missing. */
void rollout_reply_glance(const struct field *number, const struct field *id, const struct field *state,
                          struct rollout_reply *ret);
/* Decodes the host with this index. Returns 0; -ENOENT: there are no more hosts; -EBADMSG. */
int rollout_reply_host(const struct field words[], size_t n, size_t index, struct rollout_host *ret);

const char *group_state_name(enum group_state value);
const char *host_lease_name(enum host_lease lease);

/* Estimates how long a running rollout still takes, from the hosts that are done. Returns 0 if no host is
 * left, USEC_INFINITY if none is done yet. */
usec_t rollout_reply_left_usec(const struct rollout_reply *rollout, const struct rollout_host hosts[],
                               size_t n_hosts);
