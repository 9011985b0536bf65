/* SPDX-License-Identifier: MIT */
/* The part of src/daemon around the core, simulated: the loop, polls, the connection to Redis, signals. */
#include "model/deadlines.h"
#include "model/describe.h"
#include "model/idle_proof.h"
#include "model/world.h"
#include "observe/observe.h"
#include "sim.h"
#include <signal.h>

#define COMMAND_TIMEOUT_USEC USEC_PER_SEC

static struct process *process_of(const struct worker *worker)
{
        return worker->handle;
}

usec_t shell_next_at(const struct sim *sim)
{
        const struct shell *shell = &sim->shell;
        usec_t at, served = USEC_INFINITY;

        if (!shell->running)
                return shell->start_at;
        at = MIN(shell->wake_at, shell->search_at);
        for (unsigned i = 0; i < sim->n_fleets; i++) {
                const struct link *link = &sim->fleets[i].link;

                at = MIN(at, MIN(link->next_at, sim->fleets[i].reader.lost_at));
                if (link->asked && !link->served)
                        served = MIN(served, link->served_at);
                else if (link->asked)
                        at = MIN(at, link->answer_at);
        }
        SIM_FOREACH_PROCESS(sim, process) {
                at = MIN(at, process->exit_report_at);
                if (process->is_template)
                        at = MIN(at, template_reports_at(process));
        }
        return MIN(served, MAX(at, shell->stalled_until));
}

static void link_set(struct sim *sim, unsigned fleet, bool up)
{
        struct link *link = &sim->fleets[fleet].link;

        link->asked = false;
        link->next_at = USEC_INFINITY;
        if (!up)
                link->next_at = sim->now + rng_range(&sim->rng, 250 * USEC_PER_MSEC, 2 * USEC_PER_SEC);
        if (link->up == up)
                return;
        link->up = up;
        link->up_at = sim->now;
        if (up) {
                reader_connected(sim, fleet);
                check_distrust(sim, fleet);
                match_connected(&link->match, sim->now);
        }
        observe_redis(sim->shell.world->fleets[fleet], up, sim->now);
}

/* Sends the batch of queries of the whole fleet. */
static void link_ask(struct sim *sim, unsigned fleet)
{
        struct link *link = &sim->fleets[fleet].link;

        link->asked = true;
        link->asked_at = sim->now;
        link->served = false;
        link->next_at = sim->now + COMMAND_TIMEOUT_USEC;
        link->served_at = link->answer_at = USEC_INFINITY;
        if (!redis_answers(sim))
                return;
        usec_t trip = redis_trip(sim, &sim->rng), delay = reader_delay(sim, fleet);
        link->served_at = sim->now + trip / 2;
        link->answer_at = sim->now + trip + delay;
        /* A reply that keeps arriving is waited for. */
        link->next_at += delay;
}

void shell_ask(struct sim *sim, unsigned fleet)
{
        if (sim->fleets[fleet].link.up && !sim->fleets[fleet].link.asked)
                link_ask(sim, fleet);
}

static void link_serve(struct sim *sim, unsigned fleet)
{
        struct link *link = &sim->fleets[fleet].link;

        link->served = true;
        if (!redis_answers(sim)) {
                link->answer_at = USEC_INFINITY;
                link->next_at = MIN(link->next_at, sim->now + COMMAND_TIMEOUT_USEC);
                return;
        }
        SIM_FOREACH_PROCESS(sim, process) {
                if (process->fleet != fleet)
                        continue;
                process->answer = reader_answers(sim, process, redis_read(sim, process));
                process->answered = process->poll_items != 0;
        }
        clones_serve(sim, fleet);
}

