/* SPDX-License-Identifier: MIT */
/* Searches a command; see the header. */
#include "privileged/find_command.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns 0 or a positive errno, as execve() would if the content of the file is valid. */
static int may_execute(const char *path)
{
        struct stat st;

        if (stat(path, &st) < 0 || access(path, X_OK) < 0)
                return errno;
        return S_ISREG(st.st_mode) ? 0 : EACCES;
}

int find_command(const char *path, const char *name)
{
        char file[PATH_MAX];
        int error = ENOENT;

        if (strchr(name, '/'))
                return may_execute(name);
        for (const char *at = path ? path : FIND_COMMAND_PATH, *end; at; at = *end != '\0' ? end + 1 : NULL) {
                end = strchrnul(at, ':');
                int length = snprintf(file, sizeof(file), "%.*s%s%s", (int)(end - at), at,
                                      end > at ? "/" : "", name);
                if (length < 0 || (size_t)length >= sizeof(file))
                        continue;
                int r = may_execute(file);
                if (r == 0)
                        return 0;
                if (r == EACCES)
                        error = r;
        }
        return error;
}
