/* SPDX-License-Identifier: MIT */
/* Takes apart what sqmgr answers. */
#include "ctl/reply.h"
#include "base/parse.h"
#include "wire/control.h"
#include <stdio.h>
#include <string.h>

const char *reply_string(json_t *object, const char *key)
{
        const char *text = json_string_value(json_object_get(object, key));

        return text ? text : "";
}

long long reply_integer(json_t *object, const char *key)
{
        return json_integer_value(json_object_get(object, key));
}

bool reply_is_true(json_t *object, const char *key)
{
        return json_is_true(json_object_get(object, key));
}

usec_t reply_usec(json_t *object, const char *key)
{
        double seconds = json_number_value(json_object_get(object, key));

        return seconds > 0 ? (usec_t)(seconds * (double)USEC_PER_SEC) : 0;
}

const char *reply_seconds(json_t *object, const char *key, char *text)
{
        usec_t usec = reply_usec(object, key);

        /* In a table parts of seconds are noise. */
        return format_duration(usec - usec % USEC_PER_SEC, text, FORMAT_MAX);
}

const char *reply_seconds_left(json_t *object, const char *key, char *text)
{
        usec_t usec = usec_add(reply_usec(object, key), USEC_PER_SEC - 1);

        return format_duration(usec - usec % USEC_PER_SEC, text, FORMAT_MAX);
}

const char *reply_names(json_t *names, char text[static REPLY_NAMES_MAX])
{
        size_t i, n = json_array_size(names), length;
        json_t *name;

        snprintf(text, REPLY_NAMES_MAX, "there %s", n > 1 ? "are " : n == 1 ? "is " : "is none");
        json_array_foreach(names, i, name)
        {
                length = strlen(text);
                if (length + json_string_length(name) > REPLY_NAMES_MAX - sizeof(", '', ...")) {
                        snprintf(text + length, REPLY_NAMES_MAX - length, ", ...");
                        break;
                }
                snprintf(text + length, REPLY_NAMES_MAX - length, "%s'%s'", i > 0 ? ", " : "",
                         json_string_value(name));
        }
        return text;
}

char *reply_show_last_lines(char *text)
{
        char *at = strstr(text, CONTROL_LAST_LINES_BEGIN);

        if (!at)
                return text;
        at += strlen(CONTROL_LAST_LINES_BEGIN);
        at[-1] = '\n';
        while ((at = strchr(at, CONTROL_LAST_LINES_BAR)))
                *at = '\n';
        return text;
}

void reply_print_json(json_t *json)
{
        json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15));
        putchar('\n');
        fflush(stdout);
}
