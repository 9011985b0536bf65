/* SPDX-License-Identifier: MIT */
/* Adopts the workers of a previous sqmgr. No I/O, no clock, no descriptors. */
#include "continuity/adoption.h"
#include "base/parse.h"
#include "continuity/ledger.h"
#include "continuity/state.h"
#include "model/counts.h"
#include "model/rollout.h"
#include "model/world.h"
#include "observe/observe.h"

/* The largest number that JSON can represent exactly. */
#define GENERATION_MAX ((uint64_t)1 << 53)
/* No chain of parents is longer in practice. */
#define ANCESTORS_MAX 128
/* Limit of adopted processes per fleet: FOUND_SHARE times the maximum of the fleet, which may have been
 * larger, and at least FOUND_AT_LEAST. */
#define FOUND_SHARE    4
#define FOUND_AT_LEAST 64

int adoption_new(struct world *world, const char *instance, usec_t now, struct adoption **ret)
{
        struct adoption *adoption = calloc(1, sizeof(*adoption));

        if (!adoption)
                return -ENOMEM;
        *adoption = (struct adoption){
                .world = world,
                .instance = instance,
                .sought = calloc(world->n_fleets + 1, sizeof(*adoption->sought)),
                .n_sought = world->n_fleets,
        };
        if (!adoption->sought) {
                free(adoption);
                return -ENOMEM;
        }
        for (size_t i = 0; i < world->n_fleets; i++) {
                struct fleet *fleet = world->fleets[i];

                adoption->sought[i] = (struct sought){
                        .fleet = fleet,
                        .lost = true,
                        .until = usec_add(now, fleet->settings->boot_timeout),
                };
        }
        *ret = adoption;
        return 0;
}

struct adoption *adoption_free(struct adoption *adoption)
{
        if (!adoption)
                return NULL;
        free(adoption->sought);
        free(adoption->ended);
        free(adoption->claimants);
        free(adoption->taken);
        free(adoption);
        return NULL;
}

static struct sought *sought_of(const struct adoption *adoption, const struct fleet *fleet)
{
        for (size_t i = 0; i < adoption->n_sought; i++)
                if (adoption->sought[i].fleet == fleet)
                        return &adoption->sought[i];
        return NULL;
}

/* Returns true if the search for workers of this fleet has ended, or was never begun. */
static bool is_done(const struct adoption *adoption, const struct fleet *fleet)
{
        const struct sought *sought = sought_of(adoption, fleet);

        return !sought || sought->done;
}

static bool is_lost(const struct adoption *adoption, const struct fleet *fleet)
{
        const struct sought *sought = sought_of(adoption, fleet);

        return sought && sought->lost && !sought->done;
}

void adoption_continue_fleet(struct adoption *adoption, struct fleet *fleet, const struct state_fleet *saved,
                             usec_t now)
{
        struct sought *sought = sought_of(adoption, fleet);

        if (sought)
                sought->lost = false;
        state_continue_fleet(fleet, saved, now);
        /* The restart could not progress while no sqmgr was running. */
        if (fleet->rollout.state == ROLLOUT_RUNNING)
                rollout_observe_progress(fleet, now);
}

bool adoption_know_start(struct adoption *adoption, const struct ledger_start *start,
                         struct fleet **ret_fleet, struct worker *ret_known)
{
        struct fleet *fleet = *ret_fleet = world_fleet(adoption->world, start->fleet);

        if (!fleet)
                return false;
        for (size_t i = 0; i < TEMPLATES_MAX; i++)
                if (template_is_alive(&fleet->templates[i]) && fleet->templates[i].pid == start->pid &&
                    fleet->templates[i].pid_start == start->start)
                        return false;
        /* The fleet's generation may be older than this start, if the state is lost or was written before. */
        generation_observe(fleet, start->generation);
        *ret_known = (struct worker){
                .index = start->index,
                .generation = start->generation,
                .process.pid = start->pid,
                .process.start = start->start,
                .process.forked = start->forked != LEDGER_NOT_FORKED,
                .process.awaits_go = start->forked == LEDGER_FORK_WAITS,
                .state = WORKER_STARTING,
                .started_for = start->started_for,
                .spawned_at = start->started_at,
                .state_at = start->started_at,
        };
        return true;
}

