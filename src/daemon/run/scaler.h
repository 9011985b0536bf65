/* SPDX-License-Identifier: MIT */
/* Has the queues read of each fleet whose count follows them, and puts the count in force. Where there is no
 * such fleet nothing is asked. */
#pragma once

#include "daemon/run/links.h"

/* With each regular look: begins a reading of each Redis whose fleets need one. */
void scaler_look(struct links *links, usec_t now);
/* Folds in what was answered since. Changes what the state holds where a count has changed. */
void scaler_turn(struct links *links, usec_t now);
