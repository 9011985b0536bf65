/* SPDX-License-Identifier: MIT */
/* The steps from a new process to its command. A child in the memory of sqmgr takes them, and sqmgr-start:
 * all are system calls alone, and allocate nothing. An error is reported, and ends the process. */
#pragma once

#include "io/launch_plan.h"

/* Reports one sentence, the texts put together, and exits with status 127. */
#define launch_fail(...) launch_fail_parts((const char *const[]){__VA_ARGS__, NULL})
_Noreturn void launch_fail_parts(const char *const *parts);

void launch_enter_directory(const struct launch_plan *plan);
/* Opens the log, reports it, and makes it standard output and error; and an empty standard input. An alert
 * has the streams that it was started with. */
void launch_open_streams(const struct launch_plan *plan);
/* Becomes the command of the plan. */
_Noreturn void launch_run(const struct launch_plan *plan);
/* Becomes that command. step: of the message if it cannot run, as "before_start: ". exact: a file that is no
 * program is an error, and not a script. */
_Noreturn void launch_execute(const char *step, bool exact, char **argv, char *const *environment);
/* Reports if that command cannot run, provided that the content of its file is valid. */
void launch_check_command(const char *step, const char *name, char *const *environment);
