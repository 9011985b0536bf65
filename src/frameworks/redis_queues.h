/* SPDX-License-Identifier: MIT */
/* Reads the queues of one Redis, in two round trips: first their names and what there is once, then what
 * there is of each. */
#pragma once

#include "base/field.h"
#include "frameworks/framework.h"

struct queue;

/* Beyond so many queues the others are left out, and counted. */
#define QUEUES_READ_MAX 1000

/* What has been read so far. */
struct queues_found {
        struct queues *queues;
        bool all_paused;
        char **paused; /* owned: names of others, see queues_found_pause() */
        size_t n_paused;
};

/* How queues stand in Redis. Replies that are taken are no errors. */
struct queues_format {
        size_t n_first; /* questions of the first round, of which the first is for the names */
        size_t n_each;  /* and of the second, for each queue */
        /* The question of this number: in the second round of that queue, whose name is NULL in the first.
         * Returns 0 or -ENOMEM. */
        int (*ask)(const char *namespace, const char *queue, size_t which, struct beats_command *ret);
        /* The name of a queue in an element of the list of them. Returns its length at *ret, 0 where there is
         * none. NULL: the element is the name. */
        size_t (*name)(const struct field *element, const char **ret);
        /* The reply to another question of the first round. Returns 0 or -ENOMEM. */
        int (*take_first)(const struct redisReply *reply, size_t which, struct queues_found *found);
        void (*take_each)(const struct redisReply *reply, size_t which, struct queues *queues,
                          struct queue *queue);
};

/* A number, 0 where it is none. */
uint64_t queues_number(const struct redisReply *reply);
/* The oldest job of a queue waits since then, by the wall clock. */
void queue_waits_since(struct queue *queue, usec_t since);
/* The queues that the reply lists are paused. Returns 0 or -ENOMEM. */
int queues_found_pause(struct queues_found *found, const struct redisReply *reply);

/* An error: the key of one queue is no list, which must not hide the others. */
bool redis_queues_is_wrong_type(const struct redisReply *reply);
/* Frees what it holds besides the queues. */
void redis_queues_found_clear(struct queues_found *found);
/* Marks those of them that are paused. */
void redis_queues_pause(struct queues *queues, const struct queues_found *found);

/* Where they are read. */
struct queues_source {
        struct redis *redis;   /* must outlive the read */
        const char *namespace; /* NULL or "": none */
};

/* For queues_ops: read() with a format, which must outlive the read, and free(). */
int redis_queues_read(const struct queues_format *format, const struct queues_source *source,
                      queues_read_fn callback, void *userdata, struct queues_read **ret);
struct queues_read *redis_queues_free(struct queues_read *read);
