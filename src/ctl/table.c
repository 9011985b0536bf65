/* SPDX-License-Identifier: MIT */
/* The table of commands. */
#include "ctl/table.h"
#include "ctl/commands.h"
#include <string.h>

#define COMMAND_ROW(name, arguments, help, min, max, options)                                                \
        {#name, arguments, help, min, max, options, ctl_##name},
const struct command table_commands[] = {COMMANDS(COMMAND_ROW)};
#undef COMMAND_ROW
const size_t table_n_commands = ELEMENTSOF(table_commands);

const struct command *table_find(const char *name)
{
        for (size_t i = 0; i < ELEMENTSOF(table_commands); i++)
                if (strcmp(table_commands[i].name, name) == 0)
                        return &table_commands[i];
        return NULL;
}
