/* SPDX-License-Identifier: MIT */
/* The queries that a reader of Redis answers. */
#include "reader/ask.h"
#include "reader/server.h"

const ask_fn reader_asks[_QUERY_KIND_MAX] = {
        [QUERY_HEARTBEAT] = ask_heartbeat, [QUERY_WORK_LIST] = ask_work_list,   [QUERY_SCAN] = ask_scan,
        [QUERY_SCANNERS] = ask_scanners,   [QUERY_SCAN_LEAVE] = ask_scan_leave, [QUERY_ROSTER] = ask_roster,
        [QUERY_REQUEUE] = ask_requeue,     [QUERY_SHARE] = ask_share,           [QUERY_ROLLOUT] = ask_rollout,
        [QUERY_GLANCE] = ask_glance,       [QUERY_QUEUES] = ask_queues,         [QUERY_JOBS] = ask_jobs,
        [QUERY_DIAGNOSIS] = ask_diagnosis,
};
