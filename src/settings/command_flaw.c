/* SPDX-License-Identifier: MIT */
/* Judges the command of a fleet; see the header. */
#include "settings/command_flaw.h"
#include "settings/settings.h"
#include "settings/traits.h"
#include <stdio.h>
#include <string.h>

/* Returns the end of these words in the text, which may have `=VALUE` after them; NULL: the text lacks them.
 */
static const char *find_words(const char *text, const char *words)
{
        size_t length = strlen(words);

        for (const char *at = text; (at = strstr(at, words)); at += length)
                if ((at == text || strchr(" \t'\"", at[-1])) && strchr(" \t'\"=", at[length]))
                        return at + length;
        return NULL;
}

/* A shell has several words in one argument. Options before the subcommand are those of another program, such
 * as Python. */
static bool command_has(const struct fleet_settings *fleet, const char *option)
{
        if (fleet->traits->command_passes_option)
                return fleet->traits->command_passes_option(fleet->argv, option);
        const char *subcommand = fleet->traits->subcommand;
        for (char *const *argv = fleet->argv; *argv; argv++) {
                const char *text = subcommand ? find_words(*argv, subcommand) : *argv;

                subcommand = text ? NULL : subcommand;
                if (text && find_words(text, option))
                        return true;
        }
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
                if (find_words(fleet->command, flaw->unless[i]) ||
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
