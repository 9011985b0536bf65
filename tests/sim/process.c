/* SPDX-License-Identifier: MIT */
/* Simulated workers with their real races: one function for each kind of step. */
#include "sim.h"
#include <signal.h>

#define MSEC USEC_PER_MSEC
#define SEC  USEC_PER_SEC

uint64_t sim_time_of_heartbeats(const struct sim *sim)
{
        return (uint64_t)((int64_t)(sim->now + sim->suspended_usec) + sim->stepped_usec);
}

bool process_is_alive(const struct process *process)
{
        return process->main_alive || process->runner_alive;
}

unsigned process_jobs(const struct process *process)
{
        return process->n_jobs + (process->fetched_until != 0);
}

const struct traits *process_traits(const struct sim *sim, const struct process *process)
{
        return sim->fleets[process->fleet].settings[0].traits;
}

static void process_woken(const struct sim *sim, struct process *process)
{
        process->wakes++;
        process->woken_at = sim->now;
}

unsigned process_threads(const struct sim *sim, const struct process *process)
{
        if (!process->runner_alive || process->job_at == USEC_INFINITY)
                return 0;
        unsigned idle = SIM_JOBS_MAX - process->n_jobs;
        bool gone = process->quiet && sim->now >= process->threads_gone_at;
        return process->n_jobs + (gone ? 0 : idle) + process->native_thread;
}

uint64_t process_bytes(const struct sim *sim, const struct process *process)
{
        uint64_t bytes = process->release.base_bytes + process->jumped_bytes;

        if (!process->runner_alive)
                return process->main_alive ? MEGABYTE : 0;
        if (process->booted && !sim->calm)
                bytes += process->leak_per_sec * ((sim->now - process->booted_at) / SEC);
        /* A worker grows to its size while booting, also if it never completes the boot. */
        usec_t age = sim->now - process->spawned_at;
        usec_t span = process->boot_at != USEC_INFINITY ? process->boot_at - process->spawned_at : 30 * SEC;
        if (!process->booted && !process->forked && age < span)
                bytes = MAX(process->release.base_bytes / MEGABYTE * age / span * MEGABYTE, MEGABYTE);
        return bytes;
}

uint64_t process_own_bytes(const struct sim *sim, const struct process *process)
{
        uint64_t bytes = process_bytes(sim, process);

        return bytes - MIN(bytes, process->shared_bytes);
}

uint64_t process_bytes_left(const struct sim *sim)
{
        uint64_t used = 0;

        SIM_FOREACH_PROCESS(sim, process)
                used += process_own_bytes(sim, process);
        return sim->total_bytes - MIN(sim->total_bytes, used);
}

void process_oom(struct sim *sim)
{
        struct process *largest = NULL;

        if (sim->total_bytes == MEMORY_PLENTY || process_bytes_left(sim) > 0)
                return;
        SIM_FOREACH_PROCESS(sim, process)
                if (process->runner_alive &&
                    (!largest || process_own_bytes(sim, process) > process_own_bytes(sim, largest)))
                        largest = process;
        if (!largest)
                return;
        report(sim, "memory has run out: its killer takes %s", process_name(sim, largest));
        process_kill(sim, largest, false);
}

struct process *process_pick(struct sim *sim, uint64_t which, bool template)
{
        size_t n = 0;

        SIM_FOREACH_PROCESS(sim, process)
                n += process->runner_alive && (!template || process->is_template);
        for (size_t i = 0, wanted = n > 0 ? which % n : 0; n > 0; i++) {
                struct process *process = sim->processes[i];

                if (process->runner_alive && (!template || process->is_template) && wanted-- == 0)
                        return process;
        }
        return NULL;
}

static bool pid_is_free(const struct sim *sim, pid_t pid)
{
        SIM_FOREACH_PROCESS(sim, process)
                if ((process->main_alive && process->pid == pid) ||
                    (process->runner_alive && process->runner_pid == pid))
                        return false;
        return true;
}

