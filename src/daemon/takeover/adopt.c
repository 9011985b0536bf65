/* SPDX-License-Identifier: MIT */
/* Adopts the workers of an earlier sqmgr: those named in the state, and others found by takeover/search.c. */
#include "base/fd.h"
#include "base/parse.h"
#include "continuity/adoption.h"
#include "continuity/state.h"
#include "daemon/takeover/search.h"
#include "daemon/workers/attach.h"
#include "daemon/workers/execute.h"
#include "daemon/workers/rescue.h"
#include "daemon/workers/side_start.h"
#include "daemon/workers/start_record.h"
#include "daemon/workers/templates.h"
#include "io/clock.h"
#include "io/log.h"
#include "io/timer.h"
#include "model/fleets.h"
#include "model/world.h"
#include "observe/observe.h"
#include "settings/operations.h"

/* Interval between searches while processes are unclear. */
#define SEARCH_USEC (100 * USEC_PER_MSEC)
/* Slices of the first search, before anything else is served. */
#define FIRST_SLICES 32

struct search *adopt_free(struct search *search)
{
        if (!search)
                return NULL;
        sd_event_source_disable_unref(search->timer);
        adoption_free(search->adoption);
        free(search->pids);
        free(search);
        return NULL;
}

DEFINE_CLEANUP(struct search *, adopt_free)

/* Confirms the stop signal if the kernel shows it as pending: sent, and not handled by the worker yet. */
static void confirm_pending(const struct fleet *fleet, const struct proc *proc, struct worker *known)
{
        int signo = fleet_settings_stop_signal(fleet->settings)
                            ?: framework_of(fleet->settings->traits)->stop_signal;

        if (known->orders.unconfirmed && proc && proc_signal_is_pending(proc, signo) > 0)
                known->orders.unconfirmed = false;
}

/* Adopts a worker named in the state or in the ledger. start: its record in the ledger; NULL: none. */
static int adopt_known(struct search *search, struct fleet *fleet, struct worker *known, const char *identity,
                       const struct ledger_start *start, usec_t now)
{
        _cleanup_proc_ struct proc *main = NULL, *heartbeat = NULL;

        if (start)
                ledger_settle(start, fleet->settings->traits, known);
        int r = proc_find(known->process.pid, known->process.start, &main);
        if (r == 0)
                r = proc_find(known->process.heartbeat_pid, known->process.heartbeat_start, &heartbeat);
        if (r < 0)
                return r;
        confirm_pending(fleet, heartbeat ?: main, known);
        struct worker *worker =
                adoption_take_known(search->adoption, fleet, known, main ? known->process.start : 0,
                                    heartbeat ? known->process.heartbeat_start : 0, now);
        if (!worker)
                return -ENOMEM;
        if (worker->state != WORKER_GONE && worker->orders.unconfirmed)
                observe_unconfirmed(worker, execute_stop_signal(worker));
        if (!heartbeat && known->process.heartbeat_pid != 0 && identity[0] != '\0')
                rescue_begin(search->runtime, fleet, known, identity, &(struct exit_status){.known = false},
                             NULL);
        if (worker->state == WORKER_GONE) {
                ledger_end(&search->runtime->ledger.ledger, start ? start->number : 0);
                after_exit_begin(search->runtime, worker, &(struct exit_status){.known = false});
                return 0;
        }
        const char *heard_as = heartbeat && identity[0] != '\0' ? identity : NULL;
        if (!main)
                main = TAKE_PTR(heartbeat);
        else if (known->process.heartbeat_pid == known->process.pid)
                heartbeat = proc_close(heartbeat);
        r = attach_adopted(search->runtime, worker, TAKE_PTR(main), TAKE_PTR(heartbeat), heard_as,
                           start ? start->number : 0);
        return r < 0 || known->process.heartbeat_pid != 0
                       ? r
                       : heartbeats_know_hosts(worker->handle->slot, identity);
}

/* Adopts the workers that the state does not name yet. */
static int adopt_started(struct search *search, const struct ledger_starts *starts, usec_t now)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < starts->n; i++) {
                const struct ledger_start *start = &starts->list[i];
                struct worker known;
                struct fleet *fleet;

                if (adoption_know_start(search->adoption, start, &fleet, &known)) {
                        r = adopt_known(search, fleet, &known, "", start, now);
                        continue;
                }
                ledger_end(&search->runtime->ledger.ledger, start->number);
                if (!fleet && proc_is_alive(start->pid, start->start))
                        log_error("pid %d, started by sqmgr as %s, is left alone (reason: fleet '%s' is no "
                                  "longer configured)",
                                  (int)start->pid, WORKER_ID_OF(start->fleet, start->index), start->fleet);
        }
        return r;
}

