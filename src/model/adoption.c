/* SPDX-License-Identifier: MIT */
/* Who of the living is ours. No I/O, no clock, no descriptor. */
#include "model/adoption.h"
#include "base/parse.h"
#include "model/rollout.h"
#include <string.h>

/* Counts that JSON can carry. */
#define GENERATION_MAX ((uint64_t)1 << 53)
/* A process shows neither its old name nor its new environment for a moment while it begins its command: two
 * searches in a row must say that there is none. */
#define CLEAR_SEARCHES 2
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
                .until = USEC_INFINITY,
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
        free(adoption->claimants);
        free(adoption);
        return NULL;
}

void adoption_seek(struct adoption *adoption, struct fleet *fleet, uid_t uid, usec_t now)
{
        adoption->until = MIN(adoption->until, usec_add(now, fleet->settings->boot_timeout));
        adoption->sought[adoption->n_sought++] = (struct sought){.fleet = fleet, .uid = uid, .lost = true};
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

static bool is_lost(const struct adoption *adoption, const struct fleet *fleet)
{
        const struct sought *sought = sought_of(adoption, fleet);

        return sought && sought->lost;
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

                if (known->pid == 0)
                        list[adoption->n_underway++] = (struct underway){
                                .fleet = fleet, .index = known->index, .generation = known->generation};
        }
        return 0;
}

struct worker *adoption_take_known(struct adoption *adoption, struct fleet *fleet, const struct worker *known,
                                   uint64_t pid_start, uint64_t beat_pid_start, usec_t now)
{
        struct worker *worker = observe_adopted(fleet, known, pid_start, beat_pid_start, now);

        if (!worker)
                return NULL;
        if (worker->state == WORKER_GONE)
                adoption->gone++;
        else
                adoption->adopted++;
        return worker;
}

bool adoption_needs_search(const struct adoption *adoption)
{
        for (size_t i = 0; i < adoption->n_sought; i++)
                if (adoption->sought[i].lost)
                        return true;
        return adoption->n_underway > 0;
}

void adoption_search_begin(struct adoption *adoption)
{
        adoption->launching = 0;
        adoption->n_claimants = 0;
}

