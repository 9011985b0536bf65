/* SPDX-License-Identifier: MIT */
/* Memory of the machine, or of our control group if its limit is lower; the count of OOM kills; and whether
 * we run in a container. */
#pragma once

#include "base/macro.h"

struct proc_host;

/* Opens the sources: meminfo, vmstat, and one descriptor for each level of our control group (version 1 or
 * 2). proc_root and cgroup_root default to /proc and /sys/fs/cgroup if NULL. Returns 0 with *ret to be freed
 * by proc_host_close(), or -errno. */
int proc_host_open(const char *proc_root, const char *cgroup_root, struct proc_host **ret);
/* Accepts NULL; returns NULL. */
struct proc_host *proc_host_close(struct proc_host *host);

/* Reads the available memory in bytes: the minimum of MemAvailable and the memory left under the limit of
 * each level of our control group. Inactive page cache of a group counts as free. Returns 0 or -errno. */
int proc_available_memory_bytes(const struct proc_host *host, uint64_t *ret_bytes);

/* Reads the total memory in bytes: the minimum of MemTotal and those limits. Returns 0 or -errno. */
int proc_total_memory_bytes(const struct proc_host *host, uint64_t *ret_bytes);

/* Reads the number of OOM kills on the whole machine since boot, including those in control groups. Returns 0
 * or -errno; -ENODATA if the kernel has no such counter. */
int proc_oom_kills(const struct proc_host *host, uint64_t *ret);

/* Returns true if a container manager has left its sign. */
bool host_is_container(void);
