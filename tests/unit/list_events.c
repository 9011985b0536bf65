/* SPDX-License-Identifier: MIT */
/* Prints the kinds of events for tests/check-docs: name, message id and level. */
#include "model/event.h"
#include <stdio.h>
#include <syslog.h>

int main(void)
{
        for (int kind = 0; kind < _EVENT_MAX; kind++) {
                int level = event_kinds[kind].level;

                printf("%s\t%s\t%s\n", event_kinds[kind].name, event_kinds[kind].message_id,
                       level == LOG_ERR       ? "error"
                       : level == LOG_WARNING ? "warning"
                                              : "info");
        }
        return ferror(stdout) || fflush(stdout) != 0;
}
