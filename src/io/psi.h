/* SPDX-License-Identifier: MIT */
/* The kernel's pressure stall information on memory (its Documentation/accounting/psi.rst): of our control
 * group where that has its own, else of the whole machine. */
#pragma once

#include "base/macro.h"
#include <sys/types.h>

struct psi;

/* percent: the kernel tells by the descriptor once more of any two seconds is lost; where it does not allow
 * that, the file is only read. NULL stands for /proc and /sys/fs/cgroup. Returns 0 with *ret to be freed by
 * psi_close(), or -errno: -ENOENT where the kernel was built without, -EOPNOTSUPP where it was started
 * without.
 */
int psi_open(const char *proc_root, const char *cgroup_root, unsigned percent, struct psi **ret);
struct psi *psi_close(struct psi *psi);

/* Polls for EPOLLPRI each time; -1: it is to be read now and then. */
int psi_trigger_fd(const struct psi *psi);
/* The file it is read from. */
const char *psi_path(const struct psi *psi);

/* Its text, as model/pressure.h has it decoded. Returns its length or -errno. */
ssize_t psi_read(const struct psi *psi, char *text, size_t size);
