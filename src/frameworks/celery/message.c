/* SPDX-License-Identifier: MIT */
/* The messages of Celery in Redis; see the header. */
#include "frameworks/celery/message.h"
#include "base/macro.h"
#include "base/printable.h"
#include "frameworks/decode.h"
#include "wire/json.h"
#include <inttypes.h>
#include <limits.h>
#include <resolv.h>
#include <stdio.h>
#include <string.h>

/* No worker has more tasks, and no clock or counter of a worker that exists is larger. */
#define COUNT_MAX ((double)((uint64_t)1 << 53))

/* Returns the text of a value that is a name; NULL: it is none. */
static const char *name_of(const json_t *value)
{
        size_t len = json_string_length(value);

        if (len == 0 || len > CELERY_NAME_MAX || strlen(json_string_value(value)) != len)
                return NULL;
        return json_string_value(value);
}

static bool is_text(const json_t *value, const char *text)
{
        return json_is_string(value) && json_string_length(value) == strlen(text) &&
               memcmp(json_string_value(value), text, strlen(text)) == 0;
}

/* Numbers are loaded as real numbers: arguments of tasks may exceed C integers. */
static bool take_number(const json_t *value, double max, double *ret)
{
        double number = json_number_value(value);

        if (!json_is_number(value) || !(number >= 0 && number <= max))
                return false;
        *ret = number;
        return true;
}

static bool take_count(const json_t *value, double max, uint64_t *ret)
{
        double number;

        if (!take_number(value, max, &number) || number != (double)(uint64_t)number)
                return false;
        *ret = (uint64_t)number;
        return true;
}

static bool take_seconds(const json_t *value, uint64_t *ret_usec)
{
        double seconds;

        /* The year 9999. */
        if (!take_number(value, 253402300799.0, &seconds))
                return false;
        *ret_usec = (uint64_t)(seconds * 1e6);
        return true;
}

static bool take_pid(const json_t *value, pid_t *ret)
{
        uint64_t pid;

        if (!take_count(value, INT_MAX, &pid) || pid == 0)
                return false;
        *ret = (pid_t)pid;
        return true;
}

/* Texts may contain a NUL. */
#define LOAD_FLAGS (JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL)

/* Loads a message without its body. bytes_max: for the body. */
static int load_message(const char *text, size_t size, size_t bytes_max, json_t **ret)
{
        /* Base64 and escapes make a body longer. The rest of a message is short. */
        const struct json_bounds bounds = {.bytes = 2 * bytes_max + 2048, .values = 128, .depth = 8};
        _cleanup_json_ json_t *message = NULL;

        int r = json_load(&bounds, text, size, LOAD_FLAGS, &message);
        if (r < 0)
                return r;
        if (!json_is_string(json_object_get(message, "body")))
                return -EINVAL;
        *ret = TAKE_PTR(message);
        return 0;
}

/* Returns the bytes of the body, which the caller frees. */
static int decode_body(const json_t *message, char **ret, size_t *ret_size)
{
        const json_t *body = json_object_get(message, "body"), *compression, *encoding;
        _cleanup_free_ char *bytes = NULL;

        compression = json_object_get(json_object_get(message, "headers"), "compression");
        if (!is_text(json_object_get(message, "content-type"), "application/json") || compression)
                return -EPROTONOSUPPORT;
        encoding = json_object_get(json_object_get(message, "properties"), "body_encoding");
        size_t size = json_string_length(body);
        bool plain = !encoding || json_is_null(encoding) || is_text(encoding, "");
        if (!plain && !is_text(encoding, "base64"))
                return -EPROTONOSUPPORT;
        bytes = malloc(size + 1);
        if (!bytes)
                return -ENOMEM;
        if (plain) {
                memcpy(bytes, json_string_value(body), size);
        } else {
                int n = b64_pton(json_string_value(body), (unsigned char *)bytes, size + 1);

                if (n < 0)
                        return -EINVAL;
                size = (size_t)n;
        }
        *ret = TAKE_PTR(bytes);
        *ret_size = size;
        return 0;
}

static const char *const event_types[] = {
        [CELERY_ONLINE] = "worker-online",
        [CELERY_HEARTBEAT] = "worker-heartbeat",
        [CELERY_OFFLINE] = "worker-offline",
};
static_assert(ELEMENTSOF(event_types) == _CELERY_EVENT_MAX, "an entry for each value");

