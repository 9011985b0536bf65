/* SPDX-License-Identifier: MIT */
/* Prints the kinds of events for tests/check-docs: name and message id. */
#include "core/fleet.h"
#include <stdio.h>

int main(void)
{
        for (int kind = 0; kind < _EVENT_MAX; kind++)
                printf("%s\t%s\n", event_kind_name(kind), event_kind_message_id(kind));
        return ferror(stdout) || fflush(stdout) != 0;
}
