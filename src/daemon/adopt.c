/* SPDX-License-Identifier: MIT */
/* Takes over the workers of an earlier sqmgr: those that the state names and, where it does not tell, those
 * that carry our mark in their environment. */
#include "base/parse.h"
#include "core/observe.h"
#include "core/rollout.h"
#include "daemon/supervisor.h"
#include "io/clock.h"
#include "io/log.h"
#include <poll.h>
#include <pwd.h>
#include <string.h>

/* Between two searches for what is not clear yet. */
#define SEARCH_USEC (100 * USEC_PER_MSEC)
/* A process shows neither its old name nor its new environment for a moment while it begins its command: two
 * searches in a row must say that there is none. */
#define CLEAR_SEARCHES 2
/* Counts that JSON can carry. */
#define GENERATION_MAX ((uint64_t)1 << 53)

/* A start that was under way when the state was written. */
struct underway {
        struct fleet *fleet;
        unsigned index;
        uint64_t generation;
};

/* A process that carries our mark. */
struct marked {
        struct proc *proc;
        struct proc_place place;
        struct fleet *fleet;
        unsigned index;
        uint64_t generation; /* 0: not told */
};

/* A fleet whose workers are looked for. */
struct sought {
        struct fleet *fleet;
        uid_t uid; /* whose its workers are */
        bool lost; /* nothing is known of them */
};

struct adoption {
        struct supervisor *supervisor;
        struct sought *sought; /* the configured ones */
        size_t n_sought;
        struct underway *underway;
        size_t n_underway;
        usec_t until;
        unsigned clear; /* searches in a row that left nothing unclear */
        sd_event_source *timer;

        unsigned launching; /* in this search: processes that have not begun their command */
        struct marked *marked;
        size_t n_marked;
        size_t allocated;

        unsigned adopted, gone, found;
};

static void forget_marked(struct adoption *adoption)
{
        while (adoption->n_marked > 0)
                proc_close(adoption->marked[--adoption->n_marked].proc);
}

struct adoption *adoption_free(struct adoption *adoption)
{
        if (adoption == NULL)
                return NULL;
        forget_marked(adoption);
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

static bool has_exited(const struct proc *proc)
{
        struct pollfd exited = {.fd = proc_pidfd(proc), .events = POLLIN};

        return poll(&exited, 1, 0) != 0;
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
        if (proc_start_time(proc) == start && !has_exited(proc))
                *ret = TAKE_PTR(proc);
        return 0;
}

/* NULL: it is no longer configured, or came with a reload. */
static struct sought *find_sought(const struct adoption *adoption, const struct fleet *fleet)
{
        for (size_t i = 0; i < adoption->n_sought; i++)
                if (adoption->sought[i].fleet == fleet)
                        return &adoption->sought[i];
        return NULL;
}

static bool is_lost(const struct adoption *adoption, const struct fleet *fleet)
{
        const struct sought *sought = find_sought(adoption, fleet);

        return sought != NULL && sought->lost;
}

/* Pid and start time name a process for good, so that a user who is not the expected one is no reason to
 * start a second worker beside it: the command or the settings may have changed him. */
static void check_user(const struct adoption *adoption, const struct worker *worker, const struct proc *proc)
{
        const struct sought *sought = find_sought(adoption, worker->fleet);
        uid_t uid;

        if (sought == NULL || proc_uid(proc, &uid) < 0 || uid == sought->uid || uid == geteuid())
                return;
        log_warning("%s/%u (pid %d) is adopted, though it runs as user %u, not as %u",
                    worker->fleet->settings->name, worker->index, (int)worker->pid, (unsigned)uid,
                    (unsigned)sought->uid);
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
        return worker_io_adopt(adoption->supervisor, worker, TAKE_PTR(main), TAKE_PTR(beat), identity);
}

static void add_underway(struct adoption *adoption, struct fleet *fleet, const struct worker *known)
{
        adoption->underway[adoption->n_underway++] =
                (struct underway){.fleet = fleet, .index = known->index, .generation = known->generation};
}

/* One that is no longer configured: its workers drain. */
static int add_removed(struct supervisor *supervisor, const struct state_fleet *saved, usec_t now,
                       struct fleet **ret)
{
        int r = settings_add_removed(supervisor->settings, saved->name);

