/* SPDX-License-Identifier: MIT */
/* Generations, restarts and failed starts of a fleet; see the header. */
#include "model/rollout.h"
#include "base/parse.h"
#include "base/text.h"
#include "model/counts.h"
#include "model/deadlines.h"
#include "model/describe.h"
#include "model/memory.h"
#include "model/preload.h"
#include "model/world.h"

/* splitmix64 (Steele, Lea and Flood, 2014): a state of 64 bits, any seed is valid. */
static uint64_t random_next(uint64_t *state)
{
        uint64_t z = *state += 0x9e3779b97f4a7c15U;

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31);
}

void backoff_fail(struct backoff *backoff, uint64_t *random, usec_t now)
{
        usec_t ceiling = BACKOFF_MIN_USEC;

        for (unsigned i = 0; i < backoff->count && ceiling < BACKOFF_MAX_USEC; i++)
                ceiling *= 2;
        ceiling = MIN(ceiling, BACKOFF_MAX_USEC);

        if (backoff->count++ == 0)
                backoff->since = now;
        backoff->failed_at = now;
        usec_t delay = random_next(random) % (ceiling + 1);
        backoff->next_at = MAX(backoff->next_at, usec_add(now, delay));
}

void backoff_reset(struct backoff *backoff)
{
        *backoff = (struct backoff){0};
}

static bool is_used(const struct fleet *fleet, uint64_t generation)
{
        FLEET_FOREACH_WORKER(fleet, worker)
                if (worker->state != WORKER_GONE && worker->generation == generation)
                        return true;
        FLEET_FOREACH_TEMPLATE(fleet, template)
                if (template_is_alive(template) && template->generation == generation)
                        return true;
        return false;
}

void generation_begin(struct fleet *fleet)
{
        fleet->newest_generation = MAX(fleet->newest_generation, fleet->generation);
        memset(fleet->launches, 0, sizeof(fleet->launches));
        fleet->launches[0] = (struct launch){fleet->generation, fleet->settings->launch_hash};
}

void generation_restart(struct fleet *fleet)
{
        fleet->generation = MAX(fleet->newest_generation, fleet->generation) + 1;
        generation_begin(fleet);
}

/* Returns to an earlier generation: workers and templates of all others become outdated. */
static void generation_return(struct fleet *fleet, uint64_t generation)
{
        fleet->newest_generation = MAX(fleet->newest_generation, fleet->generation);
        fleet->generation = generation;
        generation_begin(fleet);
}

/* Returns a free entry. If there is none, drops the oldest one without workers and templates, or else the
 * oldest. The entry of the last restart is never dropped. */
static struct launch *launch_place(struct fleet *fleet)
{
        struct launch *end = fleet->launches + LAUNCHES_KEPT, *at = fleet->launches + 1;

        for (struct launch *each = at; each < end; each++)
                if (each->generation == 0)
                        return each;
        while (at < end - 1 && is_used(fleet, at->generation))
                at++;
        if (is_used(fleet, at->generation))
                at = fleet->launches + 1;
        memmove(at, at + 1, (size_t)(end - at - 1) * sizeof(*at));
        return end - 1;
}

/* The launch settings have changed. During a restart a new generation begins, so all existing workers become
 * outdated. Otherwise only workers that were started from other settings become outdated. */
static void generation_follow_settings(struct fleet *fleet)
{
        uint64_t hash = fleet->settings->launch_hash;

        fleet->boot_heard = fleet->boot_in_proc = false;
        /* Clients recognize a running restart by its generation, which must not become lower. */
        if (fleet->rollout.state == ROLLOUT_RUNNING) {
                generation_restart(fleet);
                return;
        }
        FOREACH_ELEMENT(launch, fleet->launches)
                if (launch->generation != 0 && launch->launch_hash == hash) {
                        fleet->generation = launch->generation;
                        return;
                }
        fleet->generation = ++fleet->newest_generation;
        *launch_place(fleet) = (struct launch){fleet->generation, hash};
}

void generation_observe(struct fleet *fleet, uint64_t generation)
{
        if (generation <= fleet->newest_generation)
                return;
        /* A restart that the state does not tell of has ended a return. */
        fleet->rollout.returned = false;
        /* The restart that is done was an earlier one. */
        if (fleet->rollout.state == ROLLOUT_DONE)
                fleet->rollout.state = ROLLOUT_NONE;
        fleet->generation = generation;
        generation_begin(fleet);
}

