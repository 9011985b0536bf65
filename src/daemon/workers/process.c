/* SPDX-License-Identifier: MIT */
/* The processes of a worker; see the header. Some commands start several processes, or start another when one
 * has ended. */
#include "daemon/workers/process.h"
#include "base/argv.h"
#include "base/fd.h"
#include "daemon/runtime/proc_evidence.h"
#include "io/clock.h"
#include "io/log.h"
#include "io/timer.h"
#include "model/world.h"
#include "observe/observe.h"

void process_release(struct process *process)
{
        if (process)
                ledger_end(&process->runtime->ledger.ledger, process->record);
        process_free(process);
}

bool process_is_watched(const struct process *process)
{
        return process && process->slot;
}

struct proc *process_beating(const struct process *process)
{
        if (process->worker->process.heartbeat_pid == 0)
                return NULL;
        return process->heartbeat ?: process->main;
}

const char *process_identity(const struct process *process)
{
        return process_is_watched(process) ? process->slot->identity : NULL;
}

const char *process_hosts(const struct process *process, char text[static MATCH_HOSTS_TEXT_MAX])
{
        return process_is_watched(process) ? heartbeats_hosts(process->slot, text) : NULL;
}

void process_forget_heartbeat(struct process *process)
{
        process->slept_at = 0;
        process->heartbeat_exit = sd_event_source_disable_unref(process->heartbeat_exit);
        process->heartbeat = proc_close(process->heartbeat);
}

void process_read_report(struct process *process)
{
        if (process->report_fd < 0)
                return;
        int r = launch_report_read(process->report_fd, &process->report);
        if (r < 0)
                log_warning("cannot read the start report of %s: %s", WORKER_ID(process->worker),
                            strerror(-r));
        if (r >= 0 && process->report.outcome == LAUNCH_PENDING)
                return;
        process->report_fd = close_fd(process->report_fd);
        struct worker *worker = process->worker;
        if (process->report.shim_error != 0)
                worker->process.shim_error = process->report.shim_error;
        char differs[REDIS_DIFFERENCE_MAX];
        if (r >= 0 && observe_environment_redis(worker, &process->report.redis))
                log_warning("%s: %s. Heartbeats are read from redis_url: make both the same",
                            WORKER_ID(worker), redis_difference_text(&process->report.redis, differs));
}

int process_new(struct runtime *runtime, struct worker *worker, struct proc *main, int report_fd)
{
        struct process *process = calloc(1, sizeof(*process));

        if (!process) {
                proc_close(main);
                close_fd(report_fd);
                return -ENOMEM;
        }
        *process = (struct process){
                .runtime = runtime,
                .worker = worker,
                .main = main,
                .report_fd = report_fd,
                .go_fd = -1,
                .report = LAUNCH_REPORT_INIT,
        };
        worker->handle = process;
        return 0;
}

/* The search for the process that a command left behind which went to the background. */

/* Processes checked in one go: a worker may leave thousands behind. */
#define SLICE 32
/* During execve(), a process shows no environment ("hidden") and is checked again. The limit is 2 s for all
 * such processes together, with a minimum number of tries. */
#define HIDDEN_USEC       (10 * USEC_PER_MSEC)
#define HIDDEN_TOTAL_USEC (2 * USEC_PER_SEC)
#define HIDDEN_TRIES      5

struct orphan_search {
        const struct runtime *runtime;
        struct worker *worker;
        bool failed;
        orphan_fn done;
        sd_event_source *timer;
        /* The hidden processes among those already checked (n_hidden), and those not checked yet (from
         * at). */
        pid_t *orphans;
        size_t n_hidden, at, n_orphans;
        unsigned tries;
        usec_t began_at;
        struct proc *orphan; /* best candidate so far; NULL: none */
        char environment[PROC_ENVIRONMENT_MAX];
};

static struct orphan_search *orphan_search_free(struct orphan_search *search)
{
        if (!search)
                return NULL;
        sd_event_source_disable_unref(search->timer);
        proc_close(search->orphan);
        free(search->orphans);
        free(search);
        return NULL;
}