static int event_type(const json_t *event, enum celery_event_type *ret)
{
        const json_t *type = json_object_get(event, "type");

        for (size_t i = 0; i < ELEMENTSOF(event_types); i++)
                if (is_text(type, event_types[i])) {
                        *ret = (enum celery_event_type)i;
                        return 0;
                }
        return json_is_string(type) ? -ENOMSG : -EINVAL;
}

static void take_version(const json_t *value, char version[static CELERY_VERSION_MAX + 1])
{
        size_t len = json_string_length(value);

        if (!name_of(value) || len > CELERY_VERSION_MAX ||
            !celery_is_utf8(json_string_value(value), len, true))
                return;
        memcpy(version, json_string_value(value), len + 1);
}

static int take_event(const json_t *root, struct celery_event *ret)
{
        const json_t *active = json_object_get(root, "active"),
                     *processed = json_object_get(root, "processed"), *clock = json_object_get(root, "clock"),
                     *every = json_object_get(root, "freq");
        struct celery_event event = {.has_counts = active && processed};

        int r = event_type(root, &event.type);
        if (r < 0)
                return r;
        const char *node = name_of(json_object_get(root, "hostname"));
        if (!node || !celery_node_host(node) || !take_pid(json_object_get(root, "pid"), &event.pid) ||
            !take_seconds(json_object_get(root, "timestamp"), &event.sent_usec) || !active != !processed ||
            (event.has_counts && (!take_count(active, COUNT_MAX, &event.active) ||
                                  !take_count(processed, COUNT_MAX, &event.processed))) ||
            (clock && !json_is_null(clock) && !take_count(clock, COUNT_MAX, &event.clock)) ||
            (every && !json_is_null(every) && !take_seconds(every, &event.every_usec)))
                return -EINVAL;
        memcpy(event.node, node, strlen(node) + 1);
        take_version(json_object_get(root, "sw_ver"), event.version);
        *ret = event;
        return 0;
}

int celery_event_decode(const char *text, size_t size, struct celery_event *ret)
{
        static const struct json_bounds bounds = {.bytes = CELERY_EVENT_MAX, .values = 128, .depth = 8};
        _cleanup_json_ json_t *message = NULL, *event = NULL;
        _cleanup_free_ char *body = NULL;
        size_t body_size;

        int r = size > CELERY_EVENT_MAX ? -EMSGSIZE : load_message(text, size, CELERY_EVENT_MAX, &message);
        if (r == 0)
                r = decode_body(message, &body, &body_size);
        if (r == 0)
                r = json_load(&bounds, body, body_size, LOAD_FLAGS, &event);
        return r == 0 ? take_event(event, ret) : r;
}

static const char *const methods[] = {
        [CELERY_PING] = "ping",
        [CELERY_ACTIVE] = "active",
        [CELERY_RESERVED] = "reserved",
        [CELERY_ACTIVE_QUEUES] = "active_queues",
        [CELERY_CANCEL_CONSUMER] = "cancel_consumer",
        [CELERY_ADD_CONSUMER] = "add_consumer",
};

DEFINE_ENUM_NAMES(celery_method_name, enum celery_method, _CELERY_METHOD_MAX, methods)

/* Returns the object of arguments; NULL: out of memory. */
static json_t *make_arguments(const struct celery_request *request)
{
        if (request->queue)
                return json_pack("{s:s}", "queue", request->queue);
        /* Representations of arguments instead of the arguments: short, and always JSON. `reserved` ignores
         * this and lists the arguments. */
        if (request->method == CELERY_ACTIVE || request->method == CELERY_RESERVED)
                return json_pack("{s:b}", "safe", 1);
        return json_object();
}

/* Returns the array of nodes, or null; NULL: out of memory. */
static json_t *make_nodes(const struct celery_request *request)
{
        _cleanup_json_ json_t *nodes = request->nodes ? json_array() : json_null();

        for (size_t i = 0; request->nodes && nodes && i < request->n_nodes; i++)
                if (json_array_append_new(nodes, json_string(request->nodes[i])) < 0)
                        return NULL;
        return TAKE_PTR(nodes);
}

/* Returns the body; NULL: out of memory. */
static json_t *make_body(const struct celery_request *request)
{
        _cleanup_json_ json_t *body = json_object();
        char ticket[64];

        (void)snprintf(ticket, sizeof(ticket), "%s-%" PRIu64, methods[request->method], request->number);
        if (json_object_set_new(body, "method", json_string(methods[request->method])) < 0 ||
            json_object_set_new(body, "arguments", make_arguments(request)) < 0 ||
            json_object_set_new(body, "destination", make_nodes(request)) < 0)
                return NULL;
        if (request->reply_list && (json_object_set_new(body, "ticket", json_string(ticket)) < 0 ||
                                    json_object_set_new(body, "reply_to",
                                                        json_pack("{s:s, s:s}", "exchange", "", "routing_key",
                                                                  request->reply_list)) < 0))
                return NULL;
        return TAKE_PTR(body);
}

