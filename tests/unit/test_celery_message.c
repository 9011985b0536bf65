/* SPDX-License-Identifier: MIT */
/* Are the messages of Celery 5 decoded as it writes them, requests made as it reads them, and garbage
 * refused? */
/* promises: P5 */
#include "celery_messages.h"
#include "frameworks/celery/message.h"
#include "frameworks/celery/names.h"
#include "unit.h"
#include "wire/json.h"
#include <limits.h>
#include <resolv.h>

/* Allocations that may still succeed; below 0: all. */
static int allocations_left = -1;

static bool allocation_fails(void)
{
        return allocations_left >= 0 && allocations_left-- == 0;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
        return allocation_fails() ? NULL : __real_malloc(size);
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
        return allocation_fails() ? NULL : __real_calloc(n, size);
}

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text)
{
        return allocation_fails() ? NULL : __real_strdup(text);
}

static void *allocate_json(size_t size)
{
        if (!allocation_fails())
                return __real_malloc(size);
        errno = ENOMEM;
        return NULL;
}

/* Returns a message with this body in base64; ticket: of a reply, or NULL. The caller frees it. */
static char *message(const char *ticket, const char *body, size_t size)
{
        size_t encoded_size = (size + 2) / 3 * 4 + 1;
        _cleanup_free_ char *encoded = malloc(encoded_size);
        char *text;

        b64_ntop((const unsigned char *)body, size, encoded, encoded_size);
        ck_assert_int_gt(asprintf(&text,
                                  "{\"body\":\"%s\",\"content-type\":\"application/json\",\"headers\":"
                                  "{\"ticket\":\"%s\"},\"properties\":{\"body_encoding\":\"base64\"}}",
                                  encoded, ticket ?: ""),
                         0);
        return text;
}

static int decode_event(const char *body, struct celery_event *ret)
{
        _cleanup_free_ char *text = message(NULL, body, strlen(body));

        return celery_event_decode(text, strlen(text), ret);
}

static int decode_reply(const char *ticket, const char *body, struct celery_reply *ret)
{
        _cleanup_free_ char *text = message(ticket, body, strlen(body));

        return celery_reply_decode(text, strlen(text), ret);
}

TEST(decodes_the_events_of_a_real_worker)
{
        static const char *const texts[] = {CELERY_EVENT_ONLINE, CELERY_EVENT_HEARTBEAT,
                                            CELERY_EVENT_OFFLINE};
        static const struct celery_event expected[] = {
                {.type = CELERY_ONLINE, .clock = 1, .sent_usec = 1795747756179253},
                {.type = CELERY_HEARTBEAT,
                 .active = 2,
                 .processed = 2,
                 .clock = 20,
                 .sent_usec = 1795747776208279},
                {.type = CELERY_OFFLINE, .processed = 6, .clock = 378, .sent_usec = 1795748121519771},
        };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                struct celery_event event;

                ck_assert_int_eq(celery_event_decode(texts[i], strlen(texts[i]), &event), 0);
                ck_assert_int_eq(event.type, expected[i].type);
                ck_assert_str_eq(event.node, "one@vm");
                ck_assert_str_eq(celery_node_host(event.node), "vm");
                ck_assert_str_eq(event.version, "5.2.6");
                ck_assert_int_eq(event.pid, 31152);
                ck_assert(event.has_counts);
                ck_assert_uint_eq(event.active, expected[i].active);
                ck_assert_uint_eq(event.processed, expected[i].processed);
                ck_assert_uint_eq(event.every_usec, 2 * USEC_PER_SEC);
                ck_assert_uint_eq(event.clock, expected[i].clock);
                ck_assert_uint_eq(event.sent_usec, expected[i].sent_usec);
        }
}

#define EVENT(rest)                                                                                          \
        "{\"type\":\"worker-heartbeat\",\"hostname\":\"a@vm\",\"pid\":7,\"timestamp\":3.5" rest "}"