/* Checks a process. Returns true if it must be checked again. */
static bool is_hidden(struct orphan_search *search, pid_t pid)
{
        const struct worker *worker = search->worker;
        _cleanup_proc_ struct proc *proc = NULL;
        struct proc_place place;
        struct markers markers;
        struct proc_facts *facts = search->runtime->proc_facts;

        if (proc_facts_is_reader(facts, pid))
                return false;
        if (proc_open(pid, &proc) < 0 || proc_has_exited(proc) ||
            proc_start_time(proc) < worker->process.start || proc_place(proc, &place) < 0 ||
            place.parent != getpid())
                return false;
        ssize_t length = env_markers_read(facts, proc, search->environment, &markers);
        if (length == 0 || length == -EINPROGRESS)
                return !proc_has_exited(proc);
        if (length < 0 || !env_markers_are_of(&markers, search->runtime->instance, worker))
                return false;
        int r = proc_evidence_has_booted(facts, proc, framework_of(worker->fleet->settings->traits));
        if (r == -EINPROGRESS)
                return true;
        bool booted = r > 0;
        if (!booted && (search->failed || search->orphan))
                return false;
        proc_close(search->orphan);
        search->orphan = TAKE_PTR(proc);
        /* No better candidate is possible. */
        if (booted)
                search->n_hidden = search->n_orphans = 0;
        return false;
}

/* Checks a slice. Returns true when all were checked. */
static bool poll_some(struct orphan_search *search)
{
        for (unsigned n = 0; n < SLICE && search->at < search->n_orphans; n++) {
                pid_t pid = search->orphans[search->at++];

                if (is_hidden(search, pid))
                        search->orphans[search->n_hidden++] = pid;
        }
        return search->at >= search->n_orphans;
}

static bool may_become_visible(const struct orphan_search *search)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);

        return search->n_hidden > 0 &&
               (search->tries < HIDDEN_TRIES || now < usec_add(search->began_at, HIDDEN_TOTAL_USEC));
}

static int on_timer(sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
        struct orphan_search *search = userdata;
        bool all = poll_some(search);

        if (!all || (!search->orphan && may_become_visible(search))) {
                if (all) {
                        search->n_orphans = search->n_hidden;
                        search->at = search->n_hidden = 0;
                        search->tries++;
                }
                timer_set(source, usec_add(clock_now(CLOCK_MONOTONIC), all ? HIDDEN_USEC : 0));
                return 0;
        }
        struct worker *worker = search->worker;
        struct proc *orphan = TAKE_PTR(search->orphan);
        orphan_fn done = search->done;
        orphan_search_free(search);
        done(worker, orphan);
        return 0;
}

int orphan_search_start(struct runtime *runtime, struct worker *worker, bool failed, orphan_fn done,
                        struct orphan_search **ret)
{
        struct orphan_search *search = calloc(1, sizeof(*search));

        if (!search)
                return -ENOMEM;
        search->runtime = runtime;
        search->worker = worker;
        search->failed = failed;
        search->done = done;
        search->began_at = clock_now(CLOCK_MONOTONIC);
        int r = proc_children(getpid(), &search->orphans, &search->n_orphans);
        if (r >= 0)
                r = sd_event_add_time(runtime->event, &search->timer, CLOCK_MONOTONIC, 0, 0, on_timer,
                                      search);
        *ret = r < 0 ? orphan_search_free(search) : search;
        return MIN(r, 0);
}

void process_free(struct process *process)
{
        if (!process)
                return;
        if (process->running_jobs)
                reader_forget(process->running_jobs, process);
        argv_free(process->long_jobs);
        argv_free(process->drained_jobs);
        if (process->slot)
                heartbeats_remove(process->slot);
        orphan_search_free(process->orphan_search);
        sd_event_source_disable_unref(process->main_exit);
        process_forget_heartbeat(process);
        proc_close(process->main);
        close_fd(process->report_fd);
        close_fd(process->go_fd);
        launch_report_clear(&process->report);
        free(process);
}

