/* SPDX-License-Identifier: MIT */
/* The table of frameworks, a row for each. */
#include "frameworks/table.h"
#include "frameworks/native/native.h"
#include "frameworks/native/native_beats.h"
#include "frameworks/plain/plain.h"
#include "frameworks/resque/resque.h"
#include "frameworks/resque/resque_beats.h"
#include "frameworks/resque/resque_queues.h"
#include "frameworks/resque/resque_works.h"
#include "frameworks/rq/rq.h"
#include "frameworks/rq/rq_beats.h"
#include "frameworks/rq/rq_queues.h"
#include "frameworks/sidekiq/crowd.h"
#include "frameworks/sidekiq/demand.h"
#include "frameworks/sidekiq/format.h"
#include "frameworks/sidekiq/heartbeat.h"
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
                .queue_names = sidekiq_beat_queue_names,
                .demand = &sidekiq_demand,
                .crowd = &sidekiq_crowd,
                .requeue = &sidekiq_requeue,
        },
        {
                .traits = &native_traits,
                .quiet_signal = SIGTSTP,
                .stop_signal = SIGTERM,
                /* No CONT wakes it: that is what it may resume by, and it would take jobs again. One that is
                 * frozen has its stop_timeout. */
                .beats = &native_beats,
                .take_record = native_take_record,
        },
        {
                .traits = &rq_traits,
                .stop_signal = SIGTERM,
                .title_parse = rq_title_parse,
                .title_may_lack = true,
                .beats = &rq_beats,
                .queues = &rq_queues,
        },
        {
                .traits = &resque_traits,
                .quiet_signal = SIGUSR2,
                .stop_signal = SIGQUIT,
                /* QUIT waits for the job's child, which would outlive a worker that is killed then: TERM has
                 * the worker end it, and tell of it. No CONT wakes one: it would take jobs again. */
                .cut_off_signal = SIGTERM,
                .title_parse = resque_title_parse,
                .title_may_lack = true,
                .beats = &resque_beats,
                .works = &resque_works,
                .queues = &resque_queues,
        },
        {
                .traits = &plain_traits,
                .stop_signal = SIGTERM,
        },
};

const struct traits *const framework_traits[ELEMENTSOF(frameworks) + 1] = {
        &sidekiq_traits, &native_traits, &rq_traits, &resque_traits, &plain_traits};

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