/* Returns text in base64, which the caller frees; NULL: out of memory. */
static char *encode_base64(const char *text)
{
        size_t size = strlen(text), encoded_size = (size + 2) / 3 * 4 + 1;
        char *encoded = malloc(encoded_size);

        if (encoded)
                b64_ntop((const unsigned char *)text, size, encoded, encoded_size);
        return encoded;
}

static bool is_sendable(const char *text)
{
        return !text || celery_is_utf8(text, strlen(text), false);
}

int celery_request_encode(const struct celery_request *request, char **ret)
{
        _cleanup_json_ json_t *body = NULL, *message = NULL;
        _cleanup_free_ char *text = NULL, *encoded = NULL;

        if (!is_sendable(request->queue) || !is_sendable(request->reply_list))
                return -EINVAL;
        /* Celery takes an empty list for all workers. */
        if (request->nodes && request->n_nodes == 0)
                return -EINVAL;
        for (size_t i = 0; request->nodes && i < request->n_nodes; i++)
                if (!is_sendable(request->nodes[i]))
                        return -EINVAL;
        body = make_body(request);
        text = json_text(body, JSON_COMPACT);
        encoded = text ? encode_base64(text) : NULL;
        if (!encoded)
                return -ENOMEM;
        /* Kombu reads `clock`, the properties and the delivery tag, and requires them. */
        message = json_pack("{s:s, s:s, s:s, s:{s:i, s:i}, s:{s:i, s:{s:s, s:s}, s:i, s:s, s:s}}", "body",
                            encoded, "content-encoding", "utf-8", "content-type", "application/json",
                            "headers", "clock", 0, "expires", 0, "properties", "delivery_mode", 1,
                            "delivery_info", "exchange", "celery.pidbox", "routing_key", "", "priority", 0,
                            "body_encoding", "base64", "delivery_tag", "sqmgr");
        *ret = json_text(message, JSON_COMPACT);
        return *ret ? 0 : -ENOMEM;
}

/* Reads the ticket, `METHOD-NUMBER`. */
static bool take_ticket(const json_t *message, struct celery_reply *reply)
{
        const char *ticket = name_of(json_object_get(json_object_get(message, "headers"), "ticket"));
        const char *dash = ticket ? strrchr(ticket, '-') : NULL;
        unsigned long long number;

        if (!dash || !decode_count(dash + 1, strlen(dash + 1), UINT64_MAX, &number))
                return false;
        for (size_t i = 0; i < ELEMENTSOF(methods); i++)
                if (strlen(methods[i]) == (size_t)(dash - ticket) &&
                    memcmp(methods[i], ticket, strlen(methods[i])) == 0) {
                        reply->method = (enum celery_method)i;
                        reply->number = number;
                        return true;
                }
        return false;
}

/* Returns -EINVAL if node is NULL, or no name of a worker. */
static int take_node(const char *node, struct celery_reply *reply)
{
        if (!node || !celery_node_host(node))
                return -EINVAL;
        memcpy(reply->node, node, strlen(node) + 1);
        return 0;
}

/* Reads the name of the worker from a body that cannot be loaded: `{"NODE": ...`. */
static int take_node_only(const char *body, size_t size, struct celery_reply *reply)
{
        static const struct json_bounds bounds = {.bytes = 8 * CELERY_NAME_MAX, .values = 2, .depth = 1};
        _cleanup_json_ json_t *name = NULL;

        if (size < 3 || memcmp(body, "{\"", 2) != 0)
                return 0;
        const char *end = memchr(body + 2, '"', size - 2);
        int r = end ? json_load(&bounds, body + 1, (size_t)(end - body), JSON_DECODE_ANY, &name) : 0;
        if (r == -ENOMEM)
                return r;
        (void)take_node(name_of(name), reply);
        return 0;
}

