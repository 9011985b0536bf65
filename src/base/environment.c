/* SPDX-License-Identifier: MIT */
/* Builds the environment of a process: a list of NAME=VALUE entries with unique names. */
#include "base/environment.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* The list grows by this many entries. */
#define LIST_STEP  64
#define TEXT_BYTES ((size_t)4096)

/* Entries are packed together and never freed one by one. */
struct environment_text {
        struct environment_text *next;
        size_t size, used;
        char bytes[];
};

static char *environment_reserve(struct environment *environment, size_t size)
{
        struct environment_text *text = environment->texts;

        if (!text || size > text->size - text->used) {
                size_t bytes = MAX(size, TEXT_BYTES);

                text = malloc(sizeof(*text) + bytes);
                if (!text)
                        return NULL;
                *text = (struct environment_text){.next = environment->texts, .size = bytes};
                environment->texts = text;
        }
        text->used += size;
        return text->bytes + text->used - size;
}

static int environment_add(struct environment *environment, char *entry)
{
        size_t name_length = (size_t)(strchr(entry, '=') - entry);

        for (size_t i = 0; i < environment->n; i++)
                if (strncmp(environment->list[i], entry, name_length + 1) == 0) {
                        environment->list[i] = entry;
                        return 0;
                }

        if (environment->n % LIST_STEP == 0) {
                char **larger =
                        reallocarray(environment->list, environment->n + LIST_STEP + 1, sizeof(char *));
                if (!larger)
                        return -ENOMEM;
                environment->list = larger;
        }
        environment->list[environment->n++] = entry;
        environment->list[environment->n] = NULL;
        return 0;
}

int environment_set(struct environment *environment, const char *name, const char *value)
{
        size_t size = strlen(name) + strlen(value) + 2;
        char *entry = environment_reserve(environment, size);

        if (!entry)
                return -ENOMEM;
        snprintf(entry, size, "%s=%s", name, value);
        return environment_add(environment, entry);
}

int environment_put(struct environment *environment, const char *entry)
{
        if (entry[0] == '=' || !strchr(entry, '='))
                return 0;

        size_t size = strlen(entry) + 1;
        char *copy = environment_reserve(environment, size);
        if (!copy)
                return -ENOMEM;
        memcpy(copy, entry, size);
        return environment_add(environment, copy);
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
                if (strncmp(environment->list[i], name, length) != 0 || environment->list[i][length] != '=')
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
        _cleanup_free_ char *all = NULL;

        if (!before || before[0] == '\0')
                return environment_set(environment, name, value);
        if (asprintf(&all, "%s%c%s", first ? value : before, separator, first ? before : value) < 0) {
                all = NULL;
                return -ENOMEM;
        }
        return environment_set(environment, name, all);
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

/* Removes the quotes from value, in place. Returns an error message or NULL. */
static const char *value_unquote(char *value)
{
        char quote = value[0];
        char *to = value, *from = value + 1;

        if (quote != '\'' && quote != '"')
                return NULL;
        for (; *from && *from != quote; from++) {
                if (quote == '"' && *from == '\\' && from[1] && strchr("\"\\$`", from[1]))
                        from++;
                *to++ = *from;
        }
        if (*from != quote)
                return "the closing quote is missing";
        if (from[1] != '\0')
                return "text follows the closing quote";
        *to = '\0';
        return NULL;
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
        if (length == 0 || isdigit((unsigned char)name[0]) || name[length] != '=') {
                *ret_error = "the line is not NAME=VALUE";
                return -EINVAL;
        }
        name[length] = '\0';

        char *value = trim(name + length + 1);
        const char *error = value_unquote(value);
        if (error) {
                *ret_error = error;
                return -EINVAL;
        }
        return environment_set(environment, name, value);
}

int environment_put_lines(struct environment *environment, const char *text, size_t length,
                          unsigned *ret_line, const char **ret_error)
{
        const char *end = text + length;
        const char *next;

        for (unsigned number = 1; text < end; text = next, number++) {
                const char *newline = memchr(text, '\n', (size_t)(end - text));
                size_t line_length = (size_t)((newline ? newline : end) - text);
                next = newline ? newline + 1 : end;

                if (memchr(text, '\0', line_length)) {
                        *ret_line = number;
                        *ret_error = "the line contains a NUL byte";
                        return -EINVAL;
                }
                _cleanup_free_ char *line = strndup(text, line_length);
                if (!line)
                        return -ENOMEM;
                int r = environment_put_line(environment, line, ret_error);
                if (r == -EINVAL)
                        *ret_line = number;
                if (r < 0)
                        return r;
        }
        return 0;
}

void environment_done(struct environment *environment)
{
        for (struct environment_text *text = environment->texts, *next; text; text = next) {
                next = text->next;
                free(text);
        }
        free(environment->list);
        *environment = (struct environment){0};
}
