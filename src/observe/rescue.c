/* SPDX-License-Identifier: MIT */
/* Jobs cut off by the death of their worker; see the header. */
#include "observe/rescue.h"
#include "base/parse.h"
#include "base/printable.h"
#include "model/describe.h"
#include "model/world.h"

/* Heartbeats in a row that prove idleness, as of other workers without title and threads. */
#define IDLE_HEARTBEATS 2

static enum leftover_step next_step(struct leftover *leftover, const struct fleet *fleet,
                                    const struct heartbeat *heartbeat, usec_t now)
{
        usec_t drain = fleet->settings->drain_timeout;
        bool late = drain > 0 && usec_sub(now, leftover->since) >= drain;
        bool repeats = leftover->unheeded >= WORKER_NOT_QUIET_HEARTBEATS;

        if (late || leftover->stopped || leftover->idle_count >= IDLE_HEARTBEATS)
                return !leftover->stopped || repeats ? LEFTOVER_STOP : LEFTOVER_WAIT;
        return !heartbeat->quiet && (!leftover->signaled || repeats) ? LEFTOVER_QUIET : LEFTOVER_WAIT;
}

enum leftover_step leftover_observe(struct leftover *leftover, const struct fleet *fleet,
                                    const struct heartbeat *heartbeat, usec_t now)
{
        usec_t alive_at = MAX(MAX(leftover->changed_at, leftover->since),
                              MAX(fleet->redis_at, fleet->world->doubt.since));
        bool first = leftover->written_usec == 0;

        /* An earlier time is a change, too: the clock of that machine may have gone back. If a living
         * process counted as dead, its jobs would run twice. */
        if (!heartbeat || heartbeat->sent_usec == leftover->written_usec)
                return usec_sub(now, alive_at) > fleet->settings->traits->stale_usec ? LEFTOVER_ENDED
                                                                                     : LEFTOVER_WAIT;
        leftover->written_usec = heartbeat->sent_usec;
        /* The first one may be the last that the process has sent. */
        if (first)
                return LEFTOVER_WAIT;
        leftover->changed_at = now;
        bool idle = heartbeat->quiet && heartbeat->busy == 0 && heartbeat->work_list_known &&
                    heartbeat->work_list_empty;
        leftover->idle_count = idle ? leftover->idle_count + 1 : 0;
        leftover->unheeded = leftover->stopped || !heartbeat->quiet ? leftover->unheeded + 1 : 0;
        enum leftover_step step = next_step(leftover, fleet, heartbeat, now);
        if (step == LEFTOVER_WAIT)
                return step;
        leftover->unheeded = 0;
        leftover->signaled = true;
        leftover->stopped |= step == LEFTOVER_STOP;
        return step;
}

bool rescue_is_due(const struct worker *worker, const struct exit_status *exit)
{
        const struct traits *traits = worker->fleet->settings->traits;

        if (!traits->can_rescue)
                return false;
        /* Then a worker that has put back its jobs itself has left none. */
        if (traits->jobs_stay)
                return true;
        /* A worker that was asked to exit puts its jobs back itself. An unknown exit status says nothing
         * about that. */
        bool cut_off = !worker_is_asked_to_exit(worker) || worker->orders.killed_at != 0;

        if (!exit->known)
                return cut_off;
        return exit->by_signal || (exit->status != 0 && cut_off);
}

bool rescue_is_repeated(const struct fleet *fleet, usec_t died_at, usec_t now)
{
        if (!fleet->settings->traits->jobs_stay)
                return now < usec_add(died_at, RESCUE_USEC);
        return now < usec_add(died_at, RESCUE_STAY_USEC) &&
               (!fleet->redis_up || now < usec_add(MAX(died_at, fleet->redis_at), RESCUE_USEC));
}

bool rescue_is_late(const struct worker *dead, usec_t died_at)
{
        return !dead->fleet->settings->traits->jobs_stay && dead->heartbeat.busy > 0 &&
               usec_sub(died_at, dead->heartbeat.changed_at) >= RESCUE_USEC;
}

