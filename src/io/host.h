/* SPDX-License-Identifier: MIT */
/* How much memory the machine has, or our control group where that is allowed less; and how often the kernel
 * had to kill for want of it. */
#pragma once

#include "base/macro.h"

struct proc_host;

/* Opens what the readings need: descriptors for meminfo and vmstat, and one for each level of our control
 * group (version 1 or 2). NULL stands for /proc and /sys/fs/cgroup. Returns 0 with *ret to be freed by
 * proc_host_close(), or -errno. */
int proc_host_open(const char *proc_root, const char *cgroup_root, struct proc_host **ret);
struct proc_host *proc_host_close(struct proc_host *host);

/* What can still be used: MemAvailable, or what a limit leaves of our control group or of one above it, with
 * its inactive page cache counted as free; the smallest of these. Returns 0 or -errno. */
int proc_available_memory_bytes(const struct proc_host *host, uint64_t *ret_bytes);

/* What could be used at all: MemTotal, or the smallest of those limits. Returns 0 or -errno. */
int proc_total_memory_bytes(const struct proc_host *host, uint64_t *ret_bytes);

/* How many processes the kernel's OOM killer has ended since boot, on the whole machine, for want of memory
 * there or in a control group. Returns 0 or -errno; -ENODATA where the kernel does not count them. */
int proc_oom_kills(const struct proc_host *host, uint64_t *ret);
