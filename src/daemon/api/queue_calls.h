/* SPDX-License-Identifier: MIT */
/* Answers what waits in each Redis: those who ask wait for one reading together. */
#pragma once

#include "daemon/api/server.h"
#include "daemon/poll/queue_reading.h"

enum queue_question {
        QUEUE_QUESTION_QUEUES,
        QUEUE_QUESTION_METRICS, /* the queues among them */
        QUEUE_QUESTION_DOCTOR,  /* answered by diagnose() */
        _QUEUE_QUESTION_MAX,
};

struct queue_calls {
        struct links *links; /* not owned */
        /* They have been read. What answers those who ask for the metrics, to be released, NULL: memory is
         * short; and what answers the call of who asks for a diagnosis, or keeps it. */
        json_t *(*metrics)(void *userdata);
        void (*diagnose)(struct call *call, void *userdata);
        void *userdata;
        struct {
                struct call *call;
                enum queue_question question;
        } list[SERVER_CONNECTIONS_MAX];
        size_t n;
        /* What was answered last, for those who may only look: how often they ask is not to be felt by Redis.
         */
        struct {
                char *text; /* encoded; NULL: nothing that is young enough */
                size_t size;
                usec_t at;
        } answers[_QUEUE_QUESTION_MAX];
};

/* Answers the call when the queues have been read; one of those who may only look maybe at once, with what
 * was read within the last second. */
void queue_calls_add(struct queue_calls *calls, struct call *call, enum queue_question question, usec_t now);
/* They have been read: answers all. */
void queue_calls_answer(struct queue_calls *calls, usec_t now);
/* Forgets answers that have grown old; USEC_INFINITY: all. */
void queue_calls_forget(struct queue_calls *calls, usec_t now);
