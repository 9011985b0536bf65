/* SPDX-License-Identifier: MIT */
/* The optional features of this daemon, one per row. */
#include "daemon/subsystems.h"
#include "autoscaling/autoscaling.h"
#include "rollout_trial/rollout_trial.h"

const struct subsystem *const subsystem_table[] = {
        &autoscaling_subsystem,
        &rollout_trial_subsystem,
        NULL,
};