static void hear(struct sim *sim, struct process *process, const struct heartbeat_record *record,
                 unsigned poll_items)
{
        struct worker *worker = process->worker;
        struct heartbeat heartbeat = record->heartbeat;
        usec_t written_at = record->written_at;

        if (worker->state == WORKER_GONE)
                return;
        if (worker->process.heartbeat_pid == 0) {
                if (!process->runner_alive)
                        return;
                observe_heartbeat_process(worker, process->runner_pid, process->runner_start, sim->now);
                sim->shell.pass.unsaved = true;
        }
        remote_found(sim, process);
        if (!(poll_items & POLL_WORK_LIST) && !process_behavior(sim, process)->reports_turns)
                heartbeat.work_list_known = false;
        evidence_complete(sim, process, &heartbeat);
        if (!redis_shows_age(sim, process) && heartbeat.sent_usec == sim->now)
                written_at = sim->now;
        if (record->lie)
                process->lied_at = sim->now;
        deaf_hear(sim, process, heartbeat.busy > 0,
                  process_behavior(sim, process)->database ? sim->now : record->written_at);
        check_reading(sim, process, &heartbeat, written_at);
        enum worker_state before = worker->state;
        sim->fleets[process->fleet].shown |= !heartbeat.shimless;
        observe_heartbeat(worker, &heartbeat, sim->now);
        deaf_check_loop(sim, process);
        if (worker->process.remote && worker->memory.read_at == sim->now)
                process->read_bytes = worker->state == WORKER_ACTIVE ? worker->memory.bytes : 0;
        /* A retiring worker is active again: ready_after begins anew. */
        if (before > WORKER_ACTIVE && worker->state == WORKER_ACTIVE)
                process->first_read_at = sim->now;
}

static void link_answer(struct sim *sim, unsigned fleet)
{
        struct link *link = &sim->fleets[fleet].link;

        link->asked = false;
        link->next_at = USEC_INFINITY;
        identify(sim, fleet);
        SIM_FOREACH_PROCESS(sim, process) {
                unsigned poll_items = process->poll_items;

                if (process->fleet != fleet || !process->answered)
                        continue;
                process->answered = false;
                process->poll_items = 0;
                struct heartbeat_record record = identify_answer(sim, process);
                record.heartbeat.asked_at = link->asked_at;
                if (process->worker && record.written_at != 0)
                        hear(sim, process, &record, poll_items);
        }
}

static void link_step(struct sim *sim, unsigned fleet)
{
        struct link *link = &sim->fleets[fleet].link;

        if (sim->now >= sim->fleets[fleet].reader.lost_at) {
                link_set(sim, fleet, false);
                link->next_at = sim->now + reader_lost(sim, fleet);
                return;
        }
        if (link->asked && link->served && sim->now >= link->answer_at)
                link_answer(sim, fleet);
        if (sim->now < link->next_at)
                return;
        if (link->up)
                link_set(sim, fleet, false);
        else
                link_set(sim, fleet, redis_answers(sim) && redis_trip(sim, &sim->rng) < COMMAND_TIMEOUT_USEC);
}

/* All known processes of the worker have ended, and another one that its command started has booted. Even
 * before its first heartbeat, it takes the place of the worker; see exits.c. */
static void take_left_behind(struct sim *sim, struct process *process, const struct exit_status *status)
{
        struct worker *worker = process->worker;

        report(sim, "%s is left behind, and looked after", process_name(sim, process));
        if (worker->state == WORKER_STARTING) {
                observe_orphan(worker, process->runner_pid, process->runner_start, sim->now);
        } else {
                check_death(sim, process);
                check_succeeded(process);
                observe_left_behind(worker, status, process->runner_pid, process->runner_start, sim->now);
        }
        identify_added(sim, process->fleet);
}