/* Returns a new pid; sometimes that of a worker that died recently and whose heartbeat can still be read. */
static pid_t new_pid(struct sim *sim, struct rng *rng)
{
        SIM_FOREACH_PROCESS(sim, process)
                if (rng_chance(rng, 300) && pid_is_free(sim, process->runner_pid))
                        return process->runner_pid;
        return sim->next_pid++;
}

static void process_marker(const struct sim *sim, struct process *process, uint64_t generation)
{
        struct rng *rng = &process->rng;
        usec_t launch = rng_range(rng, 0, (rng_chance(rng, 100) ? 5 * SEC : 50 * MSEC));

        process->mark_fleet = process->fleet;
        process->mark_index = process->index;
        process->mark_generation = generation;
        process->launched_at = MIN(process->boot_at, sim->now + launch);
        process->marked_at = MIN(process->boot_at, process->launched_at + rng_range(rng, 0, 90 * MSEC));
        process->titled = sim->service && !process->wrapped && rng_chance(rng, 500);
        process->leftover = !process->titled && rng_chance(rng, 100);
        process->detached = !process->wrapped && rng_chance(rng, 500);
}

/* Allocates a process; the caller fills it in and counts it. */
static struct process *new_process(struct sim *sim)
{
        if (sim->n_processes == sim->processes_allocated) {
                sim->processes_allocated = MAX((size_t)32, 2 * sim->processes_allocated);
                sim->processes = realloc(sim->processes, sim->processes_allocated * sizeof(struct process *));
                if (!sim->processes)
                        abort();
        }
        struct process *process = calloc(1, sizeof(*process));
        if (!process)
                abort();
        return process;
}

struct process *process_left_behind(struct sim *sim, pid_t serial, uint64_t start)
{
        const struct process *of = NULL;

        for (size_t i = 0; i < sim->n_processes && !of; i++)
                if (sim->processes[i]->leftover && sim->processes[i]->serial == (unsigned)serial)
                        of = sim->processes[i];
        if (!of)
                return NULL;
        struct process *process = new_process(sim);
        *process = (struct process){
                .serial = sim->serial++,
                .fleet = of->fleet,
                .index = of->index,
                .mark_fleet = of->mark_fleet,
                .mark_index = of->mark_index,
                .mark_generation = of->mark_generation,
                .pid = STRANGERS_PID + serial,
                .runner_pid = STRANGERS_PID + serial,
                .start = start,
                .runner_start = start,
                .spawned_at = of->spawned_at,
                .main_alive = true,
                .left_behind = true,
                .next_at = USEC_INFINITY,
                .boot_at = USEC_INFINITY,
                .crash_at = USEC_INFINITY,
                .job_at = USEC_INFINITY,
                .exit_report_at = USEC_INFINITY,
                .wrapper_exit_at = USEC_INFINITY,
                .respawn_at = USEC_INFINITY,
        };
        sim->processes[sim->n_processes++] = process;
        return process;
}

/* Chooses when the process boots or fails to. */
static void choose_boot(struct sim *sim, struct process *process)
{
        const struct release *release = &process->release;
        struct rng *rng = &process->rng;

        process->boot_at = sim->now + rng_range(rng, release->boot_min, release->boot_max);
        if (rng_chance(rng, release->never_boots * 10))
                process->boot_at = USEC_INFINITY;
        else if (rng_chance(rng, release->crashes_booting * 10))
                process->crash_at = sim->now + rng_range(rng, 0, process->boot_at - sim->now);
        else if (rng_chance(rng, release->crashes_young * 10))
                process->crash_at =
                        process->boot_at + rng_range(rng, 0, (rng_chance(rng, 300) ? 120 : 40) * SEC);
}

