/* SPDX-License-Identifier: MIT */
/* The names of the channels and keys of Celery in Redis, as its transport kombu makes them. Pure. Each
 * function returns a text that the caller frees; NULL: out of memory. */
#pragma once

/* The settings of the application from which names are made. */
struct celery_names {
        unsigned database;         /* of Redis */
        const char *key_prefix;    /* the transport option `global_keyprefix`; NULL: none */
        const char *fanout_prefix; /* the transport option `fanout_prefix`; NULL: `/DATABASE.` */
        const char *events;        /* the setting `event_exchange`; NULL: "celeryev" */
        const char *control;       /* the setting `control_exchange`; NULL: "celery" */
};

/* The pattern that PSUBSCRIBE takes for the events of all workers. Special characters are escaped. */
char *celery_event_pattern(const struct celery_names *names);
/* The channel of requests, to which all workers listen. */
char *celery_request_channel(const struct celery_names *names);
/* The key of the list that is named like this in a message: a queue, or a reply list. */
char *celery_list_key(const struct celery_names *names, const char *name);
/* The key of the list of a queue's tasks with this priority. Kombu rounds priorities down to 0, 3, 6 or 9,
 * unless the application sets `priority_steps`. Priority 0 is also that of tasks without one, and 0 is the
 * first. */
char *celery_queue_key(const struct celery_names *names, const char *queue, unsigned priority);
