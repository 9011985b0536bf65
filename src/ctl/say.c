/* SPDX-License-Identifier: MIT */
/* Sentences for people, on a terminal broken between words. */
#include "ctl/ctl.h"
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

void ctl_say(const char *format, ...)
{
        struct view view = ctl_view();
        va_list arguments;

        va_start(arguments, format);
        _cleanup_free_ char *text = format_text(format, arguments);
        va_end(arguments);
        render_text(stdout, text ?: "there is too little memory", 0, INDENT, &view);
}

void ctl_errors_to(char *text, size_t size)
{
        errors.text = text;
        errors.size = size;
}

static void print_error(const char *begin, const char *text)
{
        struct view view = {.columns = screen_columns(STDERR_FILENO)};

        fputs(begin, stderr);
        render_text(stderr, text, (int)strlen(begin), INDENT, &view);
}

void ctl_error_line(const char *line)
{
        if (!errors.text)
                print_error("", line);
}

int ctl_error(enum ctl_exit code, const char *format, ...)
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
