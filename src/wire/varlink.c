/* SPDX-License-Identifier: MIT */
/* Varlink messages: NUL-terminated JSON out of a byte stream, decoded calls and replies, encoded ones. */
#include "wire/varlink.h"
#include "base/printable.h"
#include "wire/json.h"
#include <string.h>

void varlink_input_free(struct varlink_input *input)
{
        free(input->data);
        *input = (struct varlink_input){0};
}

int varlink_input_reserve(struct varlink_input *input, size_t size, char **ret)
{
        if (input->start > 0 && input->allocated - input->end < size) {
                memmove(input->data, input->data + input->start, input->end - input->start);
                input->end -= input->start;
                input->scanned -= input->start;
                input->start = 0;
        }
        if (input->allocated - input->end < size) {
                size_t allocated = MAX(input->end + size, input->allocated * 2);
                char *data = realloc(input->data, allocated);

                if (!data)
                        return -ENOMEM;
                input->data = data;
                input->allocated = allocated;
        }
        *ret = input->data + input->end;
        return 0;
}

void varlink_input_trim(struct varlink_input *input)
{
        size_t size = varlink_input_size(input);

        if (size == 0 || input->allocated == size)
                return;
        memmove(input->data, input->data + input->start, size);
        input->end -= input->start;
        input->scanned -= input->start;
        input->start = 0;
        char *data = realloc(input->data, size);
        if (!data)
                return;
        input->data = data;
        input->allocated = size;
}

void varlink_input_filled(struct varlink_input *input, size_t size)
{
        assert(size <= input->allocated - input->end);
        input->end += size;
}

int varlink_input_ready(struct varlink_input *input, size_t max)
{
        const char *nul = NULL;

        if (input->end > input->scanned)
                nul = memchr(input->data + input->scanned, '\0', input->end - input->scanned);
        input->scanned = nul ? (size_t)(nul - input->data) : input->end;
        if (input->scanned - input->start > max)
                return -EMSGSIZE;
        return !!nul;
}

int varlink_input_take(struct varlink_input *input, size_t max, const char **ret_text, size_t *ret_size)
{
        int r = varlink_input_ready(input, max);

        if (r <= 0)
                return r;
        *ret_text = input->data + input->start;
        *ret_size = input->scanned - input->start;
        input->start = ++input->scanned;
        return 1;
}

#define TYPE_STRING  (1U << JSON_STRING)
#define TYPE_OBJECT  (1U << JSON_OBJECT)
#define TYPE_BOOLEAN (1U << JSON_TRUE | 1U << JSON_FALSE)

/* The member must be of one of those types, or missing. Returns it as a borrowed reference, or NULL with *bad
 * set where it is of another type. */
static json_t *member(json_t *object, const char *key, unsigned types, bool *bad)
{
        json_t *value = json_object_get(object, key);

        if (!value || json_is_null(value))
                return NULL;
        if (!(types & 1U << json_typeof(value))) {
                *bad = true;
                return NULL;
        }
        return value;
}

/* Loads one JSON object. Returns 0, -EBADMSG or -ENOMEM. */
static int load_object(const char *text, size_t size, json_t **ret)
{
        json_t *message;

        int r = json_load(text, size, JSON_REJECT_DUPLICATES, &message);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        if (!json_is_object(message)) {
                json_decref(message);
                return -EBADMSG;
        }
        *ret = message;
        return 0;
}

/* Its own reference to the parameters, or an empty object. */
static json_t *own_parameters(json_t *parameters)
{
        return parameters ? json_incref(parameters) : json_object();
}

