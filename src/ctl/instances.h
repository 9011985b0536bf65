/* SPDX-License-Identifier: MIT */
/* Chooses the instance of sqmgr that a command is for. */
#pragma once

#include "ctl/client.h"

/* Sets ctl->socket, and ctl->instance unless the path was given: as the options or SQMGR_SOCKET say; else the
 * only instance of the caller; else the only one that runs. Prints nothing. Returns 0; -ENOENT if there is no
 * instance; -EMLINK if there are several; or -ENOMEM. */
int instances_choose(struct ctl *ctl);

/* Runs ctl->command for the instance that is chosen; for each one, under its name, if none is and the command
 * only reads. Returns an exit code. */
int instances_run(struct ctl *ctl);

/* Calls offer() for each instance. */
void instances_offer(void (*offer)(const char *name, const char *help, const char *partial),
                     const char *partial);