/* Adds a fleet that is no longer configured: its workers drain. */
static int add_removed(struct runtime *runtime, struct settings *settings, const struct state_fleet *saved,
                       usec_t now, struct fleet **ret)
{
        const struct traits *traits = framework_traits_find(saved->framework);

        *ret = NULL;
        if (!traits) {
                log_error("fleet '%s' is no longer configured and its framework is unknown to this version; "
                          "its workers (%zu at the last count) are left alone",
                          saved->name, saved->n_workers);
                return 0;
        }
        struct fleet_settings *removed = settings_add_removed(settings, saved->name, traits);
        if (!removed)
                return -ENOMEM;
        removed->launch_hash = saved->launch_hash;
        if (traits->heartbeat_chosen)
                removed->heartbeat = (int)saved->heartbeat;
        char **url = fleet_settings_need_database(removed) ? &removed->database_url : &removed->redis_url;
        if (saved->redis_url[0] != '\0' && !(*url = strdup(saved->redis_url)))
                return -ENOMEM;
        int r = links_make(runtime, settings);
        if (r >= 0)
                r = world_reload(runtime->world, settings, NULL, now);
        if (r < 0)
                return r;
        links_join(runtime);
        *ret = world_fleet(runtime->world, saved->name);
        log_warning(
                "fleet '%s' is no longer configured; its workers (%zu at the last count) are being drained",
                saved->name, saved->n_workers);
        return 0;
}

static int continue_fleet(struct search *search, struct fleet *fleet, const struct state_fleet *saved,
                          struct ledger_starts *starts, usec_t now)
{
        adoption_continue_fleet(search->adoption, fleet, saved, now);
        subsystems_unpack(&search->runtime->subsystems, fleet, &saved->features);
        int r = templates_adopt(search->runtime, fleet, saved);
        for (size_t i = 0; r >= 0 && i < saved->n_workers; i++) {
                struct state_worker *worker = &saved->workers[i];
                struct ledger_start start;
                bool recorded = ledger_starts_take(&search->runtime->ledger.ledger, starts, saved->name,
                                                   &worker->worker, &start);

                r = adopt_known(search, fleet, &worker->worker, worker->identity, recorded ? &start : NULL,
                                now);
        }
        return r;
}

static int continue_state(struct search *search, struct settings *settings, const struct state *state,
                          struct ledger_starts *starts, usec_t now)
{
        struct runtime *runtime = search->runtime;

        for (size_t i = 0; i < state->n_fleets; i++) {
                const struct state_fleet *saved = &state->fleets[i];
                struct fleet *fleet = world_fleet(runtime->world, saved->name);
                int r = 0;

                if (!fleet && saved->n_workers == 0)
                        continue;
                if (!fleet)
                        r = add_removed(runtime, settings, saved, now, &fleet);
                if (r >= 0 && fleet)
                        r = continue_fleet(search, fleet, saved, starts, now);
                if (r < 0)
                        return r;
        }
        for (const struct state_dead *dead = state->dead; dead; dead = dead->next) {
                struct fleet *fleet = world_fleet(runtime->world, dead->fleet);

                if (fleet && dead->worker.identity[0] != '\0')
                        rescue_begin(runtime, fleet, &dead->worker.worker, dead->worker.identity, &dead->exit,
                                     NULL);
        }
        return 0;
}

/* After a reboot, or if the state is lost. The state is newer, so that is read alone if it is there. Which
 * workers run is not known from the orders: the search for workers continues all the same. */
static int continue_orders(const struct runtime *runtime, usec_t now)
{
        const char *path = runtime->orders.path;
        struct state *orders = NULL;
        char why[512];

        int r = path ? state_load(path, runtime->boot_id, now, &orders, why, sizeof(why)) : STATEFILE_MISSING;
        for (size_t i = 0; orders && i < orders->n_fleets; i++) {
                struct fleet *fleet = world_fleet(runtime->world, orders->fleets[i].name);

                if (fleet)
                        state_continue_fleet(fleet, &orders->fleets[i], now);
        }
        state_free(orders);
        if (r == STATEFILE_READ)
                log_info("the orders of operators continue as '%s' says", path);
        else if (r == STATEFILE_LOST)
                log_warning("the orders of operators are lost (reason: %s)", why);
        return MIN(r, 0);
}

void adopt_resume(const struct runtime *runtime)
{
        struct search *search = runtime->search;

        if (search && search->timer && search->waits)
                timer_set(search->timer, clock_now(CLOCK_MONOTONIC));
}

/* The workers of an earlier sqmgr are adopted: what else runs in the service belongs to nobody. */
static void end_search(struct search *search)
{
        struct runtime *runtime = search->runtime;

        ledger_set_gap(&runtime->ledger.ledger, LEDGER_GAP_SEARCH, false);
        if (search->service[0] != '\0')
                unknown_find(runtime->world, &runtime->unknown);
}

