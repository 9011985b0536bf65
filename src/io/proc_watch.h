/* SPDX-License-Identifier: MIT */
/* Waits for the exit of a process. */
#pragma once

#include "io/proc.h"
#include <systemd/sd-event.h>

/* Adds a source that calls exited once the process has exited. Until then other sqmgrs see the process as
 * watched (io/watchers.h). Returns 0 or -errno. */
int proc_watch(const struct proc *proc, sd_event *event, sd_event_io_handler_t exited, void *userdata,
               sd_event_source **ret);
