/* SPDX-License-Identifier: MIT */
/* The processes that run workers of BullMQ on one server, as Redis shows them, and the judgement of that.
 * Pure: the replies and the times are handed in.
 *
 * BullMQ writes no heartbeat, and a frozen process keeps its connections. So a connection that exists is no
 * sign of life. The following are; the time of the last one is the time of the heartbeat:
 *
 * - A connection of a worker has sent or received data. A worker that waits does so each drainDelay.
 * - The set of jobs that the process runs has changed.
 * - The lock of a running job was renewed.
 * - The process neither waits nor runs a job because the rate limit of its queue is reached.
 *
 * A process that was quieted gives none of these signs once its jobs are done. sqmgr knows which processes it
 * has quieted: see traits.quiet_is_silent. */
#pragma once

#include "frameworks/bullmq/clients.h"
#include "model/job.h"

struct heartbeat_info; /* model/heartbeat_info.h */

/* More queues of one process, or of all processes that sqmgr asks for: the processes are not read. Whoever
 * can connect can name queues that do not exist. */
#define BULLMQ_QUEUES_OF_PROCESS_MAX 64
#define BULLMQ_QUEUES_MAX            1000

/* More jobs of one process are not counted. Whoever can write can repeat an id in a list of active jobs. All
 * queues of a process together stay within the bounds of an answer. */
#define BULLMQ_JOBS_MAX 8192

/* After a loss, the connections of a worker are made anew one after another. A younger connection does not
 * show that the worker was quieted, as the other one may still have to send that it takes a job. */
#define BULLMQ_SETTLED_SECONDS 5

/* The fields of an active job: id and worker, and if jobs are listed, name and start. */
enum { BULLMQ_ID, BULLMQ_WORKER, BULLMQ_NAME, BULLMQ_START, _BULLMQ_JOB_MAX };

/* A connection of a worker. */
struct bullmq_connection {
        char *identity, *queue; /* owned */
        size_t host_len;
        pid_t pid;
        uint64_t age, idle;
        bool waits;
};

struct bullmq_process {
        const struct bullmq_connection *connections; /* at least one */
        size_t n_connections;
        uint64_t age, idle; /* the least of its connections */
        bool waits;

        /* Kept from round to round: */
        char **queues; /* owned, as its elements: all queues that were seen, as one connection may be lost
                        * while a job of its worker runs */
        size_t n_queues;
        usec_t sent;         /* the last sign of life, CLOCK_MONOTONIC */
        uint64_t jobs;       /* a sum over its running jobs */
        char *lock;          /* owned: the key of the lock of a running job; NULL: none */
        usec_t lock_expires; /* 0: not known */
        bool jobs_known;     /* jobs and lock are known */

        /* Set in a round in which sqmgr asks for this process: */
        bool asked;
        bool unread; /* not all of its jobs could be read */
        unsigned busy;
        uint64_t new_jobs;
        char *new_lock;       /* owned */
        size_t counted_queue; /* the index of the queue that busy_there counts */
        unsigned busy_there;
        struct job_list list; /* if jobs are listed */
};

/* A queue of a process that sqmgr has asked for. */
struct bullmq_queue {
        char *name;                               /* owned */
        unsigned peak;                            /* the most jobs that one process was seen to run at once */
        bool asked, failed, limit_asked, limited; /* of the current round */
};

/* All zeros but prefix and database: nothing is known. */
struct bullmq_view {
        const char *prefix; /* borrowed */
        unsigned database;
        struct bullmq_connection *connections; /* owned; sorted by identity and queue */
        size_t n_connections, allocated;
        struct bullmq_process *processes; /* owned; sorted by identity */
        size_t n_processes;
        struct bullmq_queue *queues; /* owned; sorted by name */
        size_t n_queues, queues_allocated;
};

void bullmq_view_clear(struct bullmq_view *view);

/* Begins a round with the reply to CLIENT LIST: drops processes that are not in it. asked_at, now:
 * CLOCK_MONOTONIC when it was asked for, and now. Returns 0, or -ENOMEM with nothing known. */
int bullmq_view_take_clients(struct bullmq_view *view, const struct field *text, usec_t asked_at, usec_t now);

/* Returns NULL if no such process is connected. */
struct bullmq_process *bullmq_view_find(const struct bullmq_view *view, const char *identity);
/* NULL: no process that was asked for serves it. */
struct bullmq_queue *bullmq_view_find_queue(const struct bullmq_view *view, const char *name);

/* Asks for a process in this round: marks its queues as asked. An unknown identity is ignored. */
void bullmq_view_ask(struct bullmq_view *view, const char *identity);

/* Counts an active job of the queue with this index in view->queues. list: adds it to the list of its
 * process, too. Returns 0 or -ENOMEM. */
int bullmq_view_take_job(struct bullmq_view *view, size_t index, bool list,
                         const struct field job[static _BULLMQ_JOB_MAX]);
/* Call once for each asked process, after the jobs of all its queues. */
void bullmq_view_judge_jobs(const struct bullmq_view *view, struct bullmq_process *process, usec_t asked_at);
/* The lock of process->lock lasts this long after asked_at. */
void bullmq_process_take_lock(struct bullmq_process *process, usec_t left, usec_t asked_at);
/* Call for each asked process, once queue->limited is known. */
void bullmq_view_judge_limits(const struct bullmq_view *view, struct bullmq_process *process,
                              usec_t asked_at);

/* Returns false while a worker waits for a job, or could still take one that it has waited for. */
bool bullmq_process_may_be_quiet(const struct bullmq_process *process);
/* Returns the number of jobs that the process can run at once, as far as was seen: BullMQ keeps the
 * concurrency of a worker to itself. */
unsigned bullmq_view_concurrency(const struct bullmq_view *view, const struct bullmq_process *process);
/* Returns the queues of the process, which the caller frees. Its workers connect one after another; NULL: out
 * of memory, or not all may be connected yet. */
struct heartbeat_info *bullmq_process_info(const struct bullmq_process *process);
