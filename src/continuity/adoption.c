/* SPDX-License-Identifier: MIT */
/* Who of the living is ours. No I/O, no clock, no descriptor. */
#include "continuity/adoption.h"
#include "base/parse.h"
#include "continuity/state.h"
#include "model/counts.h"
#include "model/rollout.h"
#include "model/world.h"
#include "observe/observe.h"
#include "observe/observe_world.h"
#include <string.h>

/* Counts that JSON can carry. */
#define GENERATION_MAX ((uint64_t)1 << 53)
/* A process shows neither its old name nor its new environment for a moment while it begins its command: two
 * searches in a row must say that there is none. */
#define CLEAR_SEARCHES 2
/* No chain of parents is longer in practice. */
#define ANCESTORS_MAX 128
/* So many times what a fleet may have are found of it, and no fewer than that: it may have been larger. */
#define FOUND_SHARE    4
#define FOUND_AT_LEAST 64
/* Where a search failed there is time for some more. */
#define RETRY_USEC (200 * USEC_PER_MSEC)

int adoption_new(struct world *world, const char *instance, uid_t uid, struct adoption **ret)
{
        struct adoption *adoption = calloc(1, sizeof(*adoption));

        if (!adoption)
                return -ENOMEM;
        *adoption = (struct adoption){
                .world = world,
                .instance = instance,
                .uid = uid,
                .sought = calloc(world->n_fleets + 1, sizeof(*adoption->sought)),
        };
        if (!adoption->sought) {
                free(adoption);
                return -ENOMEM;
        }
        *ret = adoption;
        return 0;
}

struct adoption *adoption_free(struct adoption *adoption)
{
        if (!adoption)
                return NULL;
        free(adoption->sought);
        free(adoption->underway);
        free(adoption->ended);
        free(adoption->claimants);
        free(adoption->taken);
        free(adoption);
        return NULL;
}

void adoption_seek(struct adoption *adoption, struct fleet *fleet, uid_t uid, usec_t now)
{
        adoption->sought[adoption->n_sought++] = (struct sought){
                .fleet = fleet,
                .uid = uid,
                .lost = true,
                .until = usec_add(now, fleet->settings->boot_timeout),
        };
}

static struct sought *sought_of(const struct adoption *adoption, const struct fleet *fleet)
{
        for (size_t i = 0; i < adoption->n_sought; i++)
                if (adoption->sought[i].fleet == fleet)
                        return &adoption->sought[i];
        return NULL;
}

bool adoption_uid(const struct adoption *adoption, const struct fleet *fleet, uid_t *ret)
{
        const struct sought *sought = sought_of(adoption, fleet);

        if (!sought)
                return false;
        *ret = sought->uid;
        return true;
}

bool adoption_seeks_user(const struct adoption *adoption, uid_t uid)
{
        for (size_t i = 0; i < adoption->n_sought; i++)
                if (adoption->sought[i].uid == uid)
                        return true;
        return false;
}

/* Is nothing of this fleet looked for any more? */
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

int adoption_continue_fleet(struct adoption *adoption, struct fleet *fleet, const struct state_fleet *saved,
                            usec_t now)
{
        struct sought *sought = sought_of(adoption, fleet);
        struct underway *list =
                reallocarray(adoption->underway, adoption->n_underway + saved->n_workers + 1, sizeof(*list));

        if (!list)
                return -ENOMEM;
        adoption->underway = list;
        if (sought)
                sought->lost = false;
        state_continue_fleet(fleet, saved, now);
        /* While there was no sqmgr it could not come forward. */
        if (fleet->rollout.state == ROLLOUT_RUNNING)
                rollout_observe_progress(fleet, now);
        for (size_t i = 0; i < saved->n_workers; i++) {
                const struct worker *known = &saved->workers[i].worker;

                if (known->process.pid == 0)
                        list[adoption->n_underway++] = (struct underway){.fleet = fleet, .start = *known};
        }
        return 0;
}

struct worker *adoption_take_known(struct adoption *adoption, struct fleet *fleet, const struct worker *known,
                                   uint64_t pid_start, uint64_t heartbeat_pid_start, usec_t now)
{
        struct underway *ended = reallocarray(adoption->ended, adoption->n_ended + 1, sizeof(*ended));

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
        ended[adoption->n_ended++] = (struct underway){.fleet = fleet, .start = *known};
        adoption->gone++;
        return worker;
}

