/* SPDX-License-Identifier: MIT */
/* Processes that run workers of BullMQ, and load a shim. */
#include "frameworks/bullmq/bullmq.h"
#include "frameworks/framework.h"
#include "model/heartbeat_info.h"
#include <signal.h>

static const struct shim bullmq_shim = {
        .file = "node/sqmgr-bullmq.cjs",
        .variable = "NODE_OPTIONS",
        .separator = ' ',
        .option = "--require=",
        .missed = "Bun, Deno, '--permission', or an image without the folder",
        .line = {"require('", "/node/sqmgr-bullmq.cjs')"},
        .refused = "Cannot find module",
        .always_caught = true, /* Node.js itself does, for the terminal's sake */
};

const struct traits bullmq_traits = {
        .name = "bullmq",
        .title = "BullMQ",
        .id = 7,
        .memory_of_tree = true,
        .heartbeat = HEARTBEAT_FILE,
        .reports_busy = true,
        .counts_outcomes = true,
        .reports_queues = true,
        .sent_usec = 5 * USEC_PER_SEC,
        .stale_usec = 30 * USEC_PER_SEC,
        .shim = &bullmq_shim,
};

const struct framework bullmq_framework = {
        .traits = &bullmq_traits,
        .quiet_signal = SIGTSTP,
        .stop_signal = SIGTERM,
        .wake_signal = SIGCONT,
        .has_queues = true,
        .queue_names = heartbeat_info_queues,
};
