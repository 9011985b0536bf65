/* SPDX-License-Identifier: MIT */
/* How the heartbeats of a framework stand in Redis: a set of identities, which begin with the host and a
 * colon and hold the pid, and for each identity what one command reads, or two. namespace: of
 * redis-namespace, NULL or "" for none. */
#pragma once

#include "observe/match.h"

struct heartbeats_command;
struct redisReply; /* hiredis's */

/* Called with each identity of a set. Returns 0 or -errno. */
typedef int (*identity_fn)(const struct match_found *found, void *userdata);

struct heartbeat_format {
        char *(*key)(const char *namespace, const char *name, const char *suffix); /* as decode_key() */
        const char *set;                                                           /* the name of its key */
        /* Both or none, in place of SSCAN: the one command that reads the whole set, and what
         * decodes its reply: it calls found with each identity, made up so that host and pid can be read in
         * it, and returns 0, or -errno, be it of found. */
        void (*ask_list)(const char *set_key, struct heartbeats_command *ret);
        int (*take_list)(const struct redisReply *reply, identity_fn found, void *userdata);
        /* What a walk takes of Redis for each member of the set, on a slow machine. */
        unsigned member_nsec;
        /* Takes an identity apart. Returns true with the length of the host at the start of text, and the
         * pid. */
        bool (*identity_parse)(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid);
        /* The command that reads a heartbeat; with_info: and what never changes. Returns 0 or -ENOMEM. */
        int (*ask_heartbeat)(const char *namespace, const char *identity, bool with_info,
                             struct heartbeats_command *ret);
        /* Decodes the reply. Returns whether that is a heartbeat; of *ret the work list stays unknown. *info,
         * where that is NULL, is what never changes, in one piece of memory, or stays NULL. */
        bool (*take_heartbeat)(const struct redisReply *reply, struct heartbeat *ret,
                               struct heartbeat_info **info);
        /* The command that is sent right after it, where the traits say that there is a work list: it counts
         * the keys at which that may stand. Returns 0 or -ENOMEM. */
        int (*ask_work_list)(const char *namespace, const char *identity, struct heartbeats_command *ret);
};