bool adoption_needs_search(const struct adoption *adoption)
{
        for (size_t i = 0; i < adoption->n_sought; i++)
                if (adoption->sought[i].lost)
                        return true;
        return adoption->n_underway > 0 || adoption->n_ended > 0;
}

void adoption_search_begin(struct adoption *adoption)
{
        adoption->launching = 0;
        adoption->n_claimants = 0;
        for (size_t i = 0; i < adoption->n_sought; i++)
                adoption->sought[i].launching = 0;
}

/* A child of a sqmgr that died, on its way to its command: while it is our user's it may be of any fleet, and
 * then of those of its user. That of one that lives is none of ours. */
static bool see_launching(struct adoption *adoption, const struct sighting *sighting)
{
        if (!sighting->launching || sighting->parent_starts ||
            (sighting->uid != adoption->uid && !adoption_seeks_user(adoption, sighting->uid)))
                return false;
        adoption->launching++;
        for (size_t i = 0; i < adoption->n_sought; i++) {
                struct sought *sought = &adoption->sought[i];

                sought->launching += sighting->uid == adoption->uid || sighting->uid == sought->uid;
        }
        return true;
}

/* Whose worker it says it is. Anybody may put anything into his own environment: it must be of the user that
 * this fleet's are of. */
static bool read_mark(const struct adoption *adoption, const struct sighting *sighting, struct claimant *ret)
{
        const char *slash = sighting->worker ? strrchr(sighting->worker, '/') : NULL;
        uint64_t index, generation = 0;
        char name[256];

        if (!sighting->instance || !slash || (size_t)(slash - sighting->worker) >= sizeof(name) ||
            parse_unsigned(slash + 1, 1, INT32_MAX, &index) < 0)
                return false;
        /* In our service is nothing but what a sqmgr of it started, whatever its state file was called. */
        if (strcmp(sighting->instance, adoption->instance) != 0 && !sighting->in_service)
                return false;
        memcpy(name, sighting->worker, (size_t)(slash - sighting->worker));
        name[slash - sighting->worker] = '\0';
        struct fleet *fleet = world_fleet(adoption->world, name);
        const struct sought *sought = sought_of(adoption, fleet);
        if (!sought || sought->uid != sighting->uid)
                return false;
        if (sighting->generation)
                (void)parse_unsigned(sighting->generation, 1, GENERATION_MAX, &generation);
        ret->fleet = fleet;
        ret->index = (unsigned)index;
        ret->generation = generation;
        return true;
}

/* A start of this fleet of which nothing has come forward yet; NULL: there is none. */
static const struct underway *open_start(const struct adoption *adoption, const struct fleet *fleet)
{
        for (size_t i = 0; i < adoption->n_underway; i++)
                if (adoption->underway[i].fleet == fleet &&
                    !fleet_has_place(fleet, adoption->underway[i].start.index))
                        return &adoption->underway[i];
        return NULL;
}

/* A worker whose title has grown over its environment: a leader, as workers are started, that has booted. Of
 * which fleet can only be guessed: whatever is wrong in that, the planner drains and replaces it. */
static bool read_service(const struct adoption *adoption, const struct sighting *sighting,
                         struct claimant *ret)
{
        if (sighting->session != sighting->pid || !sighting->in_service || !sighting->booted_as)
                return false;
        for (size_t i = 0; i < adoption->n_sought; i++) {
                const struct sought *sought = &adoption->sought[i];

                if (sought->done || sought->uid != sighting->uid ||
                    sought->fleet->settings->traits != sighting->booted_as ||
                    (!sought->lost && !open_start(adoption, sought->fleet)))
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
                .uid = sighting->uid,
                .started_at = sighting->started_at,
                .booted = !!sighting->booted_as,
                .runs_one_job = sighting->runs_one_job,
        };

