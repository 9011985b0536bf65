/* SPDX-License-Identifier: MIT */
/* Name services of the machine, which getaddrinfo() asks. */
#pragma once

#include <stdbool.h>

/* Loads the modules that the line `hosts:` of nsswitch.conf at path names: in the sandbox no code can be
 * mapped. What is added to the file later is not asked. A module that is missing is left out, as
 * getaddrinfo() does it. *ret_needs_unix_sockets is true if a module may reach its service through a Unix
 * socket, as that of systemd-resolved does. A file that does not exist names none. Returns 0 or -errno. */
int name_services_load(const char *path, bool *ret_needs_unix_sockets);