static int on_search(sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
        struct search *search = userdata;
        struct runtime *runtime = search->runtime;
        struct wakeup *wakeup = runtime->wakeup;
        usec_t now = clock_now(CLOCK_MONOTONIC);
        unsigned found = search->adoption->found;

        int r = search_run(search, now);
        if (r == SEARCH_GOES_ON) {
                timer_set(source, search->waits ? usec_add(now, SEARCH_USEC) : now);
                return 0;
        }
        if (r < 0 && r != search->failed)
                log_error("cannot search for workers of an earlier sqmgr: %s; no worker is started until the "
                          "search succeeds",
                          strerror(-r));
        search->failed = r;
        bool done = adoption_search_end(search->adoption, r, now);
        wakeup_arm(wakeup);
        if (search->adoption->found != found)
                wakeup_changed(wakeup);
        if (!done) {
                timer_set(source, usec_add(now, SEARCH_USEC));
                return 0;
        }
        end_search(search);
        runtime->search = adopt_free(search);
        wakeup_changed(wakeup);
        return 0;
}

static int search_new(struct runtime *runtime, usec_t now, struct search **ret)
{
        _cleanup_(adopt_free_pointer) struct search *search = calloc(1, sizeof(*search));

        if (!search)
                return -ENOMEM;
        search->runtime = runtime;
        int r = adoption_new(runtime->world, runtime->instance, now, &search->adoption);
        if (r >= 0)
                r = search_service(search);
        if (r >= 0)
                *ret = TAKE_PTR(search);
        return r;
}

/* Logs the result. more: the first search has not seen all processes yet. */
static void report(const struct search *search, bool more, int outcome, const char *why)
{
        const struct adoption *adoption = search->adoption;
        const char *still = more ? "; the search continues" : "";

        unsigned adopted = adoption->adopted + adoption->found;
        const char *found = adopted == 1 ? "worker" : "workers";

        if (outcome == STATEFILE_READ)
                log_info("adopted %u worker%s of an earlier sqmgr, %u %s gone%s", adopted, plural(adopted),
                         adoption->gone, adoption->gone == 1 ? "is" : "are", still);
        else if (outcome != STATEFILE_MISSING)
                log_warning("the state is lost (reason: %s); found and adopted %u %s%s", why, adopted, found,
                            still);
        else if (adopted > 0 || more)
                log_warning("the state is missing (reason: %s); found and adopted %u %s%s", why, adopted,
                            found, still);
        else
                log_info("no state and no workers of an earlier sqmgr (%s)%s", why, still);
}

/* Reads a state whose path was changed from its old place. */
static void follow_state(const struct settings *settings)
{
        char link[PATH_MAX], old[PATH_MAX];

        if (snprintf(link, sizeof(link), "%s.state", settings->socket) >= (int)sizeof(link))
                return;
        int r = statefile_follow(link, settings->state_file, old);
        if (r > 0)
                log_info("the state was moved from '%s' to '%s'", old, settings->state_file);
        else if (r < 0)
                log_warning("cannot move the state from '%s' to '%s': %s; workers are searched for", old,
                            settings->state_file, strerror(-r));
}

int adopt_begin(struct runtime *runtime, struct settings *settings, usec_t now)
{
        _cleanup_(adopt_free_pointer) struct search *search = NULL;
        struct ledger *ledger = &runtime->ledger.ledger;
        struct state *state = NULL;
        char why[512] = "";
        _cleanup_(ledger_starts_free) struct ledger_starts starts = {0};
        bool clear = true, more = false;

        int r = search_new(runtime, now, &search);
        if (r < 0)
                return r;
        follow_state(settings);
        int outcome = state_load(settings->state_file, runtime->boot_id, now, &state, why, sizeof(why));
        if (outcome < 0) {
                log_error("cannot read the state file '%s': %s", settings->state_file, strerror(-outcome));
                return outcome;
        }
        r = start_record_open(runtime);
        if (r >= 0)
                r = ledger_read(ledger, now, &starts);
        /* A later version, whose state cannot be read, may keep its ledger elsewhere, and have started
         * workers since this one was written. */
        if (r >= 0 && (ledger_has_gap(ledger, LEDGER_GAP_SEARCH) || outcome == STATEFILE_LOST))
                search->adoption->unsure = true;
        if (r >= 0 && outcome == STATEFILE_READ)
                r = continue_state(search, settings, state, &starts, now);
        else if (r >= 0)
                r = continue_orders(runtime, now);
        state_free(state);
        if (r >= 0)
                r = adopt_started(search, &starts, now);
        if (r >= 0 && adoption_needs_search(search->adoption)) {
                r = search_run_first(search, FIRST_SLICES, now);
                more = r == SEARCH_GOES_ON;
                if (more)
                        adoption_hold(search->adoption);
                clear = r == SEARCH_WHOLE && adoption_search_end(search->adoption, 0, now);
        }
        if (r < 0) {
                log_error("cannot take over the workers of an earlier sqmgr: %s", strerror(-r));
                return r;
        }
        report(search, more, outcome, why);
        if (!clear) {
                r = sd_event_add_time(runtime->event, &search->timer, CLOCK_MONOTONIC,
                                      usec_add(now, SEARCH_USEC), 0, on_search, search);
                runtime->search = TAKE_PTR(search);
                return r;
        }
        end_search(search);
        persist_save_now(runtime, now);
        return 0;
}
