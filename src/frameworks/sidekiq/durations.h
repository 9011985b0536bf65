/* SPDX-License-Identifier: MIT */
/* What jobs take, by class, as Sidekiq's own metrics have it from 7.0 on: a hash for each minute, of whose
 * fields CLASS|ms, CLASS|p and CLASS|f are used. Pure. */
#pragma once

#include "base/field.h"
#include "base/macro.h"
#include "base/usec.h"
#include "model/job.h"

/* More classes than these are told of as one, and more queues are left out. */
#define DURATIONS_CLASSES_MAX 256
#define DURATIONS_QUEUES_MAX  64
/* The classes that were last seen at the head of a queue. */
#define DURATIONS_SEEN 16

struct durations {
        struct {
                char name[JOB_CLASS_MAX];
                double ms, jobs;              /* of those that succeeded; what is older counts for less */
        } classes[DURATIONS_CLASSES_MAX + 1]; /* the last stands for all others */
        size_t n_classes;                     /* of those before it */
        struct {
                char *name; /* owned */
                char seen[DURATIONS_SEEN][JOB_CLASS_MAX];
                size_t n, next;
        } queues[DURATIONS_QUEUES_MAX];
        size_t n_queues;
};

/* The key of the hash of the minute before that moment, by the wall clock: as 7.x writes it, and as 8.1 does.
 * Returns text. */
#define DURATIONS_KEY_MAX 40
const char *durations_key(usec_t realtime, bool newer, char text[static DURATIONS_KEY_MAX]);

/* A minute's hash is to be taken: what was before counts for half. */
void durations_age(struct durations *durations);
/* One of its fields. */
void durations_take(struct durations *durations, const struct field *name, const struct field *value);
/* A job of that class is the oldest that waits in a queue. */
void durations_see(struct durations *durations, const char *queue, const char *class);

/* What a job of these queues takes: by the classes that were seen there or, where none was of which anything
 * is known, by all. names: each ended by a NUL, the last by two. 0: nothing is known. */
usec_t durations_service(const struct durations *durations, const char *names);
void durations_clear(struct durations *durations);
