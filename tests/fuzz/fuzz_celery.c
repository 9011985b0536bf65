/* SPDX-License-Identifier: MIT */
/* Fuzzes the messages of Celery: the first byte says whether the rest is a message, or the body of one. */
#include "frameworks/celery/message.h"
#include "fuzz.h"
#include <errno.h>
#include <resolv.h>

/* Returns a message with this body, which is the reply to a request of this method. */
static struct field message_of(const struct field *body, enum celery_method method)
{
        size_t size = (body->len + 2) / 3 * 4 + 1;
        char *encoded = malloc(size), *text = NULL;

        fuzz_check(encoded);
        b64_ntop((const unsigned char *)body->text, body->len, encoded, size);
        int len = asprintf(
                &text,
                "{\"body\":\"%s\",\"content-type\":\"application/json\",\"headers\":{\"ticket\":\"%s-5\"},"
                "\"properties\":{\"body_encoding\":\"base64\"}}",
                encoded, celery_method_name(method));
        fuzz_check(len > 0);
        free(encoded);
        return (struct field){.text = text, .len = (size_t)len};
}

static bool is_name(const char *text)
{
        size_t len = strlen(text);

        return len > 0 && len <= CELERY_NAME_MAX;
}

static void take_event(const struct field *text)
{
        struct celery_event event;

        if (celery_event_decode(text->text, text->len, &event) != 0)
                return;
        fuzz_check((unsigned)event.type < _CELERY_EVENT_MAX);
        fuzz_check(is_name(event.node) && celery_node_host(event.node));
        fuzz_check(event.pid > 0 && event.sent_usec < UINT64_MAX / 2 && event.every_usec < UINT64_MAX / 2);
        fuzz_check(event.has_counts || (event.active == 0 && event.processed == 0));
        fuzz_check(strlen(event.version) <= CELERY_VERSION_MAX);
}

/* The texts of a reply can be sent back to its worker. */
static void make_request(const struct celery_reply *reply)
{
        const char *nodes[] = {reply->node};
        struct celery_request request = {
                .method = CELERY_CANCEL_CONSUMER, .nodes = nodes, .n_nodes = 1, .reply_list = reply->node};

        for (size_t i = 0; i < reply->n_queues; i++) {
                char *text = NULL;

                request.queue = reply->queues[i];
                fuzz_check(celery_request_encode(&request, &text) == 0 && strlen(text) < 16 * 1024);
                free(text);
        }
}

static void take_reply(const struct field *text)
{
        struct celery_reply reply;

        int r = celery_reply_decode(text->text, text->len, &reply);
        fuzz_check((unsigned)reply.method < _CELERY_METHOD_MAX);
        fuzz_check(reply.node[0] == '\0' ? r < 0 : is_name(reply.node) && celery_node_host(reply.node));
        fuzz_check(r == 0 || (!reply.tasks && !reply.queues && !reply.failed));
        fuzz_check(!reply.failed || (reply.n_tasks == 0 && reply.n_queues == 0));
        fuzz_check(reply.n_queues <= CELERY_QUEUES_MAX);
        for (size_t i = 0; i < reply.n_tasks; i++) {
                const struct celery_task *task = &reply.tasks[i];

                fuzz_check(is_name(task->id) && is_name(task->name) && task->pid >= 0 &&
                           (!task->routing_key || is_name(task->routing_key)) &&
                           task->started_usec < UINT64_MAX / 2);
        }
        for (size_t i = 0; i < reply.n_queues; i++)
                fuzz_check(is_name(reply.queues[i]));
        make_request(&reply);
        celery_reply_clear(&reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = {data, size};
        unsigned kind = input_byte(&input);
        struct field text = input_field(&input, input.left);

        if (kind > 0) {
                struct field body = text;

                text = message_of(&body, (enum celery_method)(kind % _CELERY_METHOD_MAX));
                field_free(&body);
        }
        take_event(&text);
        take_reply(&text);
        field_free(&text);
        return 0;
}
