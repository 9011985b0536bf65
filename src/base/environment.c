/* SPDX-License-Identifier: MIT */
/* Builds the environment of a process: a list of NAME=VALUE entries with unique names. */
#include "base/environment.h"
#include "base/parse.h"
#include "base/text.h"

#include <ctype.h>
#include <string.h>

/* Takes entry, which is NAME=VALUE or NULL: memory is short. */
static int environment_add(struct environment *environment, char *entry)
{
        size_t i = 0, name_size = entry ? (size_t)(strchr(entry, '=') - entry) + 1 : 0;

        if (!entry)
                return -ENOMEM;
        while (i < environment->n && strncmp(environment->list[i], entry, name_size) != 0)
                i++;
        if (i < environment->n) {
                free(environment->list[i]);
        } else if (!ARRAY_RESIZE(environment->list, i + 2)) {
                free(entry);
                return -ENOMEM;
        }
        environment->list[i] = entry;
        if (i == environment->n)
                environment->list[++environment->n] = NULL;
        return 0;
}

int environment_set(struct environment *environment, const char *name, const char *value)
{
        return environment_add(environment, text_format("%s=%s", name, value));
}

int environment_put(struct environment *environment, const char *entry)
{
        return entry[0] == '=' || !strchr(entry, '=') ? 0 : environment_add(environment, strdup(entry));
}

/* A process that inherited one of these would speak for its parent or be taken for a worker. */
static bool entry_is_private(const char *entry)
{
        static const char *const prefixes[] = {
                "NOTIFY_SOCKET=",   "WATCHDOG_",        "LISTEN_",         "RUNTIME_DIRECTORY=",
                "STATE_DIRECTORY=", "CACHE_DIRECTORY=", "LOGS_DIRECTORY=", "CONFIGURATION_DIRECTORY=",
                "SQMGR_INSTANCE=",  "SQMGR_STATUS_DIR="};

        for (size_t i = 0; i < ELEMENTSOF(prefixes); i++)
                if (strncmp(entry, prefixes[i], strlen(prefixes[i])) == 0)
                        return true;
        return false;
}

int environment_put_inherited(struct environment *environment, char *const *list)
{
        int r = 0;

        for (; list && *list && r == 0; list++)
                if (!entry_is_private(*list))
                        r = environment_put(environment, *list);
        return r;
}

void environment_remove(struct environment *environment, const char *name)
{
        size_t length = strlen(name), kept = 0;

        for (size_t i = 0; i < environment->n; i++)
                if (strncmp(environment->list[i], name, length) == 0 && environment->list[i][length] == '=')
                        free(environment->list[i]);
                else
                        environment->list[kept++] = environment->list[i];
        environment->n = kept;
        if (environment->list)
                environment->list[kept] = NULL;
}

const char *environment_get(const struct environment *environment, const char *name)
{
        size_t length = strlen(name);

        for (size_t i = 0; i < environment->n; i++)
                if (strncmp(environment->list[i], name, length) == 0 && environment->list[i][length] == '=')
                        return environment->list[i] + length + 1;
        return NULL;
}

int environment_extend(struct environment *environment, const char *name, const char *value, char separator,
                       bool first)
{
        const char *before = environment_get(environment, name);

        if (!before || before[0] == '\0')
                return environment_set(environment, name, value);
        return environment_add(environment, text_format("%s=%s%c%s", name, first ? value : before, separator,
                                                        first ? before : value));
}

const char *environment_find(const char *text, size_t length, const char *name)
{
        size_t name_length = strlen(name);

        for (const char *at = text; at < text + length; at += strlen(at) + 1)
                if (strncmp(at, name, name_length) == 0 && at[name_length] == '=')
                        return at + name_length + 1;
        return NULL;
}

static char *trim(char *text)
{
        size_t length = strlen(text);

        while (length > 0 && isspace((unsigned char)text[length - 1]))
                text[--length] = '\0';
        return text + strspn(text, " \t");
}

/* Removes the quotes from value, in place. Returns 0, or -EINVAL with an error message. */
static int value_unquote(char *value, const char **ret_error)
{
        char quote = value[0];
        char *to = value, *from = value + 1;

        if (quote != '\'' && quote != '"')
                return 0;
        for (; *from && *from != quote; from++) {
                if (quote == '"' && *from == '\\' && from[1] && strchr("\"\\$`", from[1]))
                        from++;
                *to++ = *from;
        }
        if (*from != quote)
                return parse_refuse(ret_error, "the closing quote is missing");
        if (from[1] != '\0')
                return parse_refuse(ret_error, "text follows the closing quote");
        *to = '\0';
        return 0;
}

/* Returns 0, -ENOMEM, or -EINVAL with an error message. Modifies line. */
static int environment_put_line(struct environment *environment, char *line, const char **ret_error)
{
        char *name = trim(line);
        if (name[0] == '\0' || name[0] == '#')
                return 0;

        /* Files that a shell also reads have 'export' before the name. */
        if (strncmp(name, "export", strlen("export")) == 0 && isblank((unsigned char)name[strlen("export")]))
                name = trim(name + strlen("export"));

        size_t length = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
        if (length == 0 || isdigit((unsigned char)name[0]) || name[length] != '=')
                return parse_refuse(ret_error, "the line is not NAME=VALUE");
        name[length] = '\0';

        char *value = trim(name + length + 1);
        int r = value_unquote(value, ret_error);
        return r < 0 ? r : environment_set(environment, name, value);
}

int environment_put_lines(struct environment *environment, const char *text, size_t length,
                          unsigned *ret_line, const char **ret_error)
{
        const char *end = text + length;
        int r = 0;

        for (*ret_line = 0; text < end && r == 0; text++) {
                const char *newline = memchr(text, '\n', (size_t)(end - text)) ?: end;
                _cleanup_free_ char *line = strndup(text, (size_t)(newline - text));

                ++*ret_line;
                if (!line)
                        r = -ENOMEM;
                else if (strlen(line) < (size_t)(newline - text))
                        r = parse_refuse(ret_error, "the line contains a NUL byte");
                else
                        r = environment_put_line(environment, line, ret_error);
                text = newline;
        }
        return r;
}

void environment_done(struct environment *environment)
{
        for (size_t i = 0; i < environment->n; i++)
                free(environment->list[i]);
        free(environment->list);
        *environment = (struct environment){0};
}
