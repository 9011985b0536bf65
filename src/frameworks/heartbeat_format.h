/* SPDX-License-Identifier: MIT */
/* How the heartbeats of a framework stand in Redis: a set of identities, in which host and pid can be read,
 * and for each what one command reads, or two. namespace: of redis-namespace, NULL or "" for none. */
#pragma once

#include "observe/match.h"

struct beats_command;
struct redisReply; /* hiredis's */

/* Called with each identity of a set. Returns 0 or -errno. */
typedef int (*identity_fn)(const struct match_found *found, void *userdata);

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
        int (*take_list)(const struct redisReply *reply, identity_fn found, void *userdata);
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
        /* The command that is sent right after it, where the traits say that there is a work list: it counts
         * the keys at which that may stand. Returns 0 or -ENOMEM. */
        int (*ask_work_list)(const char *namespace, const char *identity, struct beats_command *ret);
};
