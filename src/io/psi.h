/* SPDX-License-Identifier: MIT */
/* Pressure stall information on memory (Documentation/accounting/psi.rst of the kernel): of our control group
 * if available, otherwise of the whole machine. */
#pragma once

#include "base/macro.h"
#include <sys/types.h>

struct psi;

/* Opens the file with a trigger: the descriptor polls ready if stalls exceed percent of any 2 s. If the
 * kernel refuses the trigger, the file can only be read. proc_root and cgroup_root default to /proc and
 * /sys/fs/cgroup if NULL.
 *
 * Returns 0 with *ret to be freed by psi_close(), or -errno: -ENOENT if the kernel was built without PSI,
 * -EOPNOTSUPP if booted without. */
int psi_open(const char *proc_root, const char *cgroup_root, unsigned percent, struct psi **ret);
/* Accepts NULL; returns NULL. */
struct psi *psi_close(struct psi *psi);

/* Returns the descriptor that polls EPOLLPRI at each trigger; -1: no trigger, read periodically. */
int psi_trigger_fd(const struct psi *psi);
/* Returns the path of the file. */
const char *psi_path(const struct psi *psi);

/* Reads the text for the decoder in model/pressure.h. Returns the length or -errno. */
ssize_t psi_read(const struct psi *psi, char *text, size_t size);
