/* SPDX-License-Identifier: MIT */
/* Polls each worker for what is due: /proc at once, Redis by a pipeline whose replies arrive later. */
#include "daemon/poll/poll.h"
#include "base/fd.h"
#include "daemon/poll/running_jobs.h"
#include "daemon/runtime/proc_evidence.h"
#include "daemon/workers/attach.h"
#include "daemon/workers/process.h"
#include "daemon/workers/templates.h"
#include "model/deadlines.h"
#include "model/world.h"
#include "observe/observe.h"

/* Poll each worker's job list every third regular poll, staggered by worker index. The list takes two
 * commands, and no poll may take more than two per worker. */
#define JOBS_EVERY 3
/* The interval for the unshared memory of a forked worker, which is expensive to read. */
#define OWN_MEMORY_EVERY 12

static bool is_job_thread(const char *comm, void *userdata)
{
        const struct process *process = userdata;

        return framework_of(process->worker->fleet->settings->traits)
                ->thread_is_processor(comm, process->slot->info);
}

/* Returns r. If r is -EINPROGRESS, the item is polled again once the proc reader has answered. */
static int await_proc_reader(struct process *process, enum poll_item item, int r)
{
        if (r == -EINPROGRESS)
                process->poll_waits |= item;
        return r;
}

static int read_process(struct process *process, struct proc *proc, bool pss, uint64_t *ret_bytes)
{
        uint64_t private_bytes;

        if (!pss)
                return proc_rss_bytes(proc, ret_bytes);
        return proc_facts_memory(process->runtime->proc_facts, proc, ret_bytes, &private_bytes);
}

struct tree_memory {
        struct process *process;
        bool pss;
        uint64_t bytes; /* so far; shared resident pages count once per process */
        int unknown;    /* -errno of a process that was not read yet, or not in time; 0: none */
};

/* A process that has exited meanwhile adds nothing. */
static int add_process(pid_t pid, void *userdata)
{
        struct tree_memory *tree = userdata;
        _cleanup_proc_ struct proc *proc = NULL;
        uint64_t bytes = 0;

        int r = proc_open(pid, &proc);
        if (r >= 0)
                r = read_process(tree->process, proc, tree->pss, &bytes);
        if (proc_facts_is_unknown(r))
                tree->unknown = tree->unknown == -EINPROGRESS ? -EINPROGRESS : r;
        tree->bytes += r < 0 ? 0 : bytes;
        return is_shortage(r) ? r : 0;
}

/* Reads the memory of the worker: of the heartbeat process, or of the whole process tree. */
static int read_memory(const struct worker *worker, struct proc *proc, bool pss, uint64_t *ret_bytes)
{
        struct tree_memory tree = {.process = worker->handle, .pss = pss};

        if (!worker->fleet->settings->traits->memory_of_tree)
                return read_process(worker->handle, proc, pss, ret_bytes);
        int r = proc_tree_each(worker->process.pid, add_process, &tree);
        if (r >= 0 && tree.unknown < 0)
                return tree.unknown;
        if (r >= 0)
                *ret_bytes = tree.bytes;
        return r;
}

static void poll_memory(struct worker *worker, usec_t now)
{
        const struct fleet_settings *settings = worker->fleet->settings;
        uint64_t lowest =
                settings->memory_threshold > 0 ? settings->memory_threshold : settings->memory_limit;
        struct process *process = worker->handle;
        struct proc *proc = process_beating(process) ?: process->main;
        uint64_t bytes, share;
        int r = 0;

        if (read_memory(worker, proc, false, &bytes) < 0)
                return;
        share = bytes;
        /* A forked worker shares pages with its template and its siblings: PSS counts only its part of them.
         * PSS never exceeds RSS and is expensive to read: read it only where it can matter. */
        if (worker->process.forked && lowest > 0 && bytes > lowest)
                r = await_proc_reader(process, POLL_MEMORY, read_memory(worker, proc, true, &share));
        if (is_shortage(r) || proc_facts_is_unknown(r))
                return;
        observe_shared_memory(worker, bytes, share, now);
}

static void poll_own_memory(struct worker *worker)
{
        struct process *process = worker->handle;
        const struct proc *proc = process_beating(process);
        uint64_t pss_bytes, bytes;

        if (proc &&
            await_proc_reader(process, POLL_OWN_MEMORY,
                              proc_facts_memory(process->runtime->proc_facts, proc, &pss_bytes, &bytes)) == 0)
                observe_own_memory(worker, bytes);
}

static void poll_threads(struct worker *worker)
{
        struct process *process = worker->handle;
        bool witness = worker->evidence.threads_witness;
        struct proc *proc = process_beating(process);
        unsigned threads;

        if (proc && proc_count_threads(proc, is_job_thread, process, &threads) == 0)
                observe_threads(worker, threads);
        if (worker->evidence.threads_witness != witness)
                wakeup_changed(process->runtime->wakeup);
}