uint64_t generation_shown(const struct fleet *fleet)
{
        uint64_t shown = fleet->launches[0].generation;

        if (fleet->rollout.state == ROLLOUT_RUNNING || is_used(fleet, fleet->generation))
                return fleet->generation;
        FOREACH_ELEMENT(launch, fleet->launches)
                if (is_used(fleet, launch->generation))
                        shown = MAX(shown, launch->generation);
        return shown;
}

static bool precedes_restart(const struct worker *worker)
{
        return worker->generation < worker->fleet->launches[0].generation;
}

bool generation_is_replaced(const struct worker *worker)
{
        enum rollout_state state = worker->fleet->rollout.state;

        return state == ROLLOUT_RUNNING ? worker_outdated(worker)
                                        : state == ROLLOUT_DONE && precedes_restart(worker);
}

unsigned generation_outdated_by_reload(const struct fleet *fleet)
{
        unsigned n = 0;

        /* A return has outdated the workers of later generations. */
        if (fleet->rollout.returned)
                return 0;
        FLEET_FOREACH_WORKER(fleet, worker) {
                if (worker->state > WORKER_ACTIVE || !worker_outdated(worker))
                        continue;
                if (precedes_restart(worker))
                        return 0;
                n++;
        }
        return n;
}

/* A worker that was active for less than this delays the next start, however short its trial. */
#define FAILED_START_USEC (10 * USEC_PER_SEC)

void start_failure_describe(struct fleet *fleet, const struct exit_status *exit, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(fleet->crash_last, sizeof(fleet->crash_last), format, arguments);
        va_end(arguments);
        fleet->crash_quoted = (struct quoted){0};
        if (exit && exit->launch_error)
                fleet->crash_quoted = *exit->launch_error;
        if (exit && exit->log_tail)
                quoted_append(&fleet->crash_quoted, exit->log_tail);
        fleet->lines_token = exit ? exit->lines_token : 0;
}

void start_failure_report(struct fleet *fleet, enum event_kind kind, const struct worker *worker)
{
        event_quote(world_event(fleet->world, kind, fleet, worker, "%s", fleet->crash_last),
                    &fleet->crash_quoted);
}

bool worker_is_failed_start(const struct worker *worker, usec_t uptime)
{
        return uptime < MAX(FAILED_START_USEC, worker->fleet->settings->ready_after);
}

void start_failure_back_off(struct fleet *fleet, usec_t now)
{
        backoff_fail(&fleet->crash, &fleet->random, now);
}

void start_failure_observe_shortage(struct fleet *fleet, int error, usec_t now)
{
        backoff_fail(&fleet->shortage, &fleet->random, now);
        fleet->shortage_error = error;
}

#define ROLLOUT_FAILURES_MAX 3

/* Returns true if a worker of the generation before the last restart, or of an earlier one, accepts jobs. */
static bool runs_before(const struct fleet *fleet)
{
        return FLEET_COUNT_WORKERS(
                       fleet, worker,
                       worker->generation <= fleet->rollout.before && !worker_hangs(worker) &&
                               (worker->state == WORKER_ACTIVE ||
                                (worker->state == WORKER_STARTING && worker->process.elsewhere))) > 0;
}

/* The number of those that boot or accept jobs. */
static unsigned count_kept(const struct fleet *fleet)
{
        return FLEET_COUNT_WORKERS(fleet, worker,
                                   worker->state <= WORKER_ACTIVE &&
                                           worker->generation <= fleet->rollout.before &&
                                           !worker_hangs(worker));
}

/* Returns the generation to go back to from the next one: one that has workers. A restart that did not end
 * well leaves the one before it. */
static uint64_t proven_generation(const struct fleet *fleet)
{
        const struct rollout *rollout = &fleet->rollout;
        bool tried = rollout->state == ROLLOUT_RUNNING || rollout->state == ROLLOUT_HALTED ||
                     rollout->state == ROLLOUT_ABORTED;

        return tried && !rollout->returned && (count_kept(fleet) > 0 || fleet_template_before(fleet))
                       ? rollout->before
                       : generation_shown(fleet);
}

