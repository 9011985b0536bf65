/* SPDX-License-Identifier: MIT */
/* Reads the queues of one Redis. Either all that there are, in two round trips: first their names and what
 * there is once, then what there is of each. Or those that are named, in one round trip, with what a count of
 * workers follows. Both ask the questions of one table, of which each framework has its own. */
#pragma once

#include "base/field.h"
#include "model/queues.h"

struct redis;
struct redisReply; /* hiredis's */

/* Beyond so many queues the others are left out, and counted. */
#define QUEUES_READ_MAX 1000

/* What a reading has found so far. */
struct queues_found {
        const struct queues_format *format;
        struct queues *queues;
        struct queue *queue; /* that the question is for; NULL: for none */
        usec_t realtime;     /* when the reading began, by the wall clock */
        bool done_known;     /* all jobs of this Redis that were done, ever */
        uint64_t done;
        void *measures; /* what the framework keeps from reading to reading; NULL: all queues are read */
};

/* When a question is asked. */
enum {
        QUEUES_ALL = 1,   /* once, where all queues are read */
        QUEUES_NAMED = 2, /* once, where some are named */
        QUEUES_EACH = 4,  /* for each queue */
};

#define QUEUE_WORDS_MAX 9
#define QUEUE_KEY_MAX   40

struct queues_question {
        unsigned asked;                     /* of those above */
        const char *words[QUEUE_WORDS_MAX]; /* the command, and what follows its key; NULL-terminated */
        const char *key;                    /* in the namespace; of each queue: followed by its name */
        /* Where key is NULL: makes it, once in each minute; in between it is not asked. */
        const char *(*minute_key)(usec_t realtime, char text[static QUEUE_KEY_MAX]);
        /* Notes the reply, which is no error. Returns 0 or -ENOMEM. */
        int (*take)(const struct redisReply *reply, struct queues_found *found);
        size_t counter; /* where take is NULL: the offset in struct queues of what the reply is added to */
        bool optional;  /* of named queues: where it is forbidden, or too large, only less is known */
};

/* How queues stand in Redis. */
struct queues_format {
        /* They are asked, and so answered, in this order: first for the names. */
        const struct queues_question *questions;
        size_t n;
        char *(*key)(const char *namespace, const char *name, const char *suffix); /* as decode_key() */
        /* The name of a queue in an element of the list of them. Returns its length at *ret, 0 where there is
         * none. NULL: the element is the name. */
        size_t (*name)(const struct field *element, const char **ret);
        /* Where queues may be named: the measures begin as zeros. */
        size_t measures_size;
        void (*measures_clear)(void *measures);
        usec_t (*service)(const void *measures, const char *names); /* see queue_reader_service() */
};

/* A number, 0 where it is none. */
uint64_t queues_number(const struct redisReply *reply);
/* The oldest job of a queue waits since then, by the wall clock. */
void queue_waits_since(struct queue *queue, usec_t since);
/* For queues_question.take: the names of all queues; those that are paused; the length of the queue. */
int queues_take_names(const struct redisReply *reply, struct queues_found *found);
int queues_take_paused(const struct redisReply *reply, struct queues_found *found);
int queues_take_size(const struct redisReply *reply, struct queues_found *found);
/* For those: all of them are paused. */
void queues_pause_all(struct queues *queues);

/* What was read. */
struct queues_reading {
        struct queues *queues; /* to be taken over; NULL: they could not be read */
        const char *error;     /* why, a sentence that lives as long as the call; NULL: they were */
        bool done_known;       /* all jobs of this Redis that were done, ever */
        uint64_t done;
};

/* Called once for each reading, from the loop. Not for freeing the reader. */
typedef void (*queues_reading_fn)(struct queues_reading *reading, void *userdata);

struct queue_reader;

/* redis and format must outlive the reader; namespace is copied, NULL or "": none. Returns 0 with *ret to be
 * freed by queue_reader_free(), or -ENOMEM. */
int queue_reader_new(struct redis *redis, const struct queues_format *format, const char *namespace,
                     queues_reading_fn callback, void *userdata, struct queue_reader **ret);
/* Begins a reading. names: each ended by a NUL, the last by two; NULL: of all queues, which are sorted by
 * name then. realtime: by the wall clock. Returns 0; -EBUSY: the one before is under way; -ENOTCONN or
 * -ENOMEM. */
int queue_reader_read(struct queue_reader *reader, const char *names, usec_t realtime);
/* A reading is under way. Takes NULL, too. */
bool queue_reader_is_busy(const struct queue_reader *reader);
/* What a job of these queues takes, as the framework itself has measured it; 0: that is not known. */
usec_t queue_reader_service(const struct queue_reader *reader, const char *names);
/* The callback is not called any more. Takes NULL, and returns it. */
struct queue_reader *queue_reader_free(struct queue_reader *reader);
