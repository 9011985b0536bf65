/* SPDX-License-Identifier: MIT */
/* Takes over the workers of an earlier sqmgr: those that the state names and, where it does not tell, those
 * that are found (daemon/run/search.c). */
#include "daemon/run/adopt.h"
#include "base/fd.h"
#include "daemon/run/adoption.h"
#include "daemon/run/hold.h"
#include "daemon/run/rescue.h"
#include "frameworks/table.h"
#include "io/clock.h"
#include "io/log.h"
#include "model/observe.h"
#include "model/rollout.h"
#include "model/state.h"
#include <pwd.h>
#include <string.h>
#include <unistd.h>

/* Between two searches for what is not clear yet. */
#define SEARCH_USEC (100 * USEC_PER_MSEC)
/* A process shows neither its old name nor its new environment for a moment while it begins its command: two
 * searches in a row must say that there is none. */
#define CLEAR_SEARCHES 2
struct adoption *adoption_free(struct adoption *adoption)
{
        if (adoption == NULL)
                return NULL;
        search_forget(adoption);
        sd_event_source_disable_unref(adoption->timer);
        free(adoption->marked);
        free(adoption->underway);
        free(adoption->sought);
        free(adoption);
        return NULL;
}

static void adoption_free_pointer(struct adoption **adoption)
{
        adoption_free(*adoption);
}

/* Takes hold of the process that had this pid and start time. NULL: it is gone. */
static int hold(pid_t pid, uint64_t start, struct proc **ret)
{
        _cleanup_proc_ struct proc *proc = NULL;

        *ret = NULL;
        if (pid <= 0)
                return 0;
        int r = proc_open(pid, &proc);
        if (r < 0)
                return r == -ESRCH ? 0 : r;
        if (proc_start_time(proc) == start && !proc_has_exited(proc))
                *ret = TAKE_PTR(proc);
        return 0;
}

/* Pid and start time name a process for good, so that a user who is not the expected one is no reason to
 * start a second worker beside it: the command or the settings may have changed him. */
static void check_user(const struct adoption *adoption, const struct worker *worker, const struct proc *proc)
{
        const struct sought *sought = adoption_sought(adoption, worker->fleet);
        uid_t uid;

        if (sought == NULL || proc_uid(proc, &uid) < 0 || uid == sought->uid || uid == geteuid())
                return;
        log_warning("%s (pid %d) is adopted, though it runs as user %u, not as %u", WORKER_ID(worker),
                    (int)worker->pid, (unsigned)uid, (unsigned)sought->uid);
}

/* One that the state names. */
static int adopt_known(struct adoption *adoption, struct fleet *fleet, const struct state_worker *saved,
                       usec_t now)
{
        const struct worker *known = &saved->worker;
        _cleanup_proc_ struct proc *main = NULL, *beat = NULL;

        int r = hold(known->pid, known->pid_start, &main);
        if (r == 0)
                r = hold(known->beat_pid, known->beat_pid_start, &beat);
        if (r < 0)
                return r;
        struct worker *worker = observe_adopted(fleet, known, main != NULL ? known->pid_start : 0,
                                                beat != NULL ? known->beat_pid_start : 0, now);
        if (worker == NULL)
                return -ENOMEM;
        if (beat == NULL && known->beat_pid != 0 && saved->identity[0] != '\0')
                rescue_begin(adoption->crew, fleet, known, saved->identity,
                             &(struct exit_status){.known = false});
        if (worker->state == WORKER_GONE) {
                adoption->gone++;
                return 0;
        }
        const char *identity = beat != NULL && saved->identity[0] != '\0' ? saved->identity : NULL;
        if (main == NULL)
                main = TAKE_PTR(beat);
        else if (known->beat_pid == known->pid)
                beat = proc_close(beat);
        check_user(adoption, worker, main);
        adoption->adopted++;
        return hold_adopted(adoption->crew, worker, TAKE_PTR(main), TAKE_PTR(beat), identity);
}

static void add_underway(struct adoption *adoption, struct fleet *fleet, const struct worker *known)
{
        adoption->underway[adoption->n_underway++] =
                (struct underway){.fleet = fleet, .index = known->index, .generation = known->generation};
}

