/* SPDX-License-Identifier: MIT */
/* The rules for a heartbeat on a server; see the header. */
#include "frameworks/heartbeat_check.h"
#include "frameworks/decode.h"
#include "model/queues.h"

/* More than any machine has. */
#define RSS_MAX (UINT64_C(1) << 50)

static bool is_signal(const struct framework *framework, int signo, bool stops)
{
        return signo == 0 || (framework->signal_is_permitted && framework->signal_is_permitted(signo, stops));
}

static bool is_time(uint64_t usec, bool reported)
{
        return usec == 0 || (reported && usec <= DECODE_CLOCK_MAX_USEC);
}

static bool are_outcomes(const struct worker_outcomes *outcomes, bool counted)
{
        return (!outcomes->known || counted) && outcomes->processed <= WORKER_PROCESSED_MAX &&
               outcomes->failed <= outcomes->processed && outcomes->class_failed <= outcomes->failed;
}

static bool is_info(const struct framework *framework, const struct heartbeat_info *info)
{
        return framework->queue_names && is_time(info->born_usec, framework->reports_birth) &&
               info->concurrency <= DECODE_COUNT_MAX && info->n_capsules <= HEARTBEAT_CAPSULES_MAX &&
               queue_names_length(info->queues) < HEARTBEAT_QUEUES_MAX;
}

bool heartbeat_check(const struct framework *framework, const struct heartbeat *heartbeat,
                     const struct heartbeat_info *info)
{
        return is_time(heartbeat->sent_usec, true) &&
               is_time(heartbeat->born_usec, framework->reports_birth) &&
               (heartbeat->start == 0 || framework->reports_start) && heartbeat->busy <= DECODE_COUNT_MAX &&
               heartbeat->concurrency <= DECODE_COUNT_MAX && heartbeat->rss_bytes <= RSS_MAX &&
               (!framework->traits->title_completes || (heartbeat->busy == 0 && !heartbeat->quiet)) &&
               are_outcomes(&heartbeat->outcomes, framework->traits->counts_outcomes) &&
               is_signal(framework, heartbeat->quiet_signal, false) &&
               is_signal(framework, heartbeat->stop_signal, true) && (!info || is_info(framework, info));
}
