/* SPDX-License-Identifier: MIT */
/* Applies the acts of a schedule: faults of Redis, the host and the workers, and orders of the operator. */
#include "decide/command.h"
#include "model/counts.h"
#include "model/fleets.h"
#include "model/world.h"
#include "sim.h"

#define SEC USEC_PER_SEC

static const char *const act_names[] = {
        [ACT_REDIS_DOWN] = "Redis goes away",
        [ACT_REDIS_SILENT] = "Redis answers no more",
        [ACT_REDIS_SLOW] = "Redis is slow",
        [ACT_REDIS_FAILOVER] = "Redis fails over and forgets the last beats",
        [ACT_REDIS_FROZEN] = "sqmgr reads a frozen replica",
        [ACT_REDIS_LAGS] = "sqmgr reads a replica that lags",
        [ACT_REDIS_GARBAGE] = "Redis gives garbage",
        [ACT_REDIS_EMPTIED] = "Redis is emptied",
        [ACT_CLOCK_STEP] = "the wall clock is stepped",
        [ACT_SUSPEND] = "the machine sleeps",
        [ACT_STALL] = "sqmgr is stalled",
        [ACT_PAUSE] = "the machine is paused, and other hosts are not",
        [ACT_FORK_FAILS] = "no process can be started",
        [ACT_PROC_FAILS] = "/proc and signals fail now and then",
        [ACT_DISK_FULL] = "no state can be written",
        [ACT_HOST_NAME] = "the host is given another name",
        [ACT_SQMGR_KILL] = "sqmgr is to be killed",
        [ACT_WORKER_KILL] = "a worker is killed by somebody",
        [ACT_WRAPPER_KILL] = "a wrapper is killed by somebody",
        [ACT_WORKER_HANG] = "a worker hangs",
        [ACT_WORKER_QUIET] = "a worker is quieted by somebody",
        [ACT_WORKER_GROWS] = "a worker grows",
        [ACT_RELEASE_BAD] = "a bad release is deployed",
        [ACT_RELEASE_GOOD] = "a good release is deployed",
        [ACT_RESTART] = "operator: restart",
        [ACT_ABORT] = "operator: abort",
        [ACT_QUIET_FLEET] = "operator: quiet the fleet",
        [ACT_QUIET_WORKER] = "operator: quiet a worker",
        [ACT_STOP] = "operator: stop",
        [ACT_STOP_FORCE] = "operator: stop --force",
        [ACT_START] = "operator: start",
        [ACT_SCALE] = "operator: scale",
        [ACT_RELOAD] = "operator: reload with other settings",
        [ACT_SHUTDOWN] = "sqmgr is told to end",
        [ACT_TEMPLATE_KILL] = "a template is killed by somebody",
        [ACT_TEMPLATE_FREEZE] = "a template is frozen by somebody",
        [ACT_FORK_LACKS] = "no template can be forked",
        [ACT_FORK_KILLS_SQMGR] = "sqmgr is to be killed as it has a template forked",
        [ACT_READER_LOST] = "a connection is lost, again and again",
        [ACT_READER_DELAYS] = "answers are late",
        [ACT_READER_LIES] = "answers lie",
};
static_assert(ELEMENTSOF(act_names) == _ACT_MAX, "every act has a name");

const char *act_text(const struct act *act, char text[static 128])
{
        snprintf(text, 128, "%s (%llu, %llu, %llu)", act_names[act->kind], (unsigned long long)act->a,
                 (unsigned long long)act->b, (unsigned long long)act->c);
        return text;
}

void act_add(struct sim *sim, const struct act *act)
{
        size_t at = sim->n_acts++;

        for (; at > 0 && sim->acts[at - 1].at > act->at; at--)
                sim->acts[at] = sim->acts[at - 1];
        sim->acts[at] = *act;
}

