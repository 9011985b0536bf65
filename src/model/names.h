/* SPDX-License-Identifier: MIT */
/* The names of enum values, which are a contract and never change, and texts about these values for people.
 * Returned strings are constant unless a function writes to text. */
#pragma once

#include "model/fleet.h"

/* "starting", "active", "quiet", "stopping", "gone" */
const char *worker_state_name(enum worker_state value);

/* Returns the fault as half a sentence: "the status file is not a regular file"; "" for HEARTBEAT_FAULT_NONE.
 */
const char *heartbeat_fault_text(enum heartbeat_fault value);

const char *reason_name(enum reason value); /* "none" for REASON_NONE */

/* Returns the reason as a phrase about the worker: "older than max_age"; "" for REASON_NONE. */
const char *reason_text(enum reason value);

const char *rollout_state_name(enum rollout_state value);

const char *fleet_order_name(enum fleet_order value); /* "running", "quiet", "stopped" */

const char *culprits_cause_name(enum culprits_cause value); /* "memory", "oom" */

const char *cut_word_name(enum cut_word value); /* "order", or the name of the setting */

/* Returns the machine-readable name; NULL for WAIT_NONE. */
const char *wait_code(enum wait value);

/* The id of a worker, "FLEET/INDEX", for people and programs, and its maximum size. */
#define WORKER_ID_MAX (FLEET_NAME_MAX + sizeof("/4294967295"))

const char *worker_id(const char *fleet, unsigned index, char text[static WORKER_ID_MAX]); /* returns text */

/* The function as an expression; the text is valid until the end of the enclosing block. */
#define WORKER_ID_OF(fleet, index) worker_id(fleet, index, (char[WORKER_ID_MAX]){""})
#define WORKER_ID(worker)          WORKER_ID_OF((worker)->fleet->settings->name, (worker)->index)

/* "deploy (uid 1001)"; "the operator" if not known or by is NULL. Returns text. */
const char *orderer_text(const struct orderer *by, char text[static ORDERER_TEXT_MAX]);
#define ORDERER_TEXT(by) orderer_text(by, (char[ORDERER_TEXT_MAX]){""})

/* The host name that a worker of a fleet with `namespaced = yes` reports in its heartbeats, so that no other
 * process on any host has the same one. It is derived, not stored: the next sqmgr derives the same. */
struct unique_host {
        const char *boot_id;
        const char *instance;
        const char *fleet;
        unsigned index;
        usec_t started_at; /* identifies the start */
};

/* The maximum size of such a name, with a host name of 255 bytes. */
#define UNIQUE_HOST_MAX 336

/* Writes `FLEET.INDEX.TOKEN` behind the name of this host and a colon: an identity that begins with `HOST:`
 * is known to be of that host. Returns text. */
const char *unique_host(const struct unique_host *of, const char *host, char text[static UNIQUE_HOST_MAX]);

/* Returns the length of the name of the host itself at the start of such a name, or of any other name. */
size_t unique_host_base(const char *text, size_t len);
