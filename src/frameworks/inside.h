/* SPDX-License-Identifier: MIT */
/* Matches identities to workers whose command enters a PID or UTS namespace, or a container: such an identity
 * has a host name and a pid of the worker's own. Pure.
 *
 * The commands of a fleet choose the host names and pids in their namespaces. A name that unique_host() has
 * given counts before all others, and an identity that several workers could claim by other names belongs to
 * none.
 */
#pragma once

#include "model/names.h"
#include "observe/match.h"

/* Processes of one worker that are looked at. */
#define INSIDE_PROCESSES_MAX 64
/* Maximum size of the host name of a UTS namespace. */
#define INSIDE_HOST_MAX 65

struct inside_process {
        pid_t pid;                  /* as sqmgr sees it */
        pid_t own_pid;              /* in its own PID namespace */
        char host[INSIDE_HOST_MAX]; /* "": in a UTS namespace of its own */
};

/* The processes of one worker, as far as they are known. */
struct inside {
        struct inside_process list[INSIDE_PROCESSES_MAX];
        size_t n;
        bool complete;                /* the list has all processes */
        char unique[UNIQUE_HOST_MAX]; /* "": the framework has no variable for the host name */
        char variable[256]; /* the value of that variable in the environment, unless it is `unique`; "": none
                             */
};

/* A worker that may be the owner of identities. */
struct inside_owner {
        void *owner;
        const struct inside *inside;
        char *const *identity; /* the known identity; the pointer there is NULL: none */
        bool seeks;            /* has no identity, or lost it */
        pid_t main_pid;
        usec_t read_at; /* when `inside` was read */
};

/* The owners by name. */
struct inside_names {
        struct inside_name {
                const char *name;
                pid_t own_pid; /* of a process with that name; 0: any, for the unique name of the owner */
                const struct inside_owner *owner;
        } * list; /* sorted by name and pid: many identities in Redis may have the name, few the pid; of equal
                   * ones, those of owners that seek come first */
        size_t n;
        struct inside_owner *owners;
        size_t n_owners;
};

/* Takes ownership of owners. What they point to must outlive the names. Returns 0 or -ENOMEM, with owners
 * freed. */
int inside_names_make(struct inside_owner *owners, size_t n, struct inside_names *ret);
void inside_names_clear(struct inside_names *names);

/* Returns true if an identity of this host name and pid may be that of an owner. */
bool inside_names_have(const struct inside_names *names, const char *host, size_t len, pid_t own_pid);

/* Finds the process of the worker with this pid in its own PID namespace. host: of its own UTS namespace;
 * NULL: any. A process in the PID namespace of sqmgr counts only if no other has the pid: the command's
 * parents inherit its variables, but send no heartbeats. Returns NULL if there is none, or several;
 * *ret_several tells which. */
const struct inside_process *inside_find(const struct inside *inside, pid_t own_pid, const char *host,
                                         bool *ret_several);

/* Finds the owner of the identity. Sets owner, pid, unique, remote and claimed of the candidate. Returns
 * false if it has none, and then takes the candidate from its owner. Call it again for claimed candidates:
 * another worker may have the name, too, as is known once its processes are read. */
bool inside_names_find(const struct inside_names *names, struct candidate *candidate);
