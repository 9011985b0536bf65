/* SPDX-License-Identifier: MIT */
/* The sandbox of sqmgr-reader: what the process could still do if a server of Redis took it over. sqmgr
 * sets the user, the environment and the descriptors when it starts the process.
 *
 * A build with the address sanitizer has neither limits nor a filter, and both functions return 0: the
 * sanitizer reserves terabytes of addresses, and its calls are not on the list. */
#pragma once

#include <stdbool.h>

/* True for a build with the address sanitizer. */
bool sandbox_is_off(void);

/* Limits memory, descriptors and tasks, and keeps other processes of the same user from reading this one.
 * Call it first, before anything is received. Returns 0 or -errno. */
int sandbox_limits(void);

/* Takes away all but what a connection to Redis needs: files of /etc and /usr to read, sockets of the
 * network, and threads. Everything else is refused, and what only an attacker would call ends the process
 * with SIGSYS. There is no way back. Call it while the process has one thread, after certificates are loaded;
 * a memfd cannot be written afterwards. Returns 0, -EBUSY if there are more threads, or another -errno if the
 * kernel has no seccomp, or the filter could not be installed: do not talk to a server then. */
int sandbox_enter(void);
