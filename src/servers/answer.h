/* SPDX-License-Identifier: MIT */
/* Answers of a server to queries of sqmgr. Pure.
 *
 * Whoever can write to the server chooses the contents of an answer. Decoders keep the bounds. */
#pragma once

#include "model/heartbeat_info.h"
#include "model/server_facts.h"
#include "observe/rescue.h"
#include "servers/query.h"

enum answer_status {
        ANSWER_OK,
        ANSWER_REFUSED, /* error quotes the reply of the server, or says why the framework or server cannot
                           answer the query */
        ANSWER_LOST,    /* the connection was lost, or a reply was invalid: the query may or may not have been
                           carried out */
        _ANSWER_STATUS_MAX,
};

#define ANSWER_HOST_MAX     255
#define ANSWER_IDENTITY_MAX 4096
/* Identities of one page; a framework without pages lists all at once. */
#define ANSWER_IDENTITIES_MAX ((size_t)256 * 1024)
#define ANSWER_CURSOR_MAX     24

struct answer_heartbeat {
        bool found;
        struct heartbeat heartbeat;
        struct heartbeat_info *info; /* owned; NULL: not asked for, or not reported */
};

struct answer_work_list {
        bool known, empty;
};

/* An identity of a page. */
struct answer_identity {
        char *identity; /* owned */
        size_t host_len;
        pid_t pid;
};

struct answer_scan {
        struct answer_identity *list; /* owned */
        size_t n;
        char cursor[ANSWER_CURSOR_MAX]; /* of the next page; "": this was the last one */
};

struct answer_requeue {
        enum rescue_outcome outcome;
        unsigned times; /* how often the job has been put back, including now; 0 if it was not put back now */
};

struct answer_released {
        size_t n; /* jobs that wait or run again */
};

struct answer_scanners {
        uint64_t members;  /* identities */
        uint64_t scanners; /* hosts that want to scan; 0: not known */
        bool members_known;
        bool blind; /* the server gives no count */
};

struct answer_jobs {
        struct job_list *lists; /* owned; one for each identity, in the same order */
        size_t n;
        bool with_entries; /* the jobs have their entries */
};

/* A Redis sets redis, a database sets database. */
struct answer_diagnosis {
        struct redis_facts redis;
        struct database_facts database;
};

/* An answer, valid during the callback. The callback may take over what the answer owns by setting the
 * pointer to NULL. */
struct answer {
        enum query_kind kind;
        enum answer_status status;
        struct error_report error; /* empty unless the status or the kind says otherwise; printable */
        /* The member of the query's kind is set if the status is ANSWER_OK; otherwise all are zeroed. */
        union {
                struct answer_heartbeat heartbeat;
                struct answer_work_list work_list;
                struct answer_scan scan;
                struct answer_requeue requeue;
                struct answer_scanners scanners;
                struct queues_reading queues;
                struct answer_jobs jobs;
                struct answer_diagnosis diagnosis;
                struct answer_released released;
        };
};

/* Frees what the answer owns. */
void answer_clear(struct answer *answer);
