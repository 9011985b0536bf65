/* SPDX-License-Identifier: MIT */
/* The optional features of this daemon, one per row. */
#include "daemon/subsystems.h"
#include "autoscaling/autoscaling.h"
#include "rollout_hosts/rollout_hosts.h"
#include "rollout_trial/rollout_trial.h"

const struct subsystem *const subsystem_table[] = {
        &rollout_hosts_subsystem,
        &autoscaling_subsystem,
        &rollout_trial_subsystem,
        NULL,
};