TEST(decodes_the_other_forms_of_an_event)
{
        static const char plain[] =
                "{\"body\":\"{\\\"type\\\":\\\"worker-online\\\",\\\"hostname\\\":\\\"a@vm\\\",\\\"pid\\\":7,"
                "\\\"timestamp\\\":3}\",\"content-type\":\"application/json\",\"properties\":%s}";
        static const char *const properties[] = {"{\"body_encoding\":null}", "{\"body_encoding\":\"\"}",
                                                 "{}"};
        struct celery_event event;

        for (size_t i = 0; i < ELEMENTSOF(properties); i++) {
                _cleanup_free_ char *text = NULL;

                ck_assert_int_gt(asprintf(&text, plain, properties[i]), 0);
                ck_assert_int_eq(celery_event_decode(text, strlen(text), &event), 0);
                ck_assert_int_eq(event.type, CELERY_ONLINE);
        }
        /* The control command `heartbeat` sends no counts. */
        ck_assert_int_eq(decode_event(EVENT(",\"freq\":5,\"clock\":null"), &event), 0);
        ck_assert(!event.has_counts);
        ck_assert_uint_eq(event.active, 0);
        ck_assert_uint_eq(event.clock, 0);
        ck_assert_uint_eq(event.every_usec, 5 * USEC_PER_SEC);
        ck_assert_str_eq(event.version, "");
        ck_assert_int_eq(decode_event(EVENT(",\"sw_ver\":\"5.2\\u001b[31m\""), &event), 0);
        ck_assert_str_eq(event.version, "");
        ck_assert_int_eq(decode_event(EVENT(",\"active\":9007199254740992,\"processed\":3.0"), &event), 0);
        ck_assert_uint_eq(event.active, (uint64_t)1 << 53);
}

static const struct {
        const char *body;
        int error;
} bad_events[] = {
        {"", -EINVAL},
        {"{}", -EINVAL},
        {"[]", -EINVAL},
        {"null", -EINVAL},
        {"{\"type\":1}", -EINVAL},
        {"{\"type\":\"task-received\",\"uuid\":\"x\"}", -ENOMSG},
        {"{\"type\":\"worker-online\\u0000\"}", -ENOMSG},
        {EVENT(",\"active\":1"), -EINVAL},
        {EVENT(",\"processed\":1"), -EINVAL},
        {EVENT(",\"active\":-1,\"processed\":1"), -EINVAL},
        {EVENT(",\"active\":1.5,\"processed\":1"), -EINVAL},
        {EVENT(",\"active\":1e300,\"processed\":1"), -EINVAL},
        {EVENT(",\"active\":9007199254740994,\"processed\":1"), -EINVAL},
        {EVENT(",\"active\":\"1\",\"processed\":1"), -EINVAL},
        {EVENT(",\"active\":null,\"processed\":null"), -EINVAL},
        {EVENT(",\"freq\":-1"), -EINVAL},
        {EVENT(",\"freq\":[]"), -EINVAL},
        {EVENT(",\"clock\":\"1\""), -EINVAL},
        {EVENT(",\"hostname\":\"vm\""), -EINVAL},
        {EVENT(",\"hostname\":\"@vm\""), -EINVAL},
        {EVENT(",\"hostname\":\"a@\""), -EINVAL},
        {EVENT(",\"hostname\":\"a\\n@vm\""), -EINVAL},
        {EVENT(",\"hostname\":\"a@v\\u0000m\""), -EINVAL},
        {EVENT(",\"hostname\":7"), -EINVAL},
        {EVENT(",\"pid\":0"), -EINVAL},
        {EVENT(",\"pid\":-7"), -EINVAL},
        {EVENT(",\"pid\":7.5"), -EINVAL},
        {EVENT(",\"pid\":2147483648"), -EINVAL},
        {EVENT(",\"pid\":true"), -EINVAL},
        {EVENT(",\"timestamp\":null"), -EINVAL},
        {EVENT(",\"timestamp\":-1"), -EINVAL},
        {EVENT(",\"timestamp\":1e18"), -EINVAL},
        {EVENT(",\"x\":[[[[[[[[1]]]]]]]]"), -EMSGSIZE},
};