static struct process *spawn(struct sim *sim, unsigned fleet, unsigned index, uint64_t generation,
                             const struct release *release)
{
        struct process *process = new_process(sim);
        struct rng *rng = &process->rng;
        process->serial = sim->serial++;
        *rng = rng_fork(sim->seed, 1000 + process->serial);
        process->release = *release;
        process->fleet = fleet;
        process->index = index;
        process->pid = process->runner_pid = new_pid(sim, rng);
        process->start = process->runner_start = sim->now;
        process->wrapped = rng_chance(rng, release->wrapped * 10);
        if (process->wrapped) {
                do
                        process->runner_pid = new_pid(sim, rng);
                while (process->runner_pid == process->pid);
                process->runner_start = sim->now + 1;
        }
        process->runner_boottime = sim->now + sim->suspended_usec;
        process->main_alive = process->runner_alive = true;
        process->spawned_at = sim->now;
        process->crash_at = process->job_at = process->quiet_from = process->term_from = USEC_INFINITY;
        process->stop_by = process->exit_at = process->heartbeat_at = process->write_at = USEC_INFINITY;
        process->wrapper_exit_at = process->exit_report_at = process->respawn_at = USEC_INFINITY;
        process->claim_at = USEC_INFINITY;
        choose_boot(sim, process);
        process->elsewhere = rng_chance(rng, release->elsewhere * 10);
        process->deaf = rng_chance(rng, release->deaf * 10);
        process->native_thread = rng_chance(rng, release->native_thread * 10);
        process->leak_per_sec = release->leak_per_sec / 2 + rng_range(rng, 0, release->leak_per_sec);
        process->next_at = MIN(process->boot_at, process->crash_at);
        process_marker(sim, process, generation);
        struct rng behavior = rng_fork(sim->seed, 1000000 + process->serial);
        behavior_give(sim, process);
        process->restarts = process->wrapped && rng_chance(&behavior, 250);
        process->twins = process->restarts && rng_chance(&behavior, 400);
        sim->processes[sim->n_processes++] = process;
        return process;
}

struct process *process_spawn(struct sim *sim, const struct fleet *fleet, unsigned index)
{
        unsigned number = check_number(sim, fleet);
        struct process *process = spawn(sim, number, index, fleet->generation, &sim->fleets[number].release);

        clone_of(sim, process);
        return process;
}

struct process *process_fork(struct sim *sim, const struct template_process *from)
{
        struct release release = from->process->release;

        release.wrapped = 0;
        release.boot_min = 50 * MSEC;
        release.boot_max = SEC;
        release.never_boots /= 4;
        release.crashes_booting /= 4;
        struct process *process = spawn(sim, from->process->fleet, from->index, from->generation, &release);
        process->forked = process->awaits_go = true;
        process->shared_bytes = release.base_bytes / 4 * 3;
        process->spawned_at = from->asked_at;
        process->boot_at = process->crash_at = process->next_at = USEC_INFINITY;
        process->launched_at = process->marked_at = sim->now;
        clone_of(sim, process);
        return process;
}

void process_go(struct sim *sim, struct process *process)
{
        process->awaits_go = false;
        if (process->crash_at == USEC_INFINITY)
                choose_boot(sim, process);
        process->next_at = sim->now;
}

/* Keeps the record of the dead runner in Redis, as a dead process of its own. */
static void leave_stale_record(struct sim *sim, struct process *process)
{
        struct process *ghost = new_process(sim);

        *ghost = *process;
        ghost->pid = 0;
        ghost->start = ghost->runner_start = 0;
        ghost->main_alive = ghost->runner_alive = ghost->answered = false;
        ghost->worker = NULL;
        ghost->identity = ghost->poll_items = 0;
        ghost->exit_report_at = ghost->next_at = ghost->respawn_at = ghost->wrapper_exit_at = USEC_INFINITY;
        ghost->died_at = sim->now;
        sim->processes[sim->n_processes++] = ghost;
}

