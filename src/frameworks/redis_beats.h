/* SPDX-License-Identifier: MIT */
/* Reads heartbeats from one Redis, all in one round trip a look. What other hosts do costs next to nothing.
 */
#pragma once

#include "frameworks/beats_kind.h"
#include "io/redis.h"

#define BEATS_WORDS_MAX 11

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
        /* Both or none, in place of a pattern and SSCAN: the one command that reads the whole set, and what
         * decodes its reply: it calls found with each identity, made up so that host and pid can be read in
         * it, and returns 0, or -errno, be it of found. */
        void (*ask_list)(const char *set_key, struct beats_command *ret);
        int (*take_list)(const struct redisReply *reply,
                         int (*found)(const struct match_found *found, void *userdata), void *userdata);
        /* What a walk takes of Redis for each member of the set, on a slow machine. */
        unsigned member_nsec;
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
};

/* source: its texts are copied. ops must stay. Returns 0 with *ret to be freed by beats_free(), or -ENOMEM.
 */
int redis_beats_new(const struct beats_source *source, const struct beats_ops *ops, void *userdata,
                    struct beats **ret);
