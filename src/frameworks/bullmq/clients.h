/* SPDX-License-Identifier: MIT */
/* Decodes the reply to CLIENT LIST: which processes run workers of BullMQ. Pure.
 *
 * Whoever can connect to Redis can choose the name of that connection. A forged name can only add to what is
 * known of a process: another queue, a worker that waits, a sign of life. Whether a process runs a job is
 * read from the lists of active jobs. */
#pragma once

#include "frameworks/bullmq/bullmq.h"
#include "model/queues.h"

/* More processes than one Redis serves, by their named connections. Further connections are ignored. */
#define BULLMQ_CLIENTS_MAX 32768

/* A connection. */
struct bullmq_client {
        char queue[QUEUE_NAME_MAX + 1];
        struct field identity; /* points into the line; absent: the worker has no name, or not `HOST:PID` */
        size_t host_len;
        pid_t pid;
        uint64_t age, idle; /* in seconds: since it connected, since it last sent or received anything */
        bool waits;         /* for a job: a command blocks it */
};

/* Decodes one line. Returns false if it is no connection of a worker of BullMQ with this prefix in this
 * database. */
bool bullmq_client_parse(const struct field *line, const char *prefix, unsigned database,
                         struct bullmq_client *ret);

/* Takes the next line off the text. Returns false at its end. */
bool bullmq_next_line(struct field *text, struct field *ret);
