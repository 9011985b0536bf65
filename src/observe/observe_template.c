/* SPDX-License-Identifier: MIT */
/* Records observations of templates; see the header. */
#include "observe/observe_template.h"
#include "base/parse.h"
#include "model/describe.h"
#include "model/preload.h"
#include "model/rollout.h"
#include "model/world.h"
#include "observe/observe.h"

/* Maximum time that one poll counts: in a longer gap sqmgr itself was late. */
#define FORK_POLL_USEC (500 * USEC_PER_MSEC)
/* Only this fraction of the time counts while the template is held; a template that is held forever is still
 * given up. */
#define FORK_HELD_SHARE 20
/* Delay before another fork after memory or processes were short. */
#define FORK_RETRY_USEC (1 * USEC_PER_SEC)
/* A template that was ready for less than this counts as a failed start. */
#define FAILED_START_USEC (60 * USEC_PER_SEC)
/* After this many failures in a row, workers boot separately. */
#define FAILURES_MAX 3

static void set_state(struct template *template, enum template_state state, usec_t now)
{
        template->state = state;
        template->state_at = now;
}

#define NAME_MAX_BYTES (FLEET_NAME_MAX + 64)
static const char *name_of(const struct template *template, char text[static NAME_MAX_BYTES])
{
        snprintf(text, NAME_MAX_BYTES, "template of fleet '%s' (pid %d)", template->fleet->settings->name,
                 (int)template_pid(template));
        return text;
}

/* name_of() as an expression; the text is valid until the end of the enclosing block. */
#define NAME_OF(template) name_of(template, (char[NAME_MAX_BYTES]){""})

/* Makes workers of this generation boot separately, and reports why. quoted: NULL: nothing. */
static _printf_(3, 4) void refuse(struct fleet *fleet, const struct quoted *quoted, const char *format, ...)
{
        struct preload *preload = &fleet->preload;
        va_list ap;

        va_start(ap, format);
        vsnprintf(preload->refused, sizeof(preload->refused), format, ap);
        va_end(ap);
        preload->quoted = quoted ? *quoted : (struct quoted){0};
        preload->refused_generation = fleet->generation;
        event_quote(fleet_event(fleet, EVENT_PRELOAD_REFUSED,
                                ": preload is off for generation %llu, workers boot separately: %s",
                                (unsigned long long)fleet->generation, preload->refused),
                    &preload->quoted);
}

/* Reports the failure in fleet->crash_last, which the application or its command may have caused. During a
 * restart it counts as a failed new worker. Otherwise, preloading is given up for this generation after
 * enough failures. */
static void observe_failure(struct fleet *fleet, uint64_t generation, usec_t since, usec_t now)
{
        struct preload *preload = &fleet->preload;
        bool tried = fleet->rollout.state == ROLLOUT_RUNNING;

        fleet->totals.template_failures++;
        start_failure_report(fleet, EVENT_TEMPLATE_FAILED, NULL);
        start_failure_observe(fleet, generation, since, true, now);
        if (generation == fleet->generation && ++preload->failures >= FAILURES_MAX && !tried)
                refuse(fleet, &fleet->crash_quoted, "%u failures in a row; last failure: %s",
                       preload->failures, fleet->crash_last);
}

static void template_forget(struct template *template)
{
        *template = (struct template){0};
}

struct template *template_observe_started(struct fleet *fleet, pid_t pid, uint64_t pid_start, usec_t now)
{
        struct template *template = fleet_template_place(fleet);

        assert(template);
        *template = (struct template){
                .fleet = fleet,
                .generation = fleet->generation,
                .pid = pid,
                .pid_start = pid_start,
                .started_at = now,
        };
        set_state(template, TEMPLATE_LOADING, now);
        fleet->totals.template_loads++;
        backoff_reset(&fleet->shortage);
        world_event(fleet->world, EVENT_TEMPLATE_LOADING, fleet, NULL, "%s is loading the application",
                    NAME_OF(template));
        return template;
}

void template_observe_start_failed(struct fleet *fleet, int error, usec_t now)
{
        world_event(fleet->world, EVENT_TEMPLATE_FAILED, fleet, NULL,
                    "template of fleet '%s' could not be started: error in sqmgr itself: %s. Run 'sqmgrctl "
                    "doctor'",
                    fleet->settings->name, start_error_text(error));
        start_failure_observe_shortage(fleet, error, now);
}

struct template *template_observe_adopted(struct fleet *fleet, const struct template *known, bool connected,
                                          uint64_t pid_start, uint64_t serving_start)
{
        bool alive = pid_start == known->pid_start;
        bool serves = known->serving_pid != 0 && serving_start == known->serving_start;
        struct template *template = fleet_template_place(fleet);

        if (!template || (!alive && !serves))
                return NULL;
        *template = *known;
        template->fleet = fleet;
        template->process = NULL;
        template->lost = !connected;
        if (!alive)
                template_observe_promoted(template);
        return template;
}

