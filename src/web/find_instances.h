/* SPDX-License-Identifier: MIT */
/* Finds the instances of sqmgr on this machine. */
#pragma once

/* The directory of the sockets of sqmgr.service and sqmgr@NAME.service, and that in which systemd links the
 * units that are enabled. */
#define FIND_INSTANCES_RUNTIME "/run/sqmgr"
#define FIND_INSTANCES_ENABLED "/etc/systemd/system/multi-user.target.wants"

/* Calls found() with the path of the read-only socket of each system instance, in order of names. Instances
 * are all enabled units, running or not, and all sockets that exist in runtime_dir or one level below it;
 * some are found twice. path is valid during the call. */
void find_instances(const char *runtime_dir, const char *enabled_dir,
                    void (*found)(void *userdata, const char *path), void *userdata);