/* Returns 1 if the entry is no task. */
static int take_task(const json_t *entry, struct celery_task *task)
{
        const json_t *start = json_object_get(entry, "time_start"),
                     *pid = json_object_get(entry, "worker_pid");
        const char *id = name_of(json_object_get(entry, "id")),
                   *name = name_of(json_object_get(entry, "name")),
                   *key = name_of(json_object_get(json_object_get(entry, "delivery_info"), "routing_key"));

        if (!id || !name || (start && !json_is_null(start) && !take_seconds(start, &task->started_usec)) ||
            (pid && !json_is_null(pid) && !take_pid(pid, &task->pid)))
                return 1;
        task->acknowledged = json_is_true(json_object_get(entry, "acknowledged"));
        task->id = strdup(id);
        task->name = strdup(name);
        task->routing_key = key ? strdup(key) : NULL;
        return task->id && task->name && (!key || task->routing_key) ? 0 : -ENOMEM;
}

static int take_tasks(const json_t *list, struct celery_reply *reply)
{
        const json_t *entry;

        if (json_array_size(list) == 0)
                return 0;
        reply->tasks = calloc(json_array_size(list), sizeof(reply->tasks[0]));
        if (!reply->tasks)
                return -ENOMEM;
        json_foreach(entry, list) {
                struct celery_task *task = &reply->tasks[reply->n_tasks];

                int r = take_task(entry, task);
                if (r == 1)
                        reply->n_unreadable++;
                else
                        reply->n_tasks++;
                if (r < 0)
                        return r;
                if (r == 1)
                        *task = (struct celery_task){0};
        }
        return 0;
}

static int take_queues(const json_t *list, struct celery_reply *reply)
{
        const json_t *entry;

        if (json_array_size(list) == 0)
                return 0;
        if (json_array_size(list) > CELERY_QUEUES_MAX)
                return -EMSGSIZE;
        reply->queues = calloc(json_array_size(list), sizeof(reply->queues[0]));
        if (!reply->queues)
                return -ENOMEM;
        json_foreach(entry, list) {
                const char *name = name_of(json_object_get(entry, "name"));

                if (!name)
                        return -EINVAL;
                reply->queues[reply->n_queues] = strdup(name);
                if (!reply->queues[reply->n_queues])
                        return -ENOMEM;
                reply->n_queues++;
        }
        return 0;
}

static int take_value(const json_t *value, struct celery_reply *reply)
{
        bool lists = reply->method == CELERY_ACTIVE || reply->method == CELERY_RESERVED ||
                     reply->method == CELERY_ACTIVE_QUEUES;

        if (json_object_get(value, "error")) {
                reply->failed = true;
                return 0;
        }
        if (lists ? !json_is_array(value) : !json_object_get(value, "ok"))
                return -EINVAL;
        if (reply->method == CELERY_ACTIVE_QUEUES)
                return take_queues(value, reply);
        return lists ? take_tasks(value, reply) : 0;
}

static int take_reply(const char *body, size_t size, struct celery_reply *reply)
{
        /* The arguments of tasks may be nested as deep as Python allows. */
        static const struct json_bounds bounds = {
                .bytes = CELERY_REPLY_MAX, .values = CELERY_REPLY_MAX / 32, .depth = 128};
        _cleanup_json_ json_t *root = NULL;

        int r = json_load(&bounds, body, size, LOAD_FLAGS, &root);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return take_node_only(body, size, reply) ?: r;
        void *only = json_object_iter(root);
        if (json_object_size(root) != 1 || take_node(json_object_iter_key(only), reply) < 0)
                return -EINVAL;
        return take_value(json_object_iter_value(only), reply);
}

static void clear_lists(struct celery_reply *reply)
{
        for (size_t i = 0; i < reply->n_tasks; i++) {
                free(reply->tasks[i].id);
                free(reply->tasks[i].name);
                free(reply->tasks[i].routing_key);
        }
        for (size_t i = 0; i < reply->n_queues; i++)
                free(reply->queues[i]);
        free(reply->tasks);
        free(reply->queues);
        reply->tasks = NULL;
        reply->queues = NULL;
        reply->n_tasks = reply->n_unreadable = reply->n_queues = 0;
}

int celery_reply_decode(const char *text, size_t size, struct celery_reply *ret)
{
        _cleanup_json_ json_t *message = NULL;
        _cleanup_free_ char *body = NULL;
        size_t body_size;

        memset(ret, 0, sizeof(*ret));
        int r = load_message(text, size, CELERY_REPLY_MAX, &message);
        if (r == 0 && !take_ticket(message, ret))
                r = -ENOMSG;
        if (r == 0)
                r = decode_body(message, &body, &body_size);
        if (r == 0)
                r = take_reply(body, body_size, ret);
        if (r < 0)
                clear_lists(ret);
        return r;
}

void celery_reply_clear(struct celery_reply *reply)
{
        clear_lists(reply);
        memset(reply, 0, sizeof(*reply));
}