void template_observe_ready(struct template *template, pid_t serving_pid, uint64_t serving_start,
                            const struct quoted *unsafe, usec_t now)
{
        struct fleet *fleet = template->fleet;

        template->serving_pid = serving_pid;
        template->serving_start = serving_start;
        /* The template was asked to end meanwhile. */
        if (template->state != TEMPLATE_LOADING)
                return;
        if (unsafe && template_is_current(template))
                refuse(fleet, unsafe,
                       "the application holds open sockets, which all forked workers would share");
        if (unsafe)
                return;
        usec_t took = usec_sub(now, template->started_at);
        set_state(template, TEMPLATE_READY, now);
        world_event(fleet->world, EVENT_TEMPLATE_READY, fleet, NULL, "%s ready after %s", NAME_OF(template),
                    FORMAT_DURATION(took));
        if (template_is_current(template))
                rollout_observe_progress(fleet, now);
}

void template_observe_promoted(struct template *template)
{
        template->pid = template->serving_pid;
        template->pid_start = template->serving_start;
}

struct worker *template_observe_booted(struct template *template, bool booted, usec_t now)
{
        struct fleet *fleet = template->fleet;
        const struct worker model = {
                .index = fleet_free_index(fleet),
                .generation = template->generation,
                .process.pid = template->pid,
                .process.start = template->pid_start,
                .state = WORKER_STARTING,
                .spawned_at = template->started_at,
                .state_at = now,
        };

        template->boot_polled_at = now;
        if (!booted || template->serving_pid != 0)
                return NULL;
        struct worker *worker = observe_started_as(fleet, &model);
        if (!worker)
                return NULL;
        if (template_is_current(template) && !fleet_preload_is_refused(fleet))
                refuse(fleet, NULL,
                       "the command runs jobs instead of waiting to be forked; it is now worker %s. Check "
                       "that RUBYOPT is kept on the way to Sidekiq's command line",
                       WORKER_ID(worker));
        template_forget(template);
        return worker;
}

void template_observe_memory(struct template *template, uint64_t bytes)
{
        template->memory_bytes = bytes;
        if (template->state == TEMPLATE_READY)
                template->fleet->preload.template_bytes = bytes;
}

void template_observe_fork_asked(struct template *template, unsigned index, enum reason started_for,
                                 int error, usec_t now)
{
        template->fork.index = index;
        template->fork.reason = started_for;
        template->fork.asked_at = template->fork.seen_at = now;
        template->fork.waited = 0;
        if (error != 0)
                template_observe_fork_failed(template, error, strerrordesc_np(error), NULL, now);
}

void template_observe_fork_waits(struct template *template, bool held, usec_t now)
{
        usec_t span = MIN(usec_sub(now, template->fork.seen_at), FORK_POLL_USEC);

        template->fork.waited += held ? span / FORK_HELD_SHARE : span;
        template->fork.seen_at = now;
}

struct worker *template_observe_hello(struct template *template, pid_t pid, uint64_t pid_start, usec_t now)
{
        struct fleet *fleet = template->fleet;
        struct preload *preload = &fleet->preload;
        const struct worker model = {
                .index = template->fork.index,
                .generation = template->generation,
                .process.pid = pid,
                .process.start = pid_start,
                .state = WORKER_STARTING,
                .started_for = template->fork.reason,
                .spawned_at = template->fork.asked_at,
                .state_at = now,
                .process.forked = true,
                .process.awaits_go = true,
        };
        struct worker *worker = observe_started_as(fleet, &model);

        if (!worker)
                return NULL;
        template_observe_fork_waits(template, false, now);
        preload->slowest_fork = MAX(preload->slowest_fork, template->fork.waited);
        preload->failures = 0;
        preload->retry_at = 0;
        fleet->totals.forks++;
        template->fork.index = 0;
        return worker;
}

void template_observe_fork_failed(struct template *template, int error, const char *why,
                                  const struct quoted *said, usec_t now)
{
        struct fleet *fleet = template->fleet;
        unsigned index = template->fork.index;
        usec_t asked_at = template->fork.asked_at;

        template->fork.index = 0;
        /* The code is not at fault: the fork waits, like a start that lacks memory. */
        if (error == ENOMEM || error == EAGAIN || error == EMFILE || error == ENFILE) {
                fleet->preload.retry_at = usec_add(now, FORK_RETRY_USEC);
                return;
        }
        /* An attempt uses up a freed place. */
        if (fleet->crash.freed > 0)
                fleet->crash.freed--;
        fleet->preload.retry_at = 0;
        start_failure_describe(fleet, NULL, "%s could not be forked: %s",
                               WORKER_ID_OF(fleet->settings->name, index), why);
        if (said)
                fleet->crash_quoted = *said;
        observe_failure(fleet, template->generation, asked_at, now);
}

