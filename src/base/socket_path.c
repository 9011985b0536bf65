/* SPDX-License-Identifier: MIT */
/* The default path of the control socket, and the paths derived from a socket's path. */
#include "base/socket_path.h"
#include "base/text.h"
#include <string.h>

#define SUFFIX ".sock"
#define NAME   "control" SUFFIX
/* The runtime directory of the user manager's unit, below XDG_RUNTIME_DIR. */
#define USER_DIR "sqmgr"

int socket_path_default(const char *service_dir, const char *runtime_dir, const char *user, char **ret)
{
        *ret = NULL;
        if (service_dir && service_dir[0] == '/')
                *ret = text_format("%.*s/" NAME, (int)strcspn(service_dir, ":"), service_dir);
        else if (runtime_dir && runtime_dir[0] == '/')
                *ret = text_format("%s/" USER_DIR "/" NAME, runtime_dir);
        else if (user)
                *ret = text_format(SOCKET_PATH_SYSTEM "/%s/" NAME, user);
        else
                return 0;
        return *ret ? 0 : -ENOMEM;
}

bool socket_path_is_instance(const char *name, size_t length)
{
        static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:_.\\-";

        return length > 0 && name[0] != '.' && strspn(name, allowed) >= length;
}

int socket_path_instance(const char *name, char **ret)
{
        const char *at = strchr(name, '@'), *instance = at ? at + 1 : name;

        if ((at && strncmp(name, "sqmgr@", strlen("sqmgr@")) != 0) ||
            !socket_path_is_instance(instance, strlen(instance)))
                return -EINVAL;
        *ret = text_format(SOCKET_PATH_SYSTEM "/%s/" NAME, instance);
        return *ret ? 0 : -ENOMEM;
}

char *socket_path_status(const char *socket)
{
        const char *slash = strrchr(socket, '/'), *name = slash ? slash + 1 : socket;
        size_t length = strlen(name);

        if (length > strlen(SUFFIX) && strcmp(name + length - strlen(SUFFIX), SUFFIX) == 0)
                length -= strlen(SUFFIX);
        if (strcmp(name, NAME) == 0)
                length = 0;
        return text_format("%.*s%.*s%sstatus", (int)(name - socket), socket, (int)length, name,
                           length > 0 ? "." : "");
}
