/* SPDX-License-Identifier: MIT */
/* Where the control socket is. */
#include "base/socket_path.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NAME "control.sock"

int socket_path_default(const char *service_dir, const char *runtime_dir, char **ret)
{
        char *path = NULL;
        int n = 0;

        if (service_dir && service_dir[0] == '/')
                n = asprintf(&path, "%.*s/" NAME, (int)strcspn(service_dir, ":"), service_dir);
        else if (runtime_dir && runtime_dir[0] == '/')
                n = asprintf(&path, "%s/sqmgr/" NAME, runtime_dir);
        if (n < 0)
                return -ENOMEM;
        *ret = path;
        return 0;
}