static void exit_step(struct sim *sim, struct process *process)
{
        struct worker *worker = process->worker;
        const struct exit_status status = {.known = true, .status = 1};

        process->exit_report_at = USEC_INFINITY;
        if (process->is_template)
                template_exit_step(sim, process);
        if (!worker || worker->state == WORKER_GONE)
                return;
        sim->shell.pass.unsaved = true;
        bool heartbeats_apart =
                worker->process.heartbeat_pid != 0 && worker->process.heartbeat_pid != worker->process.pid;
        bool heartbeats = process->runner_alive && worker->process.heartbeat_start == process->runner_start;
        if (heartbeats_apart && !heartbeats) {
                check_death(sim, process);
                identify_forget(sim, process);
                if (process->main_alive) {
                        check_succeeded(process);
                        observe_heartbeat_process(worker, 0, 0, sim->now);
                        return;
                }
                if (rng_chance(&process->rng, 500))
                        observe_heartbeat_process(worker, 0, 0, sim->now);
        } else if (heartbeats_apart && !process->main_alive) {
                observe_promoted(worker);
                return;
        } else if (process_is_alive(process) &&
                   (process->main_alive || worker->process.pid == process->runner_pid)) {
                return;
        }
        if (worker->state == WORKER_STOPPING && worker->reason == REASON_BOOT && process->runner_alive) {
                report(sim, "%s is left by its command, and kept", process_name(sim, process));
                process->outlived_stop = true;
                observe_orphan(worker, process->runner_pid, process->runner_start, sim->now);
                return;
        }
        if (evidence_booted(sim, process)) {
                take_left_behind(sim, process, &status);
                return;
        }
        process->unseen = process->runner_alive;
        check_death(sim, process);
        observe_exit(worker, &status, sim->now);
}

static uint64_t look_memory_of(const struct sim *sim, struct worker *worker)
{
        uint64_t bytes = process_bytes(sim, process_of(worker));

        observe_memory(worker, bytes, sim->now);
        return worker->state == WORKER_ACTIVE ? bytes : 0;
}

static void look_boot(struct sim *sim, struct worker *worker, unsigned poll_items)
{
        struct process *process = process_of(worker);
        const struct match *match = &sim->fleets[process->fleet].link.match;
        bool unproven = worker->process.unproven, booted = evidence_booted(sim, process);
        const struct traits *traits = process_traits(sim, process);
        bool has_title = traits->has_title || traits->process_is_heartbeat;
        size_t at = 0;

        if (has_title && booted && process->title_first_at == 0)
                process->title_first_at = sim->now;
        usec_t searched_at = match_pid(match, process, &at) != 0 ? 0 : match_scanned_at(match);
        if (!(poll_items & POLL_BOOT) && !observe_boot_title(worker, booted, searched_at, sim->now))
                return;
        sim->fleets[process->fleet].shown |= booted;
        /* A process that is never going to boot, or was stopped while it booted, hangs; others are at work.
         */
        if (!booted && (poll_items & POLL_BOOT) && worker->state == WORKER_STARTING)
                observe_activity(worker,
                                 (process->boot_at == USEC_INFINITY || process->frozen) && !process->booted,
                                 1, sim->now);
        observe_booted(worker, booted, sim->now);
        sim->shell.pass.unsaved |= worker->process.unproven != unproven;
        if (!booted || !has_title || !worker->process.booted || worker->state != WORKER_STARTING)
                return;
        observe_heartbeat_process(worker, process->runner_pid, process->runner_start, sim->now);
        observe_elsewhere(worker);
        sim->shell.pass.unsaved = true;
}

static void look_title(struct sim *sim, struct worker *worker)
{
        struct process *process = process_of(worker);
        enum worker_state state = worker->state;
        unsigned busy;
        bool quiet, known = evidence_title(sim, process, &busy, &quiet);

        process->shown_title = known;
        process->shown_busy = busy;
        process->shown_quiet = quiet;
        observe_title(worker, known, busy, quiet);
        if (!worker->process.elsewhere)
                return;
        check_title(sim, process, known, known && quiet && busy == 0);
        observe_title_elsewhere(worker, process_behavior(sim, process)->jobs_max, sim->now);
        sim->shell.pass.unsaved |= worker->state != state;
}

