/* SPDX-License-Identifier: MIT */
/* Job durations by class, from the metrics that Sidekiq 7.0 and later keeps: a hash for each minute. The
 * fields CLASS|ms, CLASS|p and CLASS|f are read. Pure. */
#pragma once

#include "model/job.h"
#include "model/queues.h"

/* Classes beyond this limit are merged into one; queues beyond it are ignored. */
#define DURATIONS_CLASSES_MAX 256
#define DURATIONS_QUEUES_MAX  64
/* The number of classes remembered per queue, last seen at its head. */
#define DURATIONS_SEEN QUEUE_CLASSES_MAX

struct durations {
        struct {
                char name[JOB_CLASS_MAX];
                double ms, jobs;              /* of jobs that succeeded; older minutes weigh less */
        } classes[DURATIONS_CLASSES_MAX + 1]; /* the last element merges the classes beyond the limit */
        size_t n_classes;                     /* without the last element */
        struct {
                char *name; /* owned */
                char seen[DURATIONS_SEEN][JOB_CLASS_MAX];
                size_t n, next;
        } queues[DURATIONS_QUEUES_MAX];
        size_t n_queues;
};

/* Writes the key of the hash of the minute before realtime (wall clock). newer: the format of 8.1, else
 * that of 7.x. Returns text. */
#define DURATIONS_KEY_MAX 40
const char *durations_key(usec_t realtime, bool newer, char text[static DURATIONS_KEY_MAX]);

/* Call before the hash of a new minute is added: halves the weight of all earlier minutes. */
void durations_age(struct durations *durations);
/* Adds one field of a minute's hash. */
void durations_take(struct durations *durations, const struct field *name, const struct field *value);
/* Records the class of the oldest job waiting in a queue. */
void durations_see(struct durations *durations, const char *queue, const char *class);

/* Sets what is known of how long the jobs of these queues take: for each queue by the classes seen at its
 * head. */
void durations_fill(const struct durations *durations, struct queues *queues);
void durations_clear(struct durations *durations);