/* The wrapper starts another runner, or the other of its twins remains. */
static void respawn(struct sim *sim, struct process *process)
{
        struct rng *rng = &process->rng;

        leave_stale_record(sim, process);
        process->respawn_at = USEC_INFINITY;
        process->serial = sim->serial++;
        process->name[0] = '\0';
        /* A new pid: pids are not reused within the seconds that a wrapper takes. */
        process->runner_pid = sim->next_pid++;
        process->runner_start = sim->now + 1;
        process->runner_boottime = sim->now + sim->suspended_usec;
        process->registered = false;
        process->runner_alive = true;
        process->knows_end = process->booted = process->frozen = process->quiet = process->stopping = false;
        process->elsewhere = process->listed = process->answered = false;
        process->boot_at = sim->now + rng_range(rng, process->release.boot_min, process->release.boot_max);
        process->crash_at = process->job_at = process->quiet_from = process->term_from = USEC_INFINITY;
        process->stop_by = process->exit_at = process->heartbeat_at = process->write_at = USEC_INFINITY;
        process->jumped_bytes = 0;
        process->title_busy = process->copied_busy = 0;
        process->title_quiet = process->copied_quiet = process->threads_counted = false;
        process->title_first_at = process->title_read_at = process->title_idle_from = 0;
        for (unsigned i = 0; i < RECORDS_MAX; i++)
                process->records[i] = (struct heartbeat_record){0};
        process->frozen_record = process->answer = (struct heartbeat_record){0};
        report(sim, "%s: its wrapper %s", process_name(sim, process),
               process->twins ? "had started another" : "starts another");
        if (!process->twins)
                return;
        process->twins = false;
        process->booted = true;
        process->booted_at = process->heartbeat_at = sim->now;
        process->host = sim->host;
        process->job_at = sim->now + rng_range(rng, 10 * MSEC, SEC);
        process->job_end[process->n_jobs++] = sim->now + rng_range(rng, SEC, 5 * USEC_PER_MIN);
}

static void report_exit(struct sim *sim, struct process *process)
{
        process->exit_report_at =
                MIN(process->exit_report_at, sim->now + rng_range(&process->rng, MSEC, 20 * MSEC));
        process->died_at = sim->now;
}

static void runner_dies(struct sim *sim, struct process *process, const char *how)
{
        report(sim, "%s %s, %u jobs running", process_name(sim, process), how, process_jobs(process));
        process->runner_alive = false;
        process->n_jobs = 0;
        process->fetched_until = 0;
        if (!process->wrapped)
                process->main_alive = false;
        else if (process->main_alive && process->restarts && !sim->calm)
                process->respawn_at =
                        sim->now + (process->twins ? 1 : rng_range(&process->rng, 100 * MSEC, 3 * SEC));
        else if (process->main_alive)
                process->wrapper_exit_at = process->worker && rng_chance(&process->rng, 60) && !sim->calm
                                                   ? USEC_INFINITY
                                                   : sim->now + rng_range(&process->rng, 0, 2 * SEC);
        report_exit(sim, process);
}

static void wrapper_dies(struct sim *sim, struct process *process)
{
        process->main_alive = false;
        process->wrapper_exit_at = process->respawn_at = USEC_INFINITY;
        report_exit(sim, process);
}

void process_exits(struct sim *sim, struct process *process, const char *how)
{
        if (process->runner_alive)
                runner_dies(sim, process, how);
        process->next_at = sim->now;
}

void process_kill(struct sim *sim, struct process *process, bool main_only)
{
        if (main_only && process->wrapped && process->main_alive)
                wrapper_dies(sim, process);
        else if (process->runner_alive)
                runner_dies(sim, process, "is killed");
        else if (process->main_alive)
                wrapper_dies(sim, process);
        process->next_at = sim->now;
}