static void look_proc(struct sim *sim, struct worker *worker, unsigned poll_items)
{
        struct process *process = process_of(worker);

        if (sim->now < sim->proc_fails_until && rng_chance(&sim->rng, 700))
                return;
        if (poll_items & POLL_MEMORY)
                process->read_bytes = look_memory_of(sim, worker);
        if ((poll_items & POLL_THREADS) && worker->process.heartbeat_pid != 0 && process->runner_alive) {
                bool witness = worker->evidence.threads_witness;

                observe_threads(worker, process_threads(sim, process));
                sim->shell.pass.unsaved |= worker->evidence.threads_witness != witness;
                process->threads_counted |= process_threads(sim, process) == SIM_JOBS_MAX;
        }
        if ((poll_items & POLL_TITLE) && worker->process.heartbeat_pid != 0)
                look_title(sim, worker);
        if (poll_items & (POLL_BOOT | POLL_ELSEWHERE))
                look_boot(sim, worker, poll_items);
}

static void poll_memory(struct sim *sim)
{
        sim->read_left = MAX(process_bytes_left(sim), MEGABYTE);
        observe_available_memory(sim->shell.world, sim->read_left);
        SIM_FOREACH_PROCESS(sim, process)
                process->held_bytes = process_own_bytes(sim, process);
}

static void look_local(struct sim *sim, struct worker *worker, unsigned poll_items)
{
        struct heartbeat_record record;

        if ((poll_items & POLL_HEARTBEAT) && evidence_local(sim, process_of(worker), &record))
                hear(sim, process_of(worker), &record, poll_items);
}

static void look(struct sim *sim, bool fast)
{
        struct shell *shell = &sim->shell;

        if (!fast)
                poll_memory(sim);
        for (unsigned i = 0; i < sim->n_fleets; i++) {
                struct fleet *fleet = shell->world->fleets[i];
                bool wanted = false;

                if (!fast) {
                        scaling_look(sim, i);
                        deaf_look(sim, i);
                }
                template_looks(sim, fleet, fast);
                FLEET_FOREACH_WORKER(fleet, worker) {
                        unsigned poll_items = worker_poll_items(worker, fast, sim->now);

                        remote_polled(sim, worker, poll_items);
                        if (worker->state == WORKER_GONE)
                                continue;
                        look_proc(sim, worker, poll_items);
                        if (!fast)
                                interrupt_look(sim, worker);
                        if (fleet_is_local(sim, i)) {
                                look_local(sim, worker, poll_items);
                                continue;
                        }
                        process_of(worker)->poll_items = poll_items & (POLL_HEARTBEAT | POLL_WORK_LIST);
                        wanted = wanted || process_of(worker)->poll_items != 0;
                }
                if (wanted)
                        shell_ask(sim, i);
        }
}

static void forget_worker(struct process *process)
{
        ledger_end(process->ledger, process->record);
        process->record = 0;
        process->worker = NULL;
        process->identity = 0;
}

static void start(struct sim *sim, const struct action *action)
{
        struct ledger_start start = {
                .index = action->index,
                .generation = action->fleet->generation,
                .started_at = sim->now,
                .started_for = action->reason,
        };

        snprintf(start.fleet, sizeof(start.fleet), "%s", action->fleet->settings->name);
        unsigned record = ledger_put(&sim->shell.ledger, &start);
        if (sim->now < sim->fork_fails_until) {
                ledger_end(&sim->shell.ledger, record);
                observe_start_failed(action->fleet, action->index, EAGAIN, sim->now);
                return;
        }
        if (shell_dies_here(sim))
                return;
        struct process *process = process_spawn(sim, action->fleet, action->index);
        process_claims(sim, process, record);
        sim->n_started++;
        report(sim, "starts %s (%s)", process_name(sim, process), reason_name(action->reason));
        if (shell_dies_here(sim))
                return;
        (void)ledger_claim(&process->claim, process->pid, process->start);
        struct worker *worker = observe_started(action->fleet, action->index, action->reason, process->pid,
                                                process->start, sim->now);
        worker->handle = process;
        process->worker = worker;
        identify_added(sim, process->fleet);
}