/* One that is no longer configured: its workers drain. */
static int add_removed(struct crew *crew, struct settings *settings, const struct state_fleet *saved,
                       usec_t now, struct fleet **ret)
{
        const struct traits *traits = framework_traits_find(saved->framework);

        *ret = NULL;
        if (traits == NULL) {
                log_error(
                        "fleet '%s' is no longer configured, and its framework is not known to this version: "
                        "its workers, %zu at the last count, are left alone",
                        saved->name, saved->n_workers);
                return 0;
        }
        struct fleet_settings *removed = settings_add_removed(settings, saved->name, traits);
        if (!removed)
                return -ENOMEM;
        removed->launch_hash = saved->launch_hash;
        if (saved->redis_url[0] != '\0' && !(removed->redis_url = strdup(saved->redis_url)))
                return -ENOMEM;
        int r = links_make(&crew->links, settings);
        if (r >= 0)
                r = world_reload(crew->world, settings, now);
        if (r < 0)
                return r;
        links_join(&crew->links);
        *ret = world_fleet(crew->world, saved->name);
        log_warning("fleet '%s' is no longer configured: its workers, %zu at the last count, are drained",
                    saved->name, saved->n_workers);
        return 0;
}

static int continue_fleet(struct adoption *adoption, struct fleet *fleet, const struct state_fleet *saved,
                          usec_t now)
{
        struct sought *sought = adoption_sought(adoption, fleet);

        if (sought != NULL)
                sought->lost = false;
        state_continue_fleet(fleet, saved, now);
        /* While there was no sqmgr it could not come forward. */
        if (fleet->rollout.state == ROLLOUT_RUNNING)
                rollout_observe_progress(fleet, now);
        for (size_t i = 0; i < saved->n_workers; i++) {
                const struct state_worker *worker = &saved->workers[i];
                int r = 0;

                if (worker->worker.pid == 0)
                        add_underway(adoption, fleet, &worker->worker);
                else
                        r = adopt_known(adoption, fleet, worker, now);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int continue_state(struct adoption *adoption, struct settings *settings, const struct state *state,
                          usec_t now)
{
        size_t n = 0;

        for (size_t i = 0; i < state->n_fleets; i++)
                n += state->fleets[i].n_workers;
        adoption->underway = calloc(n + 1, sizeof(*adoption->underway));
        if (adoption->underway == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < state->n_fleets; i++) {
                const struct state_fleet *saved = &state->fleets[i];
                struct fleet *fleet = world_fleet(adoption->crew->world, saved->name);
                int r = 0;

                if (fleet == NULL && saved->n_workers == 0)
                        continue;
                if (fleet == NULL)
                        r = add_removed(adoption->crew, settings, saved, now, &fleet);
                if (r >= 0 && fleet != NULL)
                        r = continue_fleet(adoption, fleet, saved, now);
                if (r < 0)
                        return r;
        }
        for (const struct state_dead *dead = state->dead; dead != NULL; dead = dead->next) {
                const struct fleet *fleet = world_fleet(adoption->crew->world, dead->fleet);

                if (fleet != NULL && dead->worker.identity[0] != '\0')
                        rescue_begin(adoption->crew, fleet, &dead->worker.worker, dead->worker.identity,
                                     &dead->exit);
        }
        return 0;
}

static bool is_done(const struct adoption *adoption, usec_t now)
{
        unsigned underway = 0;

        for (size_t i = 0; i < adoption->n_underway; i++) {
                const struct underway *start = &adoption->underway[i];
                bool found = false;

                for (size_t j = 0; j < start->fleet->n_workers; j++)
                        found |= start->fleet->workers[j]->index == start->index;
                underway += !found;
        }
        return now >= adoption->until ||
               (adoption->launching == 0 && (underway == 0 || adoption->clear >= CLEAR_SEARCHES));
}

/* Nothing is started before all is known. */
static void set_holds(struct world *world, usec_t until)
{
        for (size_t i = 0; i < world->n_fleets; i++)
                world->fleets[i]->hold_until = until;
}

static int on_search(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct adoption *adoption = userdata;
        struct crew *crew = adoption->crew;
        struct keeper *keeper = adoption->keeper;
        usec_t now = clock_now(CLOCK_MONOTONIC);

        (void)usec;
        int r = search_workers(adoption, now);
        if (r < 0 && r != adoption->failed)
                log_error("cannot look for the workers of an earlier sqmgr: %s, none is started meanwhile",
                          strerror(-r));
        adoption->failed = MIN(r, 0);
        /* One that was passed over would be started once more: the holds last until a search is whole. */
        if (r < 0) {
                adoption->until = MAX(adoption->until, usec_add(now, 2 * SEARCH_USEC));
                set_holds(adoption->crew->world, adoption->until);
        }
        turn_arm(crew->turn);
        if (r < 0 || !is_done(adoption, now)) {
                (void)sd_event_source_set_time(source, usec_add(now, SEARCH_USEC));
                (void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
                return 0;
        }
        set_holds(crew->world, 0);
        keeper->adoption = adoption_free(adoption);
        turn_changed(crew->turn);
        return 0;
}

static int search_on(struct adoption *adoption, usec_t now)
{
        set_holds(adoption->crew->world, adoption->until);
        return sd_event_add_time(adoption->crew->event, &adoption->timer, CLOCK_MONOTONIC,
                                 usec_add(now, SEARCH_USEC), 0, on_search, adoption);
}

static int adoption_new(struct crew *crew, struct keeper *keeper, usec_t now, struct adoption **ret)
{
        const struct world *world = crew->world;
        _cleanup_(adoption_free_pointer) struct adoption *adoption = calloc(1, sizeof(*adoption));

        if (adoption == NULL)
                return -ENOMEM;
        adoption->crew = crew;
        adoption->keeper = keeper;
        adoption->until = USEC_INFINITY;
        int r = search_service(adoption);
        if (r < 0)
                return r;
        adoption->sought = calloc(world->n_fleets + 1, sizeof(*adoption->sought));
        if (adoption->sought == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < world->n_fleets; i++) {
                const struct fleet_settings *settings = world->fleets[i]->settings;
                errno = 0;
                const struct passwd *user = settings->user != NULL ? getpwnam(settings->user) : NULL;
                r = -errno;
                if (user == NULL && is_shortage(r))
                        return r;

                adoption->until = MIN(adoption->until, usec_add(now, settings->boot_timeout));
                adoption->sought[adoption->n_sought++] = (struct sought){
                        .fleet = world->fleets[i],
                        .uid = user != NULL ? user->pw_uid : geteuid(),
                        .lost = true,
                };
        }
        *ret = TAKE_PTR(adoption);
        return 0;
}

static void tell(const struct adoption *adoption, int outcome, const char *why)
{
        const char *still = adoption->launching > 0 ? "; some that begin are waited for" : "";

        unsigned adopted = adoption->adopted + adoption->found;
        const char *found = adoption->found == 1 ? "worker that was" : "workers that were";

        if (outcome == STATEFILE_READ)
                log_info("adopted %u worker%s of an earlier sqmgr, %u %s gone%s", adopted,
                         adopted == 1 ? "" : "s", adoption->gone, adoption->gone == 1 ? "is" : "are", still);
        else if (outcome != STATEFILE_MISSING)
                log_warning("the state is lost: %s; adopted %u %s found%s", why, adoption->found, found,
                            still);
        else if (adoption->found > 0 || adoption->launching > 0)
                log_warning("the state is missing: %s; adopted %u %s found%s", why, adoption->found, found,
                            still);
        else
                log_info("no state and no workers of an earlier sqmgr: %s", why);
}

int adopt_begin(struct crew *crew, struct keeper *keeper, struct settings *settings, usec_t now)
{
        _cleanup_(adoption_free_pointer) struct adoption *adoption = NULL;
        struct state *state = NULL;
        char why[512] = "";
        bool unclear = false;

        int r = adoption_new(crew, keeper, now, &adoption);
        if (r < 0)
                return r;
        int outcome = statefile_read(settings->state_file, keeper->boot_id, now, &state, why, sizeof(why));
        if (outcome < 0) {
                log_error("cannot read the state file '%s': %s", settings->state_file, strerror(-outcome));
                return outcome;
        }
        if (outcome == STATEFILE_READ)
                r = continue_state(adoption, settings, state, now);
        state_free(state);
        for (size_t i = 0; i < adoption->n_sought; i++)
                unclear |= adoption->sought[i].lost;
        unclear |= adoption->n_underway > 0;
        if (r >= 0 && unclear)
                r = search_workers(adoption, now);
        if (r < 0) {
                log_error("cannot take over the workers of an earlier sqmgr: %s", strerror(-r));
                return r;
        }
        tell(adoption, outcome, why);
        if (unclear && !is_done(adoption, now)) {
                r = search_on(adoption, now);
                keeper->adoption = TAKE_PTR(adoption);
                return r;
        }
        keeper_save_now(keeper, now);
        return 0;
}
