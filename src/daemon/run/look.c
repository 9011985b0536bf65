/* SPDX-License-Identifier: MIT */
/* Reads what is due of each worker: /proc at once, Redis by one pipeline whose answers come later. */
#include "base/fd.h"
#include "daemon/supervisor.h"
#include "frameworks/table.h"
#include "model/observe.h"

/* What a worker runs is read at each so manieth regular look, of others at other ones: the work list is two
 * commands, and no look may take more than two for each worker. */
#define JOBS_EVERY 3

static bool is_job_thread(const char *comm, void *userdata)
{
        const struct process *process = userdata;

        return framework_of(process->worker->fleet->settings->traits)
                ->thread_is_processor(comm, beats_info(process->slot));
}

/* True where the process carries a title that only a worker that beats has. */
static bool read_title(const struct worker *worker, struct proc *proc, struct sidekiq_title *ret)
{
        char text[1024];

        return proc_title(proc, text, sizeof(text)) == 0 &&
               framework_of(worker->fleet->settings->traits)->title_parse(text, ret);
}

static void look_memory(struct worker *worker, usec_t now)
{
        const struct fleet_settings *settings = worker->fleet->settings;
        struct process *process = worker->process;
        struct proc *proc = worker_io_beating(process) ?: process->main;
        uint64_t bytes;
        int r = 0;

        if (proc_rss_bytes(proc, &bytes) < 0)
                return;
        /* The proportional share is never more than what is resident, and dear to read: it is asked only
         * where it can decide. */
        if (settings->memory_metric == MEMORY_PSS && settings->memory_threshold > 0 &&
            bytes > settings->memory_threshold)
                r = proc_pss_bytes(proc, &bytes);
        if (is_shortage(r))
                return;
        observe_memory(worker, bytes, now);
}

static void look_threads(struct worker *worker)
{
        struct process *process = worker->process;
        bool witness = worker->threads_witness;
        struct proc *proc = worker_io_beating(process);
        unsigned threads;

        if (proc != NULL && proc_count_threads(proc, is_job_thread, process, &threads) == 0)
                observe_threads(worker, threads);
        process->supervisor->pass.unsaved |= worker->threads_witness != witness;
}

static void look_title(struct worker *worker)
{
        struct proc *proc = worker_io_beating(worker->process);
        struct sidekiq_title title = {0};

        if (proc == NULL)
                return;
        bool known = read_title(worker, proc, &title);
        observe_title(worker, known, title.busy);
}

/* Before its first beat nothing is known of its capsules. */
static bool is_framework_thread(const char *comm, void *userdata)
{
        const struct framework *framework = userdata;

        return framework->thread_is_processor(comm, NULL);
}

int look_has_booted(const struct proc *proc, const struct framework *framework)
{
        struct sidekiq_title title;
        char text[4096];
        unsigned threads = 0;

        int r = proc_title(proc, text, sizeof(text));
        if (r == 0 && framework->title_parse(text, &title))
                return 1;
        /* A title that was too long for its room lacks its end. */
        if (!is_shortage(r))
                r = proc_count_threads(proc, is_framework_thread, (void *)framework, &threads);
        return is_shortage(r) ? r : threads > 0;
}

static int look_boot_each(pid_t pid, void *userdata)
{
        const struct process *process = userdata;
        _cleanup_proc_ struct proc *proc = NULL;

        int r = proc_open(pid, &proc);
        if (r < 0)
                return is_shortage(r) ? r : 0;
        return look_has_booted(proc, framework_of(process->worker->fleet->settings->traits));
}

static void look_worker(struct worker *worker, bool fast, usec_t now)
{
        const struct process *process = worker->process;
        unsigned looks = worker_looks(worker, fast, now);

        /* One that could not be watched has been killed: its exit comes next. */
        if (process == NULL || process->slot == NULL)
                return;
        if (looks & LOOK_MEMORY)
                look_memory(worker, now);
        if (looks & LOOK_THREADS)
                look_threads(worker);
        if (looks & LOOK_TITLE)
                look_title(worker);
        if (looks & LOOK_BOOT) {
                int r = proc_tree_each(worker->pid, look_boot_each, worker->process);

                /* Where the tree cannot be read, nothing is known: it is left alone. */
                if (r >= 0)
                        observe_booted(worker, r > 0, now);
        }
        if (looks & (LOOK_BEAT | LOOK_WORK_LIST))
                beats_want(process->slot, looks);
        if (!fast && (process->supervisor->pass.n_regular + worker->index) % JOBS_EVERY == 0)
                work_list_look(worker);
}

void look_oom_kills(struct supervisor *supervisor, usec_t now)
{
        uint64_t kills;

        if (proc_oom_kills(supervisor->host, &kills) == 0)
                observe_oom_kills(supervisor->world, kills, now);
}

void look(struct supervisor *supervisor, bool fast, usec_t now)
{
        struct world *world = supervisor->world;
        uint64_t available;

        if (!fast && proc_available_memory_bytes(supervisor->host, &available) == 0)
                observe_available_memory(world, available);
        if (!fast)
                look_oom_kills(supervisor, now);
        for (size_t i = 0; i < world->n_fleets; i++)
                for (size_t j = 0; j < world->fleets[i]->n_workers; j++)
                        look_worker(world->fleets[i]->workers[j], fast, now);
        for (size_t i = 0; i < supervisor->n_links; i++)
                (void)beats_look(
                        supervisor->links[i]->beats); /* what fails is asked again at the next look */
}
