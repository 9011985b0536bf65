/* SPDX-License-Identifier: MIT */
/* Why an autoscaled fleet misses its targets; see the header. */
#include "autoscaling/trouble_rules.h"
#include "advice/problem.h"
#include "autoscaling/autoscale_rules.h"
#include "base/parse.h"
#include "base/printable.h"
#include "model/counts.h"
#include "model/fleet.h"
#include "model/idle_proof.h"
#include "model/queues.h"
#include "model/world.h"
#include "settings/limits.h"
#include <stdio.h>
#include <string.h>

/* A heartbeat may miss short jobs; a working thread takes a waiting job within this time. */
#define IDLE_USEC USEC_PER_MIN
/* At most this many queues are reported. */
#define UNSERVED_MAX 10
/* How long a queue may be served by none: a worker that is just starting may serve it. */
#define UNSERVED_USEC USEC_PER_MIN

static const char *shown(const char *name, char text[static 80])
{
        snprintf(text, 80, "%.79s", name);
        printable_replace(text, strlen(text), false);
        return text;
}

/* Reports queues with a target that no worker serves: a misspelt name, or a missing option in the worker's
 * command. */
static void find_unserved(const struct fleet *fleet, struct problems *problems)
{
        const char *served = autoscale_of(fleet)->served;
        char name[LIMITS_NAME_MAX], text[80];

        for (size_t i = 0; served && limits_name(fleet->settings->latency_target, LIMITS_DURATION, i, name);
             i++)
                if (!queue_names_have(served, name))
                        problems_add(problems,
                                     &(struct problem){.code = PROBLEM_QUEUE_NAME_UNKNOWN, .fleet = fleet},
                                     PROBLEM_ABOUT_FLEET,
                                     "latency_target names queue '%s', which no worker of the fleet serves",
                                     shown(name, text));
}

/* After a job arrives, more threads take up to two polls, a heartbeat and a boot. */
static void find_short(const struct fleet *fleet, struct problems *problems)
{
        const usec_t boot = autoscale_of(fleet)->boot;
        const usec_t unseen = 2 * fleet->world->settings->check_interval + fleet->settings->traits->sent_usec;
        const struct queues *queues = boot > 0 ? autoscale_of(fleet)->queues : NULL;
        char name[80], target[FORMAT_MAX], span[FORMAT_MAX], longest[FORMAT_MAX];

        for (size_t i = 0; queues && i < queues->n; i++) {
                usec_t wanted = autoscale_target(fleet, queues->list[i].name);
                /* Workers that are forked boot at once. */
                bool helps = !fleet->settings->preload && wanted >= unseen;

                if (wanted == 0 || wanted >= usec_add(unseen, boot))
                        continue;
                problems_add(
                        problems,
                        &(struct problem){.code = PROBLEM_TARGET_BELOW_BOOT,
                                          .fleet = fleet,
                                          .remedy = helps ? NULL
                                                          : "Raise latency_target or active_process_count"},
                        PROBLEM_ABOUT_FLEET,
                        "target of queue '%s' is %s, but in a burst jobs wait up to %s: it takes that long "
                        "to read the queue twice, to receive a heartbeat, and to boot a worker (%s)",
                        shown(queues->list[i].name, name), format_duration(wanted, target, sizeof(target)),
                        format_duration(usec_add(unseen, boot), longest, sizeof(longest)),
                        format_duration(boot, span, sizeof(span)));
        }
}

static void find_long_job(const struct fleet *fleet, usec_t now, struct problems *problems)
{
        const struct queues *queues = autoscale_of(fleet)->queues;
        usec_t job = MAX(autoscale_of(fleet)->verdict.service, fleet_oldest_job_usec(fleet, now));
        char name[80], target[FORMAT_MAX], span[FORMAT_MAX];

        for (size_t i = 0; queues && i < queues->n; i++) {
                usec_t wanted = autoscale_target(fleet, queues->list[i].name);

                if (wanted == 0 || job <= wanted)
                        continue;
                problems_add(
                        problems, &(struct problem){.code = PROBLEM_TARGET_BELOW_JOB, .fleet = fleet},
                        PROBLEM_ABOUT_FLEET,
                        "target of queue '%s' is %s, but jobs run for %s; while all threads run such jobs, "
                        "others wait as long",
                        shown(queues->list[i].name, name), format_duration(wanted, target, sizeof(target)),
                        format_duration(job, span, sizeof(span)));
        }
}