        if (r >= 0)
                r = links_make(supervisor, supervisor->settings);
        if (r >= 0)
                r = world_reload(supervisor->world, supervisor->settings, now);
        if (r < 0)
                return r;
        links_join(supervisor);
        *ret = world_fleet(supervisor->world, saved->name);
        log_warning("fleet '%s' is no longer configured: its workers, %zu at the last count, are drained",
                    saved->name, saved->n_workers);
        return 0;
}

static int continue_fleet(struct adoption *adoption, struct fleet *fleet, const struct state_fleet *saved,
                          usec_t now)
{
        struct sought *sought = find_sought(adoption, fleet);

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

static int continue_state(struct adoption *adoption, const struct state *state, usec_t now)
{
        size_t n = 0;

        for (size_t i = 0; i < state->n_fleets; i++)
                n += state->fleets[i].n_workers;
        adoption->underway = calloc(n + 1, sizeof(*adoption->underway));
        if (adoption->underway == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < state->n_fleets; i++) {
                const struct state_fleet *saved = &state->fleets[i];
                struct fleet *fleet = world_fleet(adoption->supervisor->world, saved->name);
                int r = 0;

                if (fleet == NULL && saved->n_workers == 0)
                        continue;
                if (fleet == NULL)
                        r = add_removed(adoption->supervisor, saved, now, &fleet);
                if (r >= 0)
                        r = continue_fleet(adoption, fleet, saved, now);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* The value of a variable in an environment as /proc has it, or NULL. */
static const char *find_variable(const char *text, size_t length, const char *name)
{
        size_t name_length = strlen(name);

        for (const char *at = text; at < text + length; at += strlen(at) + 1)
                if (strncmp(at, name, name_length) == 0 && at[name_length] == '=')
                        return at + name_length + 1;
        return NULL;
}

/* Reads whose worker it says it is. Returns 1, or 0 where it is none of ours. */
static int read_mark(const struct adoption *adoption, const struct proc *proc, struct marked *ret)
{
        const struct world *world = adoption->supervisor->world;
        _cleanup_free_ char *text = NULL;
        uint64_t index, generation = 0;
        char name[256];
        size_t length;
        uid_t uid;

        int r = proc_environment(proc, &text, &length);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        const char *instance = find_variable(text, length, "SQMGR_INSTANCE");
        const char *worker = find_variable(text, length, "SQMGR_WORKER");
        const char *told = find_variable(text, length, "SQMGR_GENERATION");
        const char *slash = worker != NULL ? strrchr(worker, '/') : NULL;
        if (instance == NULL || strcmp(instance, adoption->supervisor->instance) != 0 || slash == NULL ||
            (size_t)(slash - worker) >= sizeof(name) || parse_unsigned(slash + 1, 1, INT32_MAX, &index) < 0)
                return 0;
        snprintf(name, sizeof(name), "%.*s", (int)(slash - worker), worker);
        struct fleet *fleet = world_fleet(world, name);
        const struct sought *sought = find_sought(adoption, fleet);
        /* Anybody may put anything in his own environment. */
        if (sought == NULL || proc_uid(proc, &uid) < 0 || uid != sought->uid)
                return 0;
        if (told != NULL)
                (void)parse_unsigned(told, 1, GENERATION_MAX, &generation);
        ret->fleet = fleet;
        ret->index = (unsigned)index;
        ret->generation = generation;
        return 1;
}

/* A child of a sqmgr that died, on its way to its command. That of one that lives is none of ours. */
static bool is_launching(const struct adoption *adoption, const struct proc *proc,
                         const struct proc_place *place)
{
        _cleanup_proc_ struct proc *parent = NULL, *self = NULL;
        struct proc_place above, own;
        bool ours = false;
        uid_t uid;

        if (strcmp(place->comm, LAUNCH_COMM) != 0 || proc_uid(proc, &uid) < 0)
                return false;
        for (size_t i = 0; i < adoption->n_sought; i++)
                ours |= uid == adoption->sought[i].uid;
        if (!ours && uid != geteuid())
                return false;
        return proc_open(place->parent, &parent) < 0 || proc_place(parent, &above) < 0 ||
               proc_open(getpid(), &self) < 0 || proc_place(self, &own) < 0 ||
               (strcmp(above.comm, own.comm) != 0 && strcmp(above.comm, LAUNCH_COMM) != 0);
}

static int look_at_process(pid_t pid, void *userdata)
{
        struct adoption *adoption = userdata;
        _cleanup_proc_ struct proc *proc = NULL;
        struct marked marked = {0};

        if (pid == getpid() || proc_open(pid, &proc) < 0 || has_exited(proc) ||
            proc_place(proc, &marked.place) < 0)
                return 0;
        if (is_launching(adoption, proc, &marked.place)) {
                adoption->launching++;
                return 0;
        }
        int r = read_mark(adoption, proc, &marked);
        if (r <= 0)
                return r;
        if (adoption->n_marked == adoption->allocated) {
                size_t allocated = MAX((size_t)16, 2 * adoption->allocated);
                struct marked *list = reallocarray(adoption->marked, allocated, sizeof(*list));

                if (list == NULL)
                        return -ENOMEM;
                adoption->marked = list;
                adoption->allocated = allocated;
        }
        marked.proc = TAKE_PTR(proc);
        adoption->marked[adoption->n_marked++] = marked;
        return 0;
}

static bool same_worker(const struct marked *a, const struct marked *b)
{
        return a->fleet == b->fleet && a->index == b->index;
}

/* One whose parent is of the same worker is a part of it. */
static bool is_main(const struct adoption *adoption, const struct marked *marked)
{
        for (size_t i = 0; i < adoption->n_marked; i++)
                if (same_worker(&adoption->marked[i], marked) &&
                    proc_pid(adoption->marked[i].proc) == marked->place.parent)
                        return false;
        return true;
}

/* A worker is started as the leader of its group; what its jobs left behind is seldom one. */
static bool leads_group(const struct marked *marked)
{
        return marked->place.group == proc_pid(marked->proc);
}

/* Of several that say they are the same worker, is this the one to believe? A leader, then the eldest. */
static bool is_likest(const struct adoption *adoption, const struct marked *marked)
{
        for (size_t i = 0; i < adoption->n_marked; i++) {
                const struct marked *other = &adoption->marked[i];

                if (other == marked || !same_worker(other, marked) || !is_main(adoption, other))
                        continue;
                if (leads_group(other) != leads_group(marked)) {
                        if (leads_group(other))
                                return false;
                        continue;
                }
                uint64_t start = proc_start_time(marked->proc), other_start = proc_start_time(other->proc);
                if (other_start < start || (other_start == start && other < marked))
                        return false;
        }
        return true;
}

/* Is this the worker of a place of which nothing is known? */
static bool is_wanted(const struct adoption *adoption, const struct marked *marked)
{
        const struct fleet *fleet = marked->fleet;

        for (size_t i = 0; i < fleet->n_workers; i++)
                if (fleet->workers[i]->state != WORKER_GONE && fleet->workers[i]->index == marked->index)
                        return false;
        if (!is_main(adoption, marked) || !is_likest(adoption, marked))
                return false;
        if (is_lost(adoption, fleet))
                return true;
        for (size_t i = 0; i < adoption->n_underway; i++) {
                const struct underway *underway = &adoption->underway[i];

                if (underway->fleet == fleet && underway->index == marked->index &&
                    (marked->generation == 0 || marked->generation == underway->generation))
                        return true;
        }
        return false;
}

static int adopt_found(struct adoption *adoption, struct marked *marked, usec_t now)
{
        struct fleet *fleet = marked->fleet;
        usec_t ticks_usec = USEC_PER_SEC / (usec_t)sysconf(_SC_CLK_TCK);
        usec_t age = usec_sub(clock_now(CLOCK_BOOTTIME), proc_start_time(marked->proc) * ticks_usec);
        struct worker known = {
                .index = marked->index,
                .generation = marked->generation != 0 ? marked->generation : fleet->generation,
                .pid = proc_pid(marked->proc),
                .pid_start = proc_start_time(marked->proc),
                .state = WORKER_STARTING,
                .spawned_at = MAX(usec_sub(now, age), (usec_t)1),
                .state_at = now,
        };

        struct worker *worker = observe_adopted(fleet, &known, known.pid_start, 0, now);
        if (worker == NULL)
                return -ENOMEM;
        log_info("%s/%u (pid %d) is adopted: it was found by its environment", fleet->settings->name,
                 worker->index, (int)worker->pid);
        adoption->found++;
        return worker_io_adopt(adoption->supervisor, worker, TAKE_PTR(marked->proc), NULL, NULL);
}

/* Which generations there are, where only the workers know. */
static void learn_generations(const struct adoption *adoption)
{
        for (size_t i = 0; i < adoption->n_marked; i++) {
                struct fleet *fleet = adoption->marked[i].fleet;

                if (is_lost(adoption, fleet))
                        fleet->generation = MAX(fleet->generation, adoption->marked[i].generation);
        }
}

static int search(struct adoption *adoption, usec_t now)
{
        bool *wanted = NULL;

        adoption->launching = 0;
        int r = proc_each(look_at_process, adoption);
        if (r >= 0) {
                learn_generations(adoption);
                wanted = calloc(adoption->n_marked + 1, sizeof(*wanted));
                r = wanted == NULL ? -ENOMEM : 0;
        }
        /* All are judged before the first is taken. */
        for (size_t i = 0; r >= 0 && i < adoption->n_marked; i++)
                wanted[i] = is_wanted(adoption, &adoption->marked[i]);
        for (size_t i = 0; r >= 0 && i < adoption->n_marked; i++)
                if (wanted[i])
                        r = adopt_found(adoption, &adoption->marked[i], now);
        forget_marked(adoption);
        free(wanted);
        adoption->clear = adoption->launching == 0 ? adoption->clear + 1 : 0;
        return r;
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
static void set_holds(struct supervisor *supervisor, usec_t until)
{
        for (size_t i = 0; i < supervisor->world->n_fleets; i++)
                supervisor->world->fleets[i]->hold_until = until;
}

static int on_search(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct adoption *adoption = userdata;
        struct supervisor *supervisor = adoption->supervisor;
        usec_t now = clock_now(CLOCK_MONOTONIC);

        (void)usec;
        int r = search(adoption, now);
        if (r < 0) {
                log_error("cannot find the workers of an earlier sqmgr: %s", strerror(-r));
                return sd_event_exit(supervisor->event, r);
        }
        supervisor_arm_turn(supervisor);
        if (!is_done(adoption, now)) {
                (void)sd_event_source_set_time(source, usec_add(now, SEARCH_USEC));
                (void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
                return 0;
        }
        set_holds(supervisor, 0);
        supervisor->adoption = adoption_free(adoption);
        supervisor->unsaved = true;
        return 0;
}

static int search_on(struct adoption *adoption, usec_t now)
{
        struct supervisor *supervisor = adoption->supervisor;

        set_holds(supervisor, adoption->until);
        return sd_event_add_time(supervisor->event, &adoption->timer, CLOCK_MONOTONIC,
                                 usec_add(now, SEARCH_USEC), 0, on_search, adoption);
}

static int adoption_new(struct supervisor *supervisor, usec_t now, struct adoption **ret)
{
        const struct world *world = supervisor->world;
        _cleanup_(adoption_free_pointer) struct adoption *adoption = calloc(1, sizeof(*adoption));

        if (adoption == NULL)
                return -ENOMEM;
        adoption->supervisor = supervisor;
        adoption->until = USEC_INFINITY;
        adoption->sought = calloc(world->n_fleets + 1, sizeof(*adoption->sought));
        if (adoption->sought == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < world->n_fleets; i++) {
                const struct fleet_settings *settings = world->fleets[i]->settings;
                const struct passwd *user = settings->user != NULL ? getpwnam(settings->user) : NULL;

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

        if (outcome == STATEFILE_READ)
                log_info("adopted %u workers of an earlier sqmgr, %u are gone%s",
                         adoption->adopted + adoption->found, adoption->gone, still);
        else if (outcome != STATEFILE_MISSING)
                log_warning(
                        "the state is lost: %s; adopted %u workers that were found by their environment%s",
                        why, adoption->found, still);
        else if (adoption->found > 0 || adoption->launching > 0)
                log_warning("the state is missing: %s; adopted %u workers that were found by their "
                            "environment%s",
                            why, adoption->found, still);
        else
                log_info("no state and no workers of an earlier sqmgr: %s", why);
}

int adopt(struct supervisor *supervisor, usec_t now)
{
        _cleanup_(adoption_free_pointer) struct adoption *adoption = NULL;
        struct state *state = NULL;
        char why[512] = "";
        bool unclear = false;

        int r = adoption_new(supervisor, now, &adoption);
        if (r < 0)
                return r;
        int outcome = statefile_read(supervisor->settings->state_file, supervisor->boot_id, now, &state, why,
                                     sizeof(why));
        if (outcome < 0)
                return outcome;
        if (outcome == STATEFILE_READ)
                r = continue_state(adoption, state, now);
        state_free(state);
        for (size_t i = 0; i < adoption->n_sought; i++)
                unclear |= adoption->sought[i].lost;
        unclear |= adoption->n_underway > 0;
        if (r >= 0 && unclear)
                r = search(adoption, now);
        if (r < 0) {
                log_error("cannot take over the workers of an earlier sqmgr: %s", strerror(-r));
                return r;
        }
        tell(adoption, outcome, why);
        if (unclear && !is_done(adoption, now)) {
                r = search_on(adoption, now);
                supervisor->adoption = TAKE_PTR(adoption);
                return r;
        }
        keep(supervisor, NULL, now);
        return 0;
}

struct heir {
        const struct supervisor *supervisor;
        const struct worker *worker;
        struct proc *proc;
};

static int look_for_heir(pid_t pid, void *userdata)
{
        struct heir *heir = userdata;
        const struct fleet *fleet = heir->worker->fleet;
        _cleanup_proc_ struct proc *proc = NULL;
        _cleanup_free_ char *text = NULL;
        char id[256 + 16];
        size_t length = 0;

        if (pid == getpid() || pid == heir->worker->pid || proc_open(pid, &proc) < 0 || has_exited(proc) ||
            proc_environment(proc, &text, &length) < 0)
                return 0;
        const char *instance = find_variable(text, length, "SQMGR_INSTANCE");
        const char *mark = find_variable(text, length, "SQMGR_WORKER");
        snprintf(id, sizeof(id), "%s/%u", fleet->settings->name, heir->worker->index);
        if (instance == NULL || strcmp(instance, heir->supervisor->instance) != 0 || mark == NULL ||
            strcmp(mark, id) != 0)
                return 0;
        heir->proc = TAKE_PTR(proc);
        return 1;
}

struct proc *adopt_heir(const struct supervisor *supervisor, const struct worker *worker)
{
        struct heir heir = {.supervisor = supervisor, .worker = worker};

        (void)proc_tree_each(getpid(), look_for_heir, &heir);
        return heir.proc;
}
