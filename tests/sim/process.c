/* SPDX-License-Identifier: MIT */
/* Modelled workers: Sidekiq's life with its true races, told in one function for each thing that can be due.
 */
#include "sim.h"
#include <signal.h>
#include <string.h>

#define MSEC USEC_PER_MSEC
#define SEC  USEC_PER_SEC

bool process_lives(const struct process *process)
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

unsigned process_threads(const struct sim *sim, const struct process *process)
{
        if (!process->runner_alive || process->job_at == USEC_INFINITY)
                return 0;
        unsigned idle = JOBS_MAX - process->n_jobs;
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
        return bytes;
}

static bool pid_is_free(const struct sim *sim, pid_t pid)
{
        for (size_t i = 0; i < sim->n_processes; i++) {
                const struct process *process = sim->processes[i];

                if ((process->main_alive && process->pid == pid) ||
                    (process->runner_alive && process->runner_pid == pid))
                        return false;
        }
        return true;
}

/* Now and then that of a worker that died of late, whose heartbeat is still to be read. */
static pid_t new_pid(struct sim *sim, struct rng *rng)
{
        for (size_t i = 0; i < sim->n_processes; i++)
                if (rng_chance(rng, 300) && pid_is_free(sim, sim->processes[i]->runner_pid))
                        return sim->processes[i]->runner_pid;
        return sim->next_pid++;
}

static void process_mark(const struct sim *sim, struct process *process, const struct fleet *fleet)
{
        struct rng *rng = &process->rng;
        usec_t launch = rng_range(rng, 0, (rng_chance(rng, 100) ? 5 * SEC : 50 * MSEC));

        process->mark_fleet = process->fleet;
        process->mark_index = process->index;
        process->mark_generation = fleet->generation;
        process->launched_at = MIN(process->boot_at, sim->now + launch);
        process->marked_at = MIN(process->boot_at, process->launched_at + rng_range(rng, 0, 90 * MSEC));
        process->titled = sim->service && !process->wrapped && rng_chance(rng, 500);
        process->leftover = !process->titled && rng_chance(rng, 100);
        process->detached = !process->wrapped && rng_chance(rng, 500);
}

struct process *process_spawn(struct sim *sim, const struct fleet *fleet, unsigned index)
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

        const struct release *release = &sim->fleets[check_number(sim, fleet)].release;
        struct rng *rng = &process->rng;
        process->serial = sim->serial++;
        *rng = rng_fork(sim->seed, 1000 + process->serial);
        process->release = *release;
        process->fleet = check_number(sim, fleet);
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
        process->main_alive = process->runner_alive = true;
        process->spawned_at = sim->now;
        process->boot_at = sim->now + rng_range(rng, release->boot_min, release->boot_max);
        process->crash_at = process->job_at = process->quiet_from = process->term_from = USEC_INFINITY;
        process->stop_by = process->exit_at = process->beat_at = process->write_at = USEC_INFINITY;
        process->wrapper_exit_at = process->exit_tell_at = USEC_INFINITY;
        if (rng_chance(rng, release->never_boots * 10))
                process->boot_at = USEC_INFINITY;
        else if (rng_chance(rng, release->crashes_booting * 10))
                process->crash_at = sim->now + rng_range(rng, 0, process->boot_at - sim->now);
        else if (rng_chance(rng, release->crashes_young * 10))
                process->crash_at = process->boot_at + rng_range(rng, 0, 40 * SEC);
        process->elsewhere = rng_chance(rng, release->elsewhere * 10);
        process->deaf = rng_chance(rng, release->deaf * 10);
        process->native_thread = rng_chance(rng, release->native_thread * 10);
        process->leak_per_sec = release->leak_per_sec / 2 + rng_range(rng, 0, release->leak_per_sec);
        process->next_at = MIN(process->boot_at, process->crash_at);
        process_mark(sim, process, fleet);
        sim->processes[sim->n_processes++] = process;
        return process;
}

static void tell_exit(struct sim *sim, struct process *process)
{
        process->exit_tell_at =
                MIN(process->exit_tell_at, sim->now + rng_range(&process->rng, MSEC, 20 * MSEC));
        process->died_at = sim->now;
}

