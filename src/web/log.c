/* SPDX-License-Identifier: MIT */
/* The log: lines on stderr. Under systemd each line starts with its priority. */
#include "web/log.h"
#include "base/printable.h"
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A writable pipe accepts this many bytes without blocking (pipe(7)). */
#define LINE_MAX_BYTES 4096

static bool has_space(void)
{
        struct pollfd pollfd = {.fd = STDERR_FILENO, .events = POLLOUT};

        return poll(&pollfd, 1, 0) == 1 && (pollfd.revents & POLLOUT);
}

void log_message(int level, const char *format, ...)
{
        static const char *const names[] = {
                [LOG_ERR] = "error: ", [LOG_WARNING] = "warning: ", [LOG_INFO] = ""};
        char text[LINE_MAX_BYTES - 64];
        va_list arguments;

        assert(level >= LOG_ERR && level <= LOG_INFO);
        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        printable_replace(text, strlen(text), false);
        if (!has_space())
                return;
        if (getenv("JOURNAL_STREAM"))
                dprintf(STDERR_FILENO, "<%d>%s\n", level, text);
        else
                dprintf(STDERR_FILENO, "sqmgr-web: %s%s\n", names[level] ?: "", text);
}
