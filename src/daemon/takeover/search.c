/* SPDX-License-Identifier: MIT */
/* Searches for workers that the state does not name: reads evidence of each process, and attaches our
 * workers. */
#include "daemon/takeover/search.h"
#include "base/fd.h"
#include "continuity/adoption.h"
#include "daemon/workers/attach.h"
#include "io/clock.h"
#include "io/log.h"
#include "model/world.h"
#include "observe/observe.h"

/* Limits per slice, which takes a few milliseconds. */
#define SLICE_PROCESSES 1000
#define SLICE_BYTES     ((size_t)2 << 20)
/* After this time, the search ends without a process that cannot be read, and is repeated. */
#define PATIENCE_USEC (3 * USEC_PER_SEC)
/* Limit of the time that the start waits for the proc reader. */
#define START_WAIT_USEC USEC_PER_SEC

int search_service(struct search *search)
{
        _cleanup_proc_ struct proc *self = NULL;

        if (!getenv("NOTIFY_SOCKET"))
                return 0;
        int r = proc_open(getpid(), &self);
        if (r >= 0)
                r = proc_cgroup(self, search->service, sizeof(search->service));
        /* Units other than services share their group with other processes. */
        if (r < 0 || !strstr(search->service, ".service"))
                search->service[0] = '\0';
        return none_unless_shortage(r);
}

/* Checks whether the process is in our control group. Returns 0 or -errno. */
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

/* Finds the framework that the process shows evidence of. Returns 0 or -errno. */
static int see_boot(const struct search *search, const struct proc *proc, struct sighting *sighting)
{
        struct proc_facts *facts = search->runtime->proc_facts;
        const struct world *world = search->runtime->world;

        for (size_t i = 0; i < world->n_fleets; i++) {
                const struct traits *traits = world->fleets[i]->settings->traits;
                bool seen = false;

                for (size_t j = 0; j < i; j++)
                        seen |= world->fleets[j]->settings->traits == traits;
                if (seen)
                        continue;
                const struct framework *framework = framework_of(traits);
                int r = proc_evidence_runs_jobs(facts, proc, framework);

                if (r > 0) {
                        sighting->booted_as = traits;
                        /* A worker is started as the leader of its group. */
                        sighting->runs_one_job = sighting->group != sighting->pid &&
                                                 proc_evidence_has_booted(facts, proc, framework) == 0;
                }
                if (r != 0)
                        return MIN(r, 0);
        }
        return 0;
}

/* Returns -EINPROGRESS if the process must be seen again, else 0. */
static int see_unknown(struct search *search, const struct proc *proc, int r)
{
        bool waits =
                r == -EINPROGRESS && clock_now(CLOCK_MONOTONIC) < usec_add(search->began_at, PATIENCE_USEC);

        if (!waits)
                adoption_await(search->adoption, proc_pid(proc), proc_start_time(proc));
        return waits ? -EINPROGRESS : 0;
}

static int see_process(struct search *search, pid_t pid)
{
        _cleanup_proc_ struct proc *proc = NULL;
        struct proc_place place;
        struct markers markers;
        uid_t uid = (uid_t)-1;

        if (pid == getpid() || proc_facts_is_reader(search->runtime->proc_facts, pid))
                return 0;
        int r = proc_open(pid, &proc);
        if (r >= 0 && proc_has_exited(proc))
                return 0;
        if (r >= 0)
                r = proc_uid(proc, &uid);
        /* A process of another user is no worker, and cannot be signaled. */
        if (r >= 0 && uid != geteuid())
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
        };
        ssize_t length = env_markers_read(search->runtime->proc_facts, proc, search->environment, &markers);
        if (proc_facts_is_unknown((int)length))
                return see_unknown(search, proc, (int)length);
        if (length < 0 && is_shortage((int)length))
                return (int)length;
        search->slice_bytes += MAX(length, (ssize_t)0);
        sighting.instance = markers.instance;
        sighting.worker = markers.worker;
        sighting.generation = markers.generation;
        sighting.started_at = markers.started_at;
        if (!sighting.worker && place.session != pid)
                return 0;
        r = see_service(search, proc, &sighting);
        if (r >= 0 && (sighting.worker || sighting.in_service))
                r = see_boot(search, proc, &sighting);
        if (proc_facts_is_unknown(r))
                return see_unknown(search, proc, r);
        return r < 0 ? r : adoption_see(search->adoption, &sighting);
}

