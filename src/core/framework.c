/* SPDX-License-Identifier: MIT */
/* The table of frameworks, a row for each. */
#include "core/framework.h"
#include <signal.h>

static const struct framework frameworks[] = {
        [FRAMEWORK_SIDEKIQ] =
                {
                        .name = "sidekiq",
                        .quiet_signal = SIGTSTP,
                        .stop_signal = SIGTERM,
                        /* One that got TSTP while it booted is stopped, and TERM would wait for ever. */
                        .wake_signal = SIGCONT,
                        .shutdown_usec = SIDEKIQ_SHUTDOWN_USEC,
                        .stale_usec = SIDEKIQ_STALE_USEC,
                        .thread_is_processor = sidekiq_thread_is_processor,
                        .title_parse = sidekiq_title_parse,
                },
};
static_assert(ELEMENTSOF(frameworks) == _FRAMEWORK_MAX, "every framework has a row");

const struct framework *framework_get(int id)
{
        assert(id >= 0 && id < _FRAMEWORK_MAX);
        return &frameworks[id];
}