static void poll_title(struct worker *worker, usec_t now)
{
        struct process *process = worker->handle;
        struct proc *proc = process_beating(process);
        struct title title = {0};

        if (!proc)
                return;
        int r = await_proc_reader(process, POLL_TITLE,
                                  proc_evidence_read_title(process->runtime->proc_facts, proc,
                                                           framework_of(worker->fleet->settings->traits),
                                                           &title));
        if (r != -EINPROGRESS)
                observe_title(worker, r > 0, title.busy, title.quiet);
        if (r == -EINPROGRESS || !worker->process.elsewhere)
                return;
        enum worker_state state = worker->state;
        observe_title_elsewhere(worker, title.concurrency, now);
        if (worker->state != state)
                wakeup_changed(process->runtime->wakeup);
}

/* An error counts as "not known" and is observed, too. */
static void poll_peers(struct worker *worker)
{
        struct process *process = worker->handle;
        const struct proc *proc = process_beating(process);
        char peers[PROC_PEERS_MAX] = "";

        if (!proc)
                return;
        int r = await_proc_reader(process, POLL_PEERS,
                                  proc_facts_peers(process->runtime->proc_facts, proc, peers));
        if (r != -EINPROGRESS)
                observe_peers(worker, r == 0 ? peers : "");
}

/* Observes the shutdown time in the command line, which is readable until the process sets its title. */
static void poll_arguments_of(struct worker *worker, const struct proc *proc)
{
        struct process *process = worker->handle;
        char title[4096];

        int r = await_proc_reader(process, POLL_ARGUMENTS,
                                  proc_facts_title(process->runtime->proc_facts, proc, title, sizeof(title)));
        if (r == 0)
                observe_shutdown_time(worker, worker->fleet->settings->traits->title_shutdown_usec(title));
}

static int poll_arguments_each(pid_t pid, void *userdata)
{
        _cleanup_proc_ struct proc *proc = NULL;

        int r = proc_open(pid, &proc);
        if (r < 0)
                return is_shortage(r) ? r : 0;
        poll_arguments_of(userdata, proc);
        return 0;
}

/* A wrapper mostly execs the command. Otherwise the command is in the tree, which is more expensive to
 * scan. */
static void poll_arguments(struct worker *worker, bool fast)
{
        if (fast)
                poll_arguments_of(worker, worker->handle->main);
        else
                (void)proc_tree_each(worker->process.pid, poll_arguments_each, worker);
}

/* Returns true at the last regular poll before the worker is cut off: the report needs its running jobs. */
static bool is_last_poll(const struct worker *worker, usec_t now)
{
        usec_t at = worker_cut_off(worker).at;

        return worker->state == WORKER_QUIET && at > now &&
               at <= usec_add(now, worker->fleet->world->settings->check_interval);
}

static bool is_thread(const char *comm _unused_, void *userdata _unused_)
{
        return true;
}

/* Ruby and Python start with one thread; Ruby adds one that keeps time. */
#define START_THREADS 2

/* Observes whether the started process could serve jobs: it then has a child, a connection or further
 * threads, or wakes up. Facts that cannot be read count as such. Returns false while the proc reader reads.
 */
static bool poll_activity(struct worker *worker, usec_t now)
{
        struct process *process = worker->handle;
        const struct proc *main = process->main;
        const char *url = settings_fleet_url(process->runtime->world->settings, worker->fleet->settings);
        bool local = url && strncmp(url, "unix:", strlen("unix:")) == 0; /* no connection of TCP */
        char peers[PROC_PEERS_MAX] = "";
        _cleanup_free_ pid_t *children = NULL;
        struct proc_place place;
        unsigned threads = 0;
        uint64_t wakeups = 0;
        size_t n = 0;
        bool asleep = false;

        int r = await_proc_reader(process, POLL_BOOT,
                                  proc_facts_peers(process->runtime->proc_facts, main, peers));
        if (r == -EINPROGRESS)
                return false;
        observe_peers(worker, r == 0 ? peers : "");
        bool apart = r == 0 && peers[0] == '\0' && !local &&
                     proc_children(proc_pid(main), &children, &n) >= 0 && n == 0 &&
                     proc_count_threads(main, is_thread, NULL, &threads) == 0 && threads <= START_THREADS &&
                     proc_place(main, &place) == 0 && (place.state == 'S' || place.state == 'T') &&
                     proc_sleeps(main, &asleep, &wakeups) == 0;
        observe_activity(worker, apart, apart ? wakeups : 0, now);
        return true;
}

/* Returns when the last complete scan began, if no identity found so far may be the worker's; otherwise 0. */
static usec_t searched_at(const struct heartbeat_slot *slot)
{
        size_t at = 0;

        return match_pid(slot->heartbeats->match, slot, &at) != 0 ? 0 : heartbeats_scanned_at(slot);
}

