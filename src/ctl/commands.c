/* SPDX-License-Identifier: MIT */
/* The table of commands. */
#include "ctl/commands.h"
#include <string.h>

const struct command commands[] = {
        {"status", "[FLEET...]", "shows the fleets and their workers", 0, SIZE_MAX, OPTION_WATCH, ctl_status},
        {"top", "", "shows workers live; keys sort, open and act", 0, 0, 0, ctl_top},
        {"restart", "[FLEET...]", "replaces all workers without interrupting jobs", 0, SIZE_MAX,
         OPTION_WAIT | OPTION_RESUME | OPTION_EVERYWHERE | OPTION_RELEASE, ctl_restart},
        {"abort", "[FLEET...]", "ends a restart; remaining old workers keep running", 0, SIZE_MAX,
         OPTION_EVERYWHERE, ctl_abort},
        {"rollout", "[FLEET] | forget FLEET HOST", "shows a restart of all hosts, or forgets a host", 0, 3,
         OPTION_WATCH, ctl_rollout},
        {"quiet", "FLEET|WORKER", "stops accepting jobs; a worker is then replaced", 1, 1, 0, ctl_call},
        {"stop", "FLEET|WORKER", "stops workers once their jobs are done", 1, 1, OPTION_FORCE, ctl_call},
        {"start", "FLEET", "starts a stopped or quieted fleet", 1, 1, 0, ctl_call},
        {"scale", "FLEET N|auto", "sets the number of active workers", 2, 2, 0, ctl_scale},
        {"events", "[FLEET...|WORKER]", "shows what has happened", 0, SIZE_MAX, OPTION_FOLLOW | OPTION_LINES,
         ctl_events},
        {"jobs", "[FLEET...]", "shows the running jobs", 0, SIZE_MAX, 0, ctl_call},
        {"queues", "", "shows the queues in Redis: size and latency", 0, 0, 0, ctl_call},
        {"doctor", "", "checks Redis, the machine and the settings", 0, 0, 0, ctl_call},
        {"metrics", "", "prints metrics in the format of Prometheus", 0, 0, 0, ctl_call},
        {"why", "FLEET|WORKER", "explains a worker's history, or a fleet's count", 1, 1, 0, ctl_why},
        {"logs", "FLEET|WORKER", "shows the log of workers", 1, 1,
         OPTION_FOLLOW | OPTION_LINES | OPTION_PREVIOUS, ctl_logs},
        {"reload", "", "reads the configuration again, shows changes", 0, 0, 0, ctl_call},
        {"reexec", "", "replaces the running sqmgr by the installed one", 0, 0, 0, ctl_call},
        {"ping", "", "checks whether sqmgr answers", 0, 0, OPTION_READY, ctl_ping},
        {"version", "", "shows the version of the running sqmgr", 0, 0, 0, ctl_call},
};
const size_t n_commands = ELEMENTSOF(commands);

const struct command *commands_find(const char *name)
{
        for (size_t i = 0; i < ELEMENTSOF(commands); i++)
                if (strcmp(commands[i].name, name) == 0)
                        return &commands[i];
        return NULL;
}
