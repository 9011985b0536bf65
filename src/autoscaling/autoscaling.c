/* SPDX-License-Identifier: MIT */
/* Registers autoscaling as a subsystem of the daemon. */
#include "autoscaling/autoscaling.h"
#include "autoscaling/scaler.h"
#include "autoscaling/scaling_report.h"
#include "autoscaling/trouble_rules.h"
#include "daemon/runtime/subsystem.h"

const struct subsystem autoscaling_subsystem = {
        .name = "autoscaling",
        .begin = scaler_begin,
        .join = scaler_join,
        .poll = scaler_poll,
        .observe = scaler_observe,
        .metrics = scaling_metrics,
        .problems = autoscale_problems,
        .diagnose = scaling_diagnose,
        .diagnose_link = scaling_diagnose_link,
        .status = scaling_status,
        .pack = scaler_pack,
        .unpack = scaler_unpack,
        .end = scaler_end,
};
