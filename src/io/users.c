/* SPDX-License-Identifier: MIT */
/* The names of users. */
#include "io/users.h"
#include <pwd.h>
#include <stdio.h>
#include <string.h>

/* A line that is longer is no user's. */
#define LINE_MAX_BYTES 4096

void users_name(uid_t uid, char *name, size_t size)
{
        char line[LINE_MAX_BYTES];
        struct passwd user, *found;
        FILE *file = fopen("/etc/passwd", "re");

        name[0] = '\0';
        if (!file)
                return;
        while (fgetpwent_r(file, &user, line, sizeof(line), &found) == 0)
                if (found->pw_uid == uid) {
                        if (strlen(found->pw_name) < size)
                                snprintf(name, size, "%s", found->pw_name);
                        break;
                }
        (void)fclose(file);
}