        if (see_launching(adoption, sighting))
                return 0;
        if (!read_mark(adoption, sighting, &claimant) && !read_service(adoption, sighting, &claimant))
                return 0;
        if (adoption->n_claimants == adoption->allocated) {
                size_t allocated = MAX((size_t)16, 2 * adoption->allocated);
                struct claimant *list = reallocarray(adoption->claimants, allocated, sizeof(*list));

                if (!list)
                        return -ENOMEM;
                adoption->claimants = list;
                adoption->allocated = allocated;
        }
        adoption->claimants[adoption->n_claimants++] = claimant;
        return 0;
}

static bool same_worker(const struct claimant *a, const struct claimant *b)
{
        return a->fleet == b->fleet && a->index == b->index && a->index != 0;
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

/* Its parent, where that says that it is the same worker: then it is a part of that one. They are in the
 * order of their pids. NULL: there is no such. */
static struct claimant *parent_of(const struct adoption *adoption, const struct claimant *claimant)
{
        const struct claimant key = {.pid = claimant->parent};
        struct claimant *parent =
                adoption->n_claimants > 0
                        ? bsearch(&key, adoption->claimants, adoption->n_claimants, sizeof(key), compare_pids)
                        : NULL;

        return parent && same_worker(parent, claimant) ? parent : NULL;
}

/* A worker is started as the leader of its group; what its jobs left behind is seldom one. */
static bool leads_group(const struct claimant *claimant)
{
        return claimant->group == claimant->pid;
}

static bool is_known(const struct adoption *adoption, const struct claimant *claimant)
{
        const struct world *world = adoption->world;

        for (size_t i = 0; i < adoption->n_taken; i++)
                if (adoption->taken[i].pid == claimant->pid && adoption->taken[i].start == claimant->start)
                        return true;
        for (size_t i = 0; i < world->n_fleets; i++)
                for (size_t j = 0; j < world->fleets[i]->n_workers; j++) {
                        const struct worker *worker = world->fleets[i]->workers[j];

                        if ((worker->process.pid == claimant->pid &&
                             worker->process.start == claimant->start) ||
                            (worker->process.heartbeat_pid == claimant->pid &&
                             worker->process.heartbeat_start == claimant->start))
                                return true;
                }
        for (size_t i = 0; i < world->n_fleets; i++)
                for (size_t j = 0; j < TEMPLATES_MAX; j++) {
                        const struct template *template = &world->fleets[i]->templates[j];

                        if (template->pid == claimant->pid && template->pid_start == claimant->start)
                                return true;
                }
        return false;
}

/* Who has its place; NULL: nobody. */
static const struct worker *holder_of(const struct claimant *claimant)
{
        const struct fleet *fleet = claimant->fleet;

        for (size_t i = 0; i < fleet->n_workers; i++)
                if (fleet->workers[i]->state != WORKER_GONE && fleet->workers[i]->index == claimant->index)
                        return fleet->workers[i];
        return NULL;
}

/* It has booted, and was started with a worker whose own processes have ended meanwhile: one of several of
 * its command's. NULL: there was no such. */
static const struct worker *left_by(const struct adoption *adoption, const struct claimant *claimant)
{
        for (size_t i = 0; claimant->booted && i < adoption->n_ended; i++) {
                const struct worker *ended = &adoption->ended[i].start;

                if (adoption->ended[i].fleet == claimant->fleet && ended->index == claimant->index &&
                    ended->generation == claimant->generation && ended->spawned_at == claimant->started_at)
                        return ended;
        }
        return NULL;
}

/* Its place is empty, or one has it that is less likely; and nothing is known of its fleet, or it is of the
 * very start that was under way there. */
static bool may_be(const struct adoption *adoption, const struct claimant *claimant)
{
        const struct worker *holder = holder_of(claimant);

        if (is_done(adoption, claimant->fleet) || is_known(adoption, claimant) ||
            (holder &&
             !(holder->process.unproven && (claimant->booted || claimant->started_at >= holder->spawned_at))))
                return false;
        if (is_lost(adoption, claimant->fleet))
                return true;
        for (size_t i = 0; i < adoption->n_underway; i++) {
                const struct worker *start = &adoption->underway[i].start;

                if (adoption->underway[i].fleet == claimant->fleet && start->index == claimant->index &&
                    (claimant->generation == 0 || claimant->generation == start->generation) &&
                    (claimant->started_at == 0 || claimant->started_at == start->spawned_at))
                        return true;
        }
        return !!left_by(adoption, claimant);
}

/* Of several that say they are the same worker, who is likelier? One that has booted, before what runs a job
 * for a worker that has died; of what was started last, for what an earlier start left behind is older; a
 * leader, then the eldest. Less than 0: a. */
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

static bool same_place(const struct claimant *a, const struct claimant *b)
{
        return a->fleet == b->fleet && a->index == b->index;
}

/* By place, and in each the likeliest first. */
static int compare_claimants(const void *left, const void *right)
{
        const struct claimant *a = left, *b = right;
        int order = strcmp(a->fleet->settings->name, b->fleet->settings->name);

        if (order == 0)
                order = compare(a->index, b->index);
        return order != 0 ? order : compare_likely(a, b);
}

/* One that has not begun its command may be of any fleet of its user, and takes as long as that one's
 * before_start may. */
static usec_t until_of(const struct adoption *adoption, uid_t uid)
{
        usec_t until = 0;

        for (size_t i = 0; i < adoption->n_sought; i++)
                if (adoption->sought[i].uid == uid)
                        until = MAX(until, adoption->sought[i].until);
        return until;
}

/* Has every worker of this fleet shown itself, if in so many searches in a row none was on its way? */
static bool is_clear(const struct adoption *adoption, const struct sought *sought, unsigned searches,
                     usec_t now)
{
        const struct underway *start = open_start(adoption, sought->fleet);

        /* Where all starts are known, what is on its way to its command is none of its. */
        if (now >= until_of(adoption, sought->uid) || (!sought->lost && !start))
                return true;
        return sought->launching == 0 && (searches >= CLEAR_SEARCHES || !start);
}

/* The same of all fleets of a user, and with as many searches more: one that does not tell its place may be
 * of any of them. */
static bool is_clear_for(const struct adoption *adoption, uid_t uid, unsigned more, usec_t now)
{
        for (size_t i = 0; i < adoption->n_sought; i++) {
                const struct sought *sought = &adoption->sought[i];

                if (!sought->done && sought->uid == uid &&
                    !is_clear(adoption, sought, sought->clear + more, now))
                        return false;
        }
        return true;
}

/* What has booted below one is the worker, wherever it stands; and who runs below another is a part of that
 * one. Returns how many are left: those who stand for themselves. */
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
                list[i].wanted = list[i].index == 0
                                         ? !is_known(adoption, &list[i])
                                         : may_be(adoption, &list[i]) && !parent_of(adoption, &list[i]);
        for (size_t i = 0; i < adoption->n_claimants; i++)
                if (list[i].wanted)
                        list[kept++] = list[i];
        return kept;
}

