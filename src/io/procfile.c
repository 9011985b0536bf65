/* SPDX-License-Identifier: MIT */
/* The kernel's text files in which each line is a key and a value. */
#include "io/procfile.h"

#include <ctype.h>
#include <string.h>

const char *procfile_value(const char *text, const char *key)
{
        size_t length = strlen(key);

        for (const char *line = text; line; line = strchr(line, '\n')) {
                line += *line == '\n';
                if (strncmp(line, key, length) == 0)
                        return line + length + strspn(line + length, " \t");
        }
        return NULL;
}

int procfile_number(const char *text, const char *key, int base, uint64_t *ret)
{
        const char *value = procfile_value(text, key);

        if (!value || !isxdigit((unsigned char)value[0]))
                return -ENODATA;

        char *end;
        errno = 0;
        unsigned long long number = strtoull(value, &end, base);
        if (errno != 0 || end == value)
                return -ENODATA;
        *ret = number;
        return 0;
}
