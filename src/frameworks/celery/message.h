/* SPDX-License-Identifier: MIT */
/* The messages of Celery 5 in Redis, as its transport kombu writes them: events of workers, requests to the
 * control mailbox ("pidbox") of workers, and their replies. Pure. names.h has the channels and keys.
 *
 * A message is JSON with a body, which is JSON in base64, or plain if the application sets the transport
 * option `body_encoding`. A message of another serializer than JSON, such as pickle, is -EPROTONOSUPPORT.
 *
 * `timestamp` of an event and `time_start` of a task are seconds since 1970 by the wall clock of the worker's
 * host: Celery 5.2 to 5.6 convert the monotonic time at which the pool accepted the task. */
#pragma once

#include "base/usec.h"
#include "frameworks/celery/node_name.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Limits for foreign messages, in bytes. A reply contains the arguments of tasks. */
#define CELERY_EVENT_MAX   ((size_t)8 * 1024)
#define CELERY_REPLY_MAX   ((size_t)1024 * 1024)
#define CELERY_QUEUES_MAX  256
#define CELERY_VERSION_MAX 31

enum celery_event_type {
        CELERY_ONLINE, /* the worker has connected, and does not accept tasks yet */
        CELERY_HEARTBEAT,
        CELERY_OFFLINE, /* the worker stops; or it connects again, and CELERY_ONLINE follows */
        _CELERY_EVENT_MAX,
};

struct celery_event {
        enum celery_event_type type;
        char node[CELERY_NAME_MAX + 1]; /* celery_node_host() accepts it */
        pid_t pid;                      /* of the main process, in its pid namespace */
        /* False in the heartbeat that the control command `heartbeat` requests: active and processed are 0.
         */
        bool has_counts;
        uint64_t active;    /* tasks that run; tasks that wait in the worker are not counted */
        uint64_t processed; /* tasks that have begun since the start of the worker */
        usec_t every_usec;  /* between two heartbeats; 0: not known */
        uint64_t sent_usec; /* wall clock */
        uint64_t clock;     /* the logical clock of all workers, which does not go back; 0: not known */
        char version[CELERY_VERSION_MAX + 1]; /* of Celery; "": not known, or not printable ASCII */
};

/* Decodes a message of pub/sub. Returns 0; -ENOMSG if it is an event of another kind; -EMSGSIZE if it is
 * larger than CELERY_EVENT_MAX or has too many values; -EPROTONOSUPPORT; -EINVAL if it is no event; or
 * -ENOMEM. *ret is untouched unless 0 is returned. */
int celery_event_decode(const char *text, size_t size, struct celery_event *ret);

enum celery_method {
        CELERY_PING,
        CELERY_ACTIVE,   /* lists the tasks that run */
        CELERY_RESERVED, /* lists the tasks that wait in the worker for a free process; none with an ETA */
        CELERY_ACTIVE_QUEUES, /* lists the queues from which the worker consumes */
        CELERY_CANCEL_CONSUMER,
        CELERY_ADD_CONSUMER,
        _CELERY_METHOD_MAX,
};

const char *celery_method_name(enum celery_method value);

/* A request to workers. Texts are UTF-8. */
struct celery_request {
        enum celery_method method;
        const char *queue;        /* of CELERY_CANCEL_CONSUMER and CELERY_ADD_CONSUMER */
        const char *const *nodes; /* the workers that are to execute it; NULL: all */
        size_t n_nodes;
        /* The list to which each worker pushes its reply, without `global_keyprefix`; NULL: no reply. Workers
         * reply through the exchange without a name, which needs no binding of a queue: nothing but the list
         * remains in Redis. */
        const char *reply_list;
        uint64_t number; /* replies contain it */
};

/* Makes the message that is to be published. Returns 0 with *ret, which the caller frees; -EINVAL if a text
 * is not UTF-8; or -ENOMEM. */
int celery_request_encode(const struct celery_request *request, char **ret);

/* A task of CELERY_ACTIVE or CELERY_RESERVED, without its arguments. Texts are owned, and not empty. */
struct celery_task {
        char *id, *name;
        char *routing_key;     /* mostly the name of the queue; NULL: not known */
        uint64_t started_usec; /* wall clock; 0: not started */
        pid_t pid;             /* of the process of the pool that runs the task; 0: not known */
        bool acknowledged;     /* the task is lost if the worker dies */
};

/* The reply of one worker. */
struct celery_reply {
        enum celery_method method; /* of the request */
        uint64_t number;
        char node[CELERY_NAME_MAX + 1]; /* "": not known */
        bool failed;                    /* the worker could not execute the request */
        struct celery_task *tasks;      /* of CELERY_ACTIVE and CELERY_RESERVED */
        size_t n_tasks;
        size_t n_unreadable; /* entries of tasks that cannot be decoded; the worker has them nevertheless */
        char **queues;       /* of CELERY_ACTIVE_QUEUES */
        size_t n_queues;
};

/* Decodes an element of the reply list. Returns 0; -ENOMSG if it replies to no request of
 * celery_request_encode(); -EMSGSIZE if it exceeds a limit; -EPROTONOSUPPORT; -EINVAL if it is invalid; or
 * -ENOMEM. *ret must be cleared by celery_reply_clear() in each case. If the result is -EMSGSIZE or -EINVAL
 * and node is not "", this worker has replied to this request, and what it lists cannot be read: arguments
 * that are large, or no JSON, as NaN. */
int celery_reply_decode(const char *text, size_t size, struct celery_reply *ret);
void celery_reply_clear(struct celery_reply *reply);
