/* SPDX-License-Identifier: MIT */
/* The table of options, and how a command is used; see commands.h. */
#include "ctl/commands.h"
#include "ctl/say.h"
#include <stdio.h>

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
