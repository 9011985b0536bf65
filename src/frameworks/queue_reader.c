/* SPDX-License-Identifier: MIT */
/* Reads the queues of one Redis; see the header. */
#include "frameworks/queue_reader.h"
#include "io/clock.h"
#include "redis/redis.h"
#include "redis/redis_command.h"
#include <stdio.h>

struct queue_reader {
        const struct queues_format *format;
        struct redis *redis;
        char *namespace;
        queues_reading_fn callback;
        void *userdata;
        struct redis_batch *redis_batch; /* tag: index of the queue (QUEUES_EACH only) times the number of
                                          * questions, plus index of the question */
        struct queues_found found;       /* of the current reading; measures persist */
        bool named;                      /* the current reading is of named queues */
        bool each;                       /* the QUEUES_EACH questions were sent */
        usec_t minute; /* when the once-a-minute questions were last sent, in minutes since 1970 */
        struct error_report error;
};

struct queue_reader *queue_reader_free(struct queue_reader *reader)
{
        if (!reader)
                return NULL;
        redis_batch_free(reader->redis_batch);
        queues_free(reader->found.queues);
        if (reader->found.measures)
                reader->format->measures_clear(reader->found.measures);
        free(reader->found.measures);
        free(reader->namespace);
        free(reader);
        return NULL;
}

/* Records the first error of the reading. said: the error reply of the server; NULL: none. */
static void fail(struct queue_reader *reader, const char *error, const char *said)
{
        if (reader->error.text[0] == '\0')
                error_report_quote(&reader->error, said, "%s", error);
}

/* Returns 0 also if the question is not due. */
static int ask_question(struct queue_reader *reader, const struct queues_question *question,
                        const char *queue, size_t tag)
{
        usec_t realtime = reader->found.realtime;
        char text[QUEUE_KEY_MAX], until[24];
        const char *words[QUEUE_WORDS_MAX + 1] = {NULL};
        struct redis_command command;

        if (question->minute_key && reader->minute == realtime / USEC_PER_MIN)
                return 0;
        assert(question->key || question->minute_key);
        const char *name = question->key ?: question->minute_key(realtime, text);
        snprintf(until, sizeof(until), "%llu",
                 (unsigned long long)((realtime + QUEUES_UNTIL_USEC) / USEC_PER_SEC));
        for (size_t i = 0; i < QUEUE_WORDS_MAX && question->words[i]; i++)
                words[i] = strcmp(question->words[i], QUEUES_UNTIL) == 0 ? until : question->words[i];
        int r = command_make(&command, reader->format->key(reader->namespace, name, queue), words);
        for (size_t i = 0; i < QUEUE_GETS_MAX && r >= 0 && question->get[i]; i++)
                r = command_add_get(&command,
                                    reader->format->key(reader->namespace, question->get[i], queue));
        if (r < 0)
                return r;
        r = redis_batch_add(reader->redis_batch, reader->redis, tag, &command);
        command_clear(&command);
        return r;
}

/* Sends the questions of this kind, once or for each queue. The reading fails if one cannot be sent. */
static void ask(struct queue_reader *reader, unsigned asked)
{
        const size_t n = reader->format->n, times = asked == QUEUES_EACH ? reader->found.queues->n : 1;

        for (size_t tag = 0; tag < n * times && reader->error.text[0] == '\0'; tag++) {
                const struct queues_question *question = &reader->format->questions[tag % n];
                const char *queue = asked == QUEUES_EACH ? reader->found.queues->list[tag / n].name : NULL;
                int r = question->asked & asked ? ask_question(reader, question, queue, tag) : 0;

                if (r < 0)
                        fail(reader, r == -ENOMEM ? "out of memory" : "connection to Redis lost", NULL);
        }
        if (asked == QUEUES_NAMED)
                reader->minute = reader->found.realtime / USEC_PER_MIN;
        reader->each |= asked == QUEUES_EACH;
}

