/* SPDX-License-Identifier: MIT */
/* The tables of commands and of options. */
#include "ctl/commands.h"
#include "ctl/say.h"
#include <stdio.h>
#include <string.h>

const struct command commands[] = {
        {"status", "[FLEET...]", "shows the fleets and their workers", 0, SIZE_MAX, OPTION_WATCH, ctl_status},
        {"top", "", "shows workers live; keys sort, open and act", 0, 0, 0, ctl_top},
        {"restart", "[FLEET...]", "replaces all workers by new ones, no job cut off", 0, SIZE_MAX,
         OPTION_WAIT | OPTION_EVERYWHERE | OPTION_RELEASE, ctl_restart},
        {"abort", "[FLEET...]", "ends a restart: no further old worker is quieted", 0, SIZE_MAX,
         OPTION_EVERYWHERE, ctl_abort},
        {"rollout", "[FLEET] | forget FLEET HOST", "shows a restart of all hosts, or leaves one out", 0, 3,
         OPTION_WATCH, ctl_rollout},
        {"quiet", "FLEET|WORKER", "no new jobs; a worker is replaced, a fleet is not", 1, 1, 0, ctl_call},
        {"stop", "FLEET", "stops the fleet's workers as their jobs are done", 1, 1, OPTION_FORCE, ctl_call},
        {"start", "FLEET", "brings a stopped or quieted fleet back", 1, 1, 0, ctl_call},
        {"scale", "FLEET N|auto", "sets how many workers take jobs", 2, 2, 0, ctl_scale},
        {"events", "[FLEET...|WORKER]", "tells what has happened", 0, SIZE_MAX, OPTION_FOLLOW | OPTION_LINES,
         ctl_events},
        {"jobs", "[FLEET...]", "shows the jobs that run now", 0, SIZE_MAX, 0, ctl_call},
        {"queues", "", "shows what waits in Redis, and for how long", 0, 0, 0, ctl_call},
        {"doctor", "", "checks Redis, the machine and the settings", 0, 0, 0, ctl_call},
        {"metrics", "", "prints numbers as Prometheus reads them", 0, 0, 0, ctl_call},
        {"why", "FLEET|WORKER", "tells a worker's story, or why a fleet's count", 1, 1, 0, ctl_why},
        {"logs", "FLEET|WORKER", "shows what workers have written", 1, 1, OPTION_FOLLOW | OPTION_LINES,
         ctl_logs},
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

const struct usage_option usage_options[] = {
        {'s', 0, "socket", " SOCKET", "the control socket; also SQMGR_SOCKET in the environment",
         "the control socket", NULL, 0},
        {USAGE_JSON, 0, "json", "", "prints JSON, one object on a line", "prints JSON", NULL, 0},
        {USAGE_TIMEOUT, 0, "timeout", " DURATION", "waits no longer (30s; with --wait: as long as it takes)",
         "waits no longer", NULL, 0},
        {USAGE_WAIT, OPTION_WAIT, "wait", "[=drained]",
         "restart: shows progress until the old workers are\n"
         "replaced and quiet; drained: until they are gone",
         "until the old workers are replaced", "until the old workers are gone", 0},
        {'n', OPTION_LINES, "lines", " N", "events, logs: no more than the last N of those so far",
         "no more than the last N", NULL, 0},
        {'f', OPTION_FOLLOW, "follow", "", "events, logs: goes on with those to come",
         "goes on with those to come", NULL, offsetof(struct ctl, follow)},
        {USAGE_EVERYWHERE, OPTION_EVERYWHERE, "everywhere", "",
         "restart, abort: on all hosts of the fleet's rollout_group", "on all hosts of the fleet's group",
         NULL, offsetof(struct ctl, everywhere)},
        {USAGE_RELEASE, OPTION_RELEASE, "release", " TEXT",
         "restart --everywhere: a host whose directory does not\n"
         "lead to a path that ends in TEXT restarts nothing",
         "how the path of the release ends", NULL, 0},
        {USAGE_WATCH, OPTION_WATCH, "watch", "",
         "status, rollout: shows it anew each second, until q\n"
         "is pressed",
         "shows it anew each second", NULL, offsetof(struct ctl, watch)},
        {USAGE_FORCE, OPTION_FORCE, "force", "", "stop: does not wait for running jobs",
         "does not wait for running jobs", NULL, offsetof(struct ctl, force)},
        {USAGE_READY, OPTION_READY, "ready", "", "ping: also asks whether each fleet has its workers",
         "asks whether each fleet has its workers", NULL, offsetof(struct ctl, ready)},
        {'h', 0, "help", "", "shows this text", "shows commands and options", NULL, 0},
        {'V', 0, "version", "", "shows the version of sqmgrctl", "shows the version", NULL, 0},
};
const size_t usage_n_options = ELEMENTSOF(usage_options);

const struct usage_option *usage_find(int key)
{
        for (size_t i = 0; i < ELEMENTSOF(usage_options); i++)
                if (usage_options[i].key == key)
                        return &usage_options[i];
        return NULL;
}

int usage_error(const struct command *command, const char *what)
{
        char options[128] = "";

        for (size_t i = 0; i < ELEMENTSOF(usage_options); i++)
                if (command->options & usage_options[i].command)
                        snprintf(options, sizeof(options), " [--%s%s]", usage_options[i].name,
                                 usage_options[i].value);
        return say_error(CTL_USAGE, "%s: usage: sqmgrctl %s%s%s%s", what, command->name,
                         command->arguments[0] != '\0' ? " " : "", command->arguments, options);
}
