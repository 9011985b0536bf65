/* SPDX-License-Identifier: MIT */
/* The commands, a row each: NAME is ctl_NAME() in NAME.c, which returns an exit code. */
#pragma once

#include "ctl/ctl.h"

/* ROW(name, arguments, help, min, max, options), as struct command has them (ctl/usage.h). --help, completion
 * and what a command line may hold follow from it. */
#define COMMANDS(ROW)                                                                                        \
        ROW(status, "[FLEET...]", "shows the fleets and their workers", 0, SIZE_MAX, OPTION_WATCH)           \
        ROW(top, "", "shows workers live; keys sort, open and act", 0, 0, 0)                                 \
        ROW(restart, "[FLEET...]", "replaces all workers by new ones, no job cut off", 0, SIZE_MAX,          \
            OPTION_WAIT | OPTION_EVERYWHERE | OPTION_RELEASE)                                                \
        ROW(abort, "[FLEET...]", "ends a restart: no further old worker is quieted", 0, SIZE_MAX,            \
            OPTION_EVERYWHERE)                                                                               \
        ROW(rollout, "[FLEET] | forget FLEET HOST", "shows a restart of all hosts, or leaves one out", 0, 3, \
            OPTION_WATCH)                                                                                    \
        ROW(quiet, "FLEET|WORKER", "no new jobs; a worker is replaced, a fleet is not", 1, 1, 0)             \
        ROW(stop, "FLEET", "stops the fleet's workers as their jobs are done", 1, 1, OPTION_FORCE)           \
        ROW(start, "FLEET", "brings a stopped or quieted fleet back", 1, 1, 0)                               \
        ROW(scale, "FLEET N|auto", "sets how many workers take jobs", 2, 2, 0)                               \
        ROW(events, "[FLEET...|WORKER]", "tells what has happened", 0, SIZE_MAX,                             \
            OPTION_FOLLOW | OPTION_LINES)                                                                    \
        ROW(jobs, "[FLEET...]", "shows the jobs that run now", 0, SIZE_MAX, 0)                               \
        ROW(queues, "", "shows what waits in Redis, and for how long", 0, 0, 0)                              \
        ROW(doctor, "", "checks Redis, the machine and the settings", 0, 0, 0)                               \
        ROW(metrics, "", "prints numbers as Prometheus reads them", 0, 0, 0)                                 \
        ROW(why, "FLEET|WORKER", "tells a worker's story, or why a fleet's count", 1, 1, 0)                  \
        ROW(logs, "FLEET|WORKER", "shows what workers have written", 1, 1, OPTION_FOLLOW | OPTION_LINES)     \
        ROW(reload, "", "reads the configuration again, says what changed", 0, 0, 0)                         \
        ROW(reexec, "", "has the installed sqmgr take over from this one", 0, 0, 0)                          \
        ROW(ping, "", "asks whether sqmgr answers", 0, 0, OPTION_READY)                                      \
        ROW(version, "", "tells the version of the sqmgr that runs", 0, 0, 0)

#define COMMAND_DECLARE(name, ...) int ctl_##name(struct ctl *ctl);
COMMANDS(COMMAND_DECLARE)
#undef COMMAND_DECLARE