static size_t list_length(const redisReply *reply)
{
        return reply->type == REDIS_REPLY_ARRAY ? MIN(reply->elements, (size_t)QUEUES_READ_MAX) : 0;
}

/* Returns an element of a list; an empty field if the element is not a string or contains a NUL. */
static struct field take_text(const redisReply *list, size_t i)
{
        const struct field text = reply_element(list, i);

        return text.text && !memchr(text.text, '\0', text.len) ? text : (struct field){0};
}

int queues_take_names(const redisReply *reply, struct queues_found *found)
{
        const struct queues_format *format = found->format;

        if (reply->type == REDIS_REPLY_ARRAY && reply->elements > QUEUES_READ_MAX)
                found->queues->left_out = reply->elements - QUEUES_READ_MAX;
        for (size_t i = 0; i < list_length(reply); i++) {
                const struct field element = take_text(reply, i);
                const char *name = element.text;
                size_t len = name && format->name ? format->name(&element, &name) : element.len;

                if (!name || (len == 0 && format->name))
                        continue;
                if (len > QUEUE_NAME_MAX)
                        found->queues->left_out++;
                else if (!queues_add(found->queues, name, len))
                        return -ENOMEM;
        }
        return 0;
}

void queues_pause_all(struct queues *queues)
{
        QUEUES_FOREACH(queues, queue)
                queue->paused = true;
}

int queues_take_paused(const redisReply *reply, struct queues_found *found)
{
        for (size_t i = 0; i < list_length(reply); i++) {
                const struct field name = take_text(reply, i);

                for (size_t j = 0; name.text && j < found->queues->n; j++)
                        if (strcmp(found->queues->list[j].name, name.text) == 0)
                                found->queues->list[j].paused = true;
        }
        return 0;
}

int queues_take_size(const redisReply *reply, struct queues_found *found)
{
        found->queue->size = queues_number(reply);
        return 0;
}

int queues_take_more(const redisReply *reply, struct queues_found *found)
{
        found->queue->size = MIN(found->queue->size + queues_number(reply), QUEUE_JOBS_MAX);
        return 0;
}

uint64_t queues_number(const redisReply *reply)
{
        uint64_t number =
                reply->type == REDIS_REPLY_INTEGER && reply->integer > 0 ? (uint64_t)reply->integer : 0;

        return MIN(number, QUEUE_JOBS_MAX);
}

bool queues_may_decode(struct queues_found *found, size_t bytes)
{
        if (bytes > QUEUES_HEAD_SMALL && found->head_bytes + bytes > QUEUES_HEADS_MAX)
                return false;
        found->head_bytes += bytes;
        return true;
}

void queues_take_due(struct queues_found *found, const struct field *queue, usec_t due)
{
        usec_t in = usec_sub(due, found->realtime);

        QUEUES_FOREACH(found->queues, one) {
                if (queue &&
                    (strlen(one->name) != queue->len || memcmp(one->name, queue->text, queue->len) != 0))
                        continue;
                one->due_in = one->due_known ? MIN(one->due_in, in) : in;
                one->due_known = true;
        }
}

void queue_waits_since(struct queue *queue, usec_t since)
{
        queue->latency_known = true;
        queue->latency = usec_sub(clock_now(CLOCK_REALTIME), since);
}

static void take(struct queue_reader *reader, const struct queues_question *question, const redisReply *reply,
                 size_t i)
{
        struct queues_found *found = &reader->found;

        found->queue = question->asked & QUEUES_EACH ? &found->queues->list[i] : NULL;
        if (!question->take)
                *(uint64_t *)((char *)found->queues + question->counter) += queues_number(reply);
        else if (question->take(reply, found) < 0)
                fail(reader, "out of memory", NULL);
}

