/* SPDX-License-Identifier: MIT */
/* Finds the programs that sqmgr starts for itself. */
#include "io/own_program.h"
#include "base/macro.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

int own_program_open(const char *name, const char *installed)
{
        static const char *const places[] = {"", "../../"};
        char own[PATH_MAX], path[PATH_MAX + 64];
        int fd = -1;

        ssize_t n = readlink("/proc/self/exe", own, sizeof(own));
        const char *slash = n > 0 ? memrchr(own, '/', (size_t)n) : NULL;
        for (size_t i = 0; fd < 0 && slash && i < ELEMENTSOF(places); i++) {
                snprintf(path, sizeof(path), "%.*s/%s%s", (int)(slash - own), own, places[i], name);
                fd = open(path, O_PATH | O_CLOEXEC);
        }
        if (fd < 0)
                fd = open(installed, O_PATH | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}
