/* SPDX-License-Identifier: MIT */
/* Reads the queues of one Redis; see the header. */
#include "frameworks/redis_queues.h"
#include "io/asks.h"
#include "io/clock.h"
#include "model/queues.h"
#include "wire/withhold.h"
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

struct queues_read {
        const struct queues_format *format;
        struct redis *redis;
        char *namespace;
        queues_read_fn callback;
        void *userdata;
        struct queues_found found;
        struct asks *asks; /* the tag of each: the queue, in the second round, and which of the questions */
        bool each;         /* in the second round */
        char error[256];   /* "": none */
};

void redis_queues_found_clear(struct queues_found *found)
{
        for (size_t i = 0; i < found->n_paused; i++)
                free(found->paused[i]);
        free(found->paused);
        found->paused = NULL;
        found->n_paused = 0;
}

struct queues_read *redis_queues_free(struct queues_read *read)
{
        if (!read)
                return NULL;
        asks_free(read->asks);
        redis_queues_found_clear(&read->found);
        queues_free(read->found.queues);
        free(read->namespace);
        free(read);
        return NULL;
}

static void fail(struct queues_read *read, const char *error)
{
        if (read->error[0] == '\0')
                snprintf(read->error, sizeof(read->error), "%s", error);
}

static void fail_in_its_words(struct queues_read *read, const char *answer)
{
        char error[sizeof(read->error)];

        snprintf(error, sizeof(error), WITHHOLD_ANSWER "%.200s'", answer);
        fail(read, error);
}

/* Where it cannot be sent the read has failed. */
static void ask(struct queues_read *read, const char *queue, size_t which, size_t tag)
{
        struct beats_command command;
        int r = read->format->ask(read->namespace, queue, which, &command);

        if (r >= 0) {
                r = asks_add(read->asks, read->redis, tag, command.argc, command.argv, NULL);
                for (size_t i = 0; i < ELEMENTSOF(command.keys); i++)
                        free(command.keys[i]);
        }
        if (r < 0)
                fail(read, r == -ENOMEM ? "memory is short" : "Redis went away");
}

static void ask_each(struct queues_read *read)
{
        const struct queues *queues = read->found.queues;
        size_t n = read->format->n_each;

        read->each = true;
        for (size_t i = 0; i < queues->n * n && read->error[0] == '\0'; i++)
                ask(read, queues->list[i / n].name, i % n, i);
}

/* An element of a list: false where it is no text, or holds a NUL. */
static bool take_text(const redisReply *list, size_t i, struct field *ret)
{
        const redisReply *element = list->element[i];

        if (element->type != REDIS_REPLY_STRING || memchr(element->str, '\0', element->len))
                return false;
        *ret = (struct field){.text = element->str, .len = element->len};
        return true;
}

static size_t list_length(const redisReply *reply)
{
        return reply->type == REDIS_REPLY_ARRAY ? MIN(reply->elements, (size_t)QUEUES_READ_MAX) : 0;
}

static int take_names(struct queues_read *read, const redisReply *reply)
{
        struct queues *queues = read->found.queues;
        struct field element;

        if (reply->type == REDIS_REPLY_ARRAY && reply->elements > QUEUES_READ_MAX)
                queues->left_out = reply->elements - QUEUES_READ_MAX;
        for (size_t i = 0; i < list_length(reply); i++) {
                if (!take_text(reply, i, &element))
                        continue;
                const char *name = element.text;
                size_t len = read->format->name ? read->format->name(&element, &name) : element.len;
                if ((len > 0 || !read->format->name) && !queues_add(queues, name, len))
                        return -ENOMEM;
        }
        return 0;
}

int queues_found_pause(struct queues_found *found, const redisReply *reply)
{
        char **paused =
                reallocarray(found->paused, found->n_paused + list_length(reply) + 1, sizeof(*paused));
        struct field name;

        if (!paused)
                return -ENOMEM;
        found->paused = paused;
        for (size_t i = 0; i < list_length(reply); i++) {
                if (!take_text(reply, i, &name))
                        continue;
                if (!(paused[found->n_paused] = strndup(name.text, name.len)))
                        return -ENOMEM;
                found->n_paused++;
        }
        return 0;
}

uint64_t queues_number(const redisReply *reply)
{
        return reply->type == REDIS_REPLY_INTEGER && reply->integer > 0 ? (uint64_t)reply->integer : 0;
}

void queue_waits_since(struct queue *queue, usec_t since)
{
        queue->latency_known = true;
        queue->latency = usec_sub(clock_now(CLOCK_REALTIME), since);
}

bool redis_queues_is_wrong_type(const redisReply *reply)
{
        return strncmp(reply->str, "WRONGTYPE ", strlen("WRONGTYPE ")) == 0;
}

static void on_reply(const redisReply *reply, size_t tag, void *userdata)
{
        struct queues_read *read = userdata;
        const struct queues_format *format = read->format;
        struct queues *queues = read->found.queues;
        int r = 0;

        if (!reply)
                fail(read, "Redis went away or did not answer in time");
        else if (reply->type == REDIS_REPLY_ERROR && !(read->each && redis_queues_is_wrong_type(reply)))
                fail_in_its_words(read, reply->str);
        else if (read->each)
                format->take_each(reply, tag % format->n_each, queues, &queues->list[tag / format->n_each]);
        else
                r = tag == 0 ? take_names(read, reply) : format->take_first(reply, tag, &read->found);
        if (r < 0)
                fail(read, "memory is short");
}

void redis_queues_pause(struct queues *queues, const struct queues_found *found)
{
        for (size_t i = 0; i < queues->n; i++) {
                struct queue *queue = &queues->list[i];

                queue->paused = found->all_paused;
                for (size_t j = 0; j < found->n_paused; j++)
                        queue->paused |= strcmp(queue->name, found->paused[j]) == 0;
        }
}

static void finish(struct queues_read *read)
{
        struct queues *queues = read->found.queues;

        redis_queues_pause(queues, &read->found);
        queues_sort(queues);
        read->found.queues = NULL;
        read->callback(queues, NULL, read->userdata);
}

static void on_round(void *userdata)
{
        struct queues_read *read = userdata;

        if (read->error[0] == '\0' && !read->each)
                ask_each(read);
        /* Where one of them could not be sent, those before it are still to be answered. */
        if (asks_pending(read->asks) > 0)
                return;
        if (read->error[0] != '\0')
                read->callback(NULL, read->error, read->userdata);
        else
                finish(read);
}

int redis_queues_read(const struct queues_format *format, const struct queues_source *source,
                      queues_read_fn callback, void *userdata, struct queues_read **ret)
{
        static const struct asks_ops ops = {.reply = on_reply, .done = on_round};
        struct queues_read *read = calloc(1, sizeof(*read));

        if (redis_state(source->redis) != REDIS_STATE_CONNECTED) {
                free(read);
                return -ENOTCONN;
        }
        if (!read)
                return -ENOMEM;
        *read = (struct queues_read){
                .format = format,
                .redis = source->redis,
                .callback = callback,
                .userdata = userdata,
                .namespace = strdup(source->namespace ?: ""),
                .found.queues = calloc(1, sizeof(struct queues)),
        };
        if (!read->namespace || !read->found.queues || asks_new(&ops, read, &read->asks) < 0) {
                redis_queues_free(read);
                return -ENOMEM;
        }
        for (size_t i = 0; i < format->n_first; i++)
                ask(read, NULL, i, i);
        if (asks_pending(read->asks) == 0) {
                redis_queues_free(read);
                return -ENOMEM;
        }
        *ret = read;
        return 0;
}
