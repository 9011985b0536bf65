/* SPDX-License-Identifier: MIT */
/* What sqmgr answers, as a terminal shows it. */
#include "ctl/reply.h"
#include "wire/withhold.h"
#include <stdio.h>
#include <string.h>

const char *reply_names(json_t *names, char text[static REPLY_NAMES_MAX])
{
        size_t i, n = json_array_size(names), length;
        json_t *name;

        snprintf(text, REPLY_NAMES_MAX, "there %s", n > 1 ? "are " : n == 1 ? "is " : "is none");
        json_array_foreach(names, i, name)
        {
                length = strlen(text);
                if (length + json_string_length(name) > REPLY_NAMES_MAX - sizeof(", '', ...")) {
                        snprintf(text + length, REPLY_NAMES_MAX - length, ", ...");
                        break;
                }
                snprintf(text + length, REPLY_NAMES_MAX - length, "%s'%s'", i > 0 ? ", " : "",
                         json_string_value(name));
        }
        return text;
}

char *reply_show_last_lines(char *text)
{
        char *at = strstr(text, WITHHOLD_LAST_LINES);

        if (!at)
                return text;
        at += strlen(WITHHOLD_LAST_LINES);
        at[-1] = '\n';
        while ((at = strchr(at, WITHHOLD_LAST_LINES_BAR)))
                *at = '\n';
        return text;
}

void reply_print_json(json_t *json)
{
        json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15));
        putchar('\n');
        fflush(stdout);
}