TEST_LOOP(refuses_what_is_no_event, ELEMENTSOF(bad_events))
{
        struct celery_event event = {.pid = 99};

        ck_assert_int_eq(decode_event(bad_events[_i].body, &event), bad_events[_i].error);
        ck_assert_int_eq(event.pid, 99);
}

TEST(refuses_bodies_that_it_cannot_read)
{
        static const struct {
                const char *text;
                int error;
        } bad[] = {
                {"", -EINVAL},
                {"7", -EINVAL},
                {"{\"body\":7}", -EINVAL},
                {"{\"body\":\"e30=\"}", -EPROTONOSUPPORT},
                {"{\"body\":\"e30=\",\"content-type\":\"application/x-python-serialize\"}", -EPROTONOSUPPORT},
                {"{\"body\":\"e30=\",\"content-type\":\"application/"
                 "json\",\"headers\":{\"compression\":\"x\"}}",
                 -EPROTONOSUPPORT},
                {"{\"body\":\"e30=\",\"content-type\":\"application/"
                 "json\",\"properties\":{\"body_encoding\":7}}",
                 -EPROTONOSUPPORT},
                {"{\"body\":\"e30\",\"content-type\":\"application/json\",\"properties\":{\"body_encoding\":"
                 "\"base64\"}}",
                 -EINVAL},
                {"{\"body\":\"e3*=\",\"content-type\":\"application/json\",\"properties\":{\"body_encoding\":"
                 "\"base64\"}}",
                 -EINVAL},
        };
        struct celery_event event;

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                ck_assert_int_eq(celery_event_decode(bad[i].text, strlen(bad[i].text), &event), bad[i].error);
}

/* A message that is cut off anywhere is no message. */
TEST(refuses_truncated_messages)
{
        static const char event_text[] = CELERY_EVENT_HEARTBEAT, reply_text[] = CELERY_REPLY_ACTIVE;
        struct celery_event event;
        struct celery_reply reply;

        for (size_t i = 0; i < strlen(event_text); i++)
                ck_assert_int_eq(celery_event_decode(event_text, i, &event), -EINVAL);
        for (size_t i = 0; i < strlen(reply_text); i++) {
                ck_assert_int_eq(celery_reply_decode(reply_text, i, &reply), -EINVAL);
                celery_reply_clear(&reply);
        }
}

TEST(refuses_an_event_that_is_too_large)
{
        static char body[2 * CELERY_EVENT_MAX];
        struct celery_event event;

        memset(body, ' ', sizeof(body) - 1);
        memcpy(body, "{", 1);
        ck_assert_int_eq(celery_event_decode(body, CELERY_EVENT_MAX + 1, &event), -EMSGSIZE);
        ck_assert_int_eq(celery_event_decode(body, CELERY_EVENT_MAX, &event), -EINVAL);
}

TEST(decodes_the_tasks_of_a_real_worker)
{
        static const char active[] = CELERY_REPLY_ACTIVE, reserved[] = CELERY_REPLY_RESERVED;
        struct celery_reply reply;

        ck_assert_int_eq(celery_reply_decode(active, strlen(active), &reply), 0);
        ck_assert_int_eq(reply.method, CELERY_ACTIVE);
        ck_assert_uint_eq(reply.number, 12);
        ck_assert_str_eq(reply.node, "one@vm");
        ck_assert(!reply.failed);
        ck_assert_uint_eq(reply.n_tasks, 2);
        ck_assert_uint_eq(reply.n_unreadable, 0);
        ck_assert_str_eq(reply.tasks[0].id, "5d834af5-b99b-4978-b6b2-48fc693f38e9");
        ck_assert_str_eq(reply.tasks[0].name, "capp.slow");
        ck_assert_str_eq(reply.tasks[0].routing_key, "celery");
        ck_assert_uint_eq(reply.tasks[0].started_usec, 1795747775296960);
        ck_assert_int_eq(reply.tasks[0].pid, 31734);
        ck_assert_int_eq(reply.tasks[1].pid, 31787);
        ck_assert(reply.tasks[0].acknowledged);
        celery_reply_clear(&reply);

        ck_assert_int_eq(celery_reply_decode(reserved, strlen(reserved), &reply), 0);
        ck_assert_int_eq(reply.method, CELERY_RESERVED);
        ck_assert_uint_eq(reply.n_tasks, 3);
        ck_assert_str_eq(reply.tasks[2].name, "capp.late");
        ck_assert_uint_eq(reply.tasks[2].started_usec, 0);
        ck_assert_int_eq(reply.tasks[2].pid, 0);
        ck_assert(!reply.tasks[2].acknowledged);
        celery_reply_clear(&reply);
        ck_assert_ptr_null(reply.tasks);
}

