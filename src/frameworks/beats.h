/* SPDX-License-Identifier: MIT */
/* Reads the heartbeats of our own workers from one Redis, all in one round trip a look, and finds out which
 * heartbeat belongs to which worker. What other hosts do costs next to nothing. */
#pragma once

#include "io/redis.h"
#include "model/match.h"

struct beats;
struct beats_slot; /* a worker's place in it */

#define BEATS_WORDS_MAX 10

/* A command to Redis. keys: those of its words that are owned. */
struct beats_command {
        const char *argv[BEATS_WORDS_MAX];
        int argc;
        char *keys[2];
};

/* How heartbeats of a framework stand in Redis: a set of identities, in which host and pid can be read, and
 * for each what one command reads, or two. namespace: of redis-namespace, NULL or "" for none. */
struct beats_format {
        /* The key of the set. To be freed; NULL: out of memory. */
        char *(*set_key)(const char *namespace);
        /* The pattern of SSCAN for identities of this host, its special characters escaped. To be freed;
         * NULL: out of memory. */
        char *(*identity_pattern)(const char *host);
        /* Takes an identity apart. Returns true with the length of the host at the start of text, and the
         * pid. */
        bool (*identity_parse)(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid);
        /* The command that reads a heartbeat; with_info: and what never changes. Returns 0 or -ENOMEM. */
        int (*ask_beat)(const char *namespace, const char *identity, bool with_info,
                        struct beats_command *ret);
        /* Decodes the reply. Returns whether that is a heartbeat; of *ret the work list stays unknown. *info,
         * where that is NULL, is what never changes, in one piece of memory, or stays NULL. */
        bool (*take_beat)(const struct redisReply *reply, struct heartbeat *ret, struct beat_info **info);
        bool has_info; /* there is anything that never changes */
        /* The same of what is read right after it and tells whether the work list is empty, where the traits
         * say that there is one. */
        int (*ask_work_list)(const char *namespace, const char *identity, struct beats_command *ret);
        void (*take_work_list)(const struct redisReply *reply, struct heartbeat *beat);
};

/* Where heartbeats are read. redis and format must outlive the beats. */
struct beats_source {
        struct redis *redis;
        const struct beats_format *format;
        const char *namespace;
        const char *hostname; /* as the workers see it */
};

/* All are called from the loop, with the userdata of beats_new(); in each of them everything is allowed,
 * freeing and removing too. */
struct beats_ops {
        /* Is pid the worker's main process or a descendant of it? Returns 1, 0 or -errno. Asked a limited
         * number of times a look. */
        int (*is_descendant)(pid_t pid, const struct worker *worker, void *userdata);
        /* The worker was found to beat as process beat_pid; its first heartbeat follows. */
        void (*on_identity)(struct worker *worker, pid_t beat_pid, void *userdata);
        /* What Redis holds of it now, be it the same beat as before. */
        void (*on_heartbeat)(struct worker *worker, const struct heartbeat *beat, void *userdata);
        /* The last reply to a look is in, or the look failed; the next may begin. */
        void (*on_done)(struct beats *beats, void *userdata);
};

enum beats_outcome {
        BEATS_LOOKING = 0,
        BEATS_BUSY,    /* the look before is still under way: this one is left out */
        BEATS_NOTHING, /* there is nothing to ask: on_done will not be called */
};

/* source: its texts are copied. ops must stay. Returns 0 with *ret to be freed by beats_free(), or -ENOMEM.
 */
int beats_new(const struct beats_source *source, const struct beats_ops *ops, void *userdata,
              struct beats **ret);
/* Frees all slots too. Returns NULL. */
struct beats *beats_free(struct beats *beats);

/* The worker must stay until beats_remove(), which says no more of it. Its pid and spawned_at are read anew
 * at each look. Returns 0 or -ENOMEM. */
int beats_add(struct beats *beats, struct worker *worker, struct beats_slot **ret);
void beats_remove(struct beats_slot *slot);

/* The worker beat under this identity before sqmgr began: its heartbeat is read from
 * there at once. Whether it still changes is for the caller to see. Returns 0 or -ENOMEM. */
int beats_know(struct beats_slot *slot, const char *identity);

/* The process that beat is gone while the worker lives: look for its successor. */
void beats_forget(struct beats_slot *slot);

/* What the worker told of itself; NULL: not known yet. Valid until the slot is removed or forgotten. */
const struct beat_info *beats_info(const struct beats_slot *slot);
/* The identity that it beats under; NULL: not known. */
const char *beats_identity(const struct beats_slot *slot);

/* The next look shall read these of this worker: LOOK_BEAT, LOOK_WORK_LIST (others are ignored). */
void beats_want(struct beats_slot *slot, unsigned looks);

/* Begins a look at all that is wanted, and forgets the wishes, also where it is busy. Returns enum
 * beats_outcome, or -ENOTCONN or -ENOMEM, with on_done not called. */
int beats_look(struct beats *beats);