static void runner_dies(struct sim *sim, struct process *process, const char *how)
{
        tell(sim, "%s %s, %u jobs running", process_name(sim, process), how, process_jobs(process));
        process->runner_alive = false;
        process->n_jobs = 0;
        process->fetched_until = 0;
        if (!process->wrapped)
                process->main_alive = false;
        else if (process->main_alive)
                process->wrapper_exit_at = process->worker && rng_chance(&process->rng, 60) && !sim->calm
                                                   ? USEC_INFINITY
                                                   : sim->now + rng_range(&process->rng, 0, 2 * SEC);
        tell_exit(sim, process);
}

static void wrapper_dies(struct sim *sim, struct process *process)
{
        process->main_alive = false;
        process->wrapper_exit_at = USEC_INFINITY;
        tell_exit(sim, process);
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

/* Quiet: endless jobs end once they see it. */
static void become_quiet(struct sim *sim, struct process *process)
{
        process->quiet_from = USEC_INFINITY;
        if (process->quiet)
                return;
        process->quiet = true;
        process->quiet_since = sim->now;
        process->threads_gone_at = sim->now + rng_range(&process->rng, 100 * MSEC, 5 * SEC);
        for (unsigned i = 0; i < process->n_jobs; i++)
                if (process->job_end[i] == USEC_INFINITY)
                        process->job_end[i] = sim->now + rng_range(&process->rng, 0, 20 * SEC);
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

/* A job is fetched, and registered a little later: one that was fetched before quiet may be registered after.
 */
static void step_jobs(struct sim *sim, struct process *process)
{
        for (unsigned i = 0; i < process->n_jobs;) {
                if (process->job_end[i] <= sim->now)
                        process->job_end[i] = process->job_end[--process->n_jobs];
                else
                        i++;
        }
        if (process->fetched_until != 0 && sim->now >= process->fetched_until) {
                process->fetched_until = 0;
                if (process->quiet && process->fetched_job_end == USEC_INFINITY)
                        process->fetched_job_end = sim->now + 10 * SEC;
                process->job_end[process->n_jobs++] = process->fetched_job_end;
        }
        if (sim->now < process->job_at || process->job_at == USEC_INFINITY)
                return;
        process->job_at = sim->now + 1 + rng_wait(&process->rng, process->release.job_gap);
        if (process->quiet || process->fetched_until != 0 || process->n_jobs == JOBS_MAX)
                return;
        usec_t length = job_length(sim, process);
        process->fetched_until = sim->now + rng_range(&process->rng, 1, 15 * MSEC);
        process->fetched_job_end = usec_add(process->fetched_until, length);
        sim->n_jobs++;
}

/* The work state is copied, a round trip later the quiet flag is read, and both are written. */
static void step_beat(struct sim *sim, struct process *process)
{
        struct rng *rng = &process->rng;

        if (process->write_at == USEC_INFINITY && sim->now >= process->beat_at) {
                process->copied_busy = process->n_jobs;
                process->write_at = sim->now + redis_trip(sim, rng);
                if (rng_chance(rng, process->release.slow_trips))
                        process->write_at += rng_range(rng, 0, 8 * SEC);
        }
        if (sim->now < process->write_at)
                return;
        struct heartbeat beat = {
                .beat_usec = (uint64_t)((int64_t)(sim->now + sim->suspended_usec) + sim->stepped_usec),
                .busy = process->copied_busy,
                .concurrency = JOBS_MAX,
                .quiet = process->quiet,
                .work_list_known = process_traits(sim, process)->has_work_list,
                .work_list_empty = process->copied_busy == 0,
        };
        redis_write(sim, process, &beat);
        if (process->job_at == USEC_INFINITY)
                process->job_at = sim->now + rng_range(rng, 10 * MSEC, SEC);
        process->write_at = USEC_INFINITY;
        process->beat_at = sim->now + process->release.beat_interval + rng_range(rng, 0, 50 * MSEC);
        if (rng_chance(rng, process->release.double_beats))
                process->beat_at = sim->now + rng_range(rng, 100 * MSEC, 500 * MSEC);
        else if (rng_chance(rng, process->release.late_beats))
                process->beat_at += rng_range(rng, 0, 4 * process->release.beat_interval);
}

/* Returns true where the process has ended. */
static bool step_end(struct sim *sim, struct process *process)
{
        if (sim->now >= process->crash_at) {
                runner_dies(sim, process, "crashes");
                return true;
        }
        if (sim->now >= process->term_from && !process->stopping) {
                process->term_from = USEC_INFINITY;
                if (process->deaf)
                        return false;
                process->stopping = true;
                become_quiet(sim, process);
                process->stop_by = process_traits(sim, process)->quiet_is_stop
                                           ? USEC_INFINITY
                                           : sim->now + process->release.shutdown_usec;
        }
        if (process->stopping && process->exit_at == USEC_INFINITY &&
            (process_jobs(process) == 0 || sim->now >= process->stop_by))
                process->exit_at = sim->now + rng_range(&process->rng, 20 * MSEC, 2 * SEC);
        if (sim->now < process->exit_at)
                return false;
        process->listed = process->listed && !redis_answers(sim);
        runner_dies(sim, process, "exits");
        return true;
}

static usec_t next_of(const struct sim *sim, const struct process *process)
{
        usec_t at = MIN(process->crash_at, MIN(process->quiet_from, process->term_from));

        if (!process->runner_alive)
                return process->main_alive ? process->wrapper_exit_at : USEC_INFINITY;
        if (process->frozen)
                return USEC_INFINITY;
        if (process->hang_until > sim->now)
                return process->hang_until;
        usec_t beat_at = process->write_at != USEC_INFINITY ? process->write_at : process->beat_at;
        at = MIN(at, process->booted ? MIN(beat_at, process->job_at) : process->boot_at);
        if (process->fetched_until != 0)
                at = MIN(at, process->fetched_until);
        for (unsigned i = 0; i < process->n_jobs; i++)
                at = MIN(at, process->job_end[i]);
        if (process->stopping)
                at = MIN(at, MIN(process->exit_at,
                                 process->stop_by > sim->now ? process->stop_by : USEC_INFINITY));
        return MAX(at, sim->now + 1);
}

void process_step(struct sim *sim, struct process *process)
{
        if (!process->runner_alive) {
                if (process->main_alive && sim->now >= process->wrapper_exit_at)
                        wrapper_dies(sim, process);
        } else if (!process->frozen && sim->now >= process->hang_until) {
                if (!process->booted && sim->now >= process->boot_at) {
                        process->booted = true;
                        process->booted_at = process->beat_at = sim->now;
                }
                if (sim->now >= process->quiet_from)
                        become_quiet(sim, process);
                if (process->booted)
                        step_jobs(sim, process);
                if (!step_end(sim, process) && process->booted)
                        step_beat(sim, process);
        }
        process->next_at = next_of(sim, process);
}

static void runner_signal(struct sim *sim, struct process *process, int signo)
{
        usec_t soon = sim->now + rng_range(&process->rng, MSEC, 30 * MSEC);

        if (signo == SIGKILL) {
                runner_dies(sim, process, "is killed");
        } else if (!process->booted && signo == SIGTSTP) {
                process->frozen = true;
        } else if (!process->booted && signo == SIGTERM) {
                /* No trap is set yet: it dies of it, once it is not frozen any more. */
                process->frozen = false;
                if (!process->deaf)
                        process->crash_at = soon;
        } else if (signo == SIGTSTP) {
                process->quiet_from = MIN(process->quiet_from, soon);
        } else if (!process->stopping) {
                process->term_from = MIN(process->term_from, soon);
        }
}

int process_signal(struct sim *sim, struct process *process, int signo, bool group)
{
        if (!process_lives(process) || (!group && !process->runner_alive && !process->main_alive))
                return ESRCH;
        if (process->runner_alive)
                runner_signal(sim, process, signo);
        if (process->wrapped && process->main_alive && (group || !process->runner_alive) &&
            signo != SIGTSTP && (signo == SIGKILL || !process->runner_alive))
                wrapper_dies(sim, process);
        process->next_at = next_of(sim, process);
        return 0;
}