TEST(decodes_the_other_replies_of_a_real_worker)
{
        static const char queues[] = CELERY_REPLY_QUEUES, cancelled[] = CELERY_REPLY_CANCELLED,
                          error[] = CELERY_REPLY_ERROR;
        struct celery_reply reply;

        ck_assert_int_eq(celery_reply_decode(queues, strlen(queues), &reply), 0);
        ck_assert_int_eq(reply.method, CELERY_ACTIVE_QUEUES);
        ck_assert_uint_eq(reply.n_queues, 1);
        ck_assert_str_eq(reply.queues[0], "celery");
        celery_reply_clear(&reply);
        ck_assert_int_eq(celery_reply_decode(cancelled, strlen(cancelled), &reply), 0);
        ck_assert_int_eq(reply.method, CELERY_CANCEL_CONSUMER);
        ck_assert(!reply.failed);
        ck_assert_int_eq(celery_reply_decode(error, strlen(error), &reply), 0);
        ck_assert_int_eq(reply.method, CELERY_ACTIVE);
        ck_assert(reply.failed);
        ck_assert_uint_eq(reply.n_tasks, 0);
        ck_assert_int_eq(decode_reply("active-1", "{\"a@vm\":[]}", &reply), 0);
        ck_assert(!reply.failed && reply.n_tasks == 0 && reply.n_unreadable == 0);
}

TEST(decodes_the_messages_of_celery_5_5)
{
        static const char heartbeat[] = CELERY_55_EVENT_HEARTBEAT, active[] = CELERY_55_REPLY_ACTIVE,
                          reserved[] = CELERY_55_REPLY_RESERVED;
        struct celery_event event;
        struct celery_reply reply;

        ck_assert_int_eq(celery_event_decode(heartbeat, strlen(heartbeat), &event), 0);
        ck_assert_int_eq(event.type, CELERY_HEARTBEAT);
        ck_assert_str_eq(event.node, "celery@vm");
        ck_assert_str_eq(event.version, "5.5.2");
        ck_assert_int_eq(event.pid, 18369);
        ck_assert(event.has_counts && event.active == 2 && event.processed == 2 && event.clock == 2);
        ck_assert_uint_eq(event.every_usec, 2 * USEC_PER_SEC);
        ck_assert_uint_eq(event.sent_usec, 1795748404017232);

        ck_assert_int_eq(celery_reply_decode(active, strlen(active), &reply), 0);
        ck_assert(reply.n_tasks == 2 && reply.n_unreadable == 0);
        ck_assert_str_eq(reply.tasks[0].name, "tasks.slow");
        ck_assert_str_eq(reply.tasks[0].routing_key, "celery");
        ck_assert_uint_eq(reply.tasks[0].started_usec, 1795748402435929);
        ck_assert(reply.tasks[0].pid == 18569 && reply.tasks[0].acknowledged);
        celery_reply_clear(&reply);

        ck_assert_int_eq(celery_reply_decode(reserved, strlen(reserved), &reply), 0);
        ck_assert(reply.n_tasks == 2 && reply.n_unreadable == 0);
        ck_assert(reply.tasks[0].pid == 0 && reply.tasks[0].started_usec == 0 &&
                  !reply.tasks[0].acknowledged);
        celery_reply_clear(&reply);
}

