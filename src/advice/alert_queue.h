/* SPDX-License-Identifier: MIT */
/* Alerts that wait to be told: which events are folded into one, and which alert comes next. */
#pragma once

#include "base/usec.h"
#include "model/event.h"
#include <jansson.h>

/* So many wait, or are remembered, at most. */
#define ALERTS_MAX 100
/* An event of the same kind, fleet and worker as one before it within this time is folded. */
#define ALERT_FOLD_USEC (60 * USEC_PER_SEC)

struct alert {
        enum event_kind kind;
        char fleet[64]; /* "": of none */
        unsigned index; /* of the worker; 0: of none */
        unsigned count; /* events that it stands for; 0: told, and remembered for those that follow */
        json_t *event;  /* owned: the last of them; NULL: none */
        usec_t due;
        usec_t until; /* an event that comes before is folded */
};

struct alert_queue {
        struct alert alerts[ALERTS_MAX];
        size_t n;
};

/* Adds an event, rendered as the JSON object that is taken over. The first of its like is due at once; others
 * of the time after it are due together, at its end. Where a trouble or its end waits, the other is due after
 * that. Returns false where ALERTS_MAX wait: it is lost. */
bool alert_queue_add(struct alert_queue *queue, const struct event *event, json_t *rendered, usec_t now);

/* The alert that is due first, or NULL where none waits. Valid until the next call of another function. */
struct alert *alert_queue_next(struct alert_queue *queue);

/* The alert is being told. Returns its event with a member `count`, to be released; NULL: memory is short,
 * and it waits on. */
json_t *alert_queue_take(struct alert *alert);

/* It could not be told: it waits until due. event: what was taken, or NULL where nothing was. */
void alert_queue_put_back(struct alert_queue *queue, struct alert *alert, json_t *event, usec_t due);

/* Forgets all alerts. */
void alert_queue_clear(struct alert_queue *queue);
