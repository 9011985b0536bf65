/* SPDX-License-Identifier: MIT */
/* How a process ended, in words; see the header. */
#include "model/exit_status.h"
#include <stdio.h>
#include <string.h>

bool exit_status_is_success(const struct exit_status *exit)
{
        return exit->known && !exit->by_signal && exit->status == 0;
}

void exit_status_text(const struct exit_status *exit, char *text, size_t size)
{
        if (exit->launch_error)
                snprintf(text, size, "could not be started");
        else if (!exit->known)
                snprintf(text, size, "exited with unknown status");
        else if (exit->by_signal)
                snprintf(text, size, "was killed by signal %d (SIG%s)", exit->status,
                         sigabbrev_np(exit->status) ?: "?");
        else
                snprintf(text, size, "exited with status %d", exit->status);
}

const char *start_error_text(int error)
{
        return error == EBUSY ? "too many earlier starts hang in a file system" : strerrordesc_np(error);
}
