/* SPDX-License-Identifier: MIT */
/* Finds the workers that the state does not tell of: by the mark in their environment or, in a service of
 * systemd's, by the title that a worker has once it has booted. */
#include "base/environment.h"
#include "base/fd.h"
#include "base/parse.h"
#include "daemon/run/adoption.h"
#include "daemon/run/hold.h"
#include "daemon/run/signs.h"
#include "io/clock.h"
#include "io/launch.h"
#include "io/log.h"
#include "model/observe.h"
#include <string.h>
#include <unistd.h>

/* Counts that JSON can carry. */
#define GENERATION_MAX ((uint64_t)1 << 53)

void search_forget(struct adoption *adoption)
{
        while (adoption->n_marked > 0)
                proc_close(adoption->marked[--adoption->n_marked].proc);
}

/* NULL: it is no longer configured, or came with a reload. */
struct sought *adoption_sought(const struct adoption *adoption, const struct fleet *fleet)
{
        for (size_t i = 0; i < adoption->n_sought; i++)
                if (adoption->sought[i].fleet == fleet)
                        return &adoption->sought[i];
        return NULL;
}

bool adoption_lost(const struct adoption *adoption, const struct fleet *fleet)
{
        const struct sought *sought = adoption_sought(adoption, fleet);

        return sought != NULL && sought->lost;
}

/* What cannot be read of a process tells that it is none of ours: it is gone, or another's. But a shortage
 * tells nothing, and a worker that was passed over would be started once more. */
static int none_unless_shortage(int r)
{
        return is_shortage(r) ? r : 0;
}

/* Is it in the service that systemd runs us as? Nothing is there but what a sqmgr of this service started,
 * whatever its state file was called. Returns 1, 0 or -errno. */
static int in_service(const struct adoption *adoption, const struct proc *proc)
{
        char cgroup[sizeof(adoption->service)];

        if (adoption->service[0] == '\0')
                return 0;
        int r = proc_cgroup(proc, cgroup, sizeof(cgroup));
        return r < 0 ? none_unless_shortage(r) : strcmp(cgroup, adoption->service) == 0;
}

int search_service(struct adoption *adoption)
{
        _cleanup_proc_ struct proc *self = NULL;

        if (getenv("NOTIFY_SOCKET") == NULL)
                return 0;
        int r = proc_open(getpid(), &self);
        if (r >= 0)
                r = proc_cgroup(self, adoption->service, sizeof(adoption->service));
        /* Others than services share their group with whatever else was started there. */
        if (r < 0 || strstr(adoption->service, ".service") == NULL)
                adoption->service[0] = '\0';
        return none_unless_shortage(r);
}

/* A worker whose title has grown over its environment: a leader, as workers are started, that has booted. Of
 * which fleet can only be guessed: whatever is wrong in that, the planner drains and replaces it. Returns 1,
 * 0 where it is none, or -errno. */
static int read_service(const struct adoption *adoption, const struct proc *proc, struct marked *ret)
{
        uid_t uid;

        if (ret->place.session != proc_pid(proc))
                return 0;
        int r = in_service(adoption, proc);
        if (r <= 0)
                return r;
        r = proc_uid(proc, &uid);
        if (r < 0)
                return none_unless_shortage(r);
        for (size_t i = 0; i < adoption->n_sought; i++) {
                const struct sought *sought = &adoption->sought[i];

                if (!sought->lost || sought->uid != uid)
                        continue;
                r = signs_have_booted(proc, framework_of(sought->fleet->settings->traits));
                if (r > 0)
                        ret->fleet = sought->fleet;
                if (r != 0)
                        return r;
        }
        return 0;
}

/* Of the fleets of the same user that know of none of their workers, one that has a place for it. */
static struct fleet *fleet_with_room(const struct adoption *adoption, struct fleet *first)
{
        const struct sought *like = adoption_sought(adoption, first);

        for (size_t i = 0; like != NULL && i < adoption->n_sought; i++) {
                const struct sought *sought = &adoption->sought[i];
                struct fleet *fleet = sought->fleet;

                if (sought->lost && sought->uid == like->uid &&
                    fleet->settings->traits == first->settings->traits &&
                    fleet_count(fleet, 0).live < fleet_count_in_force(fleet))
                        return fleet;
        }
        return first;
}

