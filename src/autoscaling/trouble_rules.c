/* SPDX-License-Identifier: MIT */
/* What keeps a fleet whose count follows its queues from keeping its targets. */
#include "autoscaling/trouble_rules.h"
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

/* What a heartbeat does not see of short jobs is taken by then. */
#define IDLE_USEC USEC_PER_MIN
/* So many queues are told of. */
#define UNSERVED_MAX 10
/* Whoever has just begun takes from it by then. */
#define UNSERVED_USEC USEC_PER_MIN

static_assert(AUTOSCALE_TEXT_MAX <= DOCTOR_TROUBLE_MAX, "a sentence of autoscaling fits");

struct trouble {
        const struct fleet *fleet;
        char *text; /* AUTOSCALE_TEXT_MAX bytes */
        const char *remedy;
        size_t left; /* so many are to be passed over */
        bool found;
};

/* Is it this one? */
static bool take(struct trouble *trouble)
{
        trouble->found = trouble->found || trouble->left-- == 0;
        return trouble->found;
}

static const char *shown(const char *name, char text[static 80])
{
        snprintf(text, 80, "%.79s", name);
        printable_replace(text, strlen(text), false);
        return text;
}

/* Named in the file, and nobody takes from it: a name misspelt, or a worker's command that lacks it. */
static void find_unserved(struct trouble *trouble)
{
        const struct fleet *fleet = trouble->fleet;
        char name[LIMITS_NAME_MAX], text[80];

        for (size_t i = 0; autoscale_of(fleet)->served && !trouble->found &&
                           limits_name(fleet->settings->latency_target, LIMITS_TARGET, i, name);
             i++) {
                if (queue_names_have(autoscale_of(fleet)->served, name) || !take(trouble))
                        continue;
                snprintf(trouble->text, AUTOSCALE_TEXT_MAX,
                         "latency_target names queue '%s', from which none of its workers takes",
                         shown(name, text));
                trouble->remedy = "mend the name, or have the workers take from it (-q)";
        }
}

/* Between a job's coming and more threads: two looks, a heartbeat, and a boot. */
static void find_short(struct trouble *trouble)
{
        const struct fleet *fleet = trouble->fleet;
        usec_t least =
                usec_add(2 * fleet->world->settings->check_interval + fleet->settings->traits->beat_usec,
                         autoscale_of(fleet)->boot);
        const struct queues *queues = autoscale_of(fleet)->queues;
        char name[80], target[FORMAT_MAX], boot[FORMAT_MAX], longest[FORMAT_MAX];

        for (size_t i = 0; autoscale_of(fleet)->boot > 0 && queues && i < queues->n && !trouble->found; i++) {
                usec_t wanted = autoscale_target(fleet, queues->list[i].name);

                if (wanted == 0 || wanted >= least || !take(trouble))
                        continue;
                snprintf(
                        trouble->text, AUTOSCALE_TEXT_MAX,
                        "the target of queue '%s' is %s, but a worker takes %s to boot: in a burst jobs wait "
                        "for up to %s before it helps",
                        shown(queues->list[i].name, name), format_duration(wanted, target, sizeof(target)),
                        format_duration(autoscale_of(fleet)->boot, boot, sizeof(boot)),
                        format_duration(least, longest, sizeof(longest)));
                trouble->remedy = "raise latency_target or active_process_count; preload = yes makes boots "
                                  "short";
        }
}

static void find_long_job(struct trouble *trouble, usec_t now)
{
        const struct fleet *fleet = trouble->fleet;
        const struct queues *queues = autoscale_of(fleet)->queues;
        usec_t job = MAX(autoscale_of(fleet)->verdict.service, fleet_oldest_job_usec(fleet, now));
        char name[80], target[FORMAT_MAX], span[FORMAT_MAX];

        for (size_t i = 0; queues && i < queues->n && !trouble->found; i++) {
                usec_t wanted = autoscale_target(fleet, queues->list[i].name);

                if (wanted == 0 || job <= wanted || !take(trouble))
                        continue;
                snprintf(trouble->text, AUTOSCALE_TEXT_MAX,
                         "the target of queue '%s' is %s, but its workers run jobs of %s: while all threads "
                         "do, others wait for as long",
                         shown(queues->list[i].name, name), format_duration(wanted, target, sizeof(target)),
                         format_duration(job, span, sizeof(span)));
                trouble->remedy = "give such jobs a queue and a fleet of their own, or raise latency_target";
        }
}

static void find_bound(struct trouble *trouble)
{
        const struct autoscale *autoscale = autoscale_of(trouble->fleet);

        if (autoscale->read_at == 0)
                return;
        if (autoscale->verdict.bounded_by_max && !trouble->found && take(trouble)) {
                snprintf(trouble->text, AUTOSCALE_TEXT_MAX,
                         "%.1f threads are needed, more than active_process_max = %u workers have",
                         autoscale->verdict.need, trouble->fleet->settings->active_process_max);
                trouble->remedy = "raise active_process_max, or see which jobs take so long: 'sqmgrctl jobs'";
        }
        if (autoscale->bounded_by_memory && !trouble->found && take(trouble)) {
                snprintf(trouble->text, AUTOSCALE_TEXT_MAX,
                         "more workers are needed than memory is there for");
                trouble->remedy = "add memory, or see what the workers hold: 'sqmgrctl top'";
        }
}

