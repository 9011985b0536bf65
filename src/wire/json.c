/* SPDX-License-Identifier: MIT */
/* Loads JSON within bounds; see the header. */
#include "wire/json.h"

/* text follows an opening quote. Returns the position after the closing quote; end if there is none. */
static const char *skip_string(const char *text, const char *end)
{
        while (text < end && *text != '"')
                text += *text == '\\' && text + 1 < end ? 2 : 1;
        return text < end ? text + 1 : end;
}

/* Counts values and depth as the parser would allocate them. Text that is not JSON may pass: up to its first
 * error, the parser finds the same strings as this function. */
static bool is_within(const struct json_bounds *bounds, const char *text, size_t size)
{
        size_t depth = 0, values = 1;

        for (const char *end = text + size; text < end;) {
                switch (*text++) {
                case '"':
                        text = skip_string(text, end);
                        break;
                case '[':
                case '{':
                        if (++depth > bounds->depth)
                                return false;
                        values++;
                        break;
                case ']':
                case '}':
                        depth -= depth > 0;
                        break;
                case ',':
                        values++;
                        break;
                default:
                        break;
                }
        }
        return values <= bounds->values;
}

int json_load(const struct json_bounds *bounds, const char *text, size_t size, size_t flags, json_t **ret)
{
        if (size > bounds->bytes || !is_within(bounds, text, size))
                return -EMSGSIZE;
        errno = 0;
        json_t *json = json_loadb(text, size, flags, NULL);

        if (errno == ENOMEM) {
                json_decref(json);
                return -ENOMEM;
        }
        *ret = json;
        return json ? 0 : -EINVAL;
}

char *json_text(const json_t *value, size_t flags)
{
        errno = 0;
        char *text = value ? json_dumps(value, flags) : NULL;

        if (!text || errno != ENOMEM)
                return text;
        free(text);
        return NULL;
}

json_t *json_object_of(const struct json_member *members, size_t n)
{
        _cleanup_json_ json_t *object = json_object();
        bool failed = false;

        for (size_t i = 0; i < n; i++)
                failed |= json_object_set_new(object, members[i].name, members[i].value) < 0;
        return failed ? NULL : TAKE_PTR(object);
}