static const struct {
        const char *ticket, *body;
        int error;
        const char *node; /* that is known nevertheless */
} bad_replies[] = {
        {"", "{\"a@vm\":[]}", -ENOMSG, ""},
        {"active", "{\"a@vm\":[]}", -ENOMSG, ""},
        {"active-", "{\"a@vm\":[]}", -ENOMSG, ""},
        {"active-x", "{\"a@vm\":[]}", -ENOMSG, ""},
        {"active-1111111111111111111", "{\"a@vm\":[]}", -ENOMSG, ""},
        {"shutdown-1", "{\"a@vm\":[]}", -ENOMSG, ""},
        {"activ-1", "{\"a@vm\":[]}", -ENOMSG, ""},
        {"fe1a7f1c-cefe-4f2c-b362-39bb84226275", "{\"a@vm\":[]}", -ENOMSG, ""},
        {"active-1", "{}", -EINVAL, ""},
        {"active-1", "[]", -EINVAL, ""},
        {"active-1", "", -EINVAL, ""},
        {"active-1", "{\"a@vm\":[],\"b@vm\":[]}", -EINVAL, ""},
        {"active-1", "{\"vm\":[]}", -EINVAL, ""},
        {"active-1", "{\"a\\u0007@vm\":[]}", -EINVAL, ""},
        {"active-1", "{\"a@vm\":{\"ok\":1}}", -EINVAL, "a@vm"},
        {"active-1", "{\"a@vm\":null}", -EINVAL, "a@vm"},
        {"active-1", "{\"a@vm\":[{\"args\":[NaN]}]}", -EINVAL, "a@vm"},
        {"active-1", "{\"\\u00e9@vm\":[{\"args\":[\"\\ud800\"]}]}", -EINVAL, "\xc3\xa9@vm"},
        {"active-1", "{\"vm\":[NaN]}", -EINVAL, ""},
        {"active-1", "{\"", -EINVAL, ""},
        {"ping-1", "{\"a@vm\":[]}", -EINVAL, "a@vm"},
        {"active_queues-1", "{\"a@vm\":[{\"name\":\"q\"},{}]}", -EINVAL, "a@vm"},
        {"active_queues-1", "{\"a@vm\":[{\"name\":\"q\"},{\"name\":\"\"}]}", -EINVAL, "a@vm"},
};

TEST_LOOP(refuses_what_is_no_reply, ELEMENTSOF(bad_replies))
{
        struct celery_reply reply;

        ck_assert_int_eq(decode_reply(bad_replies[_i].ticket, bad_replies[_i].body, &reply),
                         bad_replies[_i].error);
        ck_assert_str_eq(reply.node, bad_replies[_i].node);
        ck_assert_uint_eq(reply.number, bad_replies[_i].error == -ENOMSG ? 0 : 1);
        ck_assert(!reply.tasks && !reply.queues && reply.n_tasks == 0 && reply.n_queues == 0);
        celery_reply_clear(&reply);
}

TEST(counts_entries_that_are_no_task)
{
        static const char body[] =
                "{\"a@vm\":[1,{},null,{\"id\":\"1\"},{\"id\":\"\",\"name\":\"n\"},"
                "{\"id\":\"1\",\"name\":\"n\",\"time_start\":\"now\"},{\"id\":\"1\",\"name\":\"n\","
                "\"worker_pid\":-1},{\"id\":\"1\",\"name\":\"n\\u0000\"},"
                "{\"id\":\"ok\",\"name\":\"n\",\"args\":[\"\\u0000\",123456789012345678901234567890],"
                "\"delivery_info\":7,\"acknowledged\":\"yes\",\"time_start\":0.25}]}";
        struct celery_reply reply;

        ck_assert_int_eq(decode_reply("reserved-1", body, &reply), 0);
        ck_assert_uint_eq(reply.n_tasks, 1);
        ck_assert_uint_eq(reply.n_unreadable, 8);
        ck_assert_str_eq(reply.tasks[0].id, "ok");
        ck_assert_ptr_null(reply.tasks[0].routing_key);
        ck_assert(!reply.tasks[0].acknowledged);
        ck_assert_uint_eq(reply.tasks[0].started_usec, 250000);
        celery_reply_clear(&reply);
}

