/* SPDX-License-Identifier: MIT */
/* Queries of sqmgr to a server. Pure. */
#pragma once

#include "base/macro.h"

enum query_kind {
        /* Reads the heartbeat of an identity. texts: the identity. numbers[0]: 1: also read what the process
         * reported about itself. numbers[1]: 1: if the server forbids the command, the answer is
         * ANSWER_REFUSED; 0: the connection ends. numbers[2]: 1: also read outcomes of jobs that need a
         * command of their own. */
        QUERY_HEARTBEAT,
        QUERY_WORK_LIST, /* is any job on the work list of an identity? texts: the identity */
        /* Reads a page of the identities. texts: the cursor from the answer before, "" for the first page;
         * the host whose identities are read, left out for all hosts. numbers[0]: 1: if the server forbids
         * the command, the answer is ANSWER_REFUSED; 0: the connection ends. */
        QUERY_SCAN,
        /* Reads how many hosts want to scan, and how many identities there are. numbers[0]: 1: first has this
         * host counted. */
        QUERY_SCANNERS,
        QUERY_SCAN_LEAVE, /* has this host counted no longer */
        /* Reads queues. texts: the names of queues, each followed by a NUL, which are read with the duration
         * of their jobs; no text: all queues, sorted by name. numbers[0]: 1: with the time until their first
         * scheduled job falls due. */
        QUERY_QUEUES,
        /* Reads the jobs that processes run. texts: identities. numbers[0]: 1: with their entries. If some
         * lists could not be read, the error of an answer ANSWER_OK says why. */
        QUERY_JOBS,
        /* Puts a job of a dead process back into its queue. texts: the identity; the thread; the entry; how
         * the process ended. numbers[0]: 1: the entry is from the older of two keys. numbers[1]: 1: put the
         * job back, 0: only report it. numbers[2]: how often a job is put back. numbers[3]: the wall clock.
         */
        QUERY_REQUEUE,
        /* Sends a process a signal through its server. texts: the identity. numbers[0]: the signal. The
         * answer ANSWER_OK says that the signal is on the server; heartbeats show what it led to. */
        QUERY_SIGNAL,
        /* Reads facts for doctor. texts, for a database: the name of this host. */
        QUERY_DIAGNOSIS,
        /* Counts the jobs that a process has given back when it exited: they wait, or run in another process.
         * texts: the entries of the jobs that it ran, QUERY_RELEASED_MAX at most. */
        QUERY_RELEASED,
        _QUERY_KIND_MAX,
};

#define QUERY_NUMBERS      4
#define QUERY_RELEASED_MAX 1000

struct query {
        enum query_kind kind;
        uint64_t numbers[QUERY_NUMBERS];
        const struct field *texts; /* borrowed; may contain any byte, and none needs a NUL */
        size_t n_texts;
};

/* An initializer for struct field. */
#define QUERY_TEXT(string)                                                                                   \
        {                                                                                                    \
                .text = (string), .len = strlen(string)                                                      \
        }

/* Text i of the query of an ask (servers/server.h), whose texts each end with a NUL; "" if it has fewer
 * texts.
 */
static inline const char *query_text(const struct query *query, size_t i)
{
        return i < query->n_texts ? query->texts[i].text : "";
}
