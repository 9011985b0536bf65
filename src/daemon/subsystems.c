/* SPDX-License-Identifier: MIT */
/* The optional features that this daemon has: one row for each. */
#include "daemon/subsystems.h"
#include "autoscaling/autoscaling.h"
#include "rollout_hosts/rollout_hosts.h"

const struct subsystem *const subsystem_table[] = {
        &rollout_hosts_subsystem,
        &autoscaling_subsystem,
        NULL,
};
