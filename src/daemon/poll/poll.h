/* SPDX-License-Identifier: MIT */
/* Reads what is due of each worker: /proc at once, Redis by one pipeline whose answers come later. */
#pragma once

#include "daemon/runtime/runtime.h"

/* fast: of those in transition alone. */
void poll_run(struct runtime *runtime, bool fast, usec_t now);
