/* SPDX-License-Identifier: MIT */
/* Varlink messages: splits a byte stream at NULs, decodes and encodes calls and replies. */
#include "wire/varlink.h"
#include "base/printable.h"

void varlink_input_free(struct varlink_input *input)
{
        free(input->data);
        *input = (struct varlink_input){0};
}

/* Moves the unread bytes to the start of the buffer. */
static void move_to_start(struct varlink_input *input)
{
        memmove(input->data, input->data + input->start, varlink_input_size(input));
        input->end -= input->start;
        input->scanned -= input->start;
        input->start = 0;
}

int varlink_input_reserve(struct varlink_input *input, size_t size, char **ret)
{
        if (input->start > 0 && input->allocated - input->end < size)
                move_to_start(input);
        if (input->allocated - input->end < size) {
                size_t allocated = MAX(input->end + size, input->allocated * 2);

                if (!ARRAY_RESIZE(input->data, allocated))
                        return -ENOMEM;
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
        move_to_start(input);
        if (ARRAY_RESIZE(input->data, size))
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

/* Returns a member as a borrowed reference, or NULL if missing or null. Returns NULL with *bad set if its
 * type is not one of types. */
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

/* Loads a message and adds empty parameters if it has none. Returns 0, -EBADMSG or -ENOMEM. */
static int load_message(const char *text, size_t size, const struct json_bounds *bounds, json_t **ret)
{
        _cleanup_json_ json_t *message = NULL;
        int r = json_load(bounds, text, size, JSON_REJECT_DUPLICATES, &message);

        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        if (!json_is_object(message))
                return -EBADMSG;
        const json_t *parameters = json_object_get(message, "parameters");
        if ((!parameters || json_is_null(parameters)) &&
            json_object_set_new(message, "parameters", json_object()) < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(message);
        return 0;
}

int varlink_decode_call(const char *text, size_t size, struct varlink_call *ret)
{
        static const struct json_bounds bounds = {
                .bytes = VARLINK_CALL_MAX, .values = VARLINK_CALL_VALUES_MAX, .depth = VARLINK_DEPTH_MAX};
        _cleanup_json_ json_t *message = NULL;
        bool bad = false;
        int r = load_message(text, size, &bounds, &message);

        if (r < 0)
                return r;
        struct varlink_call call = {
                .method = json_string_value(member(message, "method", TYPE_STRING, &bad)),
                .parameters = member(message, "parameters", TYPE_OBJECT, &bad),
                .more = json_is_true(member(message, "more", TYPE_BOOLEAN, &bad)),
                .oneway = json_is_true(member(message, "oneway", TYPE_BOOLEAN, &bad)),
                .upgrade = json_is_true(member(message, "upgrade", TYPE_BOOLEAN, &bad)),
        };
        if (bad || !call.method)
                return -EBADMSG;
        call.message = TAKE_PTR(message);
        *ret = call;
        return 0;
}

void varlink_call_free(struct varlink_call *call)
{
        json_decref(call->message);
        *call = (struct varlink_call){.more = call->more, .oneway = call->oneway};
}

int varlink_decode_reply(const char *text, size_t size, size_t max, struct varlink_reply *ret)
{
        const struct json_bounds bounds = {
                .bytes = max, .values = max / VARLINK_REPLY_VALUE_BYTES, .depth = VARLINK_DEPTH_MAX};
        _cleanup_json_ json_t *message = NULL;
        bool bad = false;
        int r = load_message(text, size, &bounds, &message);

        if (r < 0)
                return r;
        struct varlink_reply reply = {
                .error = json_string_value(member(message, "error", TYPE_STRING, &bad)),
                .parameters = member(message, "parameters", TYPE_OBJECT, &bad),
                .continues = json_is_true(member(message, "continues", TYPE_BOOLEAN, &bad)),
        };
        if (bad)
                return -EBADMSG;
        reply.message = TAKE_PTR(message);
        *ret = reply;
        return 0;
}

void varlink_reply_free(struct varlink_reply *reply)
{
        json_decref(reply->message);
        *reply = (struct varlink_reply){0};
}

/* Encodes message and consumes the reference. Seconds are doubles: 15 digits print 0.1 as 0.1. */
static int encode(json_t *message, char **ret, size_t *ret_size)
{
        if (!message)
                return -ENOMEM;
        char *text = json_text(message, JSON_COMPACT | JSON_REAL_PRECISION(15));
        json_decref(message);
        if (!text)
                return -ENOMEM;
        *ret = text;
        *ret_size = strlen(text) + 1;
        return 0;
}

int varlink_encode_call(const char *method, json_t *parameters, bool more, char **ret, size_t *ret_size)
{
        return encode(json_pack("{s:o, s:s, s:o*}", "parameters", parameters, "method", method, "more",
                                more ? json_true() : NULL),
                      ret, ret_size);
}

int varlink_encode_reply(const char *error, json_t *parameters, bool continues, char **ret, size_t *ret_size)
{
        return encode(json_pack("{s:o, s:s*, s:o*}", "parameters", parameters, "error", error, "continues",
                                continues ? json_true() : NULL),
                      ret, ret_size);
}

static json_t *printable_string(const char *text, bool keep_newlines)
{
        _cleanup_free_ char *copy = printable_copy(text, keep_newlines);

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
