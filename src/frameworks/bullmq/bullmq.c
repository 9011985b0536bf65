/* SPDX-License-Identifier: MIT */
/* A process that runs workers of BullMQ, as its machine shows it, and its signals; see the header. */
#include "frameworks/bullmq/bullmq.h"
#include "base/usec.h"
#include "frameworks/decode.h"
#include "frameworks/framework.h"
#include "model/heartbeat_info.h"
#include <signal.h>

const struct traits bullmq_traits = {
        .name = "bullmq",
        .title = "BullMQ",
        .id = 7,
        .has_work_list = true,
        .memory_of_tree = true,
        .reports_busy = true,
        .reports_queues = true,
        .quiet_is_silent = true,
        .app_catches = true,
        /* BullMQ reacts to no signal. The application quiets its workers if it catches the signal. */
        .uncaught_is_stop = true,
        /* A worker that waits asks Redis again each drainDelay, by default 5 s, at most 10 s later while jobs
         * are delayed. A running job is renewed in the last half of its lockDuration of 30 s. */
        .sent_usec = 15 * USEC_PER_SEC,
        .stale_usec = 60 * USEC_PER_SEC,
};

bool bullmq_identity_parse(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid)
{
        const char *colon = memrchr(text, ':', len);

        if (!colon || !decode_is_host(text, (size_t)(colon - text)) ||
            !decode_pid(colon + 1, (size_t)(text + len - (colon + 1)), ret_pid))
                return false;
        *ret_host_len = (size_t)(colon - text);
        return true;
}

const struct framework bullmq_framework = {
        .traits = &bullmq_traits,
        .quiet_signal = SIGTSTP,
        .stop_signal = SIGTERM,
        .wake_signal = SIGCONT,
        .identity_parse = bullmq_identity_parse,
        .member_nsec = 500,
        .has_queues = true,
        .queue_names = heartbeat_info_queues,
};
