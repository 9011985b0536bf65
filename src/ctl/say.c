/* SPDX-License-Identifier: MIT */
/* Sentences for people, on a terminal broken between words. */
#include "ctl/say.h"
#include "base/text.h"
#include "ctl/screen.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define INDENT 2

static struct {
        char *text;
        size_t size;
} errors;

/* To be freed, or NULL where memory is short. */
static _printf_(1, 0) char *format_text(const char *format, va_list arguments)
{
        char *text;

        return vasprintf(&text, format, arguments) < 0 ? NULL : text;
}

void say_line(const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        _cleanup_free_ char *text = format_text(format, arguments);
        va_end(arguments);
        text_print_wrapped(stdout, text ?: "there is too little memory", 0, INDENT,
                           screen_columns(STDOUT_FILENO));
}

void say_errors_to(char *text, size_t size)
{
        errors.text = text;
        errors.size = size;
}

static void print_error(const char *begin, const char *text)
{
        fputs(begin, stderr);
        text_print_wrapped(stderr, text, (int)strlen(begin), INDENT, screen_columns(STDERR_FILENO));
}

void say_error_line(const char *line)
{
        if (!errors.text)
                print_error("", line);
}

int say_error(int code, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        _cleanup_free_ char *formatted = format_text(format, arguments);
        va_end(arguments);
        const char *text = formatted ?: "there is too little memory";
        if (errors.text) {
                snprintf(errors.text, errors.size, "%s", text);
                return code;
        }
        screen_release();
        fflush(stdout);
        print_error("sqmgrctl: ", text);
        return code;
}
