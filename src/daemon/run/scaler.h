/* SPDX-License-Identifier: MIT */
/* Has the queues read of each fleet whose count follows them, and puts the count in force. Where there is no
 * such fleet nothing is asked. */
#pragma once

#include "daemon/run/subsystem.h"

/* poll() begins a reading of each Redis whose fleets need one. observe() folds in what was answered since,
 * and changes what the state holds where a count has changed. Its self is the keeper's struct links. */
extern const struct subsystem autoscaling_subsystem;
