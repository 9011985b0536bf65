/* SPDX-License-Identifier: MIT */
/* Finds the instances of sqmgr on this machine. */
#include "web/find_instances.h"
#include "base/socket_path.h"
#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct finder {
        const char *runtime_dir;
        void (*found)(void *userdata, const char *path);
        void *userdata;
};

/* Calls found() with the read socket of an instance. name: length bytes; length 0: the instance without a
 * name. may_be_missing: even if there is no socket. */
static void find_socket(const struct finder *finder, const char *name, size_t length, bool may_be_missing)
{
        char path[PATH_MAX];
        struct stat status;
        int n = snprintf(path, sizeof(path), "%s%s%.*s/read.sock", finder->runtime_dir, length > 0 ? "/" : "",
                         (int)length, name);

        if (n < (int)sizeof(path) &&
            (may_be_missing || (lstat(path, &status) == 0 && S_ISSOCK(status.st_mode))))
                finder->found(finder->userdata, path);
}

static void find_enabled(const struct finder *finder, const char *unit)
{
        static const char template[] = "sqmgr@", type[] = ".service";
        size_t length = strlen(unit), around = strlen(template) + strlen(type);

        if (strcmp(unit, "sqmgr.service") == 0)
                find_socket(finder, "", 0, true);
        if (length <= around || strncmp(unit, template, strlen(template)) != 0 ||
            strcmp(unit + length - strlen(type), type) != 0)
                return;
        if (socket_path_is_instance(unit + strlen(template), length - around))
                find_socket(finder, unit + strlen(template), length - around, true);
}

static void find_existing(const struct finder *finder, const char *name)
{
        if (socket_path_is_instance(name, strlen(name)))
                find_socket(finder, name, strlen(name), false);
}

static void find_in(const struct finder *finder, const char *directory,
                    void (*find)(const struct finder *finder, const char *name))
{
        struct dirent **entries = NULL;
        int n = scandir(directory, &entries, NULL, alphasort);

        for (int i = 0; i < n; i++) {
                find(finder, entries[i]->d_name);
                free(entries[i]);
        }
        free(entries);
}

void find_instances(const char *runtime_dir, const char *enabled_dir,
                    void (*found)(void *userdata, const char *path), void *userdata)
{
        const struct finder finder = {.runtime_dir = runtime_dir, .found = found, .userdata = userdata};

        find_socket(&finder, "", 0, false);
        find_in(&finder, enabled_dir, find_enabled);
        find_in(&finder, runtime_dir, find_existing);
}