static void find_bound(const struct fleet *fleet, struct problems *problems)
{
        const struct autoscale *autoscale = autoscale_of(fleet);

        if (autoscale->read_at == 0)
                return;
        if (autoscale->verdict.bounded_by_max)
                problems_add(problems, &(struct problem){.code = PROBLEM_AUTOSCALING_AT_MAX, .fleet = fleet},
                             PROBLEM_ABOUT_FLEET,
                             "needs %.1f threads, more than active_process_max = %u workers have",
                             autoscale->verdict.need, fleet->settings->active_process_max);
        if (autoscale->bounded_by_memory)
                problems_add(problems, &(struct problem){.code = PROBLEM_AUTOSCALING_MEMORY, .fleet = fleet},
                             PROBLEM_ABOUT_FLEET, "needs more workers than the memory allows");
}

/* Reports queues whose jobs wait although none of the threads that serve them runs a job. */
static void find_idle(const struct fleet *fleet, struct problems *problems)
{
        const struct autoscale *autoscale = autoscale_of(fleet);
        const struct queues *queues = autoscale->read_at != 0 ? autoscale->queues : NULL;
        char name[80], age[FORMAT_MAX];

        for (size_t i = 0; queues && i < queues->n; i++) {
                const struct queue *queue = &queues->list[i];
                usec_t wanted = autoscale_target(fleet, queue->name);

                if (wanted == 0 || queue->paused || queue->size == 0 || !queue->latency_known ||
                    queue->latency < MAX(wanted, IDLE_USEC) || autoscale->busy > 0 || autoscale->threads <= 0)
                        continue;
                problems_add(problems, &(struct problem){.code = PROBLEM_QUEUE_STUCK, .fleet = fleet},
                             PROBLEM_ABOUT_FLEET,
                             "oldest job in queue '%s' has waited %s, but none of %.0f threads runs a job",
                             shown(queue->name, name), format_duration(queue->latency, age, sizeof(age)),
                             autoscale->threads);
        }
}

void autoscale_problems(const void *self _unused_, const struct fleet *fleet, usec_t now,
                        struct problems *problems)
{
        if (!fleet_scales(fleet))
                return;
        find_unserved(fleet, problems);
        find_short(fleet, problems);
        find_long_job(fleet, now, problems);
        find_bound(fleet, problems);
        find_idle(fleet, problems);
        if (autoscale_of(fleet)->queues_left_out)
                problems_add(problems, &(struct problem){.code = PROBLEM_QUEUES_LEFT_OUT, .fleet = fleet},
                             PROBLEM_ABOUT_FLEET,
                             "workers serve more queues than sqmgr reads (%d of one server); jobs in the "
                             "others are not seen",
                             QUEUES_NAMED_MAX);
}

/* True if the queues that the fleet's workers serve are known, and none was left out. */
static bool reports_served(const struct fleet *fleet)
{
        size_t n = 0;

        for (const char *name = autoscale_of(fleet)->served; name && *name != '\0'; name += strlen(name) + 1)
                n++;
        return autoscale_of(fleet)->served ? n < QUEUES_NAMED_MAX : fleet_target(fleet) == 0;
}

static bool is_served(const struct doctor_queues *facts, const char *queue)
{
        WORLD_FOREACH_FLEET(facts->world, fleet) {
                if (fleet->queue_link == facts->link &&
                    (!reports_served(fleet) || queue_names_have(autoscale_of(fleet)->served, queue)))
                        return true;
        }
        return facts->foreign_serve(queue, facts->userdata);
}

static void check_unserved(struct problems *findings, const struct queue *queue)
{
        char name[80], age[FORMAT_MAX];

        problems_note(findings, PROBLEM_WARNING, "queues",
                      "Let workers serve the queue (-q), or check what enqueues jobs there",
                      "%llu job%s waiting in queue '%s', oldest %s, but no worker serves the queue",
                      (unsigned long long)queue->size, plural(queue->size), shown(queue->name, name),
                      format_duration(queue->latency, age, sizeof(age)));
}

void doctor_queues(struct problems *findings, const struct doctor_queues *facts)
{
        size_t reported = 0;

        /* Without autoscaling, the queues that the fleets serve are not determined. */
        if (!autoscale_reads(facts->world, facts->link))
                return;
        for (size_t i = 0; i < facts->queues->n && reported < UNSERVED_MAX; i++) {
                const struct queue *queue = &facts->queues->list[i];

                if (queue->paused || queue->size == 0 || !queue->latency_known ||
                    queue->latency < UNSERVED_USEC || is_served(facts, queue->name))
                        continue;
                check_unserved(findings, queue);
                reported++;
        }
}
