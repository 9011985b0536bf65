/* SPDX-License-Identifier: MIT */
/* The last output of a process, without filler. */
#include "io/log_tail.h"
#include "base/printable.h"
#include <string.h>

/* Returns true for a frame of a Ruby backtrace: `FILE:LINE:in 'METHOD'` and nothing after it. */
static bool is_ruby_frame(const char *line, size_t length)
{
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
                length--;
        const char *in = memmem(line, length, ":in ", 4);
        if (!in || in == line || in[-1] < '0' || in[-1] > '9' || memchr(line, ' ', (size_t)(in - line)))
                return false;
        const char *method = in + 4, *last = line + length - 1;
        return method < last && (*method == '`' || *method == '\'') &&
               memchr(method + 1, '\'', (size_t)(last - method)) == last;
}

/* Drops backtrace frames, which follow the line with the error: indented lines unless all are, and Ruby's
 * frames after the first. Sidekiq writes such frames when its boot fails. Returns the new length. */
static size_t drop_frames(char *text, size_t length)
{
        size_t kept = 0;
        bool in_frames = false;

        for (size_t at = 0, next; at < length; at = next) {
                const char *newline = memchr(text + at, '\n', length - at);

                next = newline ? (size_t)(newline - text) + 1 : length;
                if (text[at] == ' ' || text[at] == '\t')
                        continue;
                bool first = !in_frames;
                in_frames = is_ruby_frame(text + at, next - at);
                if (in_frames && !first)
                        continue;
                /* Moves only bytes already scanned. If no line is kept, all must stay. */
                memmove(text + kept, text + at, next - at);
                kept += next - at;
        }
        return kept > 0 ? kept : length;
}

/* Cuts text to its last LOG_TAIL_MAX lines and to max bytes, at a line's start if a line fits. Returns the
 * new length. */
static size_t keep_log_tail(char *text, size_t length, size_t max)
{
        unsigned lines = 0;

        while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r'))
                length--;
        size_t first = length;
        for (size_t at = length; at > 0 && lines < LOG_TAIL_MAX && length - at < max; at--) {
                if (at == 1 || text[at - 2] == '\n') {
                        first = at - 1;
                        lines++;
                }
        }
        if (lines == 0)
                first = length - MIN(length, max);
        memmove(text, text + first, length - first);
        return length - first;
}

void log_tail_cut(char *text, size_t length, char *lines, size_t size)
{
        /* Sidekiq 8 colors each log line, even without a terminal. */
        length = printable_drop_colours(text, length);
        length = drop_frames(text, length);
        length = keep_log_tail(text, length, MIN((size_t)LOG_TAIL_MAX_BYTES, size - 1));
        printable_replace(text, length, true);
        memcpy(lines, text, length);
        lines[length] = '\0';
}