static void act_on_redis(struct sim *sim, const struct act *act)
{
        usec_t until = sim->now + act->a;

        switch (act->kind) {
        case ACT_REDIS_DOWN:
                sim->down_until = until;
                for (unsigned i = 0; i < sim->n_fleets; i++)
                        if (sim->shell.running && sim->fleets[i].link.up && !fleet_is_local(sim, i))
                                sim->fleets[i].link.next_at = sim->now + 1 + act->b % (5 * USEC_PER_MSEC);
                break;
        case ACT_REDIS_SILENT:
                sim->silent_until = until;
                break;
        case ACT_REDIS_SLOW:
                sim->slow_until = until;
                sim->slow_usec = 10 * USEC_PER_MSEC + act->b % (4 * SEC);
                break;
        case ACT_REDIS_FAILOVER:
                redis_fail_over(sim, 1 + (unsigned)(act->b % 3));
                if (act->c % 2 == 0)
                        sim->down_until = sim->now + act->a % (20 * SEC);
                break;
        case ACT_REDIS_FROZEN:
                sim->frozen_until = until;
                redis_freeze(sim);
                break;
        case ACT_REDIS_LAGS:
                sim->lags_until = until;
                sim->lag = 1 + (unsigned)(act->b % 2);
                break;
        case ACT_REDIS_GARBAGE:
                sim->garbage_until = until;
                break;
        default:
                redis_empty(sim);
                break;
        }
}

/* Ends some processes: a machine that is short of memory does that, too. */
static void end_some(struct sim *sim, const struct act *act)
{
        for (size_t i = 0; i < sim->n_processes; i++) {
                struct process *process = sim->processes[i];

                if (!process->booted || !process->runner_alive)
                        continue;
                process->crash_at = MIN(process->crash_at, sim->now + act->c % (10 * SEC) * (i + 1));
                process->next_at = MIN(process->next_at, process->crash_at);
        }
}

/* The wall clock was stepped back. A sqmgr that does not run at that time cannot know what dead processes
 * have left, or that the record of a living one is older than the step. For a while after the step, repeated
 * answers cannot be told from new ones. */
static void lose_births(struct sim *sim)
{
        sim->stepped_back_at = sim->now;
        clones_lose_births(sim);
        for (size_t i = 0; i < sim->n_processes && !sim->shell.running; i++) {
                struct process *process = sim->processes[i];

                if (process->runner_alive && !redis_shows_age(sim, process))
                        continue;
                for (unsigned j = 0; j < RECORDS_MAX; j++)
                        if (process->runner_alive)
                                process->records[j].written_at = 0;
                        else
                                process->records[j].heartbeat.born_usec = 0;
                process->frozen_record.written_at = 0;
        }
}

static void act_on_host(struct sim *sim, const struct act *act)
{
        struct shell *shell = &sim->shell;

        switch (act->kind) {
        case ACT_CLOCK_STEP:
                sim->stepped_usec += act->b % 2 ? (int64_t)act->a : -(int64_t)act->a;
                if (act->b % 2 == 0)
                        lose_births(sim);
                if (act->b % 2 && act->a > USEC_PER_MIN)
                        redis_empty(sim);
                break;
        case ACT_SUSPEND:
                sim->suspended_usec += act->a;
                if (act->a > USEC_PER_MIN)
                        redis_empty(sim);
                break;
        case ACT_STALL:
                if (!shell->running)
                        break;
                shell->stalled_until = sim->now + act->a;
                shell->timer_first = act->b % 2;
                break;
        case ACT_PAUSE:
                sim->paused_at = sim->now;
                sim->paused_until = sim->now + act->a;
                SIM_FOREACH_PROCESS(sim, process)
                        process->hang_until = MAX(process->hang_until, sim->paused_until);
                if (shell->running)
                        shell->stalled_until = sim->paused_until;
                else
                        shell->start_at = MAX(shell->start_at, sim->paused_until);
                break;
        case ACT_FORK_FAILS:
                sim->fork_fails_until = sim->now + act->a;
                if (act->b % 3 == 0)
                        end_some(sim, act);
                break;
        case ACT_PROC_FAILS:
                sim->proc_fails_until = sim->now + act->a;
                break;
        case ACT_DISK_FULL:
                sim->disk_full_until = sim->now + act->a;
                break;
        case ACT_HOST_NAME:
                sim->host = (unsigned)(act->b % 3);
                break;
        default:
                shell->kill_in = (int)(act->b % 6);
                shell->kill_fate = act->c % 100 < 85 ? 0 : 1 + act->c % 3;
                shell->ledger_lost |= act->c % 10 == 0;
                shell->down_usec = act->a;
                break;
        }
}

