/* SPDX-License-Identifier: MIT */
/* How a framework stores its heartbeats in Redis: a set of identities, and one or two commands to read
 * each of them. An identity begins with the host and a colon and contains the pid. namespace: of
 * redis-namespace; NULL or "": none. */
#pragma once

#include "observe/match.h"

struct redis_command;
struct redisReply; /* from hiredis */

/* Called with each identity of a set. Returns 0 or -errno. */
typedef int (*identity_fn)(const struct match_found *found, void *userdata);

struct heartbeat_format {
        char *(*key)(const char *namespace, const char *name, const char *suffix); /* like decode_key() */
        const char *set; /* the name of the set's key */
        /* Set both or neither; together they replace SSCAN. ask_list makes the one command that reads the
         * whole set. take_list decodes its reply: it builds an identity that contains host and pid for
         * each member and calls found. take_list returns 0 or -errno, including that of found. */
        void (*ask_list)(const char *set_key, struct redis_command *ret);
        int (*take_list)(const struct redisReply *reply, identity_fn found, void *userdata);
        /* Like that of struct framework. */
        bool (*identity_parse)(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid);
        /* Makes the command that reads a heartbeat. with_info: read the constant data of the process too.
         * Returns 0 or -ENOMEM. */
        int (*ask_heartbeat)(const char *namespace, const char *identity, bool with_info,
                             struct redis_command *ret);
        /* Decodes the reply. Returns true if the reply is a heartbeat; the work list in *ret stays
         * unknown. If *info is NULL, *info is set to the constant data in one allocation that the caller
         * owns, or stays NULL. */
        bool (*take_heartbeat)(const struct redisReply *reply, struct heartbeat *ret,
                               struct heartbeat_info **info);
        /* For a framework whose heartbeat does not contain the outcomes of jobs; both are NULL otherwise.
         * ask_outcomes makes the command that reads them, and returns 0 or -ENOMEM. take_outcomes decodes its
         * reply. */
        int (*ask_outcomes)(const char *namespace, const char *identity, struct redis_command *ret);
        struct worker_outcomes (*take_outcomes)(const struct redisReply *reply);
        /* Makes the command that follows ask_heartbeat if the traits have a work list. The command counts
         * the existing keys of the work list. Returns 0 or -ENOMEM. */
        int (*ask_work_list)(const char *namespace, const char *identity, struct redis_command *ret);
};
