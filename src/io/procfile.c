/* SPDX-License-Identifier: MIT */
/* Parses the kernel's text files of keys and values. */
#include "io/procfile.h"
#include "base/fd.h"
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
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

int procfile_last_pid(const char *text, const char *key, pid_t *ret)
{
        const char *value = procfile_value(text, key);
        pid_t last = 0;

        while (value && *value != '\n' && *value != '\0') {
                char *end;
                long pid = isdigit((unsigned char)*value) ? strtol(value, &end, 10) : 0;

                if (pid <= 0 || pid > INT_MAX)
                        return -ENODATA;
                last = (pid_t)pid;
                value = end + strspn(end, " \t");
        }
        if (last == 0)
                return -ENODATA;
        *ret = last;
        return 0;
}

int procfile_read_number(int fd, const char *key, uint64_t *ret)
{
        char text[16384];
        ssize_t length = fd_read_start(fd, text, sizeof(text));

        return length < 0 ? (int)length : procfile_number(text, key, 10, ret);
}

/* A line is `NUMBER:CONTROLLERS:PATH`; version 2 has `0::PATH`. */
static bool line_is_of(const char *line, const char *controllers, const char *path, const char *controller)
{
        char names[256], name[64];

        if (!controller)
                return strncmp(line, "0::", 3) == 0;
        snprintf(names, sizeof(names), ",%.*s,", (int)(path - controllers - 1), controllers);
        snprintf(name, sizeof(name), ",%s,", controller);
        return strstr(names, name);
}

int procfile_cgroup(const char *proc_root, const char *controller, char *path, size_t size)
{
        char file[PATH_MAX], text[4096];

        if ((size_t)snprintf(file, sizeof(file), "%s/self/cgroup", proc_root) >= sizeof(file))
                return -ENAMETOOLONG;
        ssize_t n = fd_read_file(AT_FDCWD, file, text, sizeof(text));
        if (n < 0)
                return (int)n;
        for (const char *line = text; line; line = strchr(line, '\n')) {
                line += *line == '\n';
                const char *controllers = strchr(line, ':');
                const char *group = controllers ? strchr(controllers + 1, ':') : NULL;
                if (!group)
                        break;
                if (!line_is_of(line, controllers + 1, group + 1, controller))
                        continue;
                size_t length = strcspn(++group, "\n");
                if (memmem(group, length, "/..", 3))
                        length = 0;
                return snprintf(path, size, "%.*s", (int)length, group) < (int)size ? 0 : -ENAMETOOLONG;
        }
        return -ENOENT;
}
