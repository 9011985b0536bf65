/* SPDX-License-Identifier: MIT */
/* Restricts by seccomp which system calls the reader can make. */
#pragma once

#include <stdbool.h>

/* Installs the filter. A call that is not on the list fails with ENOSYS, for which the C library has another
 * way, as on an older kernel: so a library that is updated does not end the reader. What no library calls
 * here ends the process with SIGSYS, and the kernel's audit log names it. unix_sockets: whether new sockets
 * may be Unix sockets. Returns 0 or -errno. */
int syscall_filter_install(bool unix_sockets);
