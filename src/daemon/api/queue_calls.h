/* SPDX-License-Identifier: MIT */
/* Answers what waits in each Redis: those who ask wait for one reading together. */
#pragma once

#include "daemon/api/control.h"
#include "daemon/run/queue_reading.h"

#define QUEUE_CALLS_MAX 64

struct queue_calls {
        struct queue_reading *reading; /* not owned */
        struct {
                struct call *call;
                bool metrics; /* it asks for these, the queues among them */
        } list[QUEUE_CALLS_MAX];
        size_t n;
};

/* Answers the call when the queues have been read; metrics: with these, the queues among them. */
void queue_calls_add(struct queue_calls *calls, struct call *call, bool metrics);
/* They have been read: answers all. */
void queue_calls_answer(struct queue_calls *calls, struct control *control);