static void act_on_worker(struct sim *sim, const struct act *act)
{
        struct process *process = process_pick(sim, act->a, false);

        if (!process)
                return;
        const struct behavior *behavior = process_behavior(sim, process);
        report(sim, "  that is %s", process_name(sim, process));
        switch (act->kind) {
        case ACT_WORKER_KILL:
                process_kill(sim, process, false);
                break;
        case ACT_WRAPPER_KILL:
                /* Not before a template serves: until then sqmgr does not know the process below its wrapper,
                 * which has no markers to be found by. */
                if (process->wrapped && (process->mark_index != 0 || process->as_template.loaded))
                        process_kill(sim, process, true);
                break;
        case ACT_WORKER_HANG:
                process->hang_until = sim->now + act->b;
                break;
        case ACT_WORKER_QUIET:
                if (behavior->quiet_signal != 0 && !process->uncaught)
                        process_signal(sim, process, behavior->quiet_signal, false);
                else if (process->booted && process->reported_to_exit == 0)
                        process_signal(sim, process, behavior->stop_signal, false);
                break;
        default:
                process->jumped_bytes += act->b % (2048 * MEGABYTE);
                break;
        }
}

static void act_release(struct sim *sim, const struct act *act)
{
        struct fleet_sim *fleet = &sim->fleets[act->a % sim->n_fleets];
        struct release *release = &fleet->release;

        *release = fleet->good;
        if (act->kind == ACT_RELEASE_GOOD)
                return;
        switch (act->b % 5) {
        case 0:
                release->never_boots = 50 + act->c % 51;
                break;
        case 1:
                release->crashes_booting = 40 + act->c % 61;
                release->boot_max = MAX(release->boot_min, (act->c % 7) * SEC);
                break;
        case 2:
                release->crashes_young = 40 + act->c % 61;
                break;
        case 3:
                release->elsewhere = 50 + act->c % 51;
                break;
        default:
                release->base_bytes *= 3;
                break;
        }
}

static void operate(struct sim *sim, const struct act *act)
{
        struct world *world = sim->shell.world;
        struct fleet *fleet = world->fleets[act->a % sim->n_fleets];
        uint64_t generation = fleet->generation;
        enum fleet_order before = fleet_order(fleet);
        enum command_outcome outcome;

        switch (act->kind) {
        case ACT_RESTART:
                outcome = command_restart(fleet, NULL, sim->now);
                /* The generation may have been given before, to a restart that a lost state has forgotten. */
                if (outcome == COMMAND_DONE)
                        sim->fleets[act->a % sim->n_fleets].failures = 0;
                sim->fleets[act->a % sim->n_fleets].count = fleet->automatic_count;
                check_command(sim, fleet,
                              outcome != COMMAND_DONE
                                      ? fleet_order(fleet) == before && before != ORDER_RUN &&
                                                fleet->generation == generation
                                      : fleet->generation > generation && fleet->order == ORDER_RUN &&
                                                fleet->rollout.state == ROLLOUT_RUNNING,
                              "restart");
                break;
        case ACT_ABORT:
                command_abort(fleet, NULL, sim->now);
                check_command(sim, fleet, fleet->rollout.state != ROLLOUT_RUNNING, "abort");
                break;
        case ACT_QUIET_FLEET:
                outcome = command_quiet_fleet(fleet, NULL, sim->now);
                check_command(sim, fleet,
                              outcome == COMMAND_LEAVING ? fleet_order(fleet) == ORDER_STOP
                                                         : fleet->order == ORDER_QUIET,
                              "quiet");
                break;
        case ACT_QUIET_WORKER:
                if (fleet->n_workers > 0)
                        command_quiet_worker(fleet->workers[act->b % fleet->n_workers], NULL, sim->now);
                break;
        case ACT_STOP:
        case ACT_STOP_FORCE:
                command_stop(fleet, act->kind == ACT_STOP_FORCE, NULL, sim->now);
                check_command(sim, fleet, fleet->order == ORDER_STOP, "stop");
                break;
        case ACT_START:
                outcome = command_start(fleet, NULL, sim->now);
                check_command(sim, fleet,
                              outcome == COMMAND_REMOVED ? fleet->settings->removed
                                                         : fleet->order == ORDER_RUN,
                              "start");
                break;
        default:
                outcome = command_scale(fleet, (unsigned)(act->b % 7), NULL, sim->now);
                if (outcome == COMMAND_REMOVED)
                        break;
                check_command(sim, fleet,
                              outcome == COMMAND_RANGE
                                      ? act->b % 7 < 1 || act->b % 7 > fleet_max_processes(fleet)
                                      : fleet_current_count(fleet) == act->b % 7,
                              "scale");
                break;
        }
}

