/* SPDX-License-Identifier: MIT */
/* Alerts that wait to be told: which events are folded into one, and which alert comes next. */
#include "advice/alert_queue.h"
#include "model/fleet.h"
#include <stdio.h>
#include <string.h>

static const char *event_fleet(const struct event *event)
{
        return event->fleet ? event->fleet->settings->name : "";
}

static bool is_of(const struct alert *alert, const struct event *event)
{
        return alert->index == event->index && strcmp(alert->fleet, event_fleet(event)) == 0;
}

static struct alert *find_like(struct alert_queue *queue, const struct event *event)
{
        for (size_t i = 0; i < queue->n; i++) {
                struct alert *alert = &queue->alerts[i];

                if (alert->kind == event->kind && is_of(alert, event))
                        return alert;
        }
        return NULL;
}

/* The array stays in the order in which alerts came, which decides between those that are due at once. */
static void remove_alert(struct alert_queue *queue, struct alert *alert)
{
        size_t behind = (size_t)(queue->alerts + queue->n - alert) - 1;

        json_decref(alert->event);
        memmove(alert, alert + 1, behind * sizeof(*alert));
        queue->n--;
}

/* Forgets the one that was told and is soonest past. */
static bool make_room(struct alert_queue *queue)
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
        if (!make_room(queue))
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

static bool are_opposite(enum event_kind one, enum event_kind other)
{
        return event_kind_ends(one, other) || event_kind_ends(other, one);
}

/* A trouble and its end are told in the order in which they came: the last that people hear must be true. */
static usec_t due_after_opposite(const struct alert_queue *queue, const struct event *event, usec_t due)
{
        for (size_t i = 0; i < queue->n; i++) {
                const struct alert *alert = &queue->alerts[i];

                if (alert->count > 0 && is_of(alert, event) && are_opposite(alert->kind, event->kind))
                        due = MAX(due, usec_add(alert->due, 1));
        }
        return due;
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
        alert->due = due_after_opposite(queue, event, alert->due);
        alert->count++;
        json_decref(alert->event);
        alert->event = rendered;
        return true;
}

const struct alert *alert_queue_next(const struct alert_queue *queue)
{
        const struct alert *next = NULL;

        for (size_t i = 0; i < queue->n; i++) {
                const struct alert *alert = &queue->alerts[i];

                if (alert->count > 0 && (!next || alert->due < next->due))
                        next = alert;
        }
        return next;
}

json_t *alert_queue_take(struct alert_queue *queue, const struct alert *alert)
{
        struct alert *taken = &queue->alerts[alert - queue->alerts];

        if (json_object_set_new(taken->event, "count", json_integer(taken->count)) < 0)
                return NULL;
        taken->count = 0;
        return TAKE_PTR(taken->event);
}

void alert_queue_put_back(struct alert_queue *queue, const struct alert *alert, json_t *event, usec_t due)
{
        struct alert *again = &queue->alerts[alert - queue->alerts];

        if (event) {
                again->count = (unsigned)json_integer_value(json_object_get(event, "count"));
                again->event = event;
        }
        again->due = due;
        /* It was the first of all, and must not come behind its own end now. */
        for (size_t i = 0; i < queue->n; i++) {
                struct alert *other = &queue->alerts[i];

                if (other->count > 0 && other->index == again->index &&
                    strcmp(other->fleet, again->fleet) == 0 && are_opposite(other->kind, again->kind))
                        other->due = MAX(other->due, usec_add(due, 1));
        }
}

void alert_queue_clear(struct alert_queue *queue)
{
        for (size_t i = 0; i < queue->n; i++)
                json_decref(queue->alerts[i].event);
        queue->n = 0;
}
