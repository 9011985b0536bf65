/* SPDX-License-Identifier: MIT */
/* Loads the name service modules that getaddrinfo() uses. */
#pragma once

#include <stdbool.h>

/* Loads the modules in the line `hosts:` of the nsswitch.conf at path: inside the sandbox no code can be
 * mapped. Modules added to the file later are not used. A missing module is skipped, as by getaddrinfo().
 * *ret_needs_unix_sockets is true if a module may use a Unix socket, as systemd-resolved's does. Returns 0,
 * also if the file does not exist, or -errno. */
int name_services_load(const char *path, bool *ret_needs_unix_sockets);
