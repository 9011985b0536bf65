/* SPDX-License-Identifier: MIT */
/* The table of frameworks, a row for each. */
#include "frameworks/table.h"
#include "frameworks/sidekiq/beats.h"
#include "frameworks/sidekiq/format.h"
#include "frameworks/sidekiq/queues.h"
#include "frameworks/sidekiq/requeue.h"
#include "frameworks/sidekiq/works.h"
#include <signal.h>

static const struct framework frameworks[] = {
        {
                .traits = &sidekiq_traits,
                .quiet_signal = SIGTSTP,
                .stop_signal = SIGTERM,
                /* One that got TSTP while it booted is stopped, and TERM would wait for ever. */
                .wake_signal = SIGCONT,
                .dump_signal = SIGTTIN,
                .thread_is_processor = sidekiq_beat_thread_is_processor,
                .title_parse = sidekiq_title_parse,
                .beats = &sidekiq_beats,
                .works = &sidekiq_works,
                .queues = &sidekiq_queues,
                .requeue = &sidekiq_requeue,
        },
};

const struct traits *const framework_traits[ELEMENTSOF(frameworks) + 1] = {&sidekiq_traits};

const struct traits *framework_traits_find(unsigned id)
{
        for (size_t i = 0; i < ELEMENTSOF(frameworks); i++)
                if (frameworks[i].traits->id == id)
                        return frameworks[i].traits;
        return NULL;
}

const struct framework *framework_of(const struct traits *traits)
{
        size_t i = 0;

        while (frameworks[i].traits != traits)
                i++;
        return &frameworks[i];
}