/* A child of a sqmgr that died, on its way to its command. That of one that lives is none of ours. */
static bool is_launching(const struct adoption *adoption, const struct sighting *sighting)
{
        bool ours = sighting->uid == adoption->uid;

        for (size_t i = 0; i < adoption->n_sought; i++)
                ours |= sighting->uid == adoption->sought[i].uid;
        return sighting->launching && ours && !sighting->parent_starts;
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

static bool has_place(const struct fleet *fleet, unsigned index)
{
        for (size_t i = 0; i < fleet->n_workers; i++)
                if (fleet->workers[i]->state != WORKER_GONE && fleet->workers[i]->index == index)
                        return true;
        return false;
}

/* A start of this fleet of which nothing has come forward yet; NULL: there is none. */
static const struct underway *open_start(const struct adoption *adoption, const struct fleet *fleet)
{
        for (size_t i = 0; i < adoption->n_underway; i++)
                if (adoption->underway[i].fleet == fleet && !has_place(fleet, adoption->underway[i].index))
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

                if (sought->uid != sighting->uid || sought->fleet->settings->traits != sighting->booted_as ||
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
        };

        if (is_launching(adoption, sighting)) {
                adoption->launching++;
                return 0;
        }
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

/* One whose parent is of the same worker is a part of it. */
static bool is_main(const struct adoption *adoption, const struct claimant *claimant)
{
        for (size_t i = 0; i < adoption->n_claimants; i++)
                if (same_worker(&adoption->claimants[i], claimant) &&
                    adoption->claimants[i].pid == claimant->parent)
                        return false;
        return true;
}

/* A worker is started as the leader of its group; what its jobs left behind is seldom one. */
static bool leads_group(const struct claimant *claimant)
{
        return claimant->group == claimant->pid;
}

/* Of several that say they are the same worker, is this the one to believe? A leader, then the eldest. */
static bool is_likest(const struct adoption *adoption, const struct claimant *claimant)
{
        for (size_t i = 0; i < adoption->n_claimants; i++) {
                const struct claimant *other = &adoption->claimants[i];

                if (other == claimant || !same_worker(other, claimant) || !is_main(adoption, other))
                        continue;
                if (leads_group(other) != leads_group(claimant)) {
                        if (leads_group(other))
                                return false;
                        continue;
                }
                if (other->start < claimant->start || (other->start == claimant->start && other < claimant))
                        return false;
        }
        return true;
}

static bool is_known(const struct adoption *adoption, const struct claimant *claimant)
{
        const struct world *world = adoption->world;

        for (size_t i = 0; i < world->n_fleets; i++)
                for (size_t j = 0; j < world->fleets[i]->n_workers; j++) {
                        const struct worker *worker = world->fleets[i]->workers[j];

                        if ((worker->pid == claimant->pid && worker->pid_start == claimant->start) ||
                            (worker->beat_pid == claimant->pid && worker->beat_pid_start == claimant->start))
                                return true;
                }
        return false;
}

/* Has everything that is ours shown itself, if so many searches in a row left nothing unclear? */
static bool is_clear(const struct adoption *adoption, unsigned searches, usec_t now)
{
        bool open = false;

        for (size_t i = 0; i < adoption->n_sought && !open; i++)
                open = !!open_start(adoption, adoption->sought[i].fleet);
        return now >= adoption->until || (adoption->launching == 0 && (!open || searches >= CLEAR_SEARCHES));
}

/* Is this the worker of a place of which nothing is known? */
static bool is_wanted(const struct adoption *adoption, const struct claimant *claimant)
{
        const struct fleet *fleet = claimant->fleet;

        if (claimant->index == 0)
                return !is_known(adoption, claimant);
        if (has_place(fleet, claimant->index) || !is_main(adoption, claimant) ||
            !is_likest(adoption, claimant))
                return false;
        if (is_lost(adoption, fleet))
                return true;
        for (size_t i = 0; i < adoption->n_underway; i++) {
                const struct underway *underway = &adoption->underway[i];

                if (underway->fleet == fleet && underway->index == claimant->index &&
                    (claimant->generation == 0 || claimant->generation == underway->generation))
                        return true;
        }
        return false;
}

void adoption_judge(struct adoption *adoption)
{
        for (size_t i = 0; i < adoption->n_claimants; i++) {
                const struct claimant *claimant = &adoption->claimants[i];

                /* Which generations there are, where only the workers know. */
                if (is_lost(adoption, claimant->fleet))
                        observe_generation(claimant->fleet, claimant->generation);
        }
        /* All are judged before the first is taken. */
        for (size_t i = 0; i < adoption->n_claimants; i++)
                adoption->claimants[i].wanted = is_wanted(adoption, &adoption->claimants[i]);
}

struct claimant *adoption_next(struct adoption *adoption, usec_t now)
{
        struct claimant *guessed = NULL;

        for (size_t i = 0; i < adoption->n_claimants; i++) {
                struct claimant *claimant = &adoption->claimants[i];

                if (!claimant->wanted)
                        continue;
                if (claimant->index != 0) {
                        claimant->wanted = false;
                        return claimant;
                }
                guessed = guessed ?: claimant;
        }
        /* Those that tell their place come first, be it with a later search: it is not given to another. */
        if (!guessed || !is_clear(adoption, adoption->clear + 1, now))
                return NULL;
        guessed->wanted = false;
        return guessed;
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

                if (sought->uid != claimant->uid ||
                    fleet->settings->traits != claimant->fleet->settings->traits)
                        continue;
                start = sought->lost ? NULL : open_start(adoption, fleet);
                if (start || (sought->lost && fleet_count(fleet, 0).live < fleet_count_in_force(fleet))) {
                        *ret_fleet = fleet;
                        break;
                }
        }
        ret_known->index = start ? start->index : fleet_free_index(*ret_fleet);
        ret_known->generation = start ? start->generation : (*ret_fleet)->generation;
}

struct worker *adoption_take(struct adoption *adoption, const struct claimant *claimant, usec_t spawned_at,
                             usec_t now)
{
        struct fleet *fleet = claimant->fleet;
        struct worker known = {
                .index = claimant->index,
                .generation = claimant->generation != 0 ? claimant->generation : fleet->generation,
                .pid = claimant->pid,
                .pid_start = claimant->start,
                .state = WORKER_STARTING,
                .spawned_at = MAX(spawned_at, (usec_t)1),
                .state_at = now,
        };

        if (claimant->index == 0)
                guess_place(adoption, claimant, &known, &fleet);
        struct worker *worker = observe_adopted(fleet, &known, known.pid_start, 0, now);
        adoption->found += !!worker;
        return worker;
}

bool adoption_search_end(struct adoption *adoption, int error, usec_t now)
{
        adoption->clear = error == 0 && adoption->launching == 0 ? adoption->clear + 1 : 0;
        adoption->n_claimants = 0;
        /* One that was passed over would be started once more: the holds last until a search is whole. */
        if (error != 0)
                adoption->until = MAX(adoption->until, usec_add(now, RETRY_USEC));
        bool done = error == 0 && is_clear(adoption, adoption->clear, now);
        for (size_t i = 0; i < adoption->world->n_fleets; i++)
                observe_hold(adoption->world->fleets[i], done ? 0 : adoption->until);
        return done;
}