static void reload(struct sim *sim, unsigned number, unsigned in_force)
{
        struct fleet_sim *model = &sim->fleets[number];

        model->in_force = in_force;
        sim->shell.fleet_list[number] = &model->settings[in_force];
        if (!sim->shell.running)
                return;
        const struct fleet *fleet = sim->shell.world->fleets[number];
        uint64_t generation = fleet->generation;
        if (world_reload(sim->shell.world, &sim->shell.settings, NULL, sim->now) < 0)
                abort();
        sim->shell.pass.unsaved = true;
        /* The core forgets the count of a fleet that is no longer autoscaled. */
        model->count = fleet->automatic_count;
        if (fleet->generation != generation)
                model->reloaded_generation = fleet->generation;
}

void act_apply(struct sim *sim, const struct act *act)
{
        char text[128];

        report(sim, "%s", act_text(act, text));
        if (act->kind <= ACT_REDIS_EMPTIED) {
                act_on_redis(sim, act);
        } else if (act->kind <= ACT_SQMGR_KILL) {
                act_on_host(sim, act);
        } else if (act->kind <= ACT_WORKER_GROWS) {
                act_on_worker(sim, act);
        } else if (act->kind <= ACT_RELEASE_GOOD) {
                act_release(sim, act);
        } else if (act->kind >= ACT_READER_LOST) {
                reader_befalls(sim, act);
        } else if (act->kind > ACT_SHUTDOWN) {
                template_befalls(sim, act);
        } else if (act->kind == ACT_RELOAD) {
                reload(sim, (unsigned)(act->a % sim->n_fleets), (unsigned)(act->b % 2));
        } else if (sim->shell.running) {
                if (act->kind == ACT_SHUTDOWN) {
                        sim->shell.down_usec = act->b % USEC_PER_MIN;
                        command_shutdown(sim->shell.world, sim->now);
                } else {
                        operate(sim, act);
                }
                /* The client is answered once the order is recorded. A stalled sqmgr carries it out later. */
                sim->shell.pass.unsaved = !shell_save(sim);
                sim->shell.wake_at = sim->now;
        }
}