/* A start that shows no boot: only the command is signaled, since what it has started may run jobs. */
static bool ends_command_alone(const struct action *action, const struct process *process)
{
        return action->reason == REASON_BOOT && process->wrapped && process->main_alive &&
               action->worker->process.heartbeat_pid == 0;
}

static int signal_worker(struct sim *sim, const struct action *action, int signo, bool forced)
{
        const struct worker *worker = action->worker;
        struct process *process = process_of(worker);
        int error;

        if (remote_signal(sim, worker, signo, forced, &error))
                return error;
        if (sim->now < sim->proc_fails_until && rng_chance(&sim->rng, 300))
                return EACCES;
        if (ends_command_alone(action, process)) {
                process_kill(sim, process, true);
                return 0;
        }
        /* A process that has ended gets no signal, nor does another process instead. */
        if (worker->process.heartbeat_pid != 0 &&
            (!process->runner_alive || worker->process.heartbeat_start != process->runner_start))
                return ESRCH;
        bool quiets = signo == process_behavior(sim, process)->quiet_signal;
        process->refused |= quiets && process->uncaught;
        /* A stop signal that would only kill the worker is not sent. */
        if (worker->process.shimless && !forced && signo != SIGKILL &&
            (process->bare || process_traits(sim, process)->shim->always_caught))
                return ENOTSUP;
        if (quiets && (worker->process.heartbeat_pid == 0 || !evidence_catches(process)))
                return worker->process.heartbeat_pid == 0 ? ESRCH : ENOTSUP;
        return process_signal(sim, process, signo, worker->process.heartbeat_pid == 0);
}

/* Returns true if the worker must not be quieted yet, because it may be taking a job. */
static bool awaits_idle_check(struct sim *sim, const struct action *action, struct process *process)
{
        if (action->kind != ACTION_QUIET)
                return false;
        if (!worker_awaits_idle_check(action->worker, sim->now) || evidence_idle(sim, process)) {
                check_reported(sim, action, process);
                return false;
        }
        check_not_idle(sim, process);
        observe_quieted(action->worker, action->reason, EAGAIN, sim->now);
        return true;
}

static int signal_of(const struct behavior *behavior, const struct action *action)
{
        switch (action_signal(action)) {
        case ACTION_SIGNAL_QUIET:
                return behavior->quiet_signal;
        case ACTION_SIGNAL_STOP:
                return behavior->cut_off_signal != 0 && !worker_proven_idle(action->worker)
                               ? behavior->cut_off_signal
                               : behavior->stop_signal;
        case ACTION_SIGNAL_KILL:
                return SIGKILL;
        case ACTION_SIGNAL_NONE:
                break;
        }
        return 0;
}

static void was_signalled(struct sim *sim, const struct action *action, bool forced)
{
        struct process *process = process_of(action->worker);

        check_signalled(sim, action, process);
        if (action_signal(action) == ACTION_SIGNAL_STOP && process->term_at == 0)
                process->term_at = sim->now;
        if (action->kind == ACTION_STOP && process->cut_at == 0)
                process->cut_at = sim->now;
        if (action->kind == ACTION_KILL && process->main_alive && forced)
                process_kill(sim, process, true);
}

