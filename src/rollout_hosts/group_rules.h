/* SPDX-License-Identifier: MIT */
/* Decides what this host does in a rollout of a group: when it requests a lease, begins, continues, gives
 * up. Input: the replies of the script in Redis (rollout_hosts/reply_rules.h), and the state of this
 * host's own restart. */
#pragma once

#include "base/usec.h"
#include "model/rollout_state.h"
#include "rollout_hosts/reply_rules.h"

struct codec_reader;
struct codec_writer;

/* Limits on restarts that neither an order on this host nor a signature caused: in ROLLOUT_PAUSE_USEC at most
 * ROLLOUT_COUNTED_MAX begin, not counting up to ROLLOUT_STOPPED_MAX that were halted or aborted. Otherwise
 * any writer to Redis could make the host restart all the time. */
#define ROLLOUT_PAUSE_USEC  (5 * USEC_PER_MIN)
#define ROLLOUT_COUNTED_MAX 2
#define ROLLOUT_STOPPED_MAX 4

/* The requests of a tick; see rollout_hosts/script_rules.h. */
enum rollout_request {
        ROLLOUT_REQUEST_SEE,
        ROLLOUT_REQUEST_WANT,
        ROLLOUT_REQUEST_ROLL,
        ROLLOUT_REQUEST_WAIT,
        ROLLOUT_REQUEST_DONE,
        ROLLOUT_REQUEST_FAIL,
        _ROLLOUT_REQUEST_MAX,
};

/* The action that this host must take now. */
enum rollout_act {
        ROLLOUT_ACT_NONE,
        ROLLOUT_ACT_RESTART, /* restart the fleet, then call rollout_group_observe_begun() */
        ROLLOUT_ACT_ABORT,   /* abort the fleet's restart */
};

/* The reason why this host takes no part in the rollout that Redis shows. */
enum rollout_trouble {
        ROLLOUT_TROUBLE_NONE,
        ROLLOUT_TROUBLE_LOST,     /* Redis has lost the rollout that this host knows */
        ROLLOUT_TROUBLE_TAKEN,    /* another machine has this host's name */
        ROLLOUT_TROUBLE_FULL,     /* the group has too many hosts */
        ROLLOUT_TROUBLE_UNSIGNED, /* rollout_key_file is set, and the rollout has no valid HMAC of that key */
        ROLLOUT_TROUBLE_FORGED,   /* a number beyond rollout_number_max(), or no id */
        ROLLOUT_TROUBLE_ELSEWHERE, /* signed with this key, but for a Redis of another name */
        ROLLOUT_TROUBLE_OLD,       /* older than ROLLOUT_AGE_SECONDS, and this host knows no other */
        _ROLLOUT_TROUBLE_MAX,
};

/* Whether the HMAC proves that the rollout, and its abort, were ordered by a holder of the key. */
enum rollout_signature {
        ROLLOUT_SIGNATURE_UNASKED, /* no key is set */
        ROLLOUT_SIGNATURE_GOOD,    /* or there is no rollout */
        ROLLOUT_SIGNATURE_BAD,
        ROLLOUT_SIGNATURE_ELSEWHERE, /* good, for a Redis of another name */
};

/* The restarts of this host that no order on this host and no signature caused: when they began, the newest
 * first; 0: none. */
struct rollout_begun {
        usec_t counted[ROLLOUT_COUNTED_MAX];
        usec_t stopped[ROLLOUT_STOPPED_MAX]; /* halted or aborted */
        bool last_counts;                    /* counted[0] is for the newest rollout that this host knows */
};

struct rollout_group {
        /* The newest rollout that this host knows, and the host's own state in it. Saved across restarts of
         * sqmgr. */
        uint64_t number; /* 0: none */
        char id[ROLLOUT_ID_MAX + 1];
        enum host_lease lease; /* never HOST_LEASE_LOST: only other hosts see a lease as lost */
        bool begun;            /* while rolling: the fleet's restart has begun */
        bool trusted;          /* ordered on this host's own socket, or with a valid HMAC */
        struct rollout_begun begun_at;
        usec_t done_at;      /* when this rollout was done here; 0: not done */
        bool drain_reported; /* a "done" has reported draining old workers, and none without them was answered
                                since */
        char error[ROLLOUT_TEXT_MAX + 1]; /* why the lease failed */

