/* SPDX-License-Identifier: MIT */
/* Searches a command as execvp() does. */
#pragma once

#define FIND_COMMAND_PATH "/bin:/usr/bin" /* of execvp() */

/* Returns 0 if the command can be executed, provided that its content is valid, or a positive errno. path: of
 * the environment; NULL: it has none. */
int find_command(const char *path, const char *name);
