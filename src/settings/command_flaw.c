/* SPDX-License-Identifier: MIT */
/* Judges the command of a fleet; see the header. */
#include "settings/command_flaw.h"
#include "settings/settings.h"
#include "settings/traits.h"
#include <stdio.h>
#include <string.h>

/* True if the text has these words, with or without `=VALUE` after them. */
static bool has_words(const char *text, const char *words)
{
        size_t length = strlen(words);

        for (const char *at = text; (at = strstr(at, words)); at += length)
                if ((at == text || strchr(" \t'\"", at[-1])) && strchr(" \t'\"=", at[length]))
                        return true;
        return false;
}

/* A shell has several words in one argument. */
static bool command_has(const struct fleet_settings *fleet, const char *option)
{
        if (fleet->traits->command_passes_option)
                return fleet->traits->command_passes_option(fleet->argv, option);
        for (char *const *argv = fleet->argv; *argv; argv++)
                if (has_words(*argv, option))
                        return true;
        return false;
}

static bool environment_has(char *const *list, const char *entry)
{
        for (; list && *list; list++)
                if (strcmp(*list, entry) == 0)
                        return true;
        return false;
}

bool command_has_flaw(const struct fleet_settings *fleet, const struct command_flaw *flaw)
{
        for (size_t i = 0; i < ELEMENTSOF(flaw->options) && flaw->options[i]; i++)
                if (!command_has(fleet, flaw->options[i]))
                        return false;
        for (size_t i = 0; i < ELEMENTSOF(flaw->unless) && flaw->unless[i]; i++)
                if (has_words(fleet->command, flaw->unless[i]) ||
                    environment_has(fleet->environment_list, flaw->unless[i]))
                        return false;
        return true;
}

const char *command_flaw_text(const struct command_flaw *flaw, char text[static COMMAND_FLAW_MAX])
{
        const char *const *options = flaw->options;

        snprintf(text, COMMAND_FLAW_MAX, "'command'%s%s%s%s%s", options[0] ? " has " : " ", options[0] ?: "",
                 options[0] && options[1] ? " " : "", (options[0] ? options[1] : NULL) ?: "", flaw->text);
        return text;
}