/* True if the worker has this process by a handle, or, with tree, if it runs below the worker's process. */
static bool has_process(const struct worker *worker, const struct proc *proc, bool tree)
{
        const struct worker_process *its = &worker->process;
        pid_t pid = proc_pid(proc);
        uint64_t start = proc_start_time(proc);

        return (pid == its->pid && start == its->start) ||
               (pid == its->heartbeat_pid && start == its->heartbeat_start) ||
               (tree && proc_has_ancestor(pid, its->pid, its->start) > 0);
}

/* A remote process does not run below the process of its worker. */
static bool is_remote_of_another(const struct heartbeat_slot *slot, pid_t own_pid)
{
        const struct match *match = slot ? slot->heartbeats->match : NULL;

        for (size_t i = 0; match && i < match->n_candidates; i++)
                if (match->candidates[i]->remote && match->candidates[i]->owner != slot &&
                    match->candidates[i]->own_pid == own_pid)
                        return true;
        return false;
}

/* Checks whether a process belongs to another worker, or to another sqmgr. User and group prove nothing: all
 * that a daemon starts may share a group. Returns 1, 0, -EINPROGRESS, -ETIMEDOUT, or -errno when descriptors
 * or memory are short. */
static int is_anothers(const struct process *process, const struct proc *proc)
{
        const struct worker *worker = process->worker;
        bool below = has_process(worker, proc, true);
        struct markers markers;
        pid_t own_pid;

        WORLD_FOREACH_FLEET(process->runtime->world, fleet)
                FLEET_FOREACH_WORKER(fleet, other)
                        if (other != worker && other->state != WORKER_GONE &&
                            has_process(other, proc, !below))
                                return 1;
        if (below)
                return 0;
        if (proc_own_pid(proc, &own_pid) >= 0 && is_remote_of_another(process->slot, own_pid))
                return 1;
        char environment[PROC_ENVIRONMENT_MAX];
        ssize_t length = env_markers_read(process->runtime->proc_facts, proc, environment, &markers);
        if (length < 0)
                return proc_facts_is_unknown((int)length) ? (int)length : none_unless_shortage((int)length);
        /* A forked process shows the markers of its template. */
        return !worker->process.forked && markers.instance && markers.worker && markers.started_at != 0 &&
               !env_markers_are_of(&markers, process->runtime->instance, worker);
}

struct others {
        const struct process *process;
        bool any_group; /* false: only processes of the worker's process group */
        struct proc *found;
        int unknown; /* -errno of a process that was not read yet, or cannot be; 0: none */
};

static int poll_at(pid_t pid, void *userdata)
{
        struct others *others = userdata;
        const struct process *process = others->process;
        _cleanup_proc_ struct proc *proc = NULL;
        uid_t uid = 0;

        if (pid == getpid())
                return 0;
        int r = proc_open(pid, &proc);
        if (r >= 0)
                r = proc_uid(proc, &uid);
        if (r < 0)
                return is_shortage(r) ? r : 0;
        /* Once the group has ended, its number may be reused by another user. */
        if (proc_has_exited(proc) || (!others->any_group && uid != geteuid()))
                return 0;
        r = proc_evidence_runs_jobs(process->runtime->proc_facts, proc,
                                    framework_of(process->worker->fleet->settings->traits));
        if (r > 0) {
                int other = is_anothers(process, proc);

                r = other < 0 ? other : other == 0;
        }
        /* Continue, so that the proc reader is asked about all processes at once. */
        if (proc_facts_is_unknown(r)) {
                others->unknown = others->unknown == -EINPROGRESS ? -EINPROGRESS : r;
                return 0;
        }
        if (r > 0)
                others->found = TAKE_PTR(proc);
        return r;
}

int sibling_find(struct process *process, bool left, struct proc **ret)
{
        struct others others = {.process = process, .any_group = true};
        int r = 0;

        if (!proc_has_exited(process->main))
                r = proc_tree_each(process->worker->process.pid, poll_at, &others);
        others.any_group = false;
        /* Scan all processes only if the group still has any. */
        if (r == 0 && left && probe_group(process->group))
                r = proc_group_each(process->group, poll_at, &others);
        if (r == 0)
                r = others.unknown;
        if (r <= 0 || !ret)
                others.found = proc_close(others.found);
        if (r > 0 && ret)
                *ret = others.found;
        return r;
}