/* Of those that claim one place, the likeliest first, that one has it. None of the others that may be a
 * worker is passed over: what has booted, and where nothing of the last start has, whatever is of that. */
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
                /* Which generations there are, where only the workers know. */
                if (is_lost(adoption, list[i].fleet))
                        observe_generation(list[i].fleet, list[i].generation);
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

/* Is it to be taken now, if any more of its fleet are? */
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

/* extra: those that have no place of their own. */
static struct claimant *next_reported(struct adoption *adoption, bool extra)
{
        for (size_t i = 0; i < adoption->n_claimants; i++) {
                struct claimant *claimant = &adoption->claimants[i];

                if (claimant->wanted && claimant->index != 0 && claimant->extra == extra &&
                    take_wish(adoption, claimant))
                        return claimant;
        }
        return NULL;
}

struct claimant *adoption_next(struct adoption *adoption, usec_t now)
{
        struct claimant *next = next_reported(adoption, false);

        if (!next)
                next = next_reported(adoption, true);
        /* Those that tell their place come first, be it with a later search: it is not given to another. One
         * that must wait yet keeps none from his place whose fleets are clear. */
        for (size_t i = 0; !next && i < adoption->n_claimants; i++) {
                struct claimant *guessed = &adoption->claimants[i];

                if (guessed->wanted && is_clear_for(adoption, guessed->uid, 1, now) &&
                    take_wish(adoption, guessed))
                        next = guessed;
        }
        return next;
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

/* Of the fleets of the same user and framework, one that knows of none of its workers and has a place for it,
 * or that misses one; else the first that it may be of. */
static void guess_place(const struct adoption *adoption, const struct claimant *claimant,
                        struct worker *ret_known, struct fleet **ret_fleet)
{
        const struct underway *start = NULL;