struct worker *adoption_take_known(struct adoption *adoption, struct fleet *fleet, const struct worker *known,
                                   uint64_t pid_start, uint64_t heartbeat_pid_start, usec_t now)
{
        struct ended *ended = reallocarray(adoption->ended, adoption->n_ended + 1, sizeof(*ended));

        if (!ended)
                return NULL;
        adoption->ended = ended;
        struct worker *worker = observe_adopted(fleet, known, pid_start, heartbeat_pid_start, now);
        if (!worker)
                return NULL;
        if (worker->state != WORKER_GONE) {
                adoption->adopted++;
                return worker;
        }
        ended[adoption->n_ended++] = (struct ended){
                .fleet = fleet,
                .index = known->index,
                .generation = known->generation,
                .spawned_at = known->spawned_at,
                .quieted = known->orders.quiet,
                .succeeded = known->state > WORKER_ACTIVE,
        };
        adoption->gone++;
        return worker;
}

bool adoption_needs_search(const struct adoption *adoption)
{
        return adoption->unsure || adoption->n_ended > 0;
}

void adoption_search_begin(struct adoption *adoption)
{
        adoption->n_claimants = 0;
        adoption->unread = false;
}

/* Reads which worker the process claims to be. */
static bool read_mark(const struct adoption *adoption, const struct sighting *sighting, struct claimant *ret)
{
        const char *slash = sighting->worker ? strrchr(sighting->worker, '/') : NULL;
        uint64_t index, generation = 0;
        char name[256];

        if (!sighting->instance || !slash || (size_t)(slash - sighting->worker) >= sizeof(name) ||
            parse_unsigned(slash + 1, 1, INT32_MAX, &index) < 0)
                return false;
        /* Our service contains only processes started by its sqmgr, whatever the state file was called. */
        if (strcmp(sighting->instance, adoption->instance) != 0 && !sighting->in_service)
                return false;
        memcpy(name, sighting->worker, (size_t)(slash - sighting->worker));
        name[slash - sighting->worker] = '\0';
        struct fleet *fleet = world_fleet(adoption->world, name);
        const struct sought *sought = sought_of(adoption, fleet);
        if (!sought)
                return false;
        if (sighting->generation)
                (void)parse_unsigned(sighting->generation, 1, GENERATION_MAX, &generation);
        ret->fleet = fleet;
        ret->index = (unsigned)index;
        ret->generation = generation;
        return true;
}

/* A worker whose title has overwritten its environment: a booted session leader, as workers are started. The
 * fleet can only be guessed; the planner drains and replaces a worker that was guessed wrong. */
static bool read_service(const struct adoption *adoption, const struct sighting *sighting,
                         struct claimant *ret)
{
        if (sighting->session != sighting->pid || !sighting->in_service || !sighting->booted_as)
                return false;
        for (size_t i = 0; i < adoption->n_sought; i++) {
                const struct sought *sought = &adoption->sought[i];

                if (sought->done || sought->fleet->settings->traits != sighting->booted_as ||
                    !adoption->unsure)
                        continue;
                ret->fleet = sought->fleet;
                return true;
        }
        return false;
}

int adoption_see(struct adoption *adoption, const struct sighting *sighting)
{
        struct claimant claimant = {
                .pid = sighting->pid,
                .parent = sighting->parent,
                .group = sighting->group,
                .start = sighting->start,
                .started_at = sighting->started_at,
                .booted = !!sighting->booted_as,
                .runs_one_job = sighting->runs_one_job,
        };

        if (!read_mark(adoption, sighting, &claimant) && !read_service(adoption, sighting, &claimant))
                return 0;
        if (!ARRAY_RESERVE(adoption->claimants, adoption->n_claimants, adoption->allocated))
                return -ENOMEM;
        adoption->claimants[adoption->n_claimants++] = claimant;
        return 0;
}

static bool same_place(const struct claimant *a, const struct claimant *b)
{
        return a->fleet == b->fleet && a->index == b->index;
}

static int compare(uint64_t a, uint64_t b)
{
        return (a > b) - (a < b);
}

