/* SPDX-License-Identifier: MIT */
/* Messages for users. On a terminal, lines are broken between words. */
#include "ctl/output.h"
#include "base/text.h"
#include "ctl/screen.h"
#include "wire/json.h"
#include <stdarg.h>
#include <time.h>

#define INDENT 2

static const char no_memory[] = "not enough memory";

static struct {
        char *text;
        size_t size;
        bool json;
} errors;

static const char *instance; /* NULL: there is only one */

/* The caller frees the text. Returns NULL if memory is short. */
static _printf_(1, 0) char *format_text(const char *format, va_list arguments)
{
        char *text;

        return vasprintf(&text, format, arguments) < 0 ? NULL : text;
}

void output_line(const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        _cleanup_free_ char *text = format_text(format, arguments);
        va_end(arguments);
        text_print_wrapped(stdout, text ?: no_memory, 0, INDENT, screen_columns(STDOUT_FILENO));
}

void output_errors_to(char *text, size_t size)
{
        errors.text = text;
        errors.size = size;
}

static void print_error(const char *begin, const char *text)
{
        fputs(begin, stderr);
        text_print_wrapped(stderr, text, (int)strlen(begin), INDENT, screen_columns(STDERR_FILENO));
}

void output_instance(const char *name)
{
        instance = name;
}

void output_json(void)
{
        errors.json = true;
}

static const char *const words[] = {
        [CTL_FAILED] = "failed",       [CTL_USAGE] = "usage",
        [CTL_CONNECT] = "unreachable", [CTL_PERMISSION] = "not-permitted",
        [CTL_TIMEOUT] = "timed-out",
};

static void print_json(const char *word, int code, const char *text, json_t *details)
{
        json_t *error =
                json_pack("{s:{s:s, s:s, s:i, s:o}}", "error", "code", word ?: words[code], "message", text,
                          "exit", code, "details", details ? json_incref(details) : json_array());

        if (error)
                output_print_json(error);
        json_decref(error);
}

static int report(const char *word, int code, const char *text, json_t *details)
{
        char begin[256];
        json_t *line;

        if (errors.text && code != CTL_DONE) {
                snprintf(errors.text, errors.size, "%s", text);
                return code;
        }
        screen_release();
        fflush(stdout);
        snprintf(begin, sizeof(begin), "sqmgrctl: %.200s%s", instance ?: "", instance ? ": " : "");
        print_error(begin, text);
        json_foreach(line, details)
                print_error("", json_string_value(line));
        if (errors.json && code > CTL_DONE && code < (int)ELEMENTSOF(words))
                print_json(word, code, text, details);
        return code;
}

int output_error_as(const char *word, int code, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        _cleanup_free_ char *text = format_text(format, arguments);
        va_end(arguments);
        return report(word, code, text ?: no_memory, NULL);
}

int output_refusal(const char *reason, json_t *details)
{
        return report("refused", CTL_FAILED, reason, details);
}

const char *output_stamp(void)
{
        static char text[16];
        time_t now = time(NULL);
        struct tm local;

        if (!localtime_r(&now, &local) || strftime(text, sizeof(text), "%H:%M:%S ", &local) == 0)
                text[0] = '\0';
        return text;
}

const char *output_names(json_t *names)
{
        static char text[512];
        size_t i;
        json_t *name;

        text[0] = '\0';
        json_array_foreach(names, i, name)
        {
                if (strlen(text) + json_string_length(name) > sizeof(text) - sizeof(", '', ...")) {
                        text_append(text, sizeof(text), ", ...");
                        break;
                }
                text_append(text, sizeof(text), "%s'%s'", i > 0 ? ", " : "", json_string_value(name));
        }
        return text;
}

int output_json_new(json_t *json)
{
        if (!json)
                return output_error(CTL_FAILED, "not enough memory");
        output_print_json(json);
        json_decref(json);
        return CTL_DONE;
}

void output_print_json(json_t *json)
{
        if (instance)
                (void)json_object_set_new(json, "instance", json_string(instance));
        json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15));
        putchar('\n');
        fflush(stdout);
}