static int adopt_found(struct search *search, const struct claimant *claimant, usec_t now)
{
        usec_t ticks_usec = USEC_PER_SEC / (usec_t)sysconf(_SC_CLK_TCK);
        usec_t age = usec_sub(clock_now(CLOCK_BOOTTIME), claimant->start * ticks_usec);
        _cleanup_proc_ struct proc *proc = NULL;

        int r = proc_find(claimant->pid, claimant->start, &proc);
        if (r < 0 || !proc)
                return none_unless_shortage(r);
        struct worker *worker = adoption_take(search->adoption, claimant, usec_sub(now, age), now);
        if (!worker)
                return -ENOMEM;
        r = attach_adopted(search->runtime, worker, TAKE_PTR(proc), NULL, NULL, 0);
        if (r < 0) {
                observe_unadopted(worker);
                return r;
        }
        log_info("%s (pid %d) adopted (found by its %s)", WORKER_ID(worker), (int)worker->process.pid,
                 claimant->index != 0 ? "markers" : "control group");
        return 0;
}

/* Checks the next slice of processes. Returns SEARCH_WHOLE, SEARCH_GOES_ON, or -errno. */
static int see_some(struct search *search)
{
        size_t end = MIN(search->n_pids, search->at + SLICE_PROCESSES);

        search->slice_bytes = 0;
        while (search->at < end && search->slice_bytes < SLICE_BYTES) {
                pid_t pid = search->pids[search->at++];
                int r = see_process(search, pid);
                if (r == -EINPROGRESS)
                        search->pids[search->n_waiting++] = pid;
                else if (r < 0)
                        return r;
        }
        search->waits = false;
        if (search->at < search->n_pids)
                return SEARCH_GOES_ON;
        if (search->n_waiting == 0)
                return SEARCH_WHOLE;
        search->n_pids = search->n_waiting;
        search->at = search->n_waiting = 0;
        search->waits = true;
        return SEARCH_GOES_ON;
}

static int step(struct search *search, usec_t now)
{
        const struct claimant *claimant;
        int r = 0;

        if (search->at == search->n_pids) {
                free(TAKE_PTR(search->pids));
                search->n_pids = search->at = search->n_waiting = 0;
                search->began_at = clock_now(CLOCK_MONOTONIC);
                adoption_search_begin(search->adoption);
                r = proc_all(&search->pids, &search->n_pids);
        }
        if (r >= 0)
                r = see_some(search);
        if (r != SEARCH_WHOLE)
                return r;
        adoption_judge(search->adoption);
        while (r >= 0 && (claimant = adoption_next(search->adoption)))
                r = adopt_found(search, claimant, now);
        for (const struct fleet *fleet; (fleet = adoption_full(search->adoption));)
                log_warning("fleet '%s': more processes look like workers than the fleet can have; the "
                            "surplus is left alone. Check what this user runs",
                            fleet->settings->name);
        return r;
}

int search_run(struct search *search, usec_t now)
{
        int r = step(search, now);

        /* The next search starts over. */
        if (r < 0)
                search->at = search->n_pids = search->n_waiting = 0;
        return r;
}

int search_run_first(struct search *search, unsigned slices, usec_t now)
{
        usec_t until = usec_add(clock_now(CLOCK_MONOTONIC), START_WAIT_USEC);
        int r = SEARCH_GOES_ON;

        for (unsigned i = 0; r == SEARCH_GOES_ON && i < slices; i++) {
                r = search_run(search, now);
                if (r == SEARCH_GOES_ON && search->waits)
                        proc_facts_wait(search->runtime->proc_facts, until);
        }
        return r;
}