/* Sets the state of the restart, and what ended it. quoted: NULL: nothing. */
static void set_error(struct fleet *fleet, enum rollout_state state, const char *error,
                      const struct quoted *quoted)
{
        struct rollout *rollout = &fleet->rollout;

        rollout->state = state;
        rollout->lines_token = 0;
        snprintf(rollout->error, sizeof(rollout->error), "%s", error);
        rollout->quoted = quoted ? *quoted : (struct quoted){0};
}

void rollout_start(struct fleet *fleet, const struct orderer *by, usec_t now)
{
        uint64_t before = proven_generation(fleet);

        generation_restart(fleet);
        struct fleet_counts counts = fleet_count(fleet, now);
        fleet->rollout = (struct rollout){
                .state = ROLLOUT_RUNNING,
                .before = before,
                .total = counts.outdated,
                .elsewhere = counts.active == 0 && counts.elsewhere > 0,
                .started_at = now,
                .progress_at = now,
        };
        backoff_reset(&fleet->crash);
        backoff_reset(&fleet->churn);
        fleet->preload.failures = 0;
        event_by(by, fleet_event(fleet, EVENT_ROLLOUT_STARTED,
                                 ": restart to generation %llu started by %s; %u worker%s to replace",
                                 (unsigned long long)fleet->generation, ORDERER_TEXT(by),
                                 fleet->rollout.total, plural(fleet->rollout.total)));
}

/* Ends a return, without which workers of the release that was left may stay. The restart counts as halted
 * until it is acknowledged or another one begins. */
static void end_return(struct fleet *fleet, const char *why, usec_t now)
{
        struct rollout *rollout = &fleet->rollout;
        unsigned long long to = rollout->before;
        unsigned n = fleet_given_up(fleet);
        size_t length = strlen(rollout->error);
        char left[80];

        rollout->returned = false;
        rollout->before = 0;
        rollout->state = ROLLOUT_HALTED;
        rollout->progress_at = now;
        snprintf(rollout->error + length, sizeof(rollout->error) - length,
                 "; the rollback to generation %llu ended: %s", to, why);
        snprintf(left, sizeof(left), "; %u worker%s of the release that was left keep%s running", n,
                 plural(n), n == 1 ? "s" : "");
        fleet_event(
                fleet, EVENT_ROLLOUT_ABORTED,
                ": the rollback to generation %llu ended%s (reason: %s). Link the release that is to run, "
                "then run 'sqmgrctl restart %s'",
                to, n > 0 ? left : "", why, fleet->settings->name);
}

void rollout_outdate(struct fleet *fleet, usec_t now)
{
        /* The template of the generation before was started from other settings. */
        if (fleet->rollout.returned && !fleet->settings->removed)
                end_return(fleet, "the settings that workers are started with have changed", now);
        generation_follow_settings(fleet);
        fleet->preload.failures = 0;
        if (fleet->rollout.state != ROLLOUT_RUNNING) {
                fleet->rollout.before = fleet->rollout.kept_since = 0;
                fleet->rollout.returned = false;
                return;
        }
        fleet->rollout.total = MAX(fleet->rollout.total, fleet_count(fleet, now).outdated);
        fleet->rollout.failures = 0;
        rollout_observe_progress(fleet, now);
}

void rollout_abort(struct fleet *fleet, const char *why, const struct orderer *by)
{
        if (fleet->rollout.state != ROLLOUT_RUNNING)
                return;
        set_error(fleet, ROLLOUT_ABORTED, why, NULL);
        event_by(by, fleet_event(fleet, EVENT_ROLLOUT_ABORTED, ": restart aborted (reason: %s)", why));
}

void rollout_acknowledge(struct fleet *fleet, const struct orderer *by)
{
        char why[ORDERER_TEXT_MAX + 64];

        if (fleet->rollout.state != ROLLOUT_HALTED)
                return;
        snprintf(why, sizeof(why), "halted, then acknowledged by %s", ORDERER_TEXT(by));
        set_error(fleet, ROLLOUT_ABORTED, why, NULL);
        backoff_reset(&fleet->crash);
        event_by(by,
                 fleet_event(fleet, EVENT_ORDER, ": halted restart acknowledged by %s", ORDERER_TEXT(by)));
}