/* Executes an action like the daemon's execute(). Returns true if something changed. */
static bool carry_out(struct sim *sim, const struct action *action)
{
        struct worker *worker = action->worker;
        struct process *process = worker ? process_of(worker) : NULL;
        int error;

        if (action->kind == ACTION_GO)
                return template_go(sim, action);
        if (action->kind == ACTION_START && action->template)
                return template_fork(sim, action);
        if (!worker && action->kind != ACTION_START)
                return template_act(sim, action);
        if (action->kind == ACTION_START) {
                start(sim, action);
                return true;
        }
        const int signo = signal_of(process_behavior(sim, process), action);
        check_unproven(sim, action, process, signo != 0);
        bool forced = sim->now >= fleet_forced_at(action->fleet);
        if (signo != 0 && !forced && worker_is_remainder(worker)) {
                if (evidence_booted(sim, process)) {
                        observe_booted(worker, true, sim->now);
                        return false;
                }
                check_remainder(sim, process);
        }
        if (awaits_idle_check(sim, action, process))
                return false;
        if (action_signal(action) == ACTION_SIGNAL_STOP && worker->orders.succeeded &&
            worker->process.heartbeat_pid != 0 && worker->process.heartbeat_pid != worker->process.pid)
                process_end_wrapper(sim, process);
        bool recorded = signo != 0 && action->kind != ACTION_KILL;
        if (recorded)
                ledger_ask(&sim->shell.ledger, process->record, action, sim->now);
        if (recorded && shell_dies_here(sim))
                return false;
        bool alone = ends_command_alone(action, process);
        error = signo != 0 ? signal_worker(sim, action, signo, forced) : 0;
        report(sim, "signals %s with %s (%s)%s, %u jobs running", process_name(sim, process),
               strsignal(signo), reason_name(action->reason), error != 0 ? ", which fails" : "",
               process_jobs(process));
        if (error == 0 && !alone)
                was_signalled(sim, action, forced);
        if (shell_dies_here(sim))
                return false;
        if (recorded)
                ledger_answer(&sim->shell.ledger, process->record, action, error == 0);
        if (shell_dies_here(sim))
                return false;
        if (action->kind == ACTION_QUIET)
                observe_quieted(worker, action->reason, error, sim->now);
        else if (action->kind == ACTION_STOP)
                observe_stopped(worker, action->reason, error, sim->now);
        else
                observe_killed(worker, error, sim->now);
        return worker->orders.signal_error == 0;
}

static void notify_events(struct sim *sim)
{
        struct world *world = sim->shell.world;

        for (size_t i = 0; sim->story && i < world->n_events; i++)
                report(sim, "  sqmgr says: %s", world->events[i].text);
        if (world->n_events > 0)
                world_events_clear(world);
}

/* Detects from the truth that the machine was suspended, its clock was stepped, or this pass is late. */
static void observe_disturbance(struct sim *sim)
{
        struct shell *shell = &sim->shell;
        usec_t interval = shell->settings.check_interval;
        int64_t slept = (int64_t)(sim->suspended_usec - shell->seen_suspended);
        int64_t stepped = sim->stepped_usec - shell->seen_stepped;
        bool late = sim->now > shell->iterated_at + interval + MAX(2 * interval, 5 * USEC_PER_SEC);

        if (shell->iterated_at != 0 &&
            (late || slept > (int64_t)USEC_PER_SEC || llabs(slept + stepped) > (int64_t)USEC_PER_SEC)) {
                shell->trusted_at = sim->now;
                check_distrust(sim, UINT32_MAX);
        }
        shell->iterated_at = sim->now;
        shell->seen_stepped = sim->stepped_usec;
        shell->seen_suspended = sim->suspended_usec;
}

static bool all_gone(const struct world *world)
{
        for (size_t i = 0; i < world->n_fleets; i++) {
                if (world->fleets[i]->n_workers > 0)
                        return false;
                for (size_t j = 0; j < TEMPLATES_MAX; j++)
                        if (template_is_alive(&world->fleets[i]->templates[j]))
                                return false;
        }
        return world->shutting_down;
}

static bool on_save(_unused_ usec_t now, void *userdata)
{
        struct sim *sim = userdata;

        return !sim->broken && !shell_dies_here(sim) && shell_save(sim);
}

static bool on_action(const struct action *action, _unused_ usec_t now, void *userdata)
{
        struct sim *sim = userdata;

        if (sim->broken || sim->shell.dying)
                return false;
        /* Before the first action of a round: the state that its plan was based on. */
        if (action == sim->shell.pass.plan.actions)
                check_hung(sim);
        check_action(sim, action);
        return !shell_dies_here(sim) && carry_out(sim, action);
}

