/* SPDX-License-Identifier: MIT */
/* Loads the modules of the name service switch; see the header. */
#include "reader/name_services.h"
#include "base/macro.h"
#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static bool is_listed(const char *name, const char *const *list)
{
        while (*list && strcmp(*list, name) != 0)
                list++;
        return *list;
}

static bool is_name(const char *word)
{
        return word[strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_-")] == '\0';
}

/* Returns true if the service may need Unix sockets. */
static bool load_service(const char *name)
{
        /* Part of the C library. */
        static const char *const built_in[] = {"files", "dns", NULL};
        static const char *const without_sockets[] = {"db", "myhostname", NULL};
        char file[64];

        if (is_listed(name, built_in) || !is_name(name))
                return false;
        /* Stays loaded: getaddrinfo() finds it by this name. */
        if (snprintf(file, sizeof(file), "libnss_%s.so.2", name) < (int)sizeof(file))
                (void)dlopen(file, RTLD_NOW);
        return !is_listed(name, without_sockets);
}

/* Skips what stands in brackets, as `[NOTFOUND=return]`. Modifies the text. */
static bool load_services(char *text)
{
        bool needs_unix_sockets = false;
        char *rest = text, *word;

        while ((word = strsep(&rest, " \t\n"))) {
                if (*word == '[') {
                        while (word && !strchr(word, ']'))
                                word = strsep(&rest, " \t\n");
                        continue;
                }
                if (*word != '\0' && load_service(word))
                        needs_unix_sockets = true;
        }
        return needs_unix_sockets;
}

int name_services_load(const char *path, bool *ret_needs_unix_sockets)
{
        static const char database[] = "hosts:";
        _cleanup_free_ char *line = NULL;
        size_t size = 0;
        FILE *file = fopen(path, "re");

        *ret_needs_unix_sockets = false;
        if (!file)
                return errno == ENOENT ? 0 : -errno;
        while (getline(&line, &size, file) >= 0) {
                line[strcspn(line, "#")] = '\0';
                char *text = line + strspn(line, " \t");
                if (strncmp(text, database, strlen(database)) == 0)
                        *ret_needs_unix_sockets |= load_services(text + strlen(database));
        }
        int r = ferror(file) ? -EIO : 0;
        (void)fclose(file);
        return r;
}