/* Begins the calm: ends all faults, repairs what hangs, and kills what cannot be repaired. */
static void calm_fleet(struct sim *sim, unsigned number)
{
        struct fleet_sim *model = &sim->fleets[number];
        struct fleet *fleet = sim->shell.world->fleets[number];

        model->release = model->good;
        model->release.late_heartbeats = model->release.slow_trips = 0;
        model->settings[0].max_age = 0;
        reload(sim, number, 0);
        /* A fleet scaled up to max_processes has no place for replacements. The count of an autoscaled one
         * follows its queues again: its least count may be 0, which no order sets. */
        if (fleet_current_count(fleet) >= fleet_max_processes(fleet) &&
            command_scale_auto(fleet, NULL, sim->now) == COMMAND_FIXED)
                command_scale(fleet, fleet->settings->active_process_count, NULL, sim->now);
        if (fleet->order != ORDER_RUN && rng_chance(&sim->rng, 700))
                command_start(fleet, NULL, sim->now);
        if (rng_chance(&sim->rng, 500) && command_restart(fleet, NULL, sim->now) == COMMAND_DONE)
                model->failures = 0;
        model->count = fleet->automatic_count;
}

void act_calm(struct sim *sim)
{
        struct shell *shell = &sim->shell;

        sim->calm = true;
        clones_end(sim, false);
        sim->down_until = sim->silent_until = sim->slow_until = sim->garbage_until = 0;
        sim->frozen_until = sim->lags_until = sim->fork_fails_until = sim->proc_fails_until = 0;
        readers_calm(sim);
        sim->fork_lacks_until = 0;
        sim->disk_full_until = sim->paused_until = 0;
        sim->total_bytes = MEMORY_PLENTY;
        shell->kill_in = shell->kill_forking = -1;
        shell->stalled_until = 0;
        if (!shell->running)
                shell_start(sim);
        sim->total_bytes = 1024 * 1024 * MEGABYTE;
        SIM_FOREACH_PROCESS(sim, process) {
                process->hang_until = sim->now;
                if (process->crash_at > sim->now + SEC)
                        process->crash_at = USEC_INFINITY;
                process->next_at = sim->now;
                process->release.late_heartbeats = process->release.slow_trips = 0;
                if (process->is_template)
                        template_repair(sim, process);
                /* As status advises, the operator sends the signal that the worker may not have received. */
                if (process->worker && process->worker->orders.unconfirmed && !process->stopping &&
                    process->term_from == USEC_INFINITY)
                        (void)process_signal(sim, process, process_behavior(sim, process)->stop_signal,
                                             false);
                /* An operator ends an RQ worker that a lie has reported as asked to exit:
                 * SECURITY.md. */
                if (process->lied_at != 0 && process->worker && process->worker->state == WORKER_QUIET &&
                    process_traits(sim, process)->quiet_is_stop && !process->stopping &&
                    process->term_from == USEC_INFINITY)
                        (void)process_signal(sim, process, process_behavior(sim, process)->stop_signal,
                                             false);
                /* Without heartbeats that show it, a new sqmgr does not see that the worker drains. */
                if ((fleet_is_bare(sim, process->fleet) || process_behavior(sim, process)->database) &&
                    (process->stopping || process->term_from != USEC_INFINITY))
                        process->exit_at = sim->now;
                for (unsigned j = 0; j < process->n_jobs; j++)
                        if (process->job_end[j] != USEC_INFINITY)
                                process->job_end[j] =
                                        MIN(process->job_end[j],
                                            interrupt_end(process->job_end[j], sim->now + 5 * USEC_PER_MIN));
                /* A worker without a known identity is not found under a host name from before this sqmgr;
                 * nor, without a title, by a record from before a step of the clock. */
                bool unknown = process->booted && process->identity == 0 &&
                               !fleet_is_local(sim, process->fleet) &&
                               (process->host != sim->host ||
                                (sim->fleets[process->fleet].untitled && sim->stepped_usec != 0));
                /* An operator ends a worker that is kept because it may only lack its shim. */
                unknown |= process_traits(sim, process)->shim && !process->booted;
                if (process->elsewhere || unknown) {
                        process_kill(sim, process, true);
                        process_kill(sim, process, false);
                } else if (!process->runner_alive && process->wrapper_exit_at == USEC_INFINITY) {
                        process->wrapper_exit_at = sim->now + SEC;
                }
        }
        for (unsigned i = 0; i < sim->n_fleets; i++)
                calm_fleet(sim, i);
        shell->wake_at = sim->now + 1;
}
