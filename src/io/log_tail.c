/* SPDX-License-Identifier: MIT */
/* The last output of a process, without filler. */
#include "io/log_tail.h"
#include "base/printable.h"
#include <stdio.h>
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

/* Returns the number that follows mark in the line, if next follows the number; else 0. */
static uint64_t number_between(const char *line, size_t length, const char *mark, const char *next)
{
        const char *at = memmem(line, length, mark, strlen(mark)), *end = line + length;
        uint64_t number = 0;

        if (!at)
                return 0;
        for (at += strlen(mark); at < end && *at >= '0' && *at <= '9' && number < INT32_MAX; at++)
                number = number * 10 + (uint64_t)(*at - '0');
        return (size_t)(end - at) >= strlen(next) && memcmp(at, next, strlen(next)) == 0 ? number : 0;
}

/* Returns the pid that the line names as its author, as Sidekiq's lines do, in JSON too; 0: none. */
static uint64_t author_of(const char *line, size_t length)
{
        return number_between(line, length, "pid=", " tid=")
                       ?: number_between(line, length, "\"pid\":", ",\"tid\":");
}

/* Returns true for the error of a Node.js that does not start without sqmgr's file. Such a line names no pid,
 * but all workers that share the log are started with the file, and each fails for this reason. */
static bool lacks_shim(const char *line, size_t length)
{
        static const char error[] = "Cannot find module '", file[] = "/sqmgr-bullmq.cjs'";

        return memmem(line, length, error, sizeof(error) - 1) && memmem(line, length, file, sizeof(file) - 1);
}

struct kept_line {
        const char *text;
        size_t length;
        unsigned count; /* how often the line occurs */
};

#define REPEATED_MAX sizeof(" (repeated 4294967295 times)")

static const char *repeated_text(const struct kept_line *line, char text[static REPEATED_MAX])
{
        text[0] = '\0';
        if (line->count > 1)
                snprintf(text, REPEATED_MAX, " (repeated %u times)", line->count);
        return text;
}

/* Counts the line if it is kept already, else keeps it if there is room. */
static void keep_line(struct kept_line kept[static LOG_TAIL_MAX], size_t *n, const char *line, size_t length)
{
        for (size_t i = 0; i < *n; i++)
                if (kept[i].length == length && memcmp(kept[i].text, line, length) == 0) {
                        kept[i].count++;
                        return;
                }
        if (*n < LOG_TAIL_MAX)
                kept[(*n)++] = (struct kept_line){.text = line, .length = length, .count = 1};
}

/* Collects lines from the end, newest first. Skips empty lines and those that do not name an author that is
 * asked for. */
static size_t collect_lines(const char *text, size_t length, const pid_t pids[static 2],
                            struct kept_line kept[static LOG_TAIL_MAX])
{
        bool of_any = pids[0] == 0 || pids[1] == LOG_TAIL_ANY_PID;
        size_t n = 0;

        while (length > 0) {
                const char *newline = memrchr(text, '\n', length);
                const char *line = newline ? newline + 1 : text;
                size_t size = (size_t)(text + length - line);
                uint64_t author = of_any ? 0 : author_of(line, size);

                length = newline ? (size_t)(newline - text) : 0;
                while (size > 0 && line[size - 1] == '\r')
                        size--;
                bool is_own = author != 0 && (author == (uint64_t)pids[0] || author == (uint64_t)pids[1]);
                if (size > 0 && (of_any || is_own || lacks_shim(line, size)))
                        keep_line(kept, &n, line, size);
        }
        return n;
}

void log_tail_cut(char *text, size_t length, const pid_t pids[static 2], char *lines, size_t size)
{
        struct kept_line kept[LOG_TAIL_MAX];
        char repeated[REPEATED_MAX];
        size_t n_fit = 0, used = 0, max = MIN((size_t)LOG_TAIL_MAX_BYTES, size - 1);

        /* Sidekiq 8 colors each log line, even without a terminal. */
        length = printable_drop_colours(text, length);
        length = drop_frames(text, length);
        size_t n = collect_lines(text, length, pids, kept);
        for (; n_fit < n; n_fit++) {
                size_t more =
                        kept[n_fit].length + strlen(repeated_text(&kept[n_fit], repeated)) + (n_fit > 0);

                if (used + more > max)
                        break;
                used += more;
        }
        /* If the last line alone does not fit, its end is kept. */
        if (n > 0 && n_fit == 0) {
                kept[0].text += kept[0].length - MIN(kept[0].length, max);
                kept[0].length = MIN(kept[0].length, max);
                kept[0].count = 1;
                n_fit = 1;
        }
        used = 0;
        while (n_fit-- > 0) {
                memcpy(lines + used, kept[n_fit].text, kept[n_fit].length);
                used += kept[n_fit].length;
                used += (size_t)snprintf(lines + used, size - used, "%s%s",
                                         repeated_text(&kept[n_fit], repeated), n_fit > 0 ? "\n" : "");
        }
        lines[used] = '\0';
        printable_replace(lines, used, true);
}
