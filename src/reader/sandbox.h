/* SPDX-License-Identifier: MIT */
/* The sandbox of a reader program, in case its server takes over the process. sqmgr sets the environment
 * and the descriptors when it starts the process.
 *
 * In a build with the address sanitizer both functions do nothing and return 0: the sanitizer reserves
 * terabytes of addresses, and makes system calls that the filter refuses. */
#pragma once

#include "reader/sandbox_needs.h"

/* True for a build with the address sanitizer. */
bool sandbox_is_off(void);

/* Limits memory and descriptors, gives up new privileges, and keeps other processes of the same user
 * from reading this one. Call it first, before anything is received. Returns 0 or -errno. */
int sandbox_limits(void);

/* Permits only reading files of /etc and /usr, threads, and what needs lists. Other calls are refused; calls
 * that only an attacker would make end the process with SIGSYS. Cannot be undone. Call after
 * sandbox_limits(), while the process has one thread, and after certificates are loaded; a memfd cannot be
 * written afterwards.
 *
 * Returns 0, -EBUSY if there are more threads, or another -errno if the kernel has no seccomp or the filter
 * could not be installed. After an error, do not talk to a server. */
int sandbox_enter(const struct sandbox_needs *needs);