/* Whatever a reply contains, it is known whose it is, and that the worker has something. */
TEST(a_reply_that_is_too_large_names_its_worker)
{
        static const char *const elements[] = {"{},", "1,", "                \"long text\","};
        struct celery_reply reply;

        for (size_t i = 0; i < ELEMENTSOF(elements); i++) {
                size_t size = i == 2 ? CELERY_REPLY_MAX + 1 : CELERY_REPLY_MAX / 4, used;
                _cleanup_free_ char *body = calloc(1, size + 64), *text = NULL;

                used = (size_t)snprintf(body, size, "{\"a@vm\":[");
                while (used < size)
                        used += (size_t)snprintf(body + used, 32, "%s", elements[i]);
                memcpy(body + used, "1]}", 4);
                text = message("reserved-5", body, strlen(body));
                ck_assert_int_eq(celery_reply_decode(text, strlen(text), &reply), -EMSGSIZE);
                ck_assert_str_eq(reply.node, "a@vm");
                ck_assert_int_eq(reply.method, CELERY_RESERVED);
                ck_assert_uint_eq(reply.number, 5);
        }
        _cleanup_free_ char *huge = calloc(1, 3 * CELERY_REPLY_MAX);
        ck_assert_int_eq(celery_reply_decode(huge, 3 * CELERY_REPLY_MAX, &reply), -EMSGSIZE);
        ck_assert_str_eq(reply.node, "");
}

TEST(refuses_more_queues_than_a_worker_has)
{
        static char body[64 * (CELERY_QUEUES_MAX + 1)] = "{\"a@vm\":[";
        struct celery_reply reply;

        size_t used = strlen(body);
        for (size_t i = 0; i < CELERY_QUEUES_MAX; i++)
                used += (size_t)snprintf(body + used, 32, "%s{\"name\":\"q%zu\"}", i > 0 ? "," : "", i);
        memcpy(body + used, "]}", 3);
        ck_assert_int_eq(decode_reply("active_queues-1", body, &reply), 0);
        ck_assert_uint_eq(reply.n_queues, CELERY_QUEUES_MAX);
        celery_reply_clear(&reply);
        (void)snprintf(body + used, 32, ",{\"name\":\"q\"}]}");
        ck_assert_int_eq(decode_reply("active_queues-1", body, &reply), -EMSGSIZE);
        ck_assert_str_eq(reply.node, "a@vm");
}

/* Decodes what is published. The caller releases *ret, the body. */
static void take_request(const struct celery_request *request, json_t **ret)
{
        static const struct json_bounds bounds = {.bytes = 1 << 16, .values = 1000, .depth = 8};
        _cleanup_free_ char *text = NULL, *bytes = NULL;
        _cleanup_json_ json_t *root = NULL;

        ck_assert_int_eq(celery_request_encode(request, &text), 0);
        ck_assert_int_eq(json_load(&bounds, text, strlen(text), 0, &root), 0);
        ck_assert_str_eq(json_string_value(json_object_get(root, "content-type")), "application/json");
        ck_assert_str_eq(json_string_value(json_object_get(root, "content-encoding")), "utf-8");
        ck_assert(json_is_integer(json_object_get(json_object_get(root, "headers"), "clock")));
        const json_t *properties = json_object_get(root, "properties");
        ck_assert_str_eq(json_string_value(json_object_get(properties, "body_encoding")), "base64");
        ck_assert(json_is_string(json_object_get(properties, "delivery_tag")));
        ck_assert(json_is_object(json_object_get(properties, "delivery_info")));
        const json_t *body = json_object_get(root, "body");
        size_t size = json_string_length(body);
        bytes = malloc(size);
        int n = b64_pton(json_string_value(body), (unsigned char *)bytes, size);
        ck_assert_int_gt(n, 0);
        ck_assert_int_eq(json_load(&bounds, bytes, (size_t)n, 0, ret), 0);
}

