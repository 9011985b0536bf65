/* SPDX-License-Identifier: MIT */
/* The table of options and the usage of a command; see commands.h. */
#include "base/text.h"
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/output.h"
#include <getopt.h>
#include <stdio.h>

const struct usage_option usage_options[] = {
        {'\0', OPTION_WAIT, "wait", "[=drained]",
         "shows progress until the old workers are replaced and quiet; drained: until they are gone",
         "shows progress until the old workers are gone", 0},
        {'\0', OPTION_RESUME, "resume", "", "also quieted fleets, which then accept jobs", NULL,
         offsetof(struct ctl, resume)},
        {'\0', OPTION_RELEASE, "release", " TEXT",
         "restarts nothing unless the directory of each fleet leads to a path that ends in TEXT", NULL, 0},
        {'\0', OPTION_WATCH, "watch", "", "updates each second, until q is pressed", NULL,
         offsetof(struct ctl, watch)},
        {'\0', OPTION_FORCE, "force", "", "does not wait for running jobs", NULL,
         offsetof(struct ctl, force)},
        {'n', OPTION_LINES, "lines", " N", "at most the last N so far", NULL, 0},
        {'f', OPTION_FOLLOW, "follow", "", "continues with new ones", NULL, offsetof(struct ctl, follow)},
        {'\0', OPTION_PREVIOUS, "previous", "", "of earlier processes of a worker", NULL,
         offsetof(struct ctl, previous)},
        {'\0', OPTION_READY, "ready", "", "also checks that each fleet has its workers", NULL,
         offsetof(struct ctl, ready)},
        {'\0', OPTION_JSON, "json", "", "prints JSON, one object on a line", NULL,
         offsetof(struct ctl, json)},
        {'\0', OPTION_TIMEOUT, "timeout", " DURATION", "maximum wait (30s; with --wait: unlimited)", NULL, 0},
        {'i', OPTION_INSTANCE, "instance", " NAME", "connects to sqmgr@NAME.service", NULL, 0},
        {'s', OPTION_SOCKET, "socket", " SOCKET", "the control socket; also SQMGR_SOCKET in the environment",
         NULL, 0},
        {'h', OPTION_HELP, "help", "", "shows this text", NULL, 0},
        {'V', OPTION_VERSION, "version", "", "shows the version of sqmgrctl", NULL, 0},
};
const size_t usage_n_options = ELEMENTSOF(usage_options);

static int has_argument(const char *value)
{
        return value[0] == '\0' ? no_argument : value[0] == '[' ? optional_argument : required_argument;
}

const struct usage_option *usage_next_option(struct ctl *ctl, int argc, char **argv, int *ret)
{
        struct option known[ELEMENTSOF(usage_options) + 1] = {0};

        for (size_t i = 0; i < ELEMENTSOF(usage_options); i++)
                known[i] = (struct option){usage_options[i].name, has_argument(usage_options[i].value), NULL,
                                           (int)usage_options[i].bit};
        *ret = getopt_long(argc, argv, ":s:i:fn:hV", known, NULL);
        FOREACH_ELEMENT(option, usage_options) {
                if (*ret != option->letter && *ret != (int)option->bit)
                        continue;
                ctl->options |= option->bit;
                if (option->flag > 0)
                        *(bool *)((char *)ctl + option->flag) = true;
                return option;
        }
        return NULL;
}

int usage_error(const struct command *command, const char *what)
{
        char options[256] = "";

        for (size_t i = 0; i < ELEMENTSOF(usage_options); i++)
                if (command->options & ~(unsigned)OPTION_JSON & usage_options[i].bit)
                        text_append(options, sizeof(options), " [--%s%s]", usage_options[i].name,
                                    usage_options[i].value);
        return output_error(CTL_USAGE, "%s: usage: sqmgrctl %s%s%s%s", what, command->name,
                            command->arguments[0] != '\0' ? " " : "", command->arguments, options);
}
