/* SPDX-License-Identifier: MIT */
/* Text from elsewhere, which viewers are not sent; see the header. */
#include "wire/quoted.h"
#include "base/printable.h"
#include "wire/varlink.h"
#include <stdarg.h>
#include <stdio.h>

#define MEMBER "quoted"

void quoted_set(struct quoted *quoted, const char *text)
{
        snprintf(quoted->quoted_bytes, sizeof(quoted->quoted_bytes), "%s", text ?: "");
        quoted_clean(quoted);
}

void quoted_clean(struct quoted *quoted)
{
        quoted->quoted_bytes[QUOTED_MAX - 1] = '\0';
        printable_replace(quoted->quoted_bytes, strlen(quoted->quoted_bytes), true);
}

bool quoted_is_empty(const struct quoted *quoted)
{
        return quoted->quoted_bytes[0] == '\0';
}

void quoted_append(struct quoted *quoted, const struct quoted *more)
{
        size_t length = strlen(quoted->quoted_bytes);

        if (quoted_is_empty(more))
                return;
        snprintf(quoted->quoted_bytes + length, QUOTED_MAX - length, "%s%s", length > 0 ? "\n" : "",
                 more->quoted_bytes);
        quoted_clean(quoted);
}

bool quoted_equal(const struct quoted *a, const struct quoted *b)
{
        return strcmp(a->quoted_bytes, b->quoted_bytes) == 0;
}

bool quoted_contains(const struct quoted *quoted, const char *text)
{
        return strstr(quoted->quoted_bytes, text);
}

const char *quoted_reveal(const struct quoted *quoted)
{
        return quoted->quoted_bytes;
}

json_t *quoted_put(json_t *object, const struct quoted *quoted)
{
        if (json_object_set_new(object, MEMBER, varlink_text(quoted->quoted_bytes)) == 0)
                return object;
        json_decref(object);
        return NULL;
}

/* Recursion is safe: only our own messages come here, whose depth is small. */
void quoted_drop(json_t *message)
{
        const char *name;
        json_t *value;
        size_t i;

        (void)json_object_del(message, MEMBER);
        json_object_foreach(message, name, value) quoted_drop(value);
        json_array_foreach(message, i, value) quoted_drop(value);
}

void error_report_quote(struct error_report *report, const char *said, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(report->text, sizeof(report->text), format, arguments);
        va_end(arguments);
        printable_replace(report->text, strlen(report->text), false);
        quoted_set(&report->quoted, said);
        /* libpq ends its messages with a line break. */
        char *quoted = report->quoted.quoted_bytes;
        for (size_t n = strlen(quoted); n > 0 && strchr("\n ", quoted[n - 1]); n--)
                quoted[n - 1] = '\0';
}

bool error_report_equal(const struct error_report *a, const struct error_report *b)
{
        return strcmp(a->text, b->text) == 0 && quoted_equal(&a->quoted, &b->quoted);
}
