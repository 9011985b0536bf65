/* SPDX-License-Identifier: MIT */
/* Polls each worker for what is due: /proc at once, Redis by a pipeline whose replies arrive later. */
#pragma once

#include "daemon/runtime/runtime.h"

/* Polls all workers and templates; with fast, only those in transition. */
void poll_run(struct runtime *runtime, bool fast, usec_t now);
/* Continues with what awaits answers of the proc reader (daemon/runtime/proc_facts.h). */
void poll_resume(struct runtime *runtime, usec_t now);
