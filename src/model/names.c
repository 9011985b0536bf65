/* SPDX-License-Identifier: MIT */
/* The names of states, reasons and the like; see the header. */
#include "model/names.h"
#include <stdio.h>

static const char *const state_names[] = {
        [WORKER_STARTING] = "starting", [WORKER_ACTIVE] = "active", [WORKER_QUIET] = "quiet",
        [WORKER_STOPPING] = "stopping", [WORKER_GONE] = "gone",
};
DEFINE_ENUM_NAMES(worker_state_name, enum worker_state, _WORKER_STATE_MAX, state_names)

const char *worker_id(const char *fleet, unsigned index, char text[static WORKER_ID_MAX])
{
        snprintf(text, WORKER_ID_MAX, "%s/%u", fleet, index);
        return text;
}

static const char *const reason_names[] = {
        [REASON_NONE] = "none",         [REASON_MEMORY] = "memory",     [REASON_RESTART] = "restart",
        [REASON_OPERATOR] = "operator", [REASON_AGE] = "age",           [REASON_SCALE] = "scale",
        [REASON_EXTERNAL] = "external", [REASON_SHUTDOWN] = "shutdown", [REASON_CRASH] = "crash",
        [REASON_BOOT] = "boot",         [REASON_HUNG] = "hung",         [REASON_DEAF] = "deaf",
        [REASON_ROLLBACK] = "rollback",
};
DEFINE_ENUM_NAMES(reason_name, enum reason, _REASON_MAX, reason_names)

static const char *const reason_texts[] = {
        [REASON_NONE] = "",
        [REASON_MEMORY] = "over memory_threshold or memory_limit",
        [REASON_RESTART] = "a restart deploys new code",
        [REASON_OPERATOR] = "ordered by the operator",
        [REASON_AGE] = "older than max_age",
        [REASON_SCALE] = "the fleet has more workers than its current count",
        [REASON_EXTERNAL] = "quieted from outside sqmgr",
        [REASON_SHUTDOWN] = "sqmgr is shutting down",
        [REASON_CRASH] = "the worker crashed",
        [REASON_BOOT] = "did not boot within boot_timeout",
        [REASON_HUNG] = "no heartbeat for longer than hang_after",
        [REASON_DEAF] = "runs no jobs although jobs wait",
        [REASON_ROLLBACK] = "the fleet returns to the previous release",
};
DEFINE_ENUM_NAMES(reason_text, enum reason, _REASON_MAX, reason_texts)

const char *orderer_text(const struct orderer *by, char text[static ORDERER_TEXT_MAX])
{
        if (!by || !by->known)
                snprintf(text, ORDERER_TEXT_MAX, "%s", by && by->name[0] != '\0' ? by->name : "the operator");
        else if (by->name[0] == '\0')
                snprintf(text, ORDERER_TEXT_MAX, "uid %u", by->uid);
        else
                snprintf(text, ORDERER_TEXT_MAX, "%s (uid %u)", by->name, by->uid);
        return text;
}

static const char *const rollout_state_names[] = {
        [ROLLOUT_NONE] = "none",     [ROLLOUT_RUNNING] = "running", [ROLLOUT_DONE] = "done",
        [ROLLOUT_HALTED] = "halted", [ROLLOUT_ABORTED] = "aborted",
};
DEFINE_ENUM_NAMES(rollout_state_name, enum rollout_state, _ROLLOUT_STATE_MAX, rollout_state_names)

/* A contract: names are added, and never changed. */
static const char *const wait_codes[] = {
        [WAIT_NONE] = NULL,
        [WAIT_FIRST_HEARTBEAT] = "first-beat",
        [WAIT_READY_OTHERS] = "ready-others",
        [WAIT_JOBS] = "jobs",
        [WAIT_HEARTBEATS] = "idle-beats",
        [WAIT_THREADS] = "threads",
        [WAIT_EXIT] = "exit",
        [WAIT_REDIS] = "redis",
        [WAIT_FRESH_HEARTBEAT] = "fresh-beat",
        [WAIT_STALE] = "stale",
        [WAIT_HUNG] = "hung",
        [WAIT_SIGNAL] = "signal",
        [WAIT_IDLE_CHECK] = "rest",
        [WAIT_ELSEWHERE] = "beats-elsewhere",
        [WAIT_UNSEEN] = "unseen",
        [WAIT_RELEASE] = "release",
        [WAIT_PLACES] = "places",
        [WAIT_TRIAL] = "trial",
        [WAIT_RETURNED] = "rolled-back",
        [WAIT_MEMORY] = "memory",
        [WAIT_BACKOFF] = "backoff",
        [WAIT_ADOPTION] = "adoption",
        [WAIT_TEMPLATE] = "template",
        [WAIT_FORK] = "fork",
        [WAIT_STATE] = "state",
        [WAIT_LEDGER] = "ledger",
        [WAIT_UNCONFIRMED] = "unconfirmed",
};
DEFINE_ENUM_NAMES(wait_code, enum wait, _WAIT_MAX, wait_codes)

static const char *const reader_state_texts[] = {
        [READER_STATE_CONNECTING] = "not reached yet", [READER_STATE_CONNECTED] = "reachable",
        [READER_STATE_DOWN] = "unreachable",           [READER_STATE_SLOW] = "slow",
        [READER_STATE_REFUSING] = "refusing writes",
};
DEFINE_ENUM_NAMES(reader_state_text, enum reader_state, _READER_STATE_MAX, reader_state_texts)

static const char *const order_names[] = {
        [ORDER_RUN] = "running",
        [ORDER_QUIET] = "quiet",
        [ORDER_STOP] = "stopped",
};
DEFINE_ENUM_NAMES(fleet_order_name, enum fleet_order, _FLEET_ORDER_MAX, order_names)

static const char *const cause_names[] = {
        [CULPRITS_MEMORY] = "memory",
        [CULPRITS_OOM] = "oom",
};
DEFINE_ENUM_NAMES(culprits_cause_name, enum culprits_cause, _CULPRITS_CAUSE_MAX, cause_names)

static const char *const cut_words[] = {
        [CUT_ORDER] = "order",
        [CUT_DRAIN_TIMEOUT] = "drain_timeout",
        [CUT_STOP_TIMEOUT] = "stop_timeout",
        [CUT_SHUTDOWN_TIMEOUT] = "shutdown_timeout",
};
DEFINE_ENUM_NAMES(cut_word_name, enum cut_word, _CUT_WORD_MAX, cut_words)

static const char *const heartbeat_faults[] = {
        [HEARTBEAT_FAULT_NONE] = "",
        [HEARTBEAT_FAULT_BEGUN] = "the worker has loaded sqmgr's file, which has written no record yet",
        [HEARTBEAT_FAULT_PLACE] = "the status directory is missing or was changed",
        [HEARTBEAT_FAULT_MISSING] = "the status file is missing",
        [HEARTBEAT_FAULT_KIND] = "the status file is not a regular file",
        [HEARTBEAT_FAULT_SIZE] = "the status file is larger than 20 KiB",
        [HEARTBEAT_FAULT_UNREADABLE] = "the status file cannot be read",
        [HEARTBEAT_FAULT_CHANGES] = "the status file changes while being read",
        [HEARTBEAT_FAULT_RECORD] = "the status file is not in the format of sqmgr-heartbeat(7)",
        [HEARTBEAT_FAULT_START] = "'start' in the status file is missing or belongs to another process",
};
DEFINE_ENUM_NAMES(heartbeat_fault_text, enum heartbeat_fault, _HEARTBEAT_FAULT_MAX, heartbeat_faults)
