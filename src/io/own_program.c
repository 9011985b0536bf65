/* SPDX-License-Identifier: MIT */
/* Finds the programs that sqmgr starts for itself. */
#include "io/own_program.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PLACES_MAX 2

/* Returns how many paths there are: name in the folder of our own program, and two folders above. */
static size_t places(const char *name, char paths[static PLACES_MAX][PATH_MAX + 64])
{
        static const char *const above[PLACES_MAX] = {"", "../../"};
        char own[PATH_MAX];

        ssize_t n = readlink("/proc/self/exe", own, sizeof(own));
        const char *slash = n > 0 ? memrchr(own, '/', (size_t)n) : NULL;
        for (size_t i = 0; slash && i < PLACES_MAX; i++)
                snprintf(paths[i], sizeof(paths[i]), "%.*s/%s%s", (int)(slash - own), own, above[i], name);
        return slash ? PLACES_MAX : 0;
}

int own_program_open(const char *name, const char *installed)
{
        char paths[PLACES_MAX][PATH_MAX + 64];
        size_t n = places(name, paths);
        int fd = -1;

        for (size_t i = 0; fd < 0 && i < n; i++)
                fd = open(paths[i], O_PATH | O_CLOEXEC);
        if (fd < 0)
                fd = open(installed, O_PATH | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

char *own_program_path(const char *installed, const char *name)
{
        char paths[PLACES_MAX][PATH_MAX + 64];
        size_t n = access(installed, F_OK) == 0 ? 0 : places(name, paths);

        for (size_t i = 0; i < n; i++)
                if (access(paths[i], F_OK) == 0)
                        return strdup(paths[i]);
        return strdup(installed);
}