void rescue_observe(const struct worker *dead, const struct job *job, enum rescue_outcome outcome,
                    unsigned times, const char *how)
{
        static const struct {
                enum event_kind kind;
                const char *text;
        } kinds[_RESCUE_OUTCOME_MAX] = {
                [RESCUE_LOST] = {EVENT_JOB_LOST, "lost"},
                [RESCUE_REQUEUED] = {EVENT_JOB_RESCUED, "re-enqueued"},
                [RESCUE_PARKED] = {EVENT_JOB_PARKED, "moved to the dead jobs"},
        };
        struct fleet *fleet = dead->fleet;
        char names[700], count[48] = "", left[64];
        const char *text = kinds[outcome].text;

        if (outcome == RESCUE_LEFT)
                return;
        if (outcome == RESCUE_PRIVATE) {
                if (!fleet->rescue_off_reported)
                        world_event(fleet->world, EVENT_RESCUE_OFF, fleet, dead,
                                    "fleet '%s': rescue_jobs has no effect: the workers keep running jobs in "
                                    "private queues (super_fetch), which restore the jobs",
                                    fleet->settings->name);
                fleet->rescue_off_reported = true;
                return;
        }
        /* The names are untrusted. */
        snprintf(names, sizeof(names), "%.200s %.200s (queue %.200s)", job->class, job->jid, job->queue);
        printable_replace(names, strlen(names), false);
        if (outcome == RESCUE_REQUEUED && times > 1)
                snprintf(count, sizeof(count), " (%u times so far)", times);
        if (outcome == RESCUE_PARKED)
                snprintf(count, sizeof(count), " (re-enqueued %u times before)", RESCUE_LIMIT);
        if (outcome == RESCUE_PARKED && fleet->settings->traits->jobs_stay) {
                snprintf(left, sizeof(left), "left to %s, which fails it", fleet->settings->traits->title);
                text = left;
        }
        world_event(fleet->world, kinds[outcome].kind, fleet, dead,
                    "%s %s%s: %s (pid %d), which ran the job, %s", names, text, count, WORKER_ID(dead),
                    (int)worker_pid(dead), how);
}

void rescue_observe_abandoned(const struct worker *dead, const struct exit_status *exit, size_t n_left,
                              size_t n_released, usec_t died_at)
{
        struct fleet *fleet = dead->fleet;
        const char *remedy = fleet->settings->traits->drain_remedy;
        usec_t asked_at = dead->orders.quiet_at ?: dead->orders.stop_at;
        size_t n = n_released + (exit->known && !exit->by_signal ? n_left : 0);
        char again[64] = "";

        if (!remedy || n == 0 || asked_at == 0 || dead->orders.killed_at != 0)
                return;
        usec_t after = usec_sub(died_at, asked_at);
        if (fleet->abandoned.jobs == 0 || after < fleet->abandoned.after)
                fleet->abandoned.after = after;
        fleet->abandoned.jobs += n;
        fleet->abandoned.released += n_released;
        if (n_released > 0)
                snprintf(again, sizeof(again), " (%zu run%s again)", n_released, n_released == 1 ? "s" : "");
        worker_event(dead, EVENT_DRAIN_ABANDONED,
                     " exited %s after it was asked to exit, in the middle of %zu job%s%s. %s",
                     FORMAT_DURATION(after), n, plural(n), again, remedy);
}

void rescue_observe_failed(const struct worker *dead, const struct error_report *why)
{
        event_quote(worker_event(dead, EVENT_RESCUE_FAILED,
                                 " died; its running jobs cannot be read from %s: %s",
                                 fleet_settings_server(dead->fleet->settings), why->text),
                    &why->quoted);
}

void rescue_observe_unknown(const struct worker *dead, const struct job_list *jobs)
{
        const struct fleet_settings *settings = dead->fleet->settings;
        size_t n = jobs->n_unreadable, n_oversized = jobs->n_oversized;

        if (n > 0)
                worker_event(dead, EVENT_RESCUE_FAILED,
                             " died with %zu running job%s not re-enqueued: the record in %s is not in the "
                             "format of %s",
                             n, plural(n), fleet_settings_server(settings), settings->traits->title);
        if (n_oversized > 0)
                worker_event(dead, EVENT_RESCUE_FAILED,
                             " died with %zu running job%s not re-enqueued: too large to read (over %s). "
                             "Enqueue the job%s again",
                             n_oversized, plural(n_oversized), FORMAT_SIZE(JOB_ENTRY_MAX),
                             plural(n_oversized));
}