static void rollout_halt(struct fleet *fleet, bool judged, usec_t now)
{
        bool any_old = fleet_count(fleet, now).outdated > 0;

        rollout_observe_progress(fleet, now);
        fleet->rollout.state = ROLLOUT_HALTED;
        event_quote(
                fleet_event(fleet, EVENT_ROLLOUT_HALTED,
                            ": restart halted; %s (reason: %s). Fix the %s, then run 'sqmgrctl restart %s'",
                            any_old ? "old workers keep running" : "no old workers are left",
                            fleet->rollout.error,
                            fleet->rollout.failures < ROLLOUT_FAILURES_MAX && !judged ? "cause" : "release",
                            fleet->settings->name),
                &fleet->rollout.quoted);
}

void rollout_observe_progress(struct fleet *fleet, usec_t now)
{
        /* After a halt, the time of the halt stays. */
        if (fleet->rollout.state != ROLLOUT_HALTED)
                fleet->rollout.progress_at = now;
}

/* A new worker has failed, as described in fleet->crash_last. */
static void observe_failure(struct fleet *fleet, usec_t now)
{
        struct rollout *rollout = &fleet->rollout;

        if (rollout->state != ROLLOUT_RUNNING)
                return;
        rollout->failed_at = now;
        if (++rollout->failures < ROLLOUT_FAILURES_MAX)
                return;
        snprintf(rollout->error, sizeof(rollout->error), "%u new workers failed in a row; last failure: %s",
                 rollout->failures, fleet->crash_last);
        rollout->quoted = fleet->crash_quoted;
        rollout->lines_token = fleet->lines_token;
        rollout_halt(fleet, false, now);
}

void start_failure_observe(struct fleet *fleet, uint64_t generation, usec_t spawned_at, bool failed_start,
                           usec_t now)
{
        if (failed_start)
                start_failure_back_off(fleet, now);
        fleet->crash_last_apart = !failed_start;
        if (generation == fleet->generation && fleet->redis_up && fleet->redis_at <= spawned_at)
                observe_failure(fleet, now);
}

void rollout_observe_unseen(struct fleet *fleet, usec_t now)
{
        struct rollout *rollout = &fleet->rollout;
        unsigned seen = FLEET_COUNT_WORKERS(fleet, worker,
                                            worker->state <= WORKER_ACTIVE && !worker_outdated(worker) &&
                                                    !worker_is_unseen(worker));

        if (rollout->state != ROLLOUT_RUNNING || seen > 0)
                return;
        rollout->failures = ROLLOUT_FAILURES_MAX;
        snprintf(rollout->error, sizeof(rollout->error), "no new worker was seen to boot; %s",
                 fleet->crash_last);
        rollout_halt(fleet, false, now);
}

static void return_to_before(struct fleet *fleet)
{
        generation_return(fleet, fleet->rollout.before);
        fleet->rollout.returned = true;
        fleet->rollout.limit = 0;
        fleet->rollout.kept_since = 0;
        fleet->rollout.total = fleet_given_up(fleet);
        /* The restart waits for nothing any more; the next pass sets the wait anew. */
        fleet->waits_for = WAIT_NONE;
        backoff_reset(&fleet->crash);
}

void rollout_reject(struct fleet *fleet, const char *why, const struct quoted *quoted, usec_t now)
{
        if (fleet->rollout.state != ROLLOUT_RUNNING)
                return;
        set_error(fleet, ROLLOUT_RUNNING, why, quoted);
        rollout_halt(fleet, true, now);
        if (count_kept(fleet) > 0 || fleet_template_before(fleet))
                return_to_before(fleet);
}

bool rollout_can_return(const struct fleet *fleet)
{
        return fleet->rollout.before != 0 && !fleet->rollout.returned && fleet_template_before(fleet);
}

void rollout_return(struct fleet *fleet, const struct orderer *by)
{
        uint64_t from = fleet->generation;
        char why[ORDERER_TEXT_MAX + 64];

        snprintf(why, sizeof(why), "rolled back to generation %llu by %s",
                 (unsigned long long)fleet->rollout.before, ORDERER_TEXT(by));
        rollout_abort(fleet, why, by);
        set_error(fleet, ROLLOUT_ABORTED, why, NULL);
        return_to_before(fleet);
        event_by(by, fleet_event(fleet, EVENT_ORDER, ": rolled back from generation %llu to %llu by %s",
                                 (unsigned long long)from, (unsigned long long)fleet->generation,
                                 ORDERER_TEXT(by)));
}

bool rollout_withholds(const struct fleet *fleet)
{
        return fleet->rollout.returned && (!fleet_template(fleet) || fleet->preload.unrecorded) &&
               count_kept(fleet) > 0;
}

