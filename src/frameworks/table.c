/* SPDX-License-Identifier: MIT */
/* The table of frameworks; each entry is defined in the framework's own folder. */
#include "frameworks/table.h"
#include "frameworks/bullmq/bullmq.h"
#include "frameworks/celery/celery.h"
#include "frameworks/good_job/good_job.h"
#include "frameworks/native/native.h"
#include "frameworks/plain/plain.h"
#include "frameworks/resque/resque.h"
#include "frameworks/rq/rq.h"
#include "frameworks/sidekiq/format.h"
#include "frameworks/solid_queue/solid_queue.h"

static const struct framework *const frameworks[] = {
        &sidekiq_framework, &native_framework,      &rq_framework,       &resque_framework, &celery_framework,
        &bullmq_framework,  &solid_queue_framework, &good_job_framework, &plain_framework,
};

const struct traits *const framework_traits[ELEMENTSOF(frameworks) + 1] = {
        &sidekiq_traits, &native_traits,      &rq_traits,       &resque_traits, &celery_traits,
        &bullmq_traits,  &solid_queue_traits, &good_job_traits, &plain_traits,
};

const struct traits *framework_traits_find(unsigned id)
{
        for (size_t i = 0; i < ELEMENTSOF(frameworks); i++)
                if (framework_traits[i]->id == id)
                        return framework_traits[i];
        return NULL;
}

const struct framework *framework_of(const struct traits *traits)
{
        size_t i = 0;

        while (frameworks[i]->traits != traits)
                i++;
        return frameworks[i];
}

int framework_take_record(const char *text, size_t len, struct heartbeat_record *ret)
{
        return native_take_record(text, len, ret);
}