TEST(makes_requests)
{
        static const char *const nodes[] = {"a@vm", "b\"\xc3\xa9@vm"};
        const struct celery_request ask = {.method = CELERY_ACTIVE, .reply_list = "list", .number = 12},
                                    cancel = {.method = CELERY_CANCEL_CONSUMER,
                                              .queue = "mail",
                                              .nodes = nodes,
                                              .n_nodes = 2};
        _cleanup_json_ json_t *body = NULL, *second = NULL;

        take_request(&ask, &body);
        ck_assert_str_eq(json_string_value(json_object_get(body, "method")), "active");
        ck_assert(json_is_true(json_object_get(json_object_get(body, "arguments"), "safe")));
        ck_assert(json_is_null(json_object_get(body, "destination")));
        ck_assert_str_eq(json_string_value(json_object_get(body, "ticket")), "active-12");
        const json_t *reply_to = json_object_get(body, "reply_to");
        ck_assert_str_eq(json_string_value(json_object_get(reply_to, "exchange")), "");
        ck_assert_str_eq(json_string_value(json_object_get(reply_to, "routing_key")), "list");

        take_request(&cancel, &second);
        ck_assert_str_eq(json_string_value(json_object_get(second, "method")), "cancel_consumer");
        const json_t *arguments = json_object_get(second, "arguments");
        ck_assert_uint_eq(json_object_size(arguments), 1);
        ck_assert_str_eq(json_string_value(json_object_get(arguments, "queue")), "mail");
        const json_t *destination = json_object_get(second, "destination");
        ck_assert_uint_eq(json_array_size(destination), 2);
        ck_assert_str_eq(json_string_value(json_array_get(destination, 1)), nodes[1]);
        ck_assert_ptr_null(json_object_get(second, "reply_to"));
        /* Kombu hands each member to the worker as an argument of this name: another one is an error there.
         */
        ck_assert_uint_eq(json_object_size(second), 3);
}

/* A worker that should not be asked must not be: a request without nodes would be one to all of them. */
TEST(an_empty_list_of_nodes_is_no_request_to_all)
{
        static const char *const none[] = {""}, *const bad[] = {"a@vm", "\xff"};
        const struct celery_request empty = {.method = CELERY_CANCEL_CONSUMER, .queue = "q", .nodes = none},
                                    no_utf8 = {.method = CELERY_PING, .nodes = bad, .n_nodes = 2},
                                    no_queue = {.method = CELERY_ADD_CONSUMER, .queue = "\xc3"},
                                    no_list = {.method = CELERY_PING, .reply_list = "\x80"};
        char *text;

        ck_assert_int_eq(celery_request_encode(&empty, &text), -EINVAL);
        ck_assert_int_eq(celery_request_encode(&no_utf8, &text), -EINVAL);
        ck_assert_int_eq(celery_request_encode(&no_queue, &text), -EINVAL);
        ck_assert_int_eq(celery_request_encode(&no_list, &text), -EINVAL);
}

