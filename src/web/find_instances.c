/* SPDX-License-Identifier: MIT */
/* Finds the instances of sqmgr that sqmgr-web shows. */
#include "web/find_instances.h"
#include "base/locate.h"
#include "base/socket_path.h"
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

struct finder {
        const char *runtime_dir;
        void (*found)(void *userdata, const char *name, const char *socket);
        void *userdata;
};

/* An enabled unit is shown even while it has no socket. */
static void find_enabled(const struct finder *finder, const char *unit)
{
        static const char template[] = "sqmgr@", type[] = ".service";
        size_t length = strlen(unit), around = strlen(template) + strlen(type);
        char name[NAME_MAX + 1], socket[PATH_MAX];

        if (length <= around || strncmp(unit, template, strlen(template)) != 0 ||
            strcmp(unit + length - strlen(type), type) != 0 ||
            !socket_path_is_instance(unit + strlen(template), length - around))
                return;
        snprintf(name, sizeof(name), "%.*s", (int)(length - around), unit + strlen(template));
        if (snprintf(socket, sizeof(socket), "%s/%s/control.sock", finder->runtime_dir, name) <
            (int)sizeof(socket))
                finder->found(finder->userdata, name, socket);
}

static void find_located(void *userdata, const struct located *instance)
{
        const struct finder *finder = userdata;

        finder->found(finder->userdata, instance->name, instance->socket);
}

void find_instances(const char *runtime_dir, const char *enabled_dir,
                    void (*found)(void *userdata, const char *name, const char *socket), void *userdata)
{
        struct finder finder = {.runtime_dir = runtime_dir, .found = found, .userdata = userdata};
        struct dirent **entries = NULL;
        int n = scandir(enabled_dir, &entries, NULL, alphasort);

        for (int i = 0; i < n; i++) {
                find_enabled(&finder, entries[i]->d_name);
                free(entries[i]);
        }
        free(entries);
        locate_instances(runtime_dir, NULL, find_located, &finder);
}