static usec_t job_length(struct sim *sim, struct process *process)
{
        struct rng *rng = &process->rng;

        if (rng_chance(rng, process->release.endless_jobs * 10))
                return process->quiet ? rng_range(rng, 0, 10 * SEC) : USEC_INFINITY;
        if (rng_chance(rng, process->release.long_jobs * 10))
                return rng_range(rng, 10 * SEC, sim->calm ? 2 * USEC_PER_MIN : process->release.long_max);
        return rng_wait(rng, SEC);
}

/* A job is registered shortly after it was fetched: a job fetched before the quiet signal may be registered
 * after it. */
static void step_jobs(struct sim *sim, struct process *process)
{
        for (unsigned i = 0; i < process->n_jobs;) {
                if (process->job_end[i] <= sim->now) {
                        process->job_end[i] = process->job_end[--process->n_jobs];
                        process_woken(sim, process);
                } else {
                        i++;
                }
        }
        if (process->fetched_until != 0 && sim->now >= process->fetched_until) {
                process_woken(sim, process);
                process->fetched_until = 0;
                if (process->quiet && process->fetched_job_end == USEC_INFINITY)
                        process->fetched_job_end =
                                interrupt_end(process->fetched_job_end, sim->now + 10 * SEC);
                process->job_end[process->n_jobs++] = process->fetched_job_end;
        }
        if (sim->now < process->job_at || process->job_at == USEC_INFINITY)
                return;
        process->job_at = sim->now + 1 + rng_wait(&process->rng, process->release.job_gap);
        if (process->quiet || process->takes_none || process->fetched_until != 0 ||
            process->n_jobs == process_behavior(sim, process)->jobs_max)
                return;
        process_woken(sim, process);
        usec_t length = job_length(sim, process);
        process->fetched_until = sim->now + rng_range(&process->rng, 1, 15 * MSEC);
        process->fetched_job_end = usec_add(process->fetched_until, length);
        sim->n_jobs++;
}

static unsigned reported_jobs(const struct behavior *behavior, const struct process *process)
{
        return behavior->counts_fetches ? process_jobs(process) : process->n_jobs;
}

static bool work_changed(const struct behavior *behavior, const struct process *process)
{
        return behavior->heartbeats_at_change && (process->copied_busy != reported_jobs(behavior, process) ||
                                                  process->copied_quiet != process->quiet);
}

static usec_t next_heartbeat(const struct sim *sim, struct process *process, const struct behavior *behavior)
{
        struct rng *rng = &process->rng;
        const struct release *release = &process->release;
        usec_t span = (process->n_jobs > 0 ? behavior->heartbeat_busy : behavior->heartbeat_idle)
                              ?: release->heartbeat_interval;

        if (work_changed(behavior, process))
                return sim->now + 1;
        if (rng_chance(rng, release->double_heartbeats))
                return sim->now + rng_range(rng, 100 * MSEC, 500 * MSEC);
        span += rng_range(rng, 0, 50 * MSEC);
        if (rng_chance(rng, release->late_heartbeats))
                span += rng_range(rng, 0, 4 * release->heartbeat_interval);
        return sim->now + span;
}

/* Returns the time of registration for the next record. If only the first record sets it and was lost, later
 * ones have none. */
static uint64_t birth_of(struct process *process, bool repeats, uint64_t written_usec)
{
        const struct heartbeat_record *last = &process->records[0];
        bool first = !process->registered;

        process->registered = true;
        if (first)
                process->born_usec = written_usec;
        return repeats                 ? process->born_usec
               : first                 ? written_usec
               : last->written_at != 0 ? last->heartbeat.born_usec
                                       : 0;
}

/* Returns the age of the last turn of the loop that fetches jobs. Every job holds up the loop of a worker
 * with one thread. In the calm none stands, as none is to be replaced then. */
static usec_t loop_age(const struct sim *sim, struct process *process)
{
        if ((process->takes_none && !sim->calm) || (process->serial % 4 == 0 && process->n_jobs > 0))
                return sim->now - process->booted_at + 1;
        return rng_range(&process->rng, 1, 2 * SEC);
}