static void on_reply(const redisReply *reply, size_t tag, void *userdata)
{
        struct queue_reader *reader = userdata;
        const struct queues_question *question = &reader->format->questions[tag % reader->format->n];

        if (!reply)
                fail(reader, "connection to Redis lost, or no reply in time", NULL);
        else if (reply->type != REDIS_REPLY_ERROR)
                take(reader, question, reply, tag / reader->format->n);
        /* A queue's key of the wrong type must not hide the other queues. */
        else if (!(reader->named && question->optional) &&
                 !((reader->named || question->asked & QUEUES_EACH) && reply_is_wrong_type(reply)))
                fail(reader, "command refused", reply->str);
}

static void on_round(void *userdata)
{
        struct queue_reader *reader = userdata;
        struct queues_found *found = &reader->found;

        if (reader->error.text[0] == '\0' && !reader->each)
                ask(reader, QUEUES_EACH);
        /* If a question could not be sent, replies to earlier ones are still pending. */
        if (redis_batch_pending(reader->redis_batch) > 0)
                return;
        struct queues_reading reading = {.done_known = found->done_known, .done = found->done};
        const struct error_report *error = reader->error.text[0] != '\0' ? &reader->error : NULL;
        if (!error)
                reading.queues = TAKE_PTR(found->queues);
        if (reading.queues && !reader->named)
                queues_sort(reading.queues);
        else if (reading.queues && reader->format->take_service)
                reader->format->take_service(found->measures, reading.queues);
        reader->callback(&reading, error, reader->userdata);
        queues_free(reading.queues);
}

int queue_reader_new(struct redis *redis, const struct queues_format *format, const char *namespace,
                     queues_reading_fn callback, void *userdata, struct queue_reader **ret)
{
        static const struct redis_batch_ops ops = {.reply = on_reply, .done = on_round};
        struct queue_reader *reader = calloc(1, sizeof(*reader));

        if (!reader)
                return -ENOMEM;
        *reader = (struct queue_reader){
                .format = format,
                .redis = redis,
                .callback = callback,
                .userdata = userdata,
                .namespace = strdup(namespace ?: ""),
        };
        if (!reader->namespace || redis_batch_new(&ops, reader, &reader->redis_batch) < 0) {
                queue_reader_free(reader);
                return -ENOMEM;
        }
        *ret = reader;
        return 0;
}

static int begin(struct queue_reader *reader, const char *names, usec_t realtime)
{
        const struct queues_format *format = reader->format;
        struct queues_found *found = &reader->found;

        queues_free(found->queues);
        if (names && format->take_service && !found->measures &&
            !(found->measures = calloc(1, format->measures_size)))
                return -ENOMEM;
        *found = (struct queues_found){
                .format = format,
                .queues = calloc(1, sizeof(*found->queues)),
                .realtime = realtime,
                .namespace = reader->namespace,
                .database = redis_database(reader->redis),
                .measures = found->measures,
        };
        if (!found->queues)
                return -ENOMEM;
        for (; names && *names != '\0'; names += strlen(names) + 1)
                if (strlen(names) <= QUEUE_NAME_MAX && found->queues->n < QUEUES_READ_MAX &&
                    !queues_add(found->queues, names, strlen(names)))
                        return -ENOMEM;
        return 0;
}

int queue_reader_read(struct queue_reader *reader, const char *names, bool due, usec_t realtime)
{
        if (redis_batch_pending(reader->redis_batch) > 0)
                return -EBUSY;
        if (!reader_state_answers(redis_state(reader->redis)))
                return -ENOTCONN;
        int r = begin(reader, names, realtime);
        if (r < 0)
                return r;
        reader->named = names;
        reader->each = false;
        reader->error = (struct error_report){0};
        ask(reader, names ? QUEUES_NAMED : QUEUES_ALL);
        if (names && due)
                ask(reader, QUEUES_DUE);
        if (names)
                ask(reader, QUEUES_EACH);
        if (redis_batch_pending(reader->redis_batch) > 0)
                return 0;
        return reader->error.text[0] == '\0' ? -ENODATA : -ENOMEM;
}
