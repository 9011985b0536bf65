/* SPDX-License-Identifier: MIT */
/* How a process ended, in words; see the header. */
#include "model/exit_status.h"
#include "base/printable.h"
#include "wire/withhold.h"
#include <stdio.h>
#include <string.h>

void exit_lines_quote(char *text, size_t size, const char *lines)
{
        size_t length = strlen(text);

        if (lines[0] == '\0')
                return;
        snprintf(text + length, size - length, WITHHOLD_LAST_LINES "%s", lines);
        for (char *at = text + length; (at = strchr(at, '\n')); at++)
                *at = WITHHOLD_LAST_LINES_BAR;
        /* The truncated text may end within a character. */
        printable_replace(text, strlen(text), true);
}

void exit_status_text(const struct exit_status *exit, char *text, size_t size)
{
        if (exit->launch_error)
                snprintf(text, size, WITHHOLD_NOT_STARTED "%s", exit->launch_error);
        else if (!exit->known)
                snprintf(text, size, "exited, status unknown");
        else if (exit->by_signal)
                snprintf(text, size, "was killed by signal %d (SIG%s)", exit->status,
                         sigabbrev_np(exit->status) ?: "?");
        else
                snprintf(text, size, "exited with status %d", exit->status);
}