void template_observe_go(struct worker *worker, usec_t now)
{
        worker->process.awaits_go = false;
        /* The time to boot begins now. */
        worker->state_at = now;
}

/* Reports why the template is ended, if that is its own failure. */
static void observe_given_up(struct template *template, usec_t now)
{
        struct fleet *fleet = template->fleet;

        if (template->lost)
                return;
        if (template_forks(template))
                start_failure_describe(fleet, NULL, "%s did not fork within %s", NAME_OF(template),
                                       FORMAT_DURATION(usec_sub(now, template->fork.asked_at)));
        else
                start_failure_describe(fleet, NULL, "%s did not load the application within boot_timeout",
                                       NAME_OF(template));
        /* The deadline counts only time with Redis up, so an earlier outage does not explain the failure. */
        observe_failure(fleet, template->generation, now, now);
}

void template_observe_ended(struct template *template, usec_t now)
{
        if (template_is_kept(template))
                observe_given_up(template, now);
        template->fork.index = 0;
        set_state(template, TEMPLATE_ENDING, now);
}

void template_observe_killed(struct template *template, usec_t now)
{
        template->killed_at = now;
}

/* Refuses preloading if the log tail shows that the script was not found: Ruby names the first file that it
 * cannot load. Such a failure does not count against the release. Returns true if the log tail shows it. */
static bool refuse_unseen(struct fleet *fleet, const struct quoted *log_tail, const char *script)
{
        if (!log_tail || !quoted_contains(log_tail, "cannot load such file") ||
            !quoted_contains(log_tail, script))
                return false;
        refuse(fleet, NULL, "the command cannot find '%s' where it runs", script);
        return true;
}

void template_observe_log_tail(struct fleet *fleet, uint64_t token, const struct quoted *lines,
                               const char *script)
{
        struct preload *preload = &fleet->preload;

        if (preload->lines_token != token)
                return;
        preload->lines_token = 0;
        if (fleet_preloads(fleet))
                (void)refuse_unseen(fleet, lines, script);
}

/* A ready template has crashed: its workers live on, and another one is loaded. */
static void observe_crash(struct template *template, usec_t uptime, usec_t now)
{
        struct fleet *fleet = template->fleet;

        if (template_forks(template)) {
                observe_failure(fleet, template->generation, template->fork.asked_at, now);
                return;
        }
        fleet->totals.template_failures++;
        start_failure_report(fleet, EVENT_TEMPLATE_FAILED, NULL);
        fleet->crash_last_apart = uptime >= FAILED_START_USEC;
        if (uptime < FAILED_START_USEC)
                start_failure_back_off(fleet, now);
}

void template_observe_exit(struct template *template, const struct exit_status *exit, const char *script,
                           usec_t now)
{
        struct fleet *fleet = template->fleet;
        bool ready = template->state == TEMPLATE_READY, current = template_is_current(template);
        usec_t uptime = usec_sub(now, ready ? template->state_at : template->started_at);
        char after[FORMAT_MAX + 32] = "";

        if (template->state == TEMPLATE_ENDING || template->lost) {
                template_forget(template);
                return;
        }
        if (!exit->launch_error)
                snprintf(after, sizeof(after), " after %s%s", FORMAT_DURATION(uptime),
                         ready ? "" : ", before it was ready");
        start_failure_describe(fleet, exit, "%s %s%s", NAME_OF(template), EXIT_STATUS_TEXT(exit), after);
        fleet->preload.lines_token = !ready && current ? exit->lines_token : 0;
        if (ready)
                observe_crash(template, uptime, now);
        else if (!current || !refuse_unseen(fleet, exit->log_tail, script))
                observe_failure(fleet, template->generation, template->started_at, now);
        template_forget(template);
}

void template_observe_time(struct fleet *fleet, usec_t now)
{
        struct preload *preload = &fleet->preload;
        usec_t since = fleet->world->ledger_volatile ? fleet->world->unsaved_since : 0;
        bool before = preload->unrecorded;

        preload->unrecorded =
                fleet_preloads(fleet) && since != 0 && now >= usec_add(since, fleet->settings->boot_timeout);
        if (preload->unrecorded && !before)
                fleet_event(fleet, EVENT_PRELOAD_REFUSED,
                            ": preload is suspended, workers boot separately: %s",
                            fleet_preload_refused(fleet));
}