TEST(fails_without_memory)
{
        static const char *const nodes[] = {"a@vm"};
        /* jansson ends the process for want of memory for a number of more than 15 digits, and forgets that a
         * text was cut off for want of memory when it reads a number after it. */
        static const char event_body[] = "{\"pid\":7,\"timestamp\":3.5,\"active\":1,\"processed\":2,"
                                         "\"type\":\"worker-heartbeat\",\"hostname\":\"a@vm\"}",
                          reply_body[] = "{\"a@vm\":[{\"id\":\"1\",\"name\":\"n\",\"delivery_info\":"
                                         "{\"routing_key\":\"q\"}},{\"id\":\"2\",\"name\":\"n\"}]}",
                          queues_body[] = "{\"a@vm\":[{\"name\":\"q\"},{\"name\":\"r\"}]}";
        const struct celery_request request = {.method = CELERY_ADD_CONSUMER,
                                               .queue = "q",
                                               .nodes = nodes,
                                               .n_nodes = 1,
                                               .reply_list = "list"};
        _cleanup_free_ char *texts[] = {message(NULL, event_body, strlen(event_body))};
        _cleanup_free_ char *tasks = message("active-1", reply_body, strlen(reply_body));
        _cleanup_free_ char *queues = message("active_queues-1", queues_body, strlen(queues_body));
        unsigned failures = 0;

        json_set_alloc_funcs(allocate_json, free);
        for (unsigned kind = 0; kind < 4; kind++) {
                int r = -ENOMEM;

                for (int n = 0; r == -ENOMEM; n++) {
                        _cleanup_free_ char *text = NULL;
                        struct celery_event event;
                        struct celery_reply reply = {0};

                        allocations_left = n;
                        if (kind == 0)
                                r = celery_event_decode(texts[0], strlen(texts[0]), &event);
                        else if (kind == 1)
                                r = celery_reply_decode(tasks, strlen(tasks), &reply);
                        else if (kind == 2)
                                r = celery_reply_decode(queues, strlen(queues), &reply);
                        else
                                r = celery_request_encode(&request, &text);
                        bool was_short = allocations_left < 0;
                        allocations_left = -1;
                        ck_assert_int_eq(r, was_short ? -ENOMEM : 0);
                        failures += was_short;
                        celery_reply_clear(&reply);
                }
        }
        json_set_alloc_funcs(malloc, free);
        ck_assert_uint_gt(failures, 40);
}

TEST(makes_the_names_of_channels_and_keys)
{
        static const struct celery_names names[] = {
                {.database = 0},
                {.database = 3, .key_prefix = "shop*:", .events = "ev", .control = "ctl"},
                {.database = 3, .fanout_prefix = "/all.", .key_prefix = ""},
        };
        static const char *const expected[][4] = {
                {"/0.celeryev/worker.*", "/0.celery.pidbox", "mail",
                 "mail\x06\x16"
                 "3"},
                {"shop\\*:/3.ev/worker.*", "shop*:/3.ctl.pidbox", "shop*:mail",
                 "shop*:mail\x06\x16"
                 "3"},
                {"/all.celeryev/worker.*", "/all.celery.pidbox", "mail",
                 "mail\x06\x16"
                 "3"},
        };

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                _cleanup_free_ char *pattern = celery_event_pattern(&names[i]),
                                    *channel = celery_request_channel(&names[i]),
                                    *list = celery_list_key(&names[i], "mail"),
                                    *first = celery_queue_key(&names[i], "mail", 0),
                                    *third = celery_queue_key(&names[i], "mail", 3);

                ck_assert_str_eq(pattern, expected[i][0]);
                ck_assert_str_eq(channel, expected[i][1]);
                ck_assert_str_eq(list, expected[i][2]);
                ck_assert_str_eq(first, list);
                ck_assert_str_eq(third, expected[i][3]);
        }
}

TEST(finds_the_host_of_a_node)
{
        static char longest[CELERY_NAME_MAX + 2];
        static const struct {
                const char *node, *host;
        } nodes[] = {
                {"celery@vm", "vm"},
                {"a@b@c", "b@c"},
                {"\xc3\xa9@vm.example.org", "vm.example.org"},
                {"vm", NULL},
                {"@vm", NULL},
                {"a@", NULL},
                {"", NULL},
                {"a@v\tm", NULL},
                {"a@\xff", NULL},
                {"a\xc2\x9b@vm", NULL},
        };

        for (size_t i = 0; i < ELEMENTSOF(nodes); i++) {
                const char *host = celery_node_host(nodes[i].node);

                if (nodes[i].host)
                        ck_assert_str_eq(host, nodes[i].host);
                else
                        ck_assert_ptr_null(host);
        }
        memset(longest, 'h', sizeof(longest) - 1);
        memcpy(longest, "a@", 2);
        ck_assert_ptr_null(celery_node_host(longest));
        longest[CELERY_NAME_MAX] = '\0';
        ck_assert_ptr_eq(celery_node_host(longest), longest + 2);
}

TEST_MAIN("celery_message")
