/* SPDX-License-Identifier: MIT */
/* sqmgr-journal reads the last output of processes from the journal. Journal files are mapped: a truncated or
 * damaged file may kill its reader with a signal. The files may also be on a hung disk. Started by sqmgr with
 * a time limit, and a socket as standard input, which gets the lines. Usage: sqmgr-journal PID PID SINCE; 0:
 * no second process. SINCE: monotonic microseconds */
#include "io/clock.h"
#include "io/log_tail.h"
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-id128.h>
#include <systemd/sd-journal.h>

/* Lines are final after SETTLE_USEC without new ones, and after PATIENCE_USEC in any case. */
#define SETTLE_USEC   (500 * USEC_PER_MSEC)
#define PATIENCE_USEC USEC_PER_SEC

static int add_match_pid(sd_journal *journal, const char *pid)
{
        char match[32];

        if (strcmp(pid, "0") == 0)
                return 0;
        snprintf(match, sizeof(match), "_PID=%s", pid);
        return sd_journal_add_match(journal, match, 0);
}

/* Opens all namespaces: a unit may have its own. */
static int open_journal(char **argv, sd_journal **ret)
{
        char match[64];
        sd_id128_t boot;

        int r = sd_id128_get_boot(&boot);
        if (r >= 0)
                r = sd_journal_open_namespace(ret, NULL, SD_JOURNAL_LOCAL_ONLY | SD_JOURNAL_ALL_NAMESPACES);
        if (r < 0)
                return r;
        snprintf(match, sizeof(match), "_BOOT_ID=" SD_ID128_FORMAT_STR, SD_ID128_FORMAT_VAL(boot));
        if ((r = sd_journal_add_match(*ret, match, 0)) < 0 ||
            (r = sd_journal_add_match(*ret, "_TRANSPORT=stdout", 0)) < 0 ||
            (r = add_match_pid(*ret, argv[1])) < 0 || (r = add_match_pid(*ret, argv[2])) < 0)
                return r;
        return sd_journal_set_data_threshold(*ret, LOG_TAIL_LOOK_BACK_BYTES);
}

/* Fills text from its end with the last output, one entry per line. Returns the length. */
static size_t collect_lines(sd_journal *journal, usec_t since, char *text, size_t size)
{
        static const char field[] = "MESSAGE=";
        const size_t field_length = sizeof(field) - 1;
        size_t at = size, length;
        const void *data;
        uint64_t written_at;
        sd_id128_t boot;

        if (sd_journal_seek_tail(journal) < 0)
                return 0;
        while (at > 0 && sd_journal_previous(journal) > 0) {
                if (sd_journal_get_monotonic_usec(journal, &written_at, &boot) < 0 || written_at < since)
                        break;
                if (sd_journal_get_data(journal, "MESSAGE", &data, &length) < 0 || length < field_length)
                        continue;
                text[--at] = '\n';
                length = MIN(length - field_length, at);
                at -= length;
                memcpy(text + at, (const char *)data + field_length, length);
        }
        return size - at;
}

/* Reads until the lines are final. Returns their length; the lines are at the end of text. */
static size_t await_lines(sd_journal *journal, usec_t since, char text[static LOG_TAIL_LOOK_BACK_BYTES])
{
        usec_t now = clock_now(CLOCK_MONOTONIC), until = usec_add(now, PATIENCE_USEC), settled = until;
        size_t length = 0;

        for (;;) {
                char seen[LOG_TAIL_LOOK_BACK_BYTES];
                size_t seen_length = collect_lines(journal, since, seen, sizeof(seen));

                now = clock_now(CLOCK_MONOTONIC);
                if (seen_length != length ||
                    memcmp(seen + sizeof(seen) - length, text + sizeof(seen) - length, length) != 0) {
                        length = seen_length;
                        memcpy(text + sizeof(seen) - length, seen + sizeof(seen) - length, length);
                        settled = MIN(usec_add(now, SETTLE_USEC), until);
                }
                if (now >= settled || sd_journal_wait(journal, settled - now) < 0)
                        return length;
        }
}

int main(int argc, char **argv)
{
        char text[LOG_TAIL_LOOK_BACK_BYTES], lines[LOG_TAIL_MAX_BYTES + 1];
        sd_journal *journal = NULL;
        bool opened = argc == 4 && open_journal(argv, &journal) >= 0;

        if (opened) {
                size_t length = await_lines(journal, strtoull(argv[3], NULL, 10), text);
                log_tail_cut(text + sizeof(text) - length, length, (pid_t[2]){0}, lines, sizeof(lines));
                (void)send(STDIN_FILENO, lines, strlen(lines), MSG_NOSIGNAL);
        }
        sd_journal_close(journal);
        return opened ? EXIT_SUCCESS : EXIT_FAILURE;
}
