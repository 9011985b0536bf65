/* SPDX-License-Identifier: MIT */
/* The jobs that a process runs, as its framework tells of them. */
#pragma once

#include "base/field.h"
#include "base/macro.h"
#include "base/usec.h"

/* One job that a process was running at its last beat. All texts are owned, and end with a NUL. Up to
 * entry_len it is known before it is decoded. */
struct job {
        char *thread;     /* its framework's name of where it runs */
        char *entry;      /* what its framework wrote of it: to be decoded, and for the framework alone */
        size_t entry_len; /* a NUL within it is possible */
        bool old_key;     /* where that stood, of two places: for the framework alone */
        char *payload;    /* what stood in the queue: for the framework alone */
        char *queue;
        char *class;           /* what people call its kind */
        char *jid;             /* its id */
        uint64_t started_usec; /* by the worker's wall clock; 0: not told */
};

/* Filled in two steps, since arguments of jobs may be large, and decoding them takes long. */
struct job_list {
        struct job *jobs; /* owned */
        size_t n_jobs;    /* decoded: the first ones */
        size_t n_unreadable;
        size_t next, n_entries; /* from next on they are yet to be decoded */
        size_t allocated;
};

/* Adds an entry of a work list. Returns 0, or -ENOMEM. */
int job_list_add(struct job_list *list, bool old_key, const struct field *thread, const struct field *entry);

/* Fills in what a job's entry tells of it; what it has set is freed by the list, whatever it returns: 0;
 * -EINVAL: that is no job; or -ENOMEM. */
typedef int (*job_decode_fn)(struct job *job);

/* Decodes entries until as many bytes of them are done, which *bytes is lowered by; one that tells of no job
 * is only counted. Returns 0: all are done; 1: some are left; or -ENOMEM: it can be tried again. */
int job_list_decode(struct job_list *list, job_decode_fn decode, size_t *bytes);
void job_list_clear(struct job_list *list);

#define JOB_CLASSES_MAX 5
#define JOB_CLASS_MAX   101

/* The classes of some jobs, those with the most jobs first. */
struct job_classes {
        struct {
                char name[JOB_CLASS_MAX]; /* cut, and printable */
                size_t jobs;
        } list[JOB_CLASSES_MAX];
        size_t n;
        size_t more; /* that are left out */
};

/* Returns false where memory is short: then there are none. classes is empty so far. */
bool job_classes_count(const struct job_list *jobs, struct job_classes *classes);

/* More than the text of any takes. */
#define JOB_CLASSES_TEXT_MAX 640
/* "ReportJob (2), MailJob and 3 more"; "no job" where there are none. Returns text. */
const char *job_classes_text(const struct job_classes *classes, char *text, size_t size);

/* How long the oldest has been running, in microseconds; 0: none, or none tells. now_usec: by the wall clock.
 */
usec_t job_list_oldest(const struct job_list *list, uint64_t now_usec);

/* Has it been running for longer than its class may, by limits (settings/limits.h, NULL: none)? now_usec: by
 * the wall clock. *ret_usec: for how long. */
bool job_is_long(const struct job *job, const char *limits, uint64_t now_usec, usec_t *ret_usec);