/* Reads whose worker it says it is. Returns 1, 0 where it is none of ours, or -errno. */
static int read_mark(const struct adoption *adoption, const struct proc *proc, struct marked *ret)
{
        const struct world *world = adoption->crew->world;
        _cleanup_free_ char *text = NULL;
        uint64_t index, generation = 0;
        char name[256];
        size_t length;
        uid_t uid;

        int r = proc_environment(proc, &text, &length);
        if (r < 0)
                return none_unless_shortage(r);
        const char *instance = environment_find(text, length, "SQMGR_INSTANCE");
        const char *worker = environment_find(text, length, "SQMGR_WORKER");
        const char *told = environment_find(text, length, "SQMGR_GENERATION");
        const char *slash = worker != NULL ? strrchr(worker, '/') : NULL;
        if (instance == NULL || slash == NULL || (size_t)(slash - worker) >= sizeof(name) ||
            parse_unsigned(slash + 1, 1, INT32_MAX, &index) < 0)
                return 0;
        if (strcmp(instance, adoption->crew->instance) != 0) {
                r = in_service(adoption, proc);
                if (r <= 0)
                        return r;
        }
        snprintf(name, sizeof(name), "%.*s", (int)(slash - worker), worker);
        struct fleet *fleet = world_fleet(world, name);
        const struct sought *sought = adoption_sought(adoption, fleet);
        /* Anybody may put anything in his own environment. */
        if (sought == NULL)
                return 0;
        r = proc_uid(proc, &uid);
        if (r < 0 || uid != sought->uid)
                return none_unless_shortage(r);
        if (told != NULL)
                (void)parse_unsigned(told, 1, GENERATION_MAX, &generation);
        ret->fleet = fleet;
        ret->index = (unsigned)index;
        ret->generation = generation;
        return 1;
}

/* A child of a sqmgr that died, on its way to its command. That of one that lives is none of ours. Returns 1,
 * 0 or -errno. */
static int is_launching(const struct adoption *adoption, const struct proc *proc,
                        const struct proc_place *place)
{
        _cleanup_proc_ struct proc *parent = NULL, *self = NULL;
        struct proc_place above, own;
        bool ours = false;
        uid_t uid;

        if (strcmp(place->comm, LAUNCH_COMM) != 0)
                return 0;
        int r = proc_uid(proc, &uid);
        if (r < 0)
                return none_unless_shortage(r);
        for (size_t i = 0; i < adoption->n_sought; i++)
                ours |= uid == adoption->sought[i].uid;
        if (!ours && uid != geteuid())
                return 0;
        return proc_open(place->parent, &parent) < 0 || proc_place(parent, &above) < 0 ||
               proc_open(getpid(), &self) < 0 || proc_place(self, &own) < 0 ||
               (strcmp(above.comm, own.comm) != 0 && strcmp(above.comm, LAUNCH_COMM) != 0);
}

static int look_at_process(pid_t pid, void *userdata)
{
        struct adoption *adoption = userdata;
        _cleanup_proc_ struct proc *proc = NULL;
        struct marked marked = {0};

        if (pid == getpid())
                return 0;
        int r = proc_open(pid, &proc);
        if (r == 0 && proc_has_exited(proc))
                return 0;
        if (r == 0)
                r = proc_place(proc, &marked.place);
        if (r < 0)
                return none_unless_shortage(r);
        r = is_launching(adoption, proc, &marked.place);
        if (r > 0) {
                adoption->launching++;
                return 0;
        }
        if (r == 0)
                r = read_mark(adoption, proc, &marked);
        if (r == 0)
                r = read_service(adoption, proc, &marked);
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
        return a->fleet == b->fleet && a->index == b->index && a->index != 0;
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
        if (adoption_lost(adoption, fleet))
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
        struct fleet *fleet = marked->index != 0 ? marked->fleet : fleet_with_room(adoption, marked->fleet);
        usec_t ticks_usec = USEC_PER_SEC / (usec_t)sysconf(_SC_CLK_TCK);
        usec_t age = usec_sub(clock_now(CLOCK_BOOTTIME), proc_start_time(marked->proc) * ticks_usec);
        struct worker known = {
                .index = marked->index != 0 ? marked->index : fleet_free_index(fleet),
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
        int r = hold_adopted(adoption->crew, worker, TAKE_PTR(marked->proc), NULL, NULL);
        if (r < 0) {
                observe_unadopted(worker);
                return r;
        }
        log_info("%s (pid %d) is adopted: it was found by its %s", WORKER_ID(worker), (int)worker->pid,
                 marked->index != 0 ? "environment" : "control group");
        adoption->found++;
        return 0;
}

/* Which generations there are, where only the workers know. */
static void learn_generations(const struct adoption *adoption)
{
        for (size_t i = 0; i < adoption->n_marked; i++) {
                struct fleet *fleet = adoption->marked[i].fleet;

                if (adoption_lost(adoption, fleet))
                        fleet->generation = MAX(fleet->generation, adoption->marked[i].generation);
        }
}

int search_workers(struct adoption *adoption, usec_t now)
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
        search_forget(adoption);
        free(wanted);
        adoption->clear = r >= 0 && adoption->launching == 0 ? adoption->clear + 1 : 0;
        return r;
}