/* Returns true if an operator ordered the return, or has acknowledged the halt after a bad verdict of a
 * trial. Without preload there is no ordered return: only a trial returns from a release. */
static bool is_ordered_return(const struct fleet *fleet)
{
        return fleet->rollout.returned && fleet->rollout.state == ROLLOUT_ABORTED && fleet->settings->preload;
}

bool rollout_drops(const struct fleet *fleet)
{
        return fleet->rollout.returned && !is_ordered_return(fleet) && !fleet_template(fleet) &&
               runs_before(fleet);
}

/* Without template and workers of the generation that the fleet has returned to, what the command starts is
 * current. An ordered return whose template ends too early is over, too: it would cost the fleet the workers
 * that nothing replaces. */
static void observe_return(struct fleet *fleet, usec_t now)
{
        if (!fleet->rollout.returned || fleet->held || fleet_target(fleet) == 0 || fleet_template(fleet))
                return;
        if (count_kept(fleet) == 0)
                end_return(fleet,
                           "neither its template nor a worker of it is left, so the command starts workers "
                           "again, whichever release it leads to",
                           now);
        else if (is_ordered_return(fleet) && fleet_given_up(fleet) > 0 &&
                 count_kept(fleet) < fleet_target(fleet))
                end_return(fleet, "its template ended before all workers were replaced", now);
        else
                return;
        generation_return(fleet, fleet->newest_generation);
}

/* After a complete restart, the template of the generation before stays for TEMPLATE_KEEP_USEC, or until
 * memory runs short. */
static void observe_kept_template(struct fleet *fleet, usec_t now)
{
        usec_t since = fleet->rollout.kept_since;

        if (since != 0 && (now >= usec_add(since, TEMPLATE_KEEP_USEC) || memory_lacks(fleet, now)))
                fleet->rollout.kept_since = 0;
}

/* True if a new worker became ready after the last failure, or as many are ready as the fleet needs, and
 * nothing more of the release would be started that could show that. */
static bool rollout_is_proven(const struct fleet *fleet, usec_t now)
{
        unsigned ready = 0;

        FLEET_FOREACH_WORKER(fleet, worker) {
                if (worker_outdated(worker) || !worker_ready(worker, now))
                        continue;
                if (worker_ready_at(worker) > fleet->rollout.failed_at)
                        return true;
                ready++;
        }
        return ready >= fleet_target(fleet) && !fleet_awaits_template(fleet);
}

enum reason rollout_kept_reason(const struct worker *worker)
{
        const struct rollout *rollout = &worker->fleet->rollout;
        bool ended = rollout->state == ROLLOUT_HALTED || rollout->state == ROLLOUT_ABORTED;

        return (ended && worker->reason == REASON_RESTART) ||
                               (!rollout->returned && worker->reason == REASON_ROLLBACK)
                       ? REASON_NONE
                       : worker->reason;
}

bool rollout_is_held(const struct fleet *fleet)
{
        return fleet->rollout.state == ROLLOUT_RUNNING && fleet->rollout.failures > 0;
}

/* Writes what blocks the restart, if known: ": ..." or "". */
static void stuck_text(const struct fleet *fleet, unsigned live, char *text, size_t size)
{
        char why[WORKER_ELSEWHERE_MAX], elsewhere[WORKER_ELSEWHERE_MAX + 64];

        text[0] = '\0';
        if (live >= fleet_max_processes(fleet)) {
                snprintf(text, size, ": max_processes (%u) allows no new worker", fleet_max_processes(fleet));
                return;
        }
        FLEET_FOREACH_WORKER(fleet, worker) {
                if (worker->state != WORKER_STARTING)
                        continue;
                snprintf(elsewhere, sizeof(elsewhere), "has booted, but its heartbeat was not found: %s",
                         worker_elsewhere_text(worker, why));
                snprintf(text, size, ": %s %s", WORKER_ID(worker),
                         worker->heartbeat.ambiguous
                                 ? "shares its host name and pid with another process that sends heartbeats"
                         : worker->process.booted ? elsewhere
                         : fleet_settings_write_heartbeats(fleet->settings)
                                 ? "shows no heartbeat"
                                 : "is not running its command yet");
                return;
        }
        const struct template *template = fleet_template(fleet);
        if (template && template->state == TEMPLATE_LOADING)
                snprintf(text, size, ": the template has not loaded the application");
}