/* A heartbeat: copies the work state, and writes it a round trip later, perhaps with the quiet flag as it is
 * by then. */
static void step_heartbeat(struct sim *sim, struct process *process)
{
        const struct behavior *behavior = process_behavior(sim, process);
        struct rng *rng = &process->rng;

        if (process->write_at == USEC_INFINITY &&
            (sim->now >= process->heartbeat_at || work_changed(behavior, process))) {
                process->copied_busy = process->title_busy = reported_jobs(behavior, process);
                process->copied_plain = interrupt_plain_jobs(process);
                process->copied_quiet = process->title_quiet = process->quiet;
                process->write_at = sim->now + redis_trip(sim, rng);
                if (rng_chance(rng, process->release.slow_trips))
                        process->write_at += rng_range(rng, 0, 8 * SEC);
                process_woken(sim, process);
        }
        if (sim->now < process->write_at)
                return;
        struct heartbeat heartbeat = {
                .sent_usec = sim_time_of_heartbeats(sim),
                .busy = process->copied_busy,
                .concurrency = behavior->jobs_max,
                .quiet = behavior->quiet_read_late ? process->quiet : process->copied_quiet,
                .work_list_known = process_traits(sim, process)->has_work_list,
                .work_list_empty = process->copied_busy == 0,
                .start = process->reports_start ? process->runner_start : 0,
        };
        if (behavior->reports_turns) {
                heartbeat.work_list_known = true;
                heartbeat.work_list_empty = process->n_jobs == 0;
                heartbeat.looked_usec = loop_age(sim, process);
        }
        if (behavior->reports_birth)
                heartbeat.born_usec = birth_of(process, behavior->repeats_birth, heartbeat.sent_usec);
        if (behavior->database)
                heartbeat.quiet = false;
        /* With these frameworks only the title shows both. */
        if (process_traits(sim, process)->title_completes) {
                heartbeat.busy = 0;
                heartbeat.quiet = false;
        }
        if (process->remote.is)
                heartbeat.rss_bytes = process_bytes(sim, process);
        redis_write(sim, process, &heartbeat);
        remote_heartbeat(sim, process);
        if (process->job_at == USEC_INFINITY)
                process->job_at = sim->now + rng_range(rng, 10 * MSEC, SEC);
        process->write_at = USEC_INFINITY;
        process->heartbeat_at = next_heartbeat(sim, process, behavior);
}

/* Returns true if the process has ended. */
static bool step_end(struct sim *sim, struct process *process)
{
        if (sim->now >= process->crash_at) {
                runner_dies(sim, process, process->awaits_go ? "ends unborn" : "crashes");
                return true;
        }
        if (sim->now >= process->term_from && !process->stopping)
                behavior_stop(sim, process);
        if (process->stopping && process->exit_at == USEC_INFINITY &&
            (process_jobs(process) == 0 || sim->now >= process->stop_by))
                process->exit_at = sim->now + rng_range(&process->rng, 20 * MSEC, 2 * SEC);
        if (sim->now < process->exit_at)
                return false;
        process->listed = process->listed && !redis_answers(sim);
        runner_dies(sim, process, "exits");
        return true;
}