        *ret_fleet = claimant->fleet;
        for (size_t i = 0; i < adoption->n_sought; i++) {
                const struct sought *sought = &adoption->sought[i];
                struct fleet *fleet = sought->fleet;

                if (sought->done || sought->uid != claimant->uid ||
                    fleet->settings->traits != claimant->fleet->settings->traits)
                        continue;
                start = sought->lost ? NULL : open_start(adoption, fleet);
                if (start || (sought->lost && fleet_count(fleet, 0).live < fleet_count_in_force(fleet))) {
                        *ret_fleet = fleet;
                        break;
                }
        }
        ret_known->index = start ? start->start.index : fleet_free_index(*ret_fleet);
        ret_known->generation = start ? start->start.generation : (*ret_fleet)->generation;
}

/* One that no start has, nor one whose process has not shown itself yet. */
static unsigned extra_index(const struct fleet *fleet)
{
        unsigned index = fleet_max_processes(fleet) + 1;

        /* They are in the order of their places. */
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
        /* Its worker has died: this one finishes the job, and takes no other. */
        if (claimant->runs_one_job) {
                known.state = WORKER_QUIET;
                known.reason = REASON_CRASH;
                known.orders.quiet_at = now;
                known.heartbeat.busy = known.orders.finishes_job = true;
        }
        /* What the operator said of that worker is true of this one. */
        const struct worker *ended = left_by(adoption, claimant);
        known.orders.quiet = ended && ended->orders.quiet;
        known.orders.succeeded = ended && ended->state > WORKER_ACTIVE;
        if (claimant->index == 0)
                guess_place(adoption, claimant, &known, &fleet);
        else if (claimant->extra)
                known.index = extra_index(fleet);
        struct worker *worker = observe_adopted(fleet, &known, known.process.start, 0, now);
        /* The next search must find it again. */
        if (!worker)
                return NULL;
        taken[adoption->n_taken++] = (struct taken){.pid = claimant->pid, .start = claimant->start};
        struct sought *sought = sought_of(adoption, fleet);
        if (sought)
                sought->found++;
        adoption->found++;
        return worker;
}

/* All that is ours of this fleet is known, or was given up. */
static void end_sought(struct adoption *adoption, struct sought *sought)
{
        size_t kept = 0;

        sought->done = true;
        for (size_t i = 0; i < adoption->n_underway; i++)
                if (adoption->underway[i].fleet != sought->fleet)
                        adoption->underway[kept++] = adoption->underway[i];
        adoption->n_underway = kept;
}

void adoption_hold(struct adoption *adoption)
{
        const struct world *world = adoption->world;
        usec_t last = 0; /* of any that is not done */

        for (size_t i = 0; i < adoption->n_sought; i++)
                if (!adoption->sought[i].done)
                        last = MAX(last, until_of(adoption, adoption->sought[i].uid));
        for (size_t i = 0; i < world->n_fleets; i++) {
                const struct sought *sought = sought_of(adoption, world->fleets[i]);
                usec_t until = sought ? until_of(adoption, sought->uid) : last;
                bool held = sought ? !sought->done : last != 0;

                observe_hold(world->fleets[i], held ? until : 0, held && sought && sought->lost);
        }
}

bool adoption_search_end(struct adoption *adoption, int error, usec_t now)
{
        bool done = true;

        adoption->n_claimants = 0;
        /* One that was passed over would be started once more: the holds last until a search is whole. */
        for (size_t i = 0; i < adoption->n_sought; i++) {
                struct sought *sought = &adoption->sought[i];

                if (error != 0)
                        sought->until = MAX(sought->until, usec_add(now, RETRY_USEC));
                sought->clear = error == 0 && sought->launching == 0 ? sought->clear + 1 : 0;
        }
        for (size_t i = 0; i < adoption->n_sought; i++) {
                struct sought *sought = &adoption->sought[i];

                if (error == 0 && !sought->done && is_clear_for(adoption, sought->uid, 0, now))
                        end_sought(adoption, sought);
                done &= sought->done;
        }
        adoption_hold(adoption);
        return done;
}