/* A restart does not wait for hung workers: they are quieted after their next heartbeat. Returns their
 * number. */
static unsigned quiet_the_hung(struct fleet *fleet)
{
        unsigned n = 0;

        FLEET_FOREACH_WORKER(fleet, worker) {
                if (!worker_hangs(worker) || !worker_outdated(worker))
                        continue;
                worker->orders.quiet = true;
                n++;
        }
        return n;
}

/* True if draining or hung workers hold places that a start needs: max_processes is reached, or surge is 0.
 */
static bool places_are_held(const struct fleet *fleet, const struct fleet_counts *counts)
{
        unsigned for_restart = FLEET_COUNT_WORKERS(
                fleet, worker, worker_is_retiring(worker) && worker->reason == REASON_RESTART);

        return counts->quiet + counts->stopping + counts->hung > 0 &&
               (counts->live >= fleet_max_processes(fleet) || (for_restart > 0 && fleet_surge(fleet) == 0));
}

/* True if a limited restart has all new workers that it may have, and they accept jobs. */
static bool limit_holds(const struct fleet *fleet, usec_t now)
{
        unsigned limit = fleet->rollout.limit;

        return limit > 0 &&
               FLEET_COUNT_WORKERS(fleet, worker,
                                   !worker_outdated(worker) &&
                                           ((worker->state == WORKER_ACTIVE && !worker->heartbeat.hung) ||
                                            (fleet->rollout.elsewhere && worker_title_ready(worker, now)))) >=
                       limit;
}

void rollout_observe_time(struct fleet *fleet, usec_t now)
{
        struct rollout *rollout = &fleet->rollout;
        usec_t timeout = fleet->settings->rollout_timeout;

        observe_return(fleet, now);
        observe_kept_template(fleet, now);
        /* No worker is replaced while sqmgr ends; the next sqmgr continues the restart. */
        if (rollout->state != ROLLOUT_RUNNING || fleet->world->shutting_down)
                return;
        if (rollout->failures > 0 && rollout_is_proven(fleet, now)) {
                rollout->failures = 0;
                rollout->progress_at = now;
        }

        struct fleet_counts counts = fleet_count(fleet, now);
        char more[512] = "";
        unsigned ready = counts.active + (rollout->elsewhere ? counts.elsewhere : 0);
        if (counts.outdated == 0 && ready >= fleet_target(fleet)) {
                rollout->state = ROLLOUT_DONE;
                rollout->kept_since = fleet_template_before(fleet) ? now : 0;
                unsigned hung = quiet_the_hung(fleet);
                if (counts.draining > 0)
                        text_append(more, sizeof(more), ", %u old worker%s still draining", counts.draining,
                                    plural(counts.draining));
                if (hung > 0)
                        text_append(more, sizeof(more),
                                    "; %u old worker%s hung, to be quieted when heartbeats resume", hung,
                                    hung == 1 ? " is" : "s are");
                if (counts.elsewhere > 0)
                        text_append(more, sizeof(more),
                                    "; no heartbeat of %u new worker%s was found. Run 'sqmgrctl doctor'",
                                    counts.elsewhere, plural(counts.elsewhere));
                if (counts.unseen > 0)
                        text_append(
                                more, sizeof(more),
                                "; no heartbeat of %u worker%s was ever found; kept. Run 'sqmgrctl doctor'",
                                counts.unseen, plural(counts.unseen));
                fleet_event(fleet, EVENT_ROLLOUT_DONE, ": restart done; generation %llu is current%s",
                            (unsigned long long)fleet->generation, more);
                return;
        }
        /* Blocked through no fault of the release: rollout_timeout does not advance. */
        if (!fleet->redis_up || fleet->redis_at > rollout->progress_at ||
            fleet->world->doubt.since > rollout->progress_at || places_are_held(fleet, &counts) ||
            fleet->waits_for == WAIT_FORK || fleet->waits_for == WAIT_MEMORY || memory_lacks(fleet, now) ||
            limit_holds(fleet, now))
                rollout->progress_at = now;
        if (now < usec_add(rollout->progress_at, timeout))
                return;

        char reason[512];
        stuck_text(fleet, counts.live, reason, sizeof(reason));
        snprintf(rollout->error, sizeof(rollout->error), "no progress for %s (rollout_timeout)%s",
                 FORMAT_DURATION(timeout), reason);
        rollout_halt(fleet, false, now);
}
