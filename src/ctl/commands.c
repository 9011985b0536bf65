/* SPDX-License-Identifier: MIT */
/* The table of commands. */
#include "ctl/commands.h"
#include <string.h>

const struct command commands[] = {
        {"status", "[FLEET...]", "shows the fleets and their workers", 0, SIZE_MAX, OPTION_WATCH, ctl_status},
        {"top", "", "shows workers live; keys sort, open and act", 0, 0, 0, ctl_top},
        {"restart", "[FLEET...]", "replaces all workers by new ones, no job cut off", 0, SIZE_MAX,
         OPTION_WAIT | OPTION_RESUME | OPTION_EVERYWHERE | OPTION_RELEASE, ctl_restart},
        {"abort", "[FLEET...]", "ends a restart: no further old worker is quieted", 0, SIZE_MAX,
         OPTION_EVERYWHERE, ctl_abort},
        {"rollout", "[FLEET] | forget FLEET HOST", "shows a restart of all hosts, or leaves one out", 0, 3,
         OPTION_WATCH, ctl_rollout},
        {"quiet", "FLEET|WORKER", "no new jobs; a worker is replaced, a fleet is not", 1, 1, 0, ctl_call},
        {"stop", "FLEET|WORKER", "stops workers as their jobs are done", 1, 1, OPTION_FORCE, ctl_call},
        {"start", "FLEET", "brings a stopped or quieted fleet back", 1, 1, 0, ctl_call},
        {"scale", "FLEET N|auto", "sets how many workers take jobs", 2, 2, 0, ctl_scale},
        {"events", "[FLEET...|WORKER]", "tells what has happened", 0, SIZE_MAX, OPTION_FOLLOW | OPTION_LINES,
         ctl_events},
        {"jobs", "[FLEET...]", "shows the jobs that run now", 0, SIZE_MAX, 0, ctl_call},
        {"queues", "", "shows what waits in Redis, and for how long", 0, 0, 0, ctl_call},
        {"doctor", "", "checks Redis, the machine and the settings", 0, 0, 0, ctl_call},
        {"metrics", "", "prints numbers as Prometheus reads them", 0, 0, 0, ctl_call},
        {"why", "FLEET|WORKER", "tells a worker's story, or why a fleet's count", 1, 1, 0, ctl_why},
        {"logs", "FLEET|WORKER", "shows what workers have written", 1, 1,
         OPTION_FOLLOW | OPTION_LINES | OPTION_PREVIOUS, ctl_logs},
        {"reload", "", "reads the configuration again, says what changed", 0, 0, 0, ctl_call},
        {"reexec", "", "has the installed sqmgr take over from this one", 0, 0, 0, ctl_call},
        {"ping", "", "asks whether sqmgr answers", 0, 0, OPTION_READY, ctl_ping},
        {"version", "", "tells the version of the sqmgr that runs", 0, 0, 0, ctl_call},
};
const size_t n_commands = ELEMENTSOF(commands);

const struct command *commands_find(const char *name)
{
        for (size_t i = 0; i < ELEMENTSOF(commands); i++)
                if (strcmp(commands[i].name, name) == 0)
                        return &commands[i];
        return NULL;
}
