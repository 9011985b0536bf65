/* SPDX-License-Identifier: MIT */
/* The names of states, reasons and the like, as the contract has them ("starting", "memory", ...). */
#pragma once

#include "model/fleet.h"

/* Names as the contract has them ("starting", "memory", "running", ...). */
const char *worker_state_name(enum worker_state value);

/* What is wrong, as half a sentence: "its status file is no regular file"; "" for HEARTBEAT_FAULT_NONE. */
const char *heartbeat_fault_text(enum heartbeat_fault value);

const char *reason_name(enum reason value); /* "none" for REASON_NONE */

/* The same as one sentence on the worker: "it is older than max_age"; "" for REASON_NONE. */
const char *reason_text(enum reason value);

const char *rollout_state_name(enum rollout_state value);

const char *fleet_order_name(enum fleet_order value); /* "running", "quiet", "stopped" */

const char *culprits_cause_name(enum culprits_cause value); /* "memory", "oom" */

const char *cut_word_name(enum cut_word value); /* "order", or the name of the setting */

/* The word for it that programs go by; NULL for WAIT_NONE. */
const char *wait_code(enum wait value);

/* The id of a worker, "FLEET/INDEX", for people and programs, and the room that it takes. */
#define WORKER_ID_MAX (FLEET_NAME_MAX + sizeof("/4294967295"))

const char *worker_id(const char *fleet, unsigned index, char text[static WORKER_ID_MAX]); /* returns text */

/* The same as a value, which stays until the end of the block around it. */
#define WORKER_ID_OF(fleet, index) worker_id(fleet, index, (char[WORKER_ID_MAX]){""})
#define WORKER_ID(worker)          WORKER_ID_OF((worker)->fleet->settings->name, (worker)->index)

/* "deploy (uid 1001)"; "the operator" where he is not known, or NULL. */
const char *orderer_text(const struct orderer *by, char text[static ORDERER_TEXT_MAX]);
