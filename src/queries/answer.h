/* SPDX-License-Identifier: MIT */
/* Answers of a reader process, as bytes. Pure.
 *
 * sqmgr treats answers as written by an attacker: each number has a range, each list and each text a bound.
 * An answer that breaks one is refused as a whole. Within the bounds a reader may lie, but any writer to the
 * server could cause the same answer. */
#pragma once

#include "model/database_facts.h"
#include "model/heartbeat_info.h"
#include "model/job.h"
#include "model/queues.h"
#include "model/reader_state.h"
#include "model/redis_facts.h"
#include "model/worker.h"
#include "observe/rescue.h"
#include "queries/query.h"
#include "settings/settings.h"
#include "wire/quoted.h"

/* Messages from a reader. */
enum reader_message {
        READER_ANSWER,
        READER_STATE, /* the state of its connection has changed; see struct reader_report */
        _READER_MESSAGE_MAX,
};

/* The maximum size of a message. The largest messages list the entries of jobs. */
#define ANSWER_BYTES_MAX ((size_t)32 * 1024 * 1024)
#define ANSWER_ERROR_MAX 512

enum answer_status {
        ANSWER_OK,
        ANSWER_REFUSED, /* error quotes the reply of the server, or says why the framework or server cannot
                           answer the query */
        ANSWER_LOST,    /* the connection was lost, or a reply was invalid: the query may or may not have been
                           carried out */
        _ANSWER_STATUS_MAX,
};

#define ANSWER_HOST_MAX     255
#define ANSWER_IDENTITY_MAX CODEC_TEXT_MAX
/* Identities of one page; a framework without pages lists all at once. */
#define ANSWER_IDENTITIES_MAX ((size_t)256 * 1024)
#define ANSWER_CURSOR_MAX     24
/* The limit of times by wall clocks, after the year 9999. */
#define ANSWER_CLOCK_MAX_USEC (UINT64_C(300000000000) * USEC_PER_SEC)

struct answer_configure {
        enum settings_tls_file refused; /* the file that a check refused, with the reason in error;
                                           _SETTINGS_TLS_MAX: none */
};

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

/* The maximum number and bytes of the jobs in all lists of one answer. Further jobs are counted as too large.
 */
#define ANSWER_JOBS_MAX       ((size_t)65536)
#define ANSWER_JOBS_BYTES_MAX ((size_t)16 * 1024 * 1024)

struct answer_jobs {
        struct job_list *lists; /* owned; one for each identity, in the same order */
        size_t n;
        bool with_entries; /* the jobs have their entries */
};

/* The reader of a Redis sets redis, that of a database database. */
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
        usec_t rtt_usec;           /* duration of the last command; 0: unknown */
        /* The member of the query's kind is set if the status is ANSWER_OK; otherwise all are zeroed. */
        union {
                struct answer_configure configure;
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

void answer_clear(struct answer *answer);

/* Writes the message of an answer. */
void answer_write(struct codec_writer *writer, uint64_t id, const struct answer *answer);
/* Reads the id of an answer behind the kind of its message. */
uint64_t answer_read_id(struct codec_reader *reader);
/* Reads the rest. kind: of the query with that id. Returns 0 with *ret, which the caller clears; -EBADMSG;
 * or -ENOMEM. */
int answer_read(struct codec_reader *reader, enum query_kind kind, struct answer *ret);

struct reader_report {
        enum reader_state state;
        uint64_t connections; /* how many have succeeded */
        struct error_report error;
        char server[ANSWER_ERROR_MAX]; /* `host:port` of the master that Sentinels named; "": none */
};

void reader_report_write(struct codec_writer *writer, const struct reader_report *report);
/* Returns 0 with *ret, or -EBADMSG. */
int reader_report_read(struct codec_reader *reader, struct reader_report *ret);

/* How the body of each kind of answer is written, read and cleared. body: the member of the union. */
struct answer_format {
        const struct record *record; /* the whole body; NULL: write() and read() */
        bool (*is_valid)(
                const void *body); /* judges what record describes, beyond its ranges; NULL: all is */
        void (*write)(struct codec_writer *writer, const void *body);
        /* Returns 0 or -ENOMEM; sets reader->wrong if a bound is broken. What was read is cleared in all
         * cases. */
        int (*read)(struct codec_reader *reader, void *body);
        void (*clear)(void *body); /* NULL: it owns nothing */
};

extern const struct answer_format answer_heartbeat_format, answer_scan_format, answer_queues_format,
        answer_jobs_format, answer_diagnosis_format;
