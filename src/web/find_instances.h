/* SPDX-License-Identifier: MIT */
/* Finds the instances of sqmgr that sqmgr-web shows. */
#pragma once

/* The directory in which systemd links the units that are enabled. */
#define FIND_INSTANCES_ENABLED "/etc/systemd/system/multi-user.target.wants"

/* Calls found() with the name and the control socket of each system instance, in order of names. Instances
 * are all enabled units, running or not, and all that locate_instances() finds in runtime_dir; some are found
 * twice. name and socket are valid during the call. */
void find_instances(const char *runtime_dir, const char *enabled_dir,
                    void (*found)(void *userdata, const char *name, const char *socket), void *userdata);
