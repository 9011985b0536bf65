/* SPDX-License-Identifier: MIT */
/* Reads the queues of one Redis. A reading of all queues takes two round trips: queue names and global
 * data first, then the data of each queue. A reading of named queues takes one round trip and includes
 * what autoscaling needs. Each framework provides one table of questions for both kinds of reading. */
#pragma once

#include "model/queues.h"
#include "wire/quoted.h"

struct redis;
struct redisReply; /* from hiredis */

/* Limits on decoding the oldest job of each queue, because any writer to Redis can make them large and slow
 * to decode. After QUEUES_HEADS_MAX bytes in one reading, only jobs of at most QUEUES_HEAD_SMALL bytes are
 * decoded. */
#define QUEUES_HEADS_MAX  ((size_t)2 * 1024 * 1024)
#define QUEUES_HEAD_SMALL ((size_t)4 * 1024)

/* The results of a reading so far. */
struct queues_found {
        const struct queues_format *format;
        struct queues *queues;
        struct queue *queue; /* the queue of the current reply; NULL: the reply is for no queue */
        size_t head_bytes;   /* of the oldest jobs that were decoded */
        usec_t realtime;     /* wall clock at the start of the reading */
        const char *namespace;
        unsigned database;
        bool done_known; /* `done` is valid: the total of jobs ever done in this Redis */
        uint64_t done;
        void *measures; /* the framework's data that persists between readings; NULL: all queues are read */
};

/* When a question is sent. */
enum {
        QUEUES_ALL = 1,   /* once per reading of all queues */
        QUEUES_NAMED = 2, /* once per reading of named queues */
        QUEUES_EACH = 4,  /* for each queue */
        QUEUES_DUE = 8,   /* once per reading of named queues with their scheduled jobs */
};

/* Stands for the time, in seconds since 1970, up to which scheduled jobs are read. */
#define QUEUES_UNTIL      "until"
#define QUEUES_UNTIL_USEC (5 * USEC_PER_MIN)

#define QUEUE_WORDS_MAX 9
#define QUEUE_GETS_MAX  3
#define QUEUE_KEY_MAX   40

struct queues_question {
        unsigned asked;                     /* bits of the enum above */
        const char *words[QUEUE_WORDS_MAX]; /* the command and the arguments after its key; NULL-terminated */
        const char *key; /* without the namespace; with QUEUES_EACH the queue's name is appended */
        /* For SORT with QUEUES_EACH: patterns that follow the words, each after GET; made like the key. */
        const char *get[QUEUE_GETS_MAX];
        /* Makes the key if key is NULL. The question is sent at most once per minute. */
        const char *(*minute_key)(usec_t realtime, char text[static QUEUE_KEY_MAX]);
        /* Stores the reply, which is never an error reply. Returns 0 or -ENOMEM. */
        int (*take)(const struct redisReply *reply, struct queues_found *found);
        size_t counter; /* if take is NULL: the offset in struct queues of the counter to which the reply is
                         * added */
        bool optional;  /* for named queues: a forbidden or too large reply only reduces what is known */
};

/* How a framework stores its queues in Redis. */
struct queues_format {
        /* Sent and answered in this order. The question for the names is first. */
        const struct queues_question *questions;
        size_t n;
        char *(*key)(const char *namespace, const char *name, const char *suffix); /* like decode_key() */
        /* Extracts the queue's name from an element of the list of queues. Returns its length, with *ret
         * set; 0: no name. NULL: the element is the name. */
        size_t (*name)(const struct field *element, const char **ret);
        /* How long jobs take, read with named queues. Set all or none. The measures start zeroed. */
        size_t measures_size;
        void (*measures_clear)(void *measures);
        void (*take_service)(const void *measures, struct queues *queues); /* sets how long jobs take */
};

/* Returns the integer of a reply, at most QUEUE_JOBS_MAX; 0 if the reply is not a positive integer. */
uint64_t queues_number(const struct redisReply *reply);
/* Sets the latency of a queue from the time since which its oldest job waits. since: wall clock. */
void queue_waits_since(struct queue *queue, usec_t since);
/* Records that a scheduled job of the queue falls due at this time; queue NULL: one of any queue. due: wall
 * clock. */
void queues_take_due(struct queues_found *found, const struct field *queue, usec_t due);
/* Returns true if an oldest job of this many bytes may be decoded, and counts these bytes. */
bool queues_may_decode(struct queues_found *found, size_t bytes);
/* For queues_question.take: all queue names; the paused queues; the length of the queue; further jobs of the
 * queue. */
int queues_take_names(const struct redisReply *reply, struct queues_found *found);
int queues_take_paused(const struct redisReply *reply, struct queues_found *found);
int queues_take_size(const struct redisReply *reply, struct queues_found *found);
int queues_take_more(const struct redisReply *reply, struct queues_found *found);
/* For take functions: marks all queues as paused. */
void queues_pause_all(struct queues *queues);

/* Called once per reading, from the event loop. reading->queues is NULL if the reading failed; the callback
 * may take ownership. error: why it failed, valid during the callback; NULL: success. The callback must not
 * free the reader. */
typedef void (*queues_reading_fn)(struct queues_reading *reading, const struct error_report *error,
                                  void *userdata);

struct queue_reader;

/* redis and format must outlive the reader; namespace is copied; NULL or "": none. Returns 0 with *ret,
 * which the caller frees with queue_reader_free(), or -ENOMEM. */
int queue_reader_new(struct redis *redis, const struct queues_format *format, const char *namespace,
                     queues_reading_fn callback, void *userdata, struct queue_reader **ret);
/* Starts a reading; copies names. names: each name ends with a NUL, the list with two. NULL reads all queues
 * and sorts them by name. due: of named queues, reads also when a scheduled job falls due. realtime: wall
 * clock. Returns 0: the callback follows; -EBUSY: the previous reading is still running; -ENODATA: no queue
 * is named, and the format asks for nothing else; -ENOTCONN or -ENOMEM.
 */
int queue_reader_read(struct queue_reader *reader, const char *names, bool due, usec_t realtime);
/* Afterwards the callback is not called. Takes NULL. Returns NULL. */
struct queue_reader *queue_reader_free(struct queue_reader *reader);
