/* SPDX-License-Identifier: MIT */
/* Finds the instances of sqmgr on this machine. */
#pragma once

/* The directory of the sockets of sqmgr.service and sqmgr@NAME.service, and that in which systemd links the
 * units that are enabled. */
#define FIND_INSTANCES_RUNTIME "/run/sqmgr"
#define FIND_INSTANCES_ENABLED "/etc/systemd/system/multi-user.target.wants"

/* Calls found() with the path of the read-only socket of each instance of the system, by name, some twice: of
 * each unit that is enabled, whether it runs or not; and of each socket that exists, in runtime_dir itself
 * and one level below it. */
void find_instances(const char *runtime_dir, const char *enabled_dir,
                    void (*found)(void *userdata, const char *path), void *userdata);
