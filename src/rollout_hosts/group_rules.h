/* SPDX-License-Identifier: MIT */
/* What this host does in a rollout over many hosts: when it asks for a turn, begins, goes on, gives up. It is
 * told what the script in Redis answers (rollout_hosts/reply_rules.h) and what becomes of its own restart. */
#pragma once

#include "base/usec.h"
#include "model/rollout_state.h"
#include "rollout_hosts/reply_rules.h"

struct codec_reader;
struct codec_writer;

/* So long after it began a turn of an epoch a host begins no other, unless it knows who wants that: whoever
 * may write to Redis cannot make it restart all the while. */
#define ROLLOUT_PAUSE_USEC (5 * USEC_PER_MIN)

/* What it says to the script. */
enum rollout_request {
        ROLLOUT_REQUEST_SEE,
        ROLLOUT_REQUEST_WANT,
        ROLLOUT_REQUEST_ROLL,
        ROLLOUT_REQUEST_WAIT,
        ROLLOUT_REQUEST_DONE,
        ROLLOUT_REQUEST_FAIL,
        _ROLLOUT_REQUEST_MAX,
};

/* What is to be done here, now. */
enum rollout_act {
        ROLLOUT_ACT_NONE,
        ROLLOUT_ACT_RESTART, /* restart the fleet, and say so: rollout_group_observe_begun() */
        ROLLOUT_ACT_ABORT,   /* end its restart */
};

/* Why this host takes no part in what Redis shows. */
enum rollout_trouble {
        ROLLOUT_TROUBLE_NONE,
        ROLLOUT_TROUBLE_LOST,     /* Redis has lost the epoch that this host knows */
        ROLLOUT_TROUBLE_TAKEN,    /* another machine has its name */
        ROLLOUT_TROUBLE_FULL,     /* there are too many hosts */
        ROLLOUT_TROUBLE_UNSEALED, /* rollout_key_file is set, and the epoch was not sealed with it */
        ROLLOUT_TROUBLE_FORGED,   /* a number that was never counted up to */
        _ROLLOUT_TROUBLE_MAX,
};

/* Whether the key says that the epoch, and its end, were ordered by who has it. */
enum rollout_seal {
        ROLLOUT_SEAL_UNASKED, /* there is no key */
        ROLLOUT_SEAL_GOOD,
        ROLLOUT_SEAL_BAD,
};

struct rollout_group {
        /* The newest epoch that this host knows, and its own part in it: these outlive sqmgr. */
        uint64_t number; /* 0: none */
        char id[ROLLOUT_ID_MAX + 1];
        enum host_lease lease;            /* never lost: that is what others think of it */
        bool begun;                       /* rolling: the restart is in the fleet */
        bool trusted;                     /* ordered on this host's own socket, or sealed */
        usec_t began_at;                  /* when it last began a turn; 0: never */
        usec_t done_at;                   /* of this epoch; 0: it is not */
        bool drain_reported;              /* Redis was told that old workers are left */
        char error[ROLLOUT_TEXT_MAX + 1]; /* why it failed */

        char other_id[ROLLOUT_ID_MAX + 1]; /* of an epoch with the same number, which comes to count */
        usec_t hold_until;                 /* no turn is asked for before */
        usec_t other_until;                /* and not counted before */
        usec_t asked_at;                   /* the script; 0: never */
        enum rollout_request said;         /* that is not yet answered */
        enum epoch_state state;            /* as last answered, of the epoch above */
        enum host_lease mine;              /* the same */
        uint32_t canary_seconds;           /* the same */
        enum rollout_trouble trouble;
        bool said_draining; /* with that word */
        /* Set by the caller: */
        bool refused;  /* Redis does not answer the script */
        bool draining; /* old workers of the fleet are left, which finish their jobs */
};

/* Of a host that knows of none. */
struct rollout_group rollout_group_new(void);

/* The connection to Redis came up: it may be another server, which has lost the last that was said. */
void rollout_group_observe_connection(struct rollout_group *group, usec_t now);
/* A glance at the epoch in Redis, without the script: is that to be asked now? */
bool rollout_group_is_due(const struct rollout_group *group, uint64_t number, const char *id,
                          enum epoch_state state, usec_t now);
/* The word that the script is asked with now; its answer, or a new connection, comes before the next. */
enum rollout_request rollout_group_next_request(struct rollout_group *group, usec_t now);
const char *rollout_request_name(enum rollout_request word);

/* The script has answered. */
enum rollout_act rollout_group_observe(struct rollout_group *group, const struct rollout_reply *reply,
                                       enum rollout_seal seal, usec_t now);
/* It has answered to `begin`, which was ordered on this host's own socket. */
enum rollout_act rollout_group_observe_ordered(struct rollout_group *group, const struct rollout_reply *reply,
                                               usec_t now);
/* The number to begin with where Redis shows that. */
uint64_t rollout_group_next(const struct rollout_group *group, const struct rollout_reply *reply);

/* What a later sqmgr has to know; nothing where this host knows of no epoch. name: of the group. */
void rollout_group_pack(const struct rollout_group *group, const char *name, struct codec_writer *writer);
/* What an earlier sqmgr knew of the group of that name. Returns false where it says nothing of that: *ret is
 * not touched then. */
bool rollout_group_unpack(struct codec_reader *reader, const char *name, struct rollout_group *ret);
/* Why it begins no turn yet, though the epoch runs; "": it may. Returns text. */
const char *rollout_group_pause_text(const struct rollout_group *group, usec_t now, char *text, size_t size);
/* Why it takes no part, a sentence; "": it does. reply: the last answer. Returns text. */
const char *rollout_group_trouble_text(const struct rollout_group *group, const struct rollout_reply *reply,
                                       const char *host, char *text, size_t size);

/* The fleet was restarted, as asked for. */
void rollout_group_observe_begun(struct rollout_group *group, usec_t now);
/* How the fleet's own restart is; error: of one that has halted. */
void rollout_group_observe_fleet(struct rollout_group *group, enum rollout_state state, const char *error,
                                 usec_t now);
/* The turn cannot be begun, or gone on with; a restart that runs is to be aborted besides. */
void rollout_group_observe_failure(struct rollout_group *group, const char *why);
/* A crash or a breach of memory, of a fleet that has been restarted: while it is the canary, that counts. */
void rollout_group_observe_trouble(struct rollout_group *group, const char *why, usec_t now);
