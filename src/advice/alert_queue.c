/* SPDX-License-Identifier: MIT */
/* The queue of alerts to send: which events are folded into one alert, and which alert comes next. */
#include "advice/alert_queue.h"
#include "model/fleet.h"
#include <stdio.h>

static const char *event_fleet(const struct event *event)
{
        return event->fleet ? event->fleet->settings->name : "";
}

static struct alert *find_like(struct alert_queue *queue, const struct event *event)
{
        for (size_t i = 0; i < queue->n; i++) {
                struct alert *alert = &queue->alerts[i];

                if (alert->kind == event->kind && alert->index == event->index &&
                    strcmp(alert->fleet, event_fleet(event)) == 0)
                        return alert;
        }
        return NULL;
}

/* The array remains in order of arrival, which decides between alerts that are due at once. */
static void remove_alert(struct alert_queue *queue, struct alert *alert)
{
        size_t behind = (size_t)(queue->alerts + queue->n - alert) - 1;

        json_decref(alert->event);
        memmove(alert, alert + 1, behind * sizeof(*alert));
        queue->n--;
}

/* Forgets the sent alert whose folding time ends first. Returns false if all alerts wait. */
static bool make_space(struct alert_queue *queue)
{
        struct alert *past = NULL;

        if (queue->n < ALERTS_MAX)
                return true;
        for (size_t i = 0; i < queue->n; i++) {
                struct alert *alert = &queue->alerts[i];

                if (alert->count == 0 && (!past || alert->until < past->until))
                        past = alert;
        }
        if (!past)
                return false;
        remove_alert(queue, past);
        return true;
}

static struct alert *add_alert(struct alert_queue *queue, const struct event *event, usec_t now)
{
        if (!make_space(queue))
                return NULL;
        struct alert *alert = &queue->alerts[queue->n++];
        *alert = (struct alert){
                .kind = event->kind,
                .index = event->index,
                .due = now,
                .until = usec_add(now, ALERT_FOLD_USEC),
        };
        snprintf(alert->fleet, sizeof(alert->fleet), "%s", event_fleet(event));
        return alert;
}

/* Returns true if other waits, and one of the two alerts is of a problem and the other of its end. They must
 * be sent in order of arrival, so that the last one shows the current state. */
static bool are_opposite(const struct alert *one, const struct alert *other)
{
        return other->count > 0 && other->index == one->index && strcmp(other->fleet, one->fleet) == 0 &&
               (event_kinds[one->kind].end == other->kind || event_kinds[other->kind].end == one->kind);
}

bool alert_queue_add(struct alert_queue *queue, const struct event *event, json_t *rendered, usec_t now)
{
        struct alert *alert = find_like(queue, event);

        if (alert && alert->count == 0 && now >= alert->until) {
                remove_alert(queue, alert);
                alert = NULL;
        }
        if (!alert) {
                alert = add_alert(queue, event, now);
        } else if (alert->count == 0) {
                alert->due = alert->until;
                alert->until = usec_add(alert->until, ALERT_FOLD_USEC);
        }
        if (!alert) {
                json_decref(rendered);
                return false;
        }
        for (size_t i = 0; i < queue->n; i++)
                if (are_opposite(alert, &queue->alerts[i]))
                        alert->due = MAX(alert->due, usec_add(queue->alerts[i].due, 1));
        alert->count++;
        json_decref(alert->event);
        alert->event = rendered;
        return true;
}

struct alert *alert_queue_next(struct alert_queue *queue)
{
        struct alert *next = NULL;

        for (size_t i = 0; i < queue->n; i++) {
                struct alert *alert = &queue->alerts[i];

                if (alert->count > 0 && (!next || alert->due < next->due))
                        next = alert;
        }
        return next;
}

void alert_queue_sent(struct alert *alert)
{
        json_decref(alert->event);
        alert->event = NULL;
        alert->count = 0;
}

void alert_queue_delay(struct alert_queue *queue, struct alert *alert, usec_t due)
{
        alert->due = due;
        /* The alert that waits came first, and must not be sent after the alert that ends it. */
        for (size_t i = 0; i < queue->n; i++)
                if (are_opposite(alert, &queue->alerts[i]))
                        queue->alerts[i].due = MAX(queue->alerts[i].due, usec_add(due, 1));
}

void alert_queue_clear(struct alert_queue *queue)
{
        for (size_t i = 0; i < queue->n; i++)
                json_decref(queue->alerts[i].event);
        queue->n = 0;
}
