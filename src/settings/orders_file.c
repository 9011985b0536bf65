/* SPDX-License-Identifier: MIT */
/* The path of the orders; see the header. */
#include "settings/orders_file.h"
#include "settings/settings.h"
#include "settings/value.h"
#include <stdio.h>
#include <string.h>

static bool is_absolute(const char *path)
{
        return path && path[0] == '/';
}

/* Finds the directory of the file: of the unit, or of the user whose sqmgr has its default socket. Returns 0
 * with *ret owned by the caller, NULL if there is none, or -ENOMEM. */
static int find_folder(const struct settings_surroundings *around, bool own_paths, char **ret)
{
        int n = 0;

        *ret = NULL;
        if (is_absolute(around->state_dir))
                n = asprintf(ret, "%.*s", (int)strcspn(around->state_dir, ":"), around->state_dir);
        else if (own_paths)
                return 0;
        else if (is_absolute(around->state_home))
                n = asprintf(ret, "%s/sqmgr", around->state_home);
        else if (is_absolute(around->home) && around->home[1] != '\0')
                n = asprintf(ret, "%s/.local/state/sqmgr", around->home);
        if (n < 0)
                *ret = NULL;
        return n < 0 ? -ENOMEM : 0;
}

int orders_file_find(struct settings *settings, const struct settings_surroundings *around, bool own_paths)
{
        _cleanup_free_ char *folder = NULL;

        if (find_folder(around, own_paths, &folder) < 0)
                return -ENOMEM;
        settings->orders_make_folder = folder;
        if (asprintf(&settings->orders_file, "%s%sorders", folder ?: settings->state_file,
                     folder ? "/" : ".") < 0)
                settings->orders_file = NULL;
        return settings->orders_file ? 0 : -ENOMEM;
}