/* Returns true if sqmgr has ended: it drained all workers, or was killed. */
static bool has_ended(struct sim *sim)
{
        struct shell *shell = &sim->shell;

        if (!shell->dying && !sim->broken && all_gone(shell->world)) {
                report(sim, "sqmgr has drained all and ends");
                (void)shell_save(sim);
                shell->dying = true;
        }
        if (shell->dying)
                shell_die(sim);
        return !shell->running;
}

/* Checks that the state is saved soon after a start, however many starts follow. Meanwhile the ledger names
 * them. */
static void check_deferral(struct sim *sim, bool deferred)
{
        struct shell *shell = &sim->shell;

        if (!deferred)
                shell->deferred_at = 0;
        else if (shell->deferred_at == 0)
                shell->deferred_at = sim->now;
        else if (sim->now >= shell->deferred_at + 10 * USEC_PER_MSEC)
                violate(sim, "P4", "the state is not saved after starts");
        if (deferred && shell->world->ledger_volatile)
                violate(sim, "P4", "neither state nor ledger tells of the starts");
}

static void shell_iterate(struct sim *sim)
{
        static const struct pass_ops ops = {.save = on_save, .execute = on_action, .release = forget_worker};
        struct shell *shell = &sim->shell;
        const struct pass_clocks clocks = {
                .monotonic = sim->now,
                .boottime = sim->now + sim->suspended_usec,
                .realtime = sim_time_of_heartbeats(sim),
        };

        sim->n_ticks++;
        shell_keep_ledger(sim);
        observe_disturbance(sim);
        for (unsigned i = 0; i < sim->n_fleets; i++)
                trial_look(sim, i);
        if (pass_run(&shell->pass, &ops, &clocks, sim) < 0)
                abort();
        bool deferred = pass_is_deferred(&shell->pass) && !shell_dies_here(sim);
        if (has_ended(sim))
                return;
        check_deferral(sim, deferred);
        if (!deferred) {
                notify_events(sim);
                check_turn(sim);
        }
        shell->wake_at = pass_wake_at(&shell->pass, sim->now);
}

static void timer_step(struct sim *sim)
{
        enum pass_poll due = pass_poll(&sim->shell.pass, sim->now);

        if (due != PASS_POLL_NONE)
                look(sim, due == PASS_POLL_FAST);
        shell_iterate(sim);
}

static bool input_step(struct sim *sim)
{
        const struct shell *shell = &sim->shell;
        bool any = false;

        if (sim->now >= sim->shell.search_at) {
                shell_search(sim);
                any = true;
        }
        SIM_FOREACH_PROCESS(sim, process) {
                if (process->is_template && sim->now >= template_reports_at(process)) {
                        template_reports(sim, process);
                        any = true;
                }
                if (sim->now < process->exit_report_at || !shell->running)
                        continue;
                exit_step(sim, process);
                any = true;
        }
        for (unsigned i = 0; i < sim->n_fleets; i++) {
                const struct link *link = &sim->fleets[i].link;

                if ((link->asked && link->served && sim->now >= link->answer_at) ||
                    sim->now >= MIN(link->next_at, sim->fleets[i].reader.lost_at)) {
                        link_step(sim, i);
                        any = true;
                }
        }
        return any;
}

void shell_step(struct sim *sim)
{
        struct shell *shell = &sim->shell;

        if (!shell->running) {
                if (sim->now >= shell->start_at)
                        shell_start(sim);
                return;
        }
        for (unsigned i = 0; i < sim->n_fleets; i++)
                if (sim->fleets[i].link.asked && !sim->fleets[i].link.served &&
                    sim->now >= sim->fleets[i].link.served_at)
                        link_serve(sim, i);
        if (sim->now < shell->stalled_until)
                return;
        /* After a stall, timer and descriptors are due; either may come first. */
        bool due = sim->now >= shell->wake_at;
        if (due && shell->timer_first) {
                timer_step(sim);
                due = false;
        }
        shell->timer_first = false;
        if (!shell->running || sim->broken)
                return;
        bool input = input_step(sim);
        due = due && sim->now >= shell->wake_at;
        if (due)
                timer_step(sim);
        else if (input)
                shell_iterate(sim);
}