static int compare_pids(const void *left, const void *right)
{
        const struct claimant *a = left, *b = right;

        return compare((uint64_t)a->pid, (uint64_t)b->pid);
}

/* Returns the parent if it claims to be the same worker: the process is then part of that worker. Claimants
 * must be sorted by pid. NULL: no such parent. */
static struct claimant *parent_of(const struct adoption *adoption, const struct claimant *claimant)
{
        const struct claimant key = {.pid = claimant->parent};
        struct claimant *parent =
                adoption->n_claimants > 0
                        ? bsearch(&key, adoption->claimants, adoption->n_claimants, sizeof(key), compare_pids)
                        : NULL;

        return parent && claimant->index != 0 && same_place(parent, claimant) ? parent : NULL;
}

/* A worker is started as the leader of its process group; leftover processes of jobs seldom are. */
static bool leads_group(const struct claimant *claimant)
{
        return claimant->group == claimant->pid;
}

static bool is_known(const struct adoption *adoption, pid_t pid, uint64_t start)
{
        for (size_t i = 0; i < adoption->n_taken; i++)
                if (adoption->taken[i].pid == pid && adoption->taken[i].start == start)
                        return true;
        return world_has_process(adoption->world, pid, start);
}

void adoption_await(struct adoption *adoption, pid_t pid, uint64_t start)
{
        adoption->unread |= !is_known(adoption, pid, start);
}

/* Returns the worker that has the claimed index; NULL: none. */
static const struct worker *holder_of(const struct claimant *claimant)
{
        const struct fleet *fleet = claimant->fleet;

        FLEET_FOREACH_WORKER(fleet, worker)
                if (worker->state != WORKER_GONE && worker->index == claimant->index)
                        return worker;
        return NULL;
}

/* For a booted claimant: returns the ended worker that it was started with, as one of several processes of
 * its command. NULL: none. */
static const struct ended *left_by(const struct adoption *adoption, const struct claimant *claimant)
{
        for (size_t i = 0; claimant->booted && i < adoption->n_ended; i++) {
                const struct ended *ended = &adoption->ended[i];

                if (ended->fleet == claimant->fleet && ended->index == claimant->index &&
                    ended->generation == claimant->generation && ended->spawned_at == claimant->started_at)
                        return ended;
        }
        return NULL;
}

/* Returns true if the claimant may be a worker. First, its place must be free or held by a less likely
 * process. Second, workers may exist that are not named (unsure), or the claimant was started with a worker
 * that has ended. */
static bool may_be(const struct adoption *adoption, const struct claimant *claimant)
{
        const struct worker *holder = holder_of(claimant);

        if (is_done(adoption, claimant->fleet) || is_known(adoption, claimant->pid, claimant->start) ||
            (holder &&
             !(holder->process.unproven && (claimant->booted || claimant->started_at >= holder->spawned_at))))
                return false;
        return adoption->unsure || left_by(adoption, claimant);
}

/* Orders claimants of the same worker, the likeliest first; less than 0 means that a is likelier. The
 * criteria in order:
 *
 * - booted
 * - no process that only runs one job for a dead worker
 * - latest start, since leftover processes of an earlier start are older
 * - leader of its process group
 * - oldest process */
static int compare_likely(const struct claimant *a, const struct claimant *b)
{
        int order = compare(b->booted, a->booted);

        if (order == 0)
                order = compare(a->runs_one_job, b->runs_one_job);
        if (order == 0)
                order = compare(b->started_at, a->started_at);
        if (order == 0)
                order = compare(leads_group(b), leads_group(a));
        if (order == 0)
                order = compare(a->start, b->start);
        return order != 0 ? order : compare((uint64_t)a->pid, (uint64_t)b->pid);
}

/* Orders claimants by place, and within a place the likeliest first. */
static int compare_claimants(const void *left, const void *right)
{
        const struct claimant *a = left, *b = right;
        int order = strcmp(a->fleet->settings->name, b->fleet->settings->name);

        if (order == 0)
                order = compare(a->index, b->index);
        return order != 0 ? order : compare_likely(a, b);
}

static bool is_wanted(const struct adoption *adoption, const struct claimant *claimant)
{
        if (claimant->index != 0)
                return may_be(adoption, claimant) && !parent_of(adoption, claimant);
        return !is_known(adoption, claimant->pid, claimant->start);
}