static usec_t own_next(const struct sim *sim, const struct process *process)
{
        usec_t at = MIN(process->crash_at, MIN(process->quiet_from, process->term_from));

        if (!process->runner_alive)
                return process->main_alive ? MIN(process->wrapper_exit_at, process->respawn_at)
                                           : USEC_INFINITY;
        if (process->frozen)
                return USEC_INFINITY;
        if (process->hang_until > sim->now)
                return process->hang_until;
        usec_t heartbeat_at = process->write_at != USEC_INFINITY   ? process->write_at
                              : fleet_is_bare(sim, process->fleet) ? USEC_INFINITY
                                                                   : process->heartbeat_at;
        if (process->booted)
                at = MIN(at, MIN(heartbeat_at, process->job_at));
        else if (!process->as_template.loaded)
                at = MIN(at, process->boot_at);
        if (process->is_template)
                at = MIN(at, template_next_at(process));
        if (process->fetched_until != 0)
                at = MIN(at, process->fetched_until);
        for (unsigned i = 0; i < process->n_jobs; i++)
                at = MIN(at, process->job_end[i]);
        if (process->stopping)
                at = MIN(at, MIN(process->exit_at,
                                 process->stop_by > sim->now ? process->stop_by : USEC_INFINITY));
        return MAX(at, sim->now + 1);
}

static usec_t next_of(const struct sim *sim, const struct process *process)
{
        return MIN(process->claim_at, own_next(sim, process));
}

static void step_runner(struct sim *sim, struct process *process)
{
        if (!process->booted && !process->as_template.loaded && sim->now >= process->boot_at) {
                process->booted = true;
                process->booted_at = process->heartbeat_at = sim->now;
                process->host = sim->host;
                if (fleet_is_bare(sim, process->fleet))
                        process->job_at = sim->now;
        }
        if (sim->now >= process->quiet_from)
                behavior_become_quiet(sim, process);
        if (process->booted)
                step_jobs(sim, process);
        if (!step_end(sim, process) && process->booted && !fleet_is_bare(sim, process->fleet))
                step_heartbeat(sim, process);
}

void process_claims(struct sim *sim, struct process *process, unsigned record)
{
        struct rng rng = rng_fork(sim->seed, 4000000 + process->serial);

        process->ledger = &sim->shell.ledger;
        process->record = record;
        process->claim = ledger_claim_of(process->ledger, record);
        process->claim_at = MIN(process->boot_at, sim->now + rng_range(&rng, 0, 50 * MSEC));
        process->next_at = MIN(process->next_at, process->claim_at);
}

/* Claims the slot of the ledger, the first step of a process. */
static void step_claim(struct sim *sim, struct process *process)
{
        if (sim->now < process->claim_at)
                return;
        process->claim_at = USEC_INFINITY;
        if (ledger_claim(&process->claim, process->pid, process->start))
                return;
        report(sim, "%s finds that its start is void", process_name(sim, process));
        process_kill(sim, process, true);
        process_kill(sim, process, false);
}

void process_step(struct sim *sim, struct process *process)
{
        step_claim(sim, process);
        if (!process->runner_alive) {
                if (process->main_alive && sim->now >= process->wrapper_exit_at)
                        wrapper_dies(sim, process);
                else if (process->main_alive && sim->now >= process->respawn_at)
                        respawn(sim, process);
        } else if (!process->frozen && sim->now >= process->hang_until) {
                if (process->is_template)
                        template_step(sim, process);
                if (process->runner_alive)
                        step_runner(sim, process);
        }
        process->next_at = next_of(sim, process);
}

void process_end_wrapper(struct sim *sim, struct process *process)
{
        if (process->wrapped && process->main_alive)
                wrapper_dies(sim, process);
}

int process_signal(struct sim *sim, struct process *process, int signo, bool group)
{
        if (!process_is_alive(process) || (!group && !process->runner_alive && !process->main_alive))
                return ESRCH;
        process->restarts &=
                !group || signo == process_behavior(sim, process)->quiet_signal || signo == SIGKILL;
        if (process->runner_alive && signo == SIGKILL)
                runner_dies(sim, process, "is killed");
        else if (process->runner_alive)
                behavior_signal(sim, process, signo);
        if (process->wrapped && process->main_alive && (group || !process->runner_alive) &&
            signo != process_behavior(sim, process)->quiet_signal &&
            (signo == SIGKILL || !process->runner_alive))
                wrapper_dies(sim, process);
        process->next_at = next_of(sim, process);
        return 0;
}
