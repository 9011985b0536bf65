/* SPDX-License-Identifier: MIT */
/* A default limit plus limits by name, as one value of the config file. */
#include "settings/limits.h"
#include "base/parse.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define WORD_MAX LIMITS_NAME_MAX

/* Splits off the next word: its name ("" for the default limit) and its value. Returns false at the end or if
 * the word is too long. */
static bool next_word(const char **text, char name[static WORD_MAX], char value[static WORD_MAX])
{
        char word[WORD_MAX];

        *text += strspn(*text, " \t");
        size_t length = strcspn(*text, " \t");
        if (length == 0 || length >= sizeof(word))
                return false;
        memcpy(word, *text, length);
        word[length] = '\0';
        *text += length;
        /* Use the last separator: a queue's name may contain one, a limit cannot. */
        char *separator = strrchr(word, '=');
        if (separator == word)
                separator = NULL;
        if (separator)
                *separator = '\0';
        snprintf(name, WORD_MAX, "%s", separator ? word : "");
        snprintf(value, WORD_MAX, "%s", separator ? separator + 1 : word);
        return true;
}

static int parse_limit(const char *value, enum limits_unit unit, uint64_t *ret)
{
        *ret = 0;
        if (strcasecmp(value, "none") == 0)
                return 0;
        if (unit == LIMITS_COUNT)
                return parse_unsigned(value, 1, INT64_MAX, ret);
        int r = parse_duration(value, ret);
        return r == 0 && *ret == 0 ? -ERANGE : r;
}

static bool is_named(const char *text, const char *name)
{
        char word_name[WORD_MAX], value[WORD_MAX];

        while (next_word(&text, word_name, value))
                if (strcmp(word_name, name) == 0)
                        return true;
        return false;
}

int limits_check(const char *text, enum limits_unit unit, char *why, size_t size)
{
        const char *hint = unit == LIMITS_COUNT ? "a whole number (1000), or NAME=NUMBER (low=50000)"
                                                : "a duration (90s), or NAME=DURATION (low=2h)";
        char name[WORD_MAX], value[WORD_MAX];
        unsigned n_all = 0;

        while (next_word(&text, name, value)) {
                uint64_t limit;

                n_all += name[0] == '\0';
                if (name[0] != '\0' && is_named(text, name)) {
                        snprintf(why, size, "'%.80s' is set twice; remove one of them", name);
                        return -EINVAL;
                }
                if (parse_limit(value, unit, &limit) < 0) {
                        snprintf(why, size, "'%.80s%s%.80s' must be none, %s", name,
                                 name[0] != '\0' ? "=" : "", value, hint);
                        return -EINVAL;
                }
        }
        if (text[0] != '\0')
                snprintf(why, size, "a word is too long; shorten it");
        else if (n_all > 1)
                snprintf(why, size, "only one limit can apply to all names; write the others as NAME=LIMIT");
        else
                return 0;
        return -EINVAL;
}

bool limits_any(const char *text, enum limits_unit unit)
{
        char name[WORD_MAX];

        return limits_find(text, unit, "") > 0 || limits_name(text, unit, 0, name);
}

bool limits_name(const char *text, enum limits_unit unit, size_t i, char name[static LIMITS_NAME_MAX])
{
        char value[WORD_MAX];
        uint64_t limit;

        while (next_word(&text, name, value))
                if (name[0] != '\0' && parse_limit(value, unit, &limit) == 0 && limit > 0 && i-- == 0)
                        return true;
        return false;
}

uint64_t limits_find(const char *text, enum limits_unit unit, const char *name)
{
        char word_name[WORD_MAX], value[WORD_MAX];
        uint64_t all = 0, limit;

        while (next_word(&text, word_name, value)) {
                if (parse_limit(value, unit, &limit) < 0)
                        continue;
                if (word_name[0] == '\0')
                        all = limit;
                else if (strcmp(word_name, name) == 0)
                        return limit;
        }
        return all;
}
