/* SPDX-License-Identifier: MIT */
/* Restricts by seccomp which system calls the reader can make. */
#pragma once

#include "reader/sandbox_needs.h"

/* Installs the filter. A call that is not on the list fails with ENOSYS. The C library then falls back, as on
 * an older kernel, so an updated library does not end the reader. A call that no library makes here ends the
 * process with SIGSYS, and the kernel's audit log names the call. Returns 0 or -errno. */
int syscall_filter_install(const struct sandbox_needs *needs);
