/* SPDX-License-Identifier: MIT */
/* Loads JSON within bounds; see the header. */
#include "wire/json.h"

/* text follows an opening quote. Returns the position after the closing quote; end if there is none. */
static const char *take_string(struct json_counts *counts, const char *text, const char *end)
{
        const char *begin = text;

        while (text < end && *text != '"') {
                bool pair = *text == '\\';

                counts->escaped += pair || *text == '&' || *text == '<' || *text == '>' || *text == '\'';
                text += pair && text + 1 < end ? 2 : 1;
        }
        counts->string_bytes = MAX(counts->string_bytes, (size_t)(text - begin));
        return text < end ? text + 1 : end;
}

/* Text that is not JSON is counted, too: up to its first error, the parser finds the same strings as this
 * function. */
void json_count(const char *text, size_t size, struct json_counts *ret)
{
        size_t depth = 0;

        *ret = (struct json_counts){.values = 1};
        for (const char *end = text + size; text < end;) {
                switch (*text++) {
                case '"':
                        text = take_string(ret, text, end);
                        break;
                case '[':
                case '{':
                        depth++;
                        ret->depth = MAX(ret->depth, depth);
                        ret->containers++;
                        ret->values++;
                        break;
                case ']':
                case '}':
                        depth -= depth > 0;
                        break;
                case ',':
                        ret->values++;
                        break;
                default:
                        break;
                }
        }
}

int json_load(const struct json_bounds *bounds, const char *text, size_t size, size_t flags, json_t **ret)
{
        struct json_counts counts;

        if (size > bounds->bytes)
                return -EMSGSIZE;
        json_count(text, size, &counts);
        if (counts.values > bounds->values || counts.depth > bounds->depth)
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