/* item: POLL_BOOT, or POLL_ELSEWHERE before boot_timeout. */
static void poll_boot(struct worker *worker, enum poll_item item, usec_t now)
{
        struct process *process = worker->handle;
        _cleanup_proc_ struct proc *booted = NULL;
        /* Workers that are starting are polled often: the first poll searches only their trees. */
        int r = await_proc_reader(process, item, sibling_find(process, item == POLL_BOOT, &booted));
        const struct traits *traits = worker->fleet->settings->traits;
        bool unproven = worker->process.unproven;

        /* If the tree cannot be read, nothing is known: leave the worker alone. */
        if (r < 0 ||
            (item == POLL_ELSEWHERE && !observe_boot_title(worker, r > 0, searched_at(process->slot), now)))
                return;
        if (r == 0 && item == POLL_BOOT && worker->state == WORKER_STARTING && !poll_activity(worker, now))
                return;
        observe_booted(worker, r > 0, now);
        if (worker->process.unproven != unproven)
                wakeup_changed(process->runtime->wakeup);
        if (!booted || !worker->process.booted || worker->state != WORKER_STARTING ||
            !(traits->has_title || traits->process_is_heartbeat))
                return;
        attach_heartbeat(worker, proc_pid(booted), now);
        if (worker->process.heartbeat_pid == proc_pid(booted))
                observe_elsewhere(worker);
}

/* Polls the items that /proc shows. */
static void poll_proc(struct worker *worker, unsigned poll_items, bool fast, usec_t now)
{
        if (poll_items & POLL_MEMORY)
                poll_memory(worker, now);
        if (poll_items & POLL_THREADS)
                poll_threads(worker);
        if (poll_items & POLL_TITLE)
                poll_title(worker, now);
        if (poll_items & POLL_PEERS)
                poll_peers(worker);
        if (poll_items & POLL_ARGUMENTS)
                poll_arguments(worker, fast);
        if (poll_items & POLL_BOOT)
                poll_boot(worker, POLL_BOOT, now);
        if (poll_items & POLL_ELSEWHERE)
                poll_boot(worker, POLL_ELSEWHERE, now);
        if (poll_items & POLL_OWN_MEMORY)
                poll_own_memory(worker);
}

static void poll_worker(struct worker *worker, bool fast, usec_t now)
{
        struct process *process = worker->handle;
        unsigned poll_items = worker_poll_items(worker, fast, now);

        /* The process could not be watched and was killed: its exit comes next. */
        if (!process_is_watched(process))
                return;
        process_read_report(process);
        /* Before a scan has searched for its heartbeat, the heartbeat is not missing. */
        if (worker->state == WORKER_STARTING &&
            heartbeats_wait_for_scan(process->slot, worker_boot_deadline(worker)))
                poll_items &= ~(unsigned)POLL_BOOT;
        if (poll_items & (POLL_HEARTBEAT | POLL_WORK_LIST | POLL_SIBLINGS))
                heartbeats_want(process->slot, poll_items);
        if (!fast && worker->process.forked && worker->state == WORKER_ACTIVE &&
            (process->runtime->wakeup->pass.n_regular + worker->index) % OWN_MEMORY_EVERY == 0)
                poll_items |= POLL_OWN_MEMORY;
        poll_proc(worker, poll_items, fast, now);
        if (!fast && ((process->runtime->wakeup->pass.n_regular + worker->index) % JOBS_EVERY == 0 ||
                      is_last_poll(worker, now) || running_jobs_may_be_cut_off(worker) ||
                      (worker->state == WORKER_QUIET && worker->fleet->settings->interruptible)))
                running_jobs_poll(worker);
}

void poll_run(struct runtime *runtime, bool fast, usec_t now)
{
        struct world *world = runtime->world;
        uint64_t available;

        if (!fast && proc_available_memory_bytes(runtime->host, &available) == 0)
                observe_available_memory(world, available);
        if (!fast)
                proc_evidence_observe_oom_kills(runtime->host, world, now);
        WORLD_FOREACH_FLEET(world, fleet)
                FLEET_FOREACH_WORKER(fleet, worker)
                        poll_worker(worker, fast, now);
        templates_poll(runtime, fast, now);
        /* Errors are ignored: the next poll repeats the requests. */
        FOREACH_POINTER(link, runtime->links.list, runtime->links.n)
                if (link->heartbeats)
                        (void)heartbeats_poll(link->heartbeats);
        (void)heartbeats_poll(runtime->local);
}

void poll_resume(struct runtime *runtime, usec_t now)
{
        WORLD_FOREACH_FLEET(runtime->world, fleet)
                FLEET_FOREACH_WORKER(fleet, worker) {
                        struct process *process = worker->handle;
                        unsigned poll_items = process ? process->poll_waits : 0;

                        if (poll_items == 0)
                                continue;
                        process->poll_waits = 0;
                        if (process_is_watched(process) && worker->state != WORKER_GONE)
                                poll_proc(worker, poll_items, false, now);
                }
        templates_resume(runtime, now);
        FOREACH_POINTER(link, runtime->links.list, runtime->links.n)
                if (link->heartbeats)
                        heartbeats_resume(link->heartbeats);
}
