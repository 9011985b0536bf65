/* SPDX-License-Identifier: MIT */
/* Answers GetQueues, and GetMetrics and GetDiagnosis where they need queues. Waiting calls share one reading.
 */
#pragma once

#include "daemon/api/api_server.h"
#include "daemon/poll/queue_reading.h"

enum queue_question {
        QUEUE_QUESTION_QUEUES,
        QUEUE_QUESTION_METRICS, /* includes the queues */
        QUEUE_QUESTION_DOCTOR,  /* answered by diagnose() */
        _QUEUE_QUESTION_MAX,
};

struct queue_calls {
        struct links *links; /* not owned */
        /* Called once the queues were read. metrics() returns the reply to GetMetrics as a new reference, or
         * NULL when memory is short. diagnose() replies to the call or keeps it. */
        json_t *(*metrics)(void *userdata);
        void (*diagnose)(struct call *call, void *userdata);
        void *userdata;
        struct {
                struct call *call;
                enum queue_question question;
        } list[SERVER_CONNECTIONS_MAX];
        size_t n;
        /* The latest replies, reused for read-only clients: frequent calls of theirs must not load Redis. */
        struct {
                struct shared_reply reply; /* no text: no recent reply */
                usec_t at;
        } answers[_QUEUE_QUESTION_MAX][2]; /* [0]: for other clients; [1]: for viewers */
};

/* Replies once the queues were read. A read-only client may get a reply at once, at most one second old. */
void queue_calls_add(struct queue_calls *calls, struct call *call, enum queue_question question, usec_t now);
/* Replies to all waiting calls. Call when the queues were read. */
void queue_calls_answer(struct queue_calls *calls, usec_t now);
/* Drops replies that are older than one second; now = USEC_INFINITY drops all. */
void queue_calls_forget(struct queue_calls *calls, usec_t now);
