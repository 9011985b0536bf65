/* SPDX-License-Identifier: MIT */
/* Looks for the workers that the state does not tell of: reads what each process shows, and takes hold of
 * those that are ours. */
#include "daemon/run/search.h"
#include "base/environment.h"
#include "base/fd.h"
#include "daemon/run/hold.h"
#include "daemon/run/signs.h"
#include "io/clock.h"
#include "io/launch.h"
#include "io/log.h"
#include <string.h>
#include <unistd.h>

/* What cannot be read of a process tells that it is none of ours: it is gone, or another's. But a shortage
 * tells nothing, and a worker that was passed over would be started once more. */
static int none_unless_shortage(int r)
{
        return is_shortage(r) ? r : 0;
}

int search_service(struct search *search)
{
        _cleanup_proc_ struct proc *self = NULL;

        if (!getenv("NOTIFY_SOCKET"))
                return 0;
        int r = proc_open(getpid(), &self);
        if (r >= 0)
                r = proc_cgroup(self, search->service, sizeof(search->service));
        /* Others than services share their group with whatever else was started there. */
        if (r < 0 || !strstr(search->service, ".service"))
                search->service[0] = '\0';
        return none_unless_shortage(r);
}

int search_hold(pid_t pid, uint64_t start, struct proc **ret)
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

/* Is it a sqmgr, or launching itself? One that has just ended is neither. */
static bool starts_workers(pid_t pid)
{
        _cleanup_proc_ struct proc *proc = NULL, *self = NULL;
        struct proc_place place, own;

        return proc_open(pid, &proc) >= 0 && proc_place(proc, &place) >= 0 &&
               proc_open(getpid(), &self) >= 0 && proc_place(self, &own) >= 0 &&
               (strcmp(place.comm, own.comm) == 0 || strcmp(place.comm, LAUNCH_COMM) == 0);
}

/* Whether it is in our control group. Returns 0 or -errno. */
static int see_service(const struct search *search, const struct proc *proc, struct sighting *sighting)
{
        char cgroup[sizeof(search->service)];

        if (search->service[0] == '\0')
                return 0;
        int r = proc_cgroup(proc, cgroup, sizeof(cgroup));
        if (r < 0)
                return none_unless_shortage(r);
        sighting->in_service = strcmp(cgroup, search->service) == 0;
        return 0;
}

/* Which framework it shows to work for. Returns 0 or -errno. */
static int see_boot(const struct search *search, const struct proc *proc, struct sighting *sighting)
{
        const struct world *world = search->crew->world;

        for (size_t i = 0; i < world->n_fleets; i++) {
                const struct traits *traits = world->fleets[i]->settings->traits;
                int r = signs_have_booted(proc, framework_of(traits));

                if (r > 0)
                        sighting->booted_as = traits;
                if (r != 0)
                        return MIN(r, 0);
        }
        return 0;
}

static int see_process(pid_t pid, void *userdata)
{
        const struct search *search = userdata;
        _cleanup_proc_ struct proc *proc = NULL;
        _cleanup_free_ char *text = NULL;
        struct proc_place place;
        size_t length;

        if (pid == getpid())
                return 0;
        int r = proc_open(pid, &proc);
        if (r >= 0 && proc_has_exited(proc))
                return 0;
        if (r >= 0)
                r = proc_place(proc, &place);
        if (r < 0)
                return none_unless_shortage(r);
        struct sighting sighting = {
                .pid = pid,
                .parent = place.parent,
                .group = place.group,
                .session = place.session,
                .start = proc_start_time(proc),
                .launching = strcmp(place.comm, LAUNCH_COMM) == 0,
        };
        sighting.parent_starts = sighting.launching && starts_workers(place.parent);
        r = proc_environment(proc, &text, &length);
        if (r < 0 && is_shortage(r))
                return r;
        if (r >= 0) {
                sighting.instance = environment_find(text, length, "SQMGR_INSTANCE");
                sighting.worker = environment_find(text, length, "SQMGR_WORKER");
                sighting.generation = environment_find(text, length, "SQMGR_GENERATION");
        }
        bool leads = place.session == pid;
        if (!sighting.launching && !sighting.worker && !leads)
                return 0;
        r = see_service(search, proc, &sighting);
        if (r >= 0 && sighting.in_service && leads)
                r = see_boot(search, proc, &sighting);
        if (r < 0)
                return r;
        r = proc_uid(proc, &sighting.uid);
        return r < 0 ? none_unless_shortage(r) : adoption_see(search->adoption, &sighting);
}

static int adopt_found(struct search *search, const struct claimant *claimant, usec_t now)
{
        usec_t ticks_usec = USEC_PER_SEC / (usec_t)sysconf(_SC_CLK_TCK);
        usec_t age = usec_sub(clock_now(CLOCK_BOOTTIME), claimant->start * ticks_usec);
        _cleanup_proc_ struct proc *proc = NULL;

        int r = search_hold(claimant->pid, claimant->start, &proc);
        if (r < 0 || !proc)
                return none_unless_shortage(r);
        struct worker *worker = adoption_take(search->adoption, claimant, usec_sub(now, age), now);
        if (!worker)
                return -ENOMEM;
        r = hold_adopted(search->crew, worker, TAKE_PTR(proc), NULL, NULL);
        if (r < 0) {
                observe_unadopted(worker);
                return r;
        }
        log_info("%s (pid %d) is adopted: it was found by its %s", WORKER_ID(worker), (int)worker->pid,
                 claimant->index != 0 ? "environment" : "control group");
        return 0;
}

int search_run(struct search *search, usec_t now)
{
        const struct claimant *claimant;

        adoption_search_begin(search->adoption);
        int r = proc_each(see_process, search);
        if (r < 0)
                return r;
        adoption_judge(search->adoption);
        while (r >= 0 && (claimant = adoption_next(search->adoption, now)))
                r = adopt_found(search, claimant, now);
        return r;
}
