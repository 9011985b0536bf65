/* SPDX-License-Identifier: MIT */
/* The jobs that a process runs, as its framework describes them. */
#pragma once

#include "base/macro.h"

/* A job that was running at the last heartbeat. All texts are owned and end with a NUL. The fields up to
 * entry_len are set before decoding. */
struct job {
        char *thread;     /* the framework's name of the thread or process that runs it */
        char *entry;      /* the framework's raw entry; only the framework reads it. NULL: not kept */
        size_t entry_len; /* the entry may contain a NUL */
        bool old_key;     /* the entry came from the older of two keys; only the framework reads this */
        char *payload;    /* the job as queued; only the framework reads it */
        char *queue;
        char *class;           /* the job class */
        char *jid;             /* the job id */
        uint64_t started_usec; /* by the worker's wall clock; 0: not known */
};

/* A longer entry is not decoded: the tree that jansson would build of it takes up to 79 times as much. The
 * job is unknown: it runs, but its class and age are not known, and it is never put back into its queue. */
#define JOB_ENTRY_MAX ((size_t)256 * 1024)

/* The longest thread, queue or id of a job, in bytes. A job with a longer one is unreadable. A longer class
 * is cut. */
#define JOB_NAME_MAX 255

/* Limits of all lists of one reading together: further entries count as oversized. */
#define JOBS_MAX       ((size_t)65536)
#define JOBS_BYTES_MAX ((size_t)16 * 1024 * 1024)

/* The space left for further entries. */
struct job_space {
        size_t jobs, bytes;
};

/* A list of jobs, filled in two steps: job arguments may be large, and decoding them takes long. */
struct job_list {
        struct job *jobs;    /* owned */
        size_t n_jobs;       /* number of decoded jobs, at the start of jobs */
        size_t n_unreadable; /* entries that are no job */
        size_t n_oversized;  /* entries over JOB_ENTRY_MAX, with more values than decoders accept, or beyond
                                the space of the list */
        size_t next, n_entries; /* entries from next on are not decoded yet */
        size_t allocated;
        struct job_space *space; /* not owned; shared by the lists of a reading; NULL: not limited */
};

/* Appends an entry of a work list; copies thread and entry. An entry longer than JOB_ENTRY_MAX, or with a
 * name longer than JOB_NAME_MAX, is only counted. Returns 0 or -ENOMEM. */
int job_list_add(struct job_list *list, bool old_key, const struct field *thread, const struct field *entry);

/* Decodes the entry of a job. Returns 0; -EINVAL if it is no job; -EMSGSIZE if its tree would be too large;
 * or -ENOMEM. The list frees whatever was set, in all cases. */
typedef int (*job_decode_fn)(struct job *job);

/* Decodes entries until *bytes bytes are done, and reduces *bytes accordingly. Entries that are no job, or
 * too large, are only counted. Returns 0 if all are done; 1 if some are left; or -ENOMEM: try again. */
int job_list_decode(struct job_list *list, job_decode_fn decode, size_t *bytes);
/* Frees what only the decoding needs, and the space: the payloads; and without with_entries the entries. Call
 * when the list is decoded. */
void job_list_end(struct job_list *list, bool with_entries);
void job_list_clear(struct job_list *list);
/* Frees n lists and their array. */
void job_lists_free(struct job_list *lists, size_t n);

/* Returns how many entries are jobs of which nothing is known but that they run. */
static inline size_t job_list_unknown(const struct job_list *list)
{
        return list->n_unreadable + list->n_oversized;
}

#define JOB_CLASSES_MAX 5
#define JOB_CLASS_MAX   101

/* The most frequent classes of some jobs, in descending order. */
struct job_classes {
        struct {
                char name[JOB_CLASS_MAX]; /* truncated and printable */
                size_t jobs;
        } list[JOB_CLASSES_MAX];
        size_t n;
        size_t more; /* number of classes left out */
};

/* Counts the classes of jobs. classes must be empty. Returns false if out of memory; classes then remains
 * empty. */
bool job_classes_count(const struct job_list *jobs, struct job_classes *classes);

/* An upper bound for the text of job_classes_text(). */
#define JOB_CLASSES_TEXT_MAX 640
/* "ReportJob (2), MailJob and 3 more"; "no job" if there are none. Returns text. */
const char *job_classes_text(const struct job_classes *classes, char *text, size_t size);

/* Returns how long the oldest job has been running, in microseconds; 0: no jobs, or no start times. now_usec:
 * wall clock. */
usec_t job_list_oldest(const struct job_list *list, uint64_t now_usec);

/* Returns true if the job has reached the limit of its class in limits (settings/limits.h; NULL: none).
 * now_usec: wall clock. *ret_usec: its run time in whole seconds, set only if true. */
bool job_is_long(const struct job *job, const char *limits, uint64_t now_usec, usec_t *ret_usec);