int varlink_decode_call(const char *text, size_t size, struct varlink_call *ret)
{
        _cleanup_json_ json_t *message = NULL;
        bool bad = false;
        int r = load_object(text, size, &message);

        if (r < 0)
                return r;
        json_t *method = member(message, "method", TYPE_STRING, &bad);
        json_t *parameters = member(message, "parameters", TYPE_OBJECT, &bad);
        json_t *more = member(message, "more", TYPE_BOOLEAN, &bad);
        json_t *oneway = member(message, "oneway", TYPE_BOOLEAN, &bad);
        json_t *upgrade = member(message, "upgrade", TYPE_BOOLEAN, &bad);
        if (bad || !method)
                return -EBADMSG;

        struct varlink_call call = {
                .method = strdup(json_string_value(method)),
                .parameters = own_parameters(parameters),
                .more = json_is_true(more),
                .oneway = json_is_true(oneway),
                .upgrade = json_is_true(upgrade),
        };
        if (!call.method || !call.parameters) {
                varlink_call_free(&call);
                return -ENOMEM;
        }
        *ret = call;
        return 0;
}

void varlink_call_free(struct varlink_call *call)
{
        varlink_call_forget(call);
        *call = (struct varlink_call){0};
}

void varlink_call_forget(struct varlink_call *call)
{
        free(call->method);
        json_decref(call->parameters);
        call->method = NULL;
        call->parameters = NULL;
}

int varlink_decode_reply(const char *text, size_t size, struct varlink_reply *ret)
{
        _cleanup_json_ json_t *message = NULL;
        bool bad = false;
        int r = load_object(text, size, &message);

        if (r < 0)
                return r;
        json_t *error = member(message, "error", TYPE_STRING, &bad);
        json_t *parameters = member(message, "parameters", TYPE_OBJECT, &bad);
        json_t *continues = member(message, "continues", TYPE_BOOLEAN, &bad);
        if (bad)
                return -EBADMSG;

        struct varlink_reply reply = {
                .error = error ? strdup(json_string_value(error)) : NULL,
                .parameters = own_parameters(parameters),
                .continues = json_is_true(continues),
        };
        if ((error && !reply.error) || !reply.parameters) {
                varlink_reply_free(&reply);
                return -ENOMEM;
        }
        *ret = reply;
        return 0;
}

void varlink_reply_free(struct varlink_reply *reply)
{
        free(reply->error);
        json_decref(reply->parameters);
        *reply = (struct varlink_reply){0};
}

/* Renders message, whose reference it takes over. Seconds are doubles: 15 digits print 0.1 as 0.1. */
static int encode(json_t *message, char **ret, size_t *ret_size)
{
        if (!message)
                return -ENOMEM;
        char *text = json_dumps(message, JSON_COMPACT | JSON_REAL_PRECISION(15));
        json_decref(message);
        if (!text)
                return -ENOMEM;
        *ret = text;
        *ret_size = strlen(text) + 1;
        return 0;
}

/* Adds value, whose reference it takes over, to object. Returns object, or NULL where either is NULL or
 * memory is short; then object is released. */
static json_t *with(json_t *object, const char *key, json_t *value)
{
        if (json_object_set_new(object, key, value) == 0)
                return object;
        json_decref(object);
        return NULL;
}

int varlink_encode_call(const char *method, json_t *parameters, bool more, char **ret, size_t *ret_size)
{
        json_t *message = with(json_object(), "parameters", parameters);

        message = with(message, "method", json_string(method));
        if (more)
                message = with(message, "more", json_true());
        return encode(message, ret, ret_size);
}

int varlink_encode_reply(json_t *parameters, bool continues, char **ret, size_t *ret_size)
{
        json_t *message = with(json_object(), "parameters", parameters);

        if (continues)
                message = with(message, "continues", json_true());
        return encode(message, ret, ret_size);
}

int varlink_encode_error(const char *error, json_t *parameters, char **ret, size_t *ret_size)
{
        json_t *message = with(json_object(), "parameters", parameters);

        return encode(with(message, "error", json_string(error)), ret, ret_size);
}

static json_t *printable_string(const char *text, bool keep_newlines)
{
        _cleanup_free_ char *copy = strdup(text);

        if (!copy)
                return NULL;
        printable_replace(copy, strlen(copy), keep_newlines);
        return json_string(copy);
}

json_t *varlink_text(const char *text)
{
        return text && text[0] != '\0' ? printable_string(text, true) : json_null();
}

json_t *varlink_name(const char *name)
{
        return printable_string(name, false);
}
