/* SPDX-License-Identifier: MIT */
/* Looks up names of users and groups. */
#include "io/users.h"
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

/* A user with a longer line is not found. */
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

void users_name_or_number(uid_t uid, char *name, size_t size)
{
        users_name(uid, name, size);
        if (name[0] == '\0')
                snprintf(name, size, "%u", (unsigned)uid);
}

bool users_group(const char *name, gid_t *ret)
{
        FILE *file = fopen("/etc/group", "re");
        const struct group *group;
        bool found = false;

        /* fgetgrent() takes lines of any length: groups can have many members. */
        while (file && !found && (group = fgetgrent(file))) {
                found = strcmp(group->gr_name, name) == 0;
                if (found)
                        *ret = group->gr_gid;
        }
        if (file)
                (void)fclose(file);
        return found;
}

/* The kernel's default of /proc/sys/kernel/overflowuid and overflowgid. */
#define OVERFLOW_ID 65534U
/* The initial namespace maps all numbers, each to itself. */
#define ALL_IDS 4294967295U

bool users_is_of_unmapped(unsigned id)
{
        unsigned inside = 0, outside = 0, n = 0;
        FILE *file = id == OVERFLOW_ID ? fopen("/proc/self/uid_map", "re") : NULL;

        if (!file)
                return false;
        bool is_read = fscanf(file, "%u %u %u", &inside, &outside, &n) == 3;
        (void)fclose(file);
        return !is_read || n != ALL_IDS;
}
