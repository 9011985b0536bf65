/* SPDX-License-Identifier: MIT */
/* The names of states, reasons and the like; see the header. */
#include "model/names.h"
#include "base/hash.h"

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
#define REASON(reason, name, text) [reason] = name,
        REASONS(REASON)
#undef REASON
};
DEFINE_ENUM_NAMES(reason_name, enum reason, _REASON_MAX, reason_names)

static const char *const reason_texts[] = {
#define REASON(reason, name, text) [reason] = text,
        REASONS(REASON)
#undef REASON
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

static const char *const wait_codes[] = {
#define WAIT(wait, code) [wait] = code,
        WAIT_KINDS(WAIT)
#undef WAIT
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
#define HEARTBEAT_FAULT(fault, text) [fault] = text,
        HEARTBEAT_FAULTS(HEARTBEAT_FAULT)
#undef HEARTBEAT_FAULT
};
DEFINE_ENUM_NAMES(heartbeat_fault_text, enum heartbeat_fault, _HEARTBEAT_FAULT_MAX, heartbeat_faults)

const char *unique_host(const struct unique_host *of, const char *host, char text[static UNIQUE_HOST_MAX])
{
        static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
        uint64_t hash = hash_bytes(HASH_INIT, of->boot_id, strlen(of->boot_id) + 1);
        char token[14] = "";

        hash = hash_bytes(hash, of->instance, strlen(of->instance) + 1);
        hash = hash_bytes(hash, of->fleet, strlen(of->fleet) + 1);
        hash = hash_bytes(hash, &of->index, sizeof(of->index));
        hash = hash_bytes(hash, &of->started_at, sizeof(of->started_at));
        for (size_t i = 0; i < sizeof(token) - 1; i++, hash >>= 5)
                token[i] = digits[hash & 31];
        snprintf(text, UNIQUE_HOST_MAX, "%.255s:%s.%u.%s", host, of->fleet, of->index, token);
        return text;
}

size_t unique_host_base(const char *text, size_t len)
{
        const char *colon = memchr(text, ':', len);

        return colon ? (size_t)(colon - text) : len;
}