/* Keeps the main process of each worker. A booted descendant makes all its ancestors of the same worker count
 * as booted; then every process whose parent claims the same worker is dropped. Returns the number of
 * claimants that are left. */
static size_t keep_mains(struct adoption *adoption)
{
        struct claimant *list = adoption->claimants;
        size_t kept = 0;

        if (adoption->n_claimants > 1)
                qsort(list, adoption->n_claimants, sizeof(*list), compare_pids);
        for (size_t i = 0; i < adoption->n_claimants; i++) {
                struct claimant *above = list[i].booted ? parent_of(adoption, &list[i]) : NULL;

                for (unsigned n = 0; above && !above->booted && n < ANCESTORS_MAX; n++) {
                        above->booted = true;
                        above = parent_of(adoption, above);
                }
        }
        for (size_t i = 0; i < adoption->n_claimants; i++)
                list[i].wanted = is_wanted(adoption, &list[i]);
        for (size_t i = 0; i < adoption->n_claimants; i++)
                if (list[i].wanted)
                        list[kept++] = list[i];
        return kept;
}

/* Gives the place to the likeliest claimant, the first. All other booted claimants are adopted too, under
 * extra indexes. If no claimant of the latest start has booted, all of that start are adopted. */
static void judge_place(struct claimant *list, size_t n)
{
        usec_t last = 0;
        bool last_booted = false;

        for (size_t i = 0; i < n; i++)
                last = MAX(last, list[i].started_at);
        for (size_t i = 0; i < n; i++)
                last_booted |= list[i].booted && list[i].started_at == last;
        list[0].extra = !!holder_of(&list[0]);
        for (size_t i = 1; i < n; i++) {
                bool may =
                        list[i].started_at == last && !last_booted && i < fleet_max_processes(list[i].fleet);

                list[i].extra = true;
                list[i].wanted = list[i].booted || may;
        }
}

void adoption_judge(struct adoption *adoption)
{
        struct claimant *list = adoption->claimants;
        size_t n;

        for (size_t i = 0; i < adoption->n_claimants; i++)
                /* Without the state, only running workers show which generations exist. */
                if (is_lost(adoption, list[i].fleet))
                        generation_observe(list[i].fleet, list[i].generation);
        adoption->n_claimants = keep_mains(adoption);
        if (adoption->n_claimants > 1)
                qsort(list, adoption->n_claimants, sizeof(*list), compare_claimants);
        for (size_t i = 0; i < adoption->n_claimants; i += n) {
                for (n = 1; i + n < adoption->n_claimants && same_place(&list[i], &list[i + n]); n++)
                        ;
                if (list[i].index != 0)
                        judge_place(list + i, n);
        }
}

/* Returns true if the claimant is adopted now; false if its fleet is full. */
static bool take_wish(struct adoption *adoption, struct claimant *claimant)
{
        struct sought *sought = sought_of(adoption, claimant->fleet);
        unsigned most = MAX(FOUND_SHARE * fleet_max_processes(claimant->fleet), (unsigned)FOUND_AT_LEAST);

        claimant->wanted = false;
        if (!sought || sought->found < most)
                return true;
        sought->full = true;
        return false;
}

/* Claimants whose place is taken come after the others, and those without an index last: no guessed worker
 * gets the place of another. */
static unsigned rank_of(const struct claimant *claimant)
{
        return claimant->index == 0 ? 2 : claimant->extra;
}

struct claimant *adoption_next(struct adoption *adoption)
{
        for (unsigned rank = 0; rank <= 2; rank++)
                for (size_t i = 0; i < adoption->n_claimants; i++) {
                        struct claimant *claimant = &adoption->claimants[i];

                        if (claimant->wanted && rank_of(claimant) == rank && take_wish(adoption, claimant))
                                return claimant;
                }
        return NULL;
}

const struct fleet *adoption_full(struct adoption *adoption)
{
        for (size_t i = 0; i < adoption->n_sought; i++) {
                struct sought *sought = &adoption->sought[i];

                if (!sought->full || sought->full_reported)
                        continue;
                sought->full_reported = true;
                return sought->fleet;
        }
        return NULL;
}