/* They say that they take from it, and have not, though they could. */
static void find_idle(struct trouble *trouble)
{
        const struct autoscale *autoscale = autoscale_of(trouble->fleet);
        const struct queues *queues = autoscale->read_at != 0 ? autoscale->queues : NULL;
        char name[80], age[FORMAT_MAX];

        for (size_t i = 0; queues && i < queues->n && !trouble->found; i++) {
                const struct queue *queue = &queues->list[i];
                usec_t wanted = autoscale_target(trouble->fleet, queue->name);

                if (wanted == 0 || queue->paused || queue->size == 0 || !queue->latency_known ||
                    queue->latency < MAX(wanted, IDLE_USEC) || autoscale->busy > 0 ||
                    autoscale->threads <= 0 || !take(trouble))
                        continue;
                snprintf(trouble->text, AUTOSCALE_TEXT_MAX,
                         "a job has waited in queue '%s' for %s, and none of %.0f threads runs a job",
                         shown(queue->name, name), format_duration(queue->latency, age, sizeof(age)),
                         autoscale->threads);
                trouble->remedy = "see in the workers' log why they take none, and 'sqmgrctl restart' them";
        }
}

static void find_left_out(struct trouble *trouble)
{
        if (!autoscale_of(trouble->fleet)->queues_left_out || trouble->found || !take(trouble))
                return;
        snprintf(trouble->text, AUTOSCALE_TEXT_MAX,
                 "its workers take from more queues than are looked at, %d of one Redis: what waits in the "
                 "others is not seen",
                 AUTOSCALE_QUEUES_MAX);
        trouble->remedy = "have its workers take from fewer queues, or give the others a fleet of their own "
                          "without active_process_max";
}

bool autoscale_trouble(const struct fleet *fleet, size_t i, usec_t now, char text[static DOCTOR_TROUBLE_MAX],
                       const char **ret_remedy)
{
        struct trouble trouble = {.fleet = fleet, .text = text, .left = i};

        if (!fleet_scales(fleet))
                return false;
        find_unserved(&trouble);
        find_short(&trouble);
        find_long_job(&trouble, now);
        find_bound(&trouble);
        find_idle(&trouble);
        find_left_out(&trouble);
        *ret_remedy = trouble.remedy;
        return trouble.found;
}

/* Which queues its workers take from is known, and all of them are. */
static bool tells_served(const struct fleet *fleet)
{
        size_t n = 0;

        for (const char *name = autoscale_of(fleet)->served; name && *name != '\0'; name += strlen(name) + 1)
                n++;
        return autoscale_of(fleet)->served ? n < AUTOSCALE_QUEUES_MAX : fleet_target(fleet) == 0;
}

static bool is_served(const struct doctor_queues *facts, const char *queue)
{
        for (size_t i = 0; i < facts->world->n_fleets; i++) {
                const struct fleet *fleet = facts->world->fleets[i];

                if (fleet->link == facts->link &&
                    (!tells_served(fleet) || queue_names_have(autoscale_of(fleet)->served, queue)))
                        return true;
        }
        return facts->others_serve(queue, facts->userdata);
}

static void check_unserved(struct findings *findings, const struct queue *queue)
{
        char name[80], age[FORMAT_MAX];

        snprintf(name, sizeof(name), "%.79s", queue->name);
        printable_replace(name, strlen(name), false);
        findings_add(findings, FINDING_WARNING, "queues",
                     "have workers take from it (-q), or see who puts jobs there",
                     "%llu job%s wait%s in queue '%s', the oldest for %s, and no worker takes from it",
                     (unsigned long long)queue->size, queue->size == 1 ? "" : "s",
                     queue->size == 1 ? "s" : "", name, format_duration(queue->latency, age, sizeof(age)));
}

/* Else nobody looks at what the fleets serve. */
static bool follows_queues(const struct doctor_queues *facts)
{
        for (size_t i = 0; i < facts->world->n_fleets; i++)
                if (facts->world->fleets[i]->link == facts->link && fleet_scales(facts->world->fleets[i]))
                        return true;
        return false;
}

void doctor_queues(struct findings *findings, const struct doctor_queues *facts)
{
        size_t told = 0;

        for (size_t i = 0; follows_queues(facts) && i < facts->queues->n && told < UNSERVED_MAX; i++) {
                const struct queue *queue = &facts->queues->list[i];

                if (queue->paused || queue->size == 0 || !queue->latency_known ||
                    queue->latency < UNSERVED_USEC || is_served(facts, queue->name))
                        continue;
                check_unserved(findings, queue);
                told++;
        }
}
