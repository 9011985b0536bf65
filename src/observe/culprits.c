/* SPDX-License-Identifier: MIT */
/* The job classes that ran in a worker when its memory ran out. */
#include "observe/culprits.h"
#include "base/parse.h"
#include "model/deadlines.h"
#include "model/describe.h"
#include "model/world.h"
#include <signal.h>

/* A killed process may take a while to disappear, longer with more memory. */
#define OOM_USEC (10 * USEC_PER_SEC)

bool culprits_take(struct worker *worker)
{
        usec_t since = worker->memory.breach_at;

        /* Only a heartbeat after the breach comes with a work list of the jobs of that moment. */
        if (since == 0 || worker->heartbeat.after < since)
                return false;
        worker->memory.breach_at = 0;
        /* A much later work list says nothing about the breach. */
        return usec_sub(worker->heartbeat.changed_at, since) <= worker_stale_usec(worker);
}

bool culprits_oom_killed(const struct world *world, const struct worker *worker,
                         const struct exit_status *exit, usec_t now)
{
        bool unasked = exit->known
                               ? exit->by_signal && exit->status == SIGKILL && worker->orders.killed_at == 0
                               : !worker_is_asked_to_exit(worker);

        return unasked && world->oom_at != 0 && usec_sub(now, world->oom_at) <= OOM_USEC;
}

/* A class without a slot is counted under the other classes: names come from anyone who writes to Redis. */
static void count_class(struct fleet_totals *totals, const char *name, enum culprits_cause cause)
{
        for (size_t i = 0; i < CULPRIT_CLASSES_MAX; i++) {
                if (totals->culprits[i].name[0] == '\0')
                        snprintf(totals->culprits[i].name, sizeof(totals->culprits[i].name), "%s", name);
                if (strcmp(totals->culprits[i].name, name) == 0) {
                        totals->culprits[i].times[cause]++;
                        return;
                }
        }
        totals->other_culprits[cause]++;
}

void culprits_observe(struct fleet *fleet, const struct worker *worker, enum culprits_cause cause,
                      const struct job_list *jobs, usec_t at)
{
        struct culprits culprits = {
                .at = at,
                .cause = cause,
                .index = worker->index,
                .pid = worker_pid(worker),
                .memory_bytes = worker->memory.bytes,
        };
        char text[CULPRITS_TEXT_MAX];

        /* The work list has expired, or nothing is known of the jobs in it. */
        if (jobs->n_jobs == 0 && (worker->heartbeat.busy > 0 || job_list_unknown(jobs) > 0))
                return;
        if (worker->memory.mark_at != 0 && worker->memory.bytes > worker->memory.mark_bytes) {
                culprits.growth_bytes = worker->memory.bytes - worker->memory.mark_bytes;
                culprits.growth_usec = usec_sub(at, worker->memory.mark_at);
        }
        if (!job_classes_count(jobs, &culprits.classes))
                return;
        memmove(&fleet->culprits[1], &fleet->culprits[0], (CULPRITS_KEPT - 1) * sizeof(culprits));
        fleet->culprits[0] = culprits;
        for (size_t i = 0; i < culprits.classes.n; i++)
                count_class(&fleet->totals, culprits.classes.list[i].name, cause);
        fleet->totals.other_culprits[cause] += culprits.classes.more;
        world_event(fleet->world, EVENT_CULPRITS, fleet, worker, "%s",
                    culprits_text(fleet, &culprits, text, sizeof(text)));
}

#define MEMORY_TEXT_MAX 160

static const char *memory_text(const struct culprits *culprits, char text[static MEMORY_TEXT_MAX])
{
        if (culprits->growth_bytes > 0)
                snprintf(text, MEMORY_TEXT_MAX, "%s by %s to %s within %s,",
                         culprits->cause == CULPRITS_OOM ? "had grown" : "grew",
                         FORMAT_SIZE(culprits->growth_bytes), FORMAT_SIZE(culprits->memory_bytes),
                         FORMAT_DURATION(culprits->growth_usec));
        else if (culprits->memory_bytes > 0)
                snprintf(text, MEMORY_TEXT_MAX, "used %s,", FORMAT_SIZE(culprits->memory_bytes));
        else
                snprintf(text, MEMORY_TEXT_MAX, "was");
        return text;
}

/* True if another process has the worker's index now. */
static bool is_former(const struct fleet *fleet, const struct culprits *culprits)
{
        FLEET_FOREACH_WORKER(fleet, worker)
                if (worker->state != WORKER_GONE && worker->index == culprits->index)
                        return worker_pid(worker) != culprits->pid;
        return false;
}

const char *culprits_text(const struct fleet *fleet, const struct culprits *culprits, char *text, size_t size)
{
        char classes[JOB_CLASSES_TEXT_MAX], memory[MEMORY_TEXT_MAX];

        snprintf(text, size, "%s%s (pid %d)%s %s running %s", is_former(fleet, culprits) ? "former " : "",
                 WORKER_ID_OF(fleet->settings->name, culprits->index), (int)culprits->pid,
                 culprits->cause == CULPRITS_OOM ? " died while the kernel's OOM killer was active;" : "",
                 memory_text(culprits, memory),
                 job_classes_text(&culprits->classes, classes, sizeof(classes)));
        return text;
}