/* Guesses the fleet of a claimant without index: the first one of the same framework that is below its
 * count, else claimant->fleet. */
static void guess_place(const struct adoption *adoption, const struct claimant *claimant,
                        struct worker *ret_known, struct fleet **ret_fleet)
{
        *ret_fleet = claimant->fleet;
        for (size_t i = 0; i < adoption->n_sought; i++) {
                const struct sought *sought = &adoption->sought[i];
                struct fleet *fleet = sought->fleet;

                if (!sought->done && fleet->settings->traits == claimant->fleet->settings->traits &&
                    adoption->unsure && fleet_count(fleet, 0).live < fleet_current_count(fleet)) {
                        *ret_fleet = fleet;
                        break;
                }
        }
        ret_known->index = fleet_free_index(*ret_fleet);
        ret_known->generation = (*ret_fleet)->generation;
}

/* Returns an index beyond all starts, including those whose processes have not shown themselves yet. */
static unsigned extra_index(const struct fleet *fleet)
{
        unsigned index = fleet_max_processes(fleet) + 1;

        /* Workers are sorted by index. */
        for (size_t i = 0; i < fleet->n_workers; i++)
                index += fleet->workers[i]->index == index;
        return index;
}

struct worker *adoption_take(struct adoption *adoption, const struct claimant *claimant, usec_t spawned_at,
                             usec_t now)
{
        struct fleet *fleet = claimant->fleet;
        struct worker known = {
                .index = claimant->index,
                .generation = claimant->generation != 0 ? claimant->generation : fleet->generation,
                .process.pid = claimant->pid,
                .process.start = claimant->start,
                .state = WORKER_STARTING,
                .process.unproven = !claimant->booted,
                .spawned_at = claimant->started_at != 0 && claimant->started_at <= now
                                      ? claimant->started_at
                                      : MAX(spawned_at, (usec_t)1),
                .state_at = now,
        };

        struct taken *taken = reallocarray(adoption->taken, adoption->n_taken + 1, sizeof(*adoption->taken));
        if (!taken)
                return NULL;
        adoption->taken = taken;
        /* The worker has died: this process finishes the job, and accepts no other. */
        if (claimant->runs_one_job) {
                known.state = WORKER_QUIET;
                known.reason = REASON_CRASH;
                known.orders.quiet_at = now;
                known.heartbeat.busy = known.orders.finishes_job = true;
        }
        /* An operator's order for the ended worker applies to this process. */
        const struct ended *ended = left_by(adoption, claimant);
        known.orders.quiet = ended && ended->quieted;
        known.orders.succeeded = ended && ended->succeeded;
        if (claimant->index == 0)
                guess_place(adoption, claimant, &known, &fleet);
        else if (claimant->extra)
                known.index = extra_index(fleet);
        struct worker *worker = observe_adopted(fleet, &known, known.process.start, 0, now);
        /* Not recorded in taken: the next search must find the process again. */
        if (!worker)
                return NULL;
        taken[adoption->n_taken++] = (struct taken){.pid = claimant->pid, .start = claimant->start};
        struct sought *sought = sought_of(adoption, fleet);
        if (sought)
                sought->found++;
        adoption->found++;
        return worker;
}

void adoption_hold(struct adoption *adoption)
{
        const struct world *world = adoption->world;
        bool any = false;

        for (size_t i = 0; i < adoption->n_sought; i++)
                any |= !adoption->sought[i].done;
        WORLD_FOREACH_FLEET(world, fleet) {
                const struct sought *sought = sought_of(adoption, fleet);

                observe_hold(fleet, sought ? !sought->done : any, sought && sought->lost && !sought->done);
        }
}

bool adoption_search_end(struct adoption *adoption, int error, usec_t now)
{
        bool done = true;

        adoption->n_claimants = 0;
        /* A worker that the search has missed would be started again: hold starts until a search is
         * complete. */
        for (size_t i = 0; i < adoption->n_sought; i++) {
                struct sought *sought = &adoption->sought[i];
                bool awaited = adoption->unread && now < sought->until;

                sought->done |= error == 0 && !awaited;
                done &= sought->done;
        }
        adoption_hold(adoption);
        return done;
}