        usec_t hold_until; /* no lease is requested before */
        uint64_t too_old;  /* the number last found too old; 0: none since a rollout was adopted */
        usec_t adopted_at; /* when another rollout was adopted; 0: never */
        usec_t asked_at;   /* when the script last answered; 0: not since the last connect */
        enum rollout_request
                said;           /* the request that awaits an answer; ROLLOUT_REQUEST_SEE also if none does */
        enum group_state state; /* in the last reply, for the rollout above */
        enum host_lease mine;   /* in the last reply; HOST_LEASE_NONE if for another rollout */
        uint32_t canary_seconds; /* in the last reply */
        enum rollout_trouble trouble;
        bool said_draining; /* the request in said reported draining */
        /* Set by the caller: */
        bool refused;  /* Redis does not run the script */
        bool draining; /* old workers of the fleet still finish their jobs */
        bool unsaved;  /* the state cannot be written: a restart would not be known to the next sqmgr */
};

/* Returns the state of a host that knows no rollout. */
struct rollout_group rollout_group_new(void);

/* Call when the connection to Redis came up: the server may be another one that has lost recent writes. */
void rollout_group_observe_connection(struct rollout_group *group, usec_t now);
/* True if the script must be called now. number, id and state: of the rollout as read from Redis without the
 * script. */
bool rollout_group_is_due(const struct rollout_group *group, uint64_t number, const char *id,
                          enum group_state state, usec_t now);
/* Returns the request of the next tick. Call again only after its answer or a new connection. */
enum rollout_request rollout_group_next_request(struct rollout_group *group, usec_t now);
const char *rollout_request_name(enum rollout_request value);

/* Evaluates the reply to a tick. */
enum rollout_act rollout_group_observe(struct rollout_group *group, const struct rollout_reply *reply,
                                       enum rollout_signature signature, usec_t now);
/* Evaluates the reply to a `begin` that was ordered on this host's own socket. */
enum rollout_act rollout_group_observe_ordered(struct rollout_group *group, const struct rollout_reply *reply,
                                               usec_t now);
struct rollout_next {
        uint64_t number;
        bool lost; /* Redis has lost a newer rollout than the one that it shows */
};
/* Returns the number for a new rollout, given what Redis shows: the time of Redis in seconds, or one more
 * than the highest number that can be believed. */
struct rollout_next rollout_group_next(const struct rollout_group *group, const struct rollout_reply *reply,
                                       enum rollout_signature signature);

/* Writes what a later sqmgr must know; nothing if this host knows no rollout. name: of the group. */
void rollout_group_pack(const struct rollout_group *group, const char *name, struct codec_writer *writer);
/* Reads what an earlier sqmgr saved about the group of this name. Returns false, with *ret untouched, if
 * the record is not of that group. */
bool rollout_group_unpack(struct codec_reader *reader, const char *name, struct rollout_group *ret);
/* Writes why this host begins no restart yet although the rollout is running, and for how long, as a sentence
 * whose subject is left to the caller; "": it may begin. Returns text. */
const char *rollout_group_pause_text(const struct rollout_group *group, usec_t now, char *text, size_t size);
/* Writes why this host takes no part, as a sentence; "": it takes part. reply: the last reply. Returns
 * text. */
const char *rollout_group_trouble_text(const struct rollout_group *group, const struct rollout_reply *reply,
                                       const char *host, char *text, size_t size);

/* Call after the fleet's restart was begun for ROLLOUT_ACT_RESTART. */
void rollout_group_observe_begun(struct rollout_group *group, usec_t now);
/* Call instead of rollout_group_observe_begun() if the state could not be written: the next request gives
 * back the lease. */
void rollout_group_observe_unsaved(struct rollout_group *group);
/* Reports the state of the fleet's own restart. error: of a halted or aborted restart. */
void rollout_group_observe_fleet(struct rollout_group *group, enum rollout_state state, const char *error,
                                 usec_t now);
/* Reports that the host's restart cannot begin or continue. The caller must also abort a running restart. */
void rollout_group_observe_failure(struct rollout_group *group, const char *why);
/* Reports a crash or an exceeded memory limit of a restarted fleet. Counts as a failure while this host is
 * the canary. */
void rollout_group_observe_trouble(struct rollout_group *group, const char *why, usec_t now);
