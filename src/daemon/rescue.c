/* SPDX-License-Identifier: MIT */
/* Follows up the death of a worker: reads what it was running, and has each job told of or put back. */
#include "core/rescue.h"
#include "daemon/supervisor.h"
#include "io/clock.h"
#include "io/requeue.h"
#include "io/works.h"
#include <string.h>

/* What the process sent last may still be on its way to Redis; and after a failure it is tried again. */
#define WAIT_USEC USEC_PER_SEC
/* The end of sqmgr waits for so long at most. */
#define END_WAIT_USEC (5 * USEC_PER_SEC)

struct rescue {
        struct rescue *next;
        struct supervisor *supervisor;
        char *fleet; /* its name */
        char *identity;
        struct worker dead; /* as it was; its fleet and io are not valid any more */
        char how[128];
        usec_t died_at;
        sd_event_source *timer;
        struct works *works; /* NULL: not being read */
        struct job_list jobs;
        size_t next_job; /* whose fate is asked for */
        char error[256]; /* of the last try */
};

static void rescue_free(struct rescue *rescue)
{
        struct rescue **link = &rescue->supervisor->rescues;

        while (*link != NULL && *link != rescue)
                link = &(*link)->next;
        if (*link != NULL)
                *link = rescue->next;
        sd_event_source_disable_unref(rescue->timer);
        works_free(rescue->works);
        job_list_clear(&rescue->jobs);
        free(rescue->identity);
        free(rescue->fleet);
        free(rescue);
}

void rescues_forget(struct supervisor *supervisor)
{
        while (supervisor->rescues != NULL)
                rescue_free(supervisor->rescues);
}

bool rescues_hold_the_end(const struct supervisor *supervisor, usec_t now)
{
        for (const struct rescue *rescue = supervisor->rescues; rescue != NULL; rescue = rescue->next)
                if (now < usec_add(rescue->died_at, END_WAIT_USEC))
                        return true;
        return false;
}

/* The fleet it was of, with its Redis; NULL: it is gone, and the rescue with it. */
static struct fleet *find_fleet(struct rescue *rescue)
{
        struct fleet *fleet = world_fleet(rescue->supervisor->world, rescue->fleet);

        if (fleet != NULL && fleet->io != NULL && fleet->settings->rescue_jobs != RESCUE_JOBS_OFF)
                return fleet;
        rescue_free(rescue);
        return NULL;
}

/* Again later, while the work list can be there. */
static void try_again(struct rescue *rescue, const char *error)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);
        struct fleet *fleet = find_fleet(rescue);

        if (fleet == NULL)
                return;
        job_list_clear(&rescue->jobs);
        if (now < usec_add(rescue->died_at, RESCUE_USEC) &&
            sd_event_source_set_time(rescue->timer, now + WAIT_USEC) >= 0 &&
            sd_event_source_set_enabled(rescue->timer, SD_EVENT_ONESHOT) >= 0)
                return;
        rescue_observe_failed(fleet, &rescue->dead, error);
        supervisor_arm_turn(rescue->supervisor);
        rescue_free(rescue);
}

static void on_requeued(enum rescue_outcome outcome, unsigned times, const char *error, void *userdata);

static void ask_next(struct rescue *rescue)
{
        const struct fleet *fleet = find_fleet(rescue);

        if (fleet == NULL)
                return;
        if (rescue->next_job == rescue->jobs.n_jobs) {
                supervisor_arm_turn(rescue->supervisor);
                rescue_free(rescue);
                return;
        }
        const struct link *link = fleet->io;
        int r = requeue_job(link->redis, rescue->supervisor->settings->redis.namespace, rescue->identity,
                            &rescue->jobs.jobs[rescue->next_job], fleet->settings, rescue->how,
                            clock_now(CLOCK_REALTIME), on_requeued, rescue);
        if (r < 0)
                try_again(rescue, strerrordesc_np(-r));
}

static void on_requeued(enum rescue_outcome outcome, unsigned times, const char *error, void *userdata)
{
        struct rescue *rescue = userdata;
        struct fleet *fleet = world_fleet(rescue->supervisor->world, rescue->fleet);

        if (error != NULL) {
                try_again(rescue, error);
                return;
        }
        if (fleet != NULL)
                rescue_observe(fleet, &rescue->dead, &rescue->jobs.jobs[rescue->next_job], outcome, times,
                               rescue->how);
        rescue->next_job++;
        ask_next(rescue);
}

static void on_works(struct job_list *lists, const char *error, void *userdata)
{
        struct rescue *rescue = userdata;

        rescue->works = NULL;
        if (error != NULL) {
                try_again(rescue, error);
                return;
        }
        rescue->jobs = lists[0];
        lists[0] = (struct job_list){0};
        rescue->next_job = 0;
        ask_next(rescue);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct rescue *rescue = userdata;
        const struct fleet *fleet = find_fleet(rescue);
        const char *identity;

        (void)source, (void)usec;
        if (fleet == NULL)
                return 0;
        const struct link *link = fleet->io;
        identity = rescue->identity;
        int r = works_read(link->redis, rescue->supervisor->settings->redis.namespace, &identity, 1, on_works,
                           rescue, &rescue->works);
        if (r < 0)
                try_again(rescue, redis_error(link->redis) ?: strerrordesc_np(-r));
        return 0;
}

void rescue_begin(struct supervisor *supervisor, const struct fleet *fleet, const struct worker *worker,
                  const char *identity, const struct exit_status *exit)
{
        if (fleet->settings->rescue_jobs == RESCUE_JOBS_OFF || identity == NULL ||
            !rescue_is_due(worker, exit))
                return;
        struct rescue *rescue = calloc(1, sizeof(*rescue));
        if (rescue == NULL)
                return;
        rescue->supervisor = supervisor;
        rescue->next = supervisor->rescues;
        supervisor->rescues = rescue;
        rescue->dead = *worker;
        rescue->died_at = clock_now(CLOCK_MONOTONIC);
        exit_status_text(exit, rescue->how, sizeof(rescue->how));
        rescue->identity = strdup(identity);
        rescue->fleet = strdup(fleet->settings->name);
        if (rescue->identity == NULL || rescue->fleet == NULL ||
            sd_event_add_time_relative(supervisor->event, &rescue->timer, CLOCK_MONOTONIC, WAIT_USEC, 0,
                                       on_timer, rescue) < 0)
                rescue_free(rescue);
}
