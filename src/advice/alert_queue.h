/* SPDX-License-Identifier: MIT */
/* The queue of alerts to send: which events are folded into one alert, and which alert comes next. */
#pragma once

#include "model/event.h"
#include <jansson.h>

/* Maximum number of alerts that wait or are remembered. */
#define ALERTS_MAX 100
/* An event with the same kind, fleet and worker as an earlier one within this time is folded. */
#define ALERT_FOLD_USEC (60 * USEC_PER_SEC)

struct alert {
        enum event_kind kind;
        char fleet[64]; /* "": no fleet */
        unsigned index; /* of the worker; 0: no worker */
        unsigned count; /* number of folded events; 0: sent, and remembered for folding later events */
        json_t *event;  /* owned: the last of the folded events; NULL: none */
        usec_t due;
        usec_t until; /* later events before this time are folded */
};

struct alert_queue {
        struct alert alerts[ALERTS_MAX];
        size_t n;
};

/* Adds an event; takes ownership of rendered, its JSON object. The first event of its kind, fleet and worker
 * is due at once; later ones within the folding time are due together at its end. While the alert of a
 * problem or of its end waits, the opposite alert is due after it. Returns false if ALERTS_MAX alerts wait:
 * the event is lost. */
bool alert_queue_add(struct alert_queue *queue, const struct event *event, json_t *rendered, usec_t now);

/* Returns the alert that is due first, or NULL if none waits. Valid until another alert is
 * added. */
struct alert *alert_queue_next(struct alert_queue *queue);

/* Forgets the event of an alert that was sent. */
void alert_queue_sent(struct alert *alert);

/* An alert that could not be sent waits until due. */
void alert_queue_delay(struct alert_queue *queue, struct alert *alert, usec_t due);

/* Forgets all alerts. */
void alert_queue_clear(struct alert_queue *queue);
