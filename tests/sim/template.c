/* SPDX-License-Identifier: MIT */
/* Templates: processes that load a release and are forked, and the shell's part. */
#include "continuity/state.h"
#include "model/deadlines.h"
#include "observe/observe.h"
#include "observe/observe_template.h"
#include "sim.h"
#include <signal.h>

#define MSEC USEC_PER_MSEC
#define SEC  USEC_PER_SEC

/* As src/daemon/poll/poll.c. */
#define OWN_MEMORY_EVERY 12
/* As src/daemon/workers/templates.c. */
#define SIBLING_SCAN_USEC SEC

static void make_preloading(struct sim *sim, unsigned number)
{
        static const unsigned unhooked[] = {0, 0, 0, 0, 0, 0, 20, 100}, unsafe[] = {0, 0, 0, 0, 0, 0, 0, 100};
        struct fleet_sim *model = &sim->fleets[number];
        struct rng rng = rng_fork(sim->seed, 400 + number);

        if (!model->settings[0].traits->can_preload || !rng_chance(&rng, 400))
                return;
        model->preloads = true;
        model->untitled = false; /* templates run in MRI */
        model->good.unhooked = unhooked[rng_range(&rng, 0, ELEMENTSOF(unhooked) - 1)];
        model->good.unsafe = unsafe[rng_range(&rng, 0, ELEMENTSOF(unsafe) - 1)];
        model->release = model->good;
        bool both = rng_chance(&rng, 700), first = rng_chance(&rng, 700);
        model->settings[0].preload = both || first;
        model->settings[1].preload = both || !first;
        /* A changed preload setting outdates workers. */
        if (!both)
                model->settings[1].launch_hash = !model->settings[0].launch_hash;
}

/* Schedules a bad release that loads but works only for a moment, a restart to it, and deaths of old workers.
 */
static void make_halt(struct sim *sim, struct rng *rng)
{
        static const enum act_kind kinds[] = {ACT_RELEASE_BAD, ACT_RESTART, ACT_WORKER_KILL, ACT_WORKER_KILL};
        size_t from = rng_range(rng, 0, sim->n_acts - 1);
        usec_t fleet = sim->acts[from].a;

        for (size_t i = 0; i < ELEMENTSOF(kinds) && from + i < sim->n_acts; i++) {
                struct act *act = &sim->acts[from + i];

                act->kind = kinds[i];
                if (i < 2)
                        act->a = fleet;
                if (i == 0)
                        *act = (struct act){.at = act->at, .kind = kinds[i], .a = fleet, .b = 2, .c = 60};
        }
}

void templates_open(struct sim *sim)
{
        struct rng rng = rng_fork(sim->seed, 410);
        bool any = false;

        for (unsigned i = 0; i < sim->n_fleets; i++) {
                make_preloading(sim, i);
                any |= sim->fleets[i].preloads;
        }
        for (size_t i = 0; any && i < sim->n_acts; i++) {
                static const usec_t spans[] = {SEC, 10 * SEC, 60 * SEC, 600 * SEC, 3600 * SEC};

                if (!rng_chance(&rng, 200))
                        continue;
                sim->acts[i].kind = (enum act_kind)rng_range(&rng, ACT_TEMPLATE_KILL, ACT_FORK_KILLS_SQMGR);
                sim->acts[i].a = rng_range(&rng, 0, spans[rng_range(&rng, 0, ELEMENTSOF(spans) - 1)]);
                if (sim->acts[i].kind != ACT_TEMPLATE_FREEZE)
                        sim->acts[i].a %= 300 * SEC;
        }
        if (any && rng_chance(&rng, 300))
                make_halt(sim, &rng);
}

static struct process *spawn(struct sim *sim, const struct fleet *fleet)
{
        struct process *process = process_spawn(sim, fleet, 0);
        struct template_process *template = &process->as_template;
        struct rng rng = rng_fork(sim->seed, 4000000 + process->serial);

        *template = (struct template_process){
                .process = process,
                .generation = fleet->generation,
                .unhooked = rng_chance(&rng, process->release.unhooked * 10),
                .unsafe = rng_chance(&rng, process->release.unsafe * 10),
                .awaits_start = true,
                .connected = true,
                .ready_report_at = USEC_INFINITY,
                .fork_at = USEC_INFINITY,
                .fork_report_at = USEC_INFINITY,
        };
        process->is_template = true;
        process->restarts = process->twins = process->leftover = false;
        if (template->unhooked)
                return process;
        process->titled = process->elsewhere = false;
        /* Sometimes the template serves for a while and then crashes. */
        if (process->crash_at == USEC_INFINITY && process->boot_at != USEC_INFINITY && !sim->calm &&
            rng_chance(&rng, 100))
                process->crash_at = process->boot_at + rng_range(&rng, 0, 20 * USEC_PER_MIN);
        return process;
}

static bool is_held(const struct sim *sim, const struct process *process)
{
        return process->frozen || sim->now < process->hang_until;
}

/* Closes the socket of the requested fork: if it exists, it ends. */
static void close_fork(struct sim *sim, struct template_process *template)
{
        struct process *fork = template->fork;

        template->index = 0;
        template->fork = NULL;
        template->fork_report_at = USEC_INFINITY;
        if (!fork)
                return;
        fork->crash_at = MIN(fork->crash_at, sim->now + rng_range(&fork->rng, MSEC, 30 * MSEC));
        fork->next_at = MIN(fork->next_at, MAX(fork->crash_at, fork->hang_until));
}

static void hang_up(struct sim *sim, struct template_process *template)
{
        template->connected = false;
        template->ready_report_at = USEC_INFINITY;
        close_fork(sim, template);
        template->process->next_at = MIN(template->process->next_at, sim->now + MSEC);
}

/* The template has read the request to fork. */
static void fork_now(struct sim *sim, struct template_process *template)
{
        struct process *process = template->process;

        template->fork_at = USEC_INFINITY;
        if (template->fate == FORK_STICKS)
                return;
        template->fork_report_at = sim->now + rng_range(&process->rng, MSEC, 20 * MSEC);
        if (sim->now < MAX(sim->fork_lacks_until, sim->fork_fails_until))
                template->fate = FORK_LACKS;
        if (template->fate != FORK_MADE)
                return;
        template->fork = process_fork(sim, template);
        report(sim, "%s is forked", process_name(sim, template->fork));
}

usec_t template_next_at(const struct process *process)
{
        const struct template_process *template = &process->as_template;

        /* The template reads requests only once it has loaded. */
        if (!template->loaded)
                return USEC_INFINITY;
        return template->connected ? template->fork_at : 0;
}

void template_step(struct sim *sim, struct process *process)
{
        struct template_process *template = &process->as_template;

        if (!template->loaded && !template->unhooked && sim->now >= process->boot_at) {
                template->loaded = true;
                template->ready_report_at = sim->now + rng_range(&process->rng, MSEC, 50 * MSEC);
                report(sim, "%s has loaded", process_name(sim, process));
        }
        if (!template->loaded)
                return;
        if (!template->connected)
                process_exits(sim, process, "exits, as sqmgr has hung up");
        else if (sim->now >= template->fork_at)
                fork_now(sim, template);
}

static struct process *process_of(const struct template *template)
{
        return template->process->process;
}

usec_t template_reports_at(const struct process *process)
{
        const struct template_process *template = &process->as_template;

        return template->template ? MIN(template->ready_report_at, template->fork_report_at) : USEC_INFINITY;
}

static void hello(struct sim *sim, struct template_process *template)
{
        struct process *fork = template->fork;

        template->fork = NULL;
        template->index = 0;
        if (!fork->runner_alive) {
                check_template_trouble(sim, template, false);
                template_observe_fork_failed(template->template, 0, "it ended before it came forward", NULL,
                                             sim->now);
                return;
        }
        report(sim, "%s says hello", process_name(sim, fork));
        struct worker *worker = template_observe_hello(template->template, fork->pid, fork->start, sim->now);
        worker->handle = fork;
        fork->worker = worker;
        shell_record(sim, fork, 0);
        sim->n_started++;
        identify_added(sim, fork->fleet);
        check_hello(sim, fork);
}

static void fork_fails(struct sim *sim, struct template_process *template)
{
        const struct fleet *fleet = template->template->fleet;
        bool lacks = template->fate == FORK_LACKS;
        unsigned failures = check_failures(fleet);

        report(sim, "%s fails to fork", process_name(sim, template->process));
        template->index = 0;
        check_template_trouble(sim, template, false);
        template_observe_fork_failed(template->template, lacks ? EAGAIN : 0, "it ended", NULL, sim->now);
        if (lacks && check_failures(fleet) != failures)
                violate(sim, "P7", "that no process can be forked counts against the release of fleet '%s'",
                        fleet->settings->name);
}

void template_reports(struct sim *sim, struct process *process)
{
        static const struct quoted unsafe = {.quoted_bytes = "it leaves a socket open"};
        struct template_process *template = &process->as_template;

        sim->shell.pass.unsaved = true;
        if (sim->now >= template->ready_report_at) {
                template->ready_report_at = USEC_INFINITY;
                template->ready = true;
                sim->fleets[process->fleet].excused |= template->unsafe;
                template_observe_ready(template->template, process->runner_pid, process->runner_start,
                                       template->unsafe ? &unsafe : NULL, sim->now);
        }
        if (sim->now < template->fork_report_at)
                return;
        template->fork_report_at = USEC_INFINITY;
        if (template->fork)
                hello(sim, template);
        else
                fork_fails(sim, template);
}

void template_exit_step(struct sim *sim, struct process *process)
{
        struct template_process *template = &process->as_template;
        const struct exit_status status = {.known = true, .status = 1};

        if (!template->template)
                return;
        sim->shell.pass.unsaved = true;
        if (process->main_alive && !template->ready)
                return;
        if (process->main_alive) {
                /* The wrapper that remains has nothing more to do. */
                hang_up(sim, template);
                process_kill(sim, process, true);
                return;
        }
        if (process->runner_alive) {
                template_observe_promoted(template->template);
                return;
        }
        close_fork(sim, template);
        check_template_trouble(sim, template, !template->ready);
        template_observe_exit(template->template, &status, "sqmgr-preload.rb", sim->now);
        template->template = NULL;
}

/* Returns true if the template works as a worker: it then becomes one. */
static bool look_booted(struct sim *sim, struct template *template)
{
        struct process *process = process_of(template);
        struct worker *worker = template_observe_booted(template, evidence_booted(sim, process), sim->now);

        if (!worker)
                return false;
        report(sim, "%s is no template, but works", process_name(sim, process));
        sim->fleets[process->fleet].excused = true;
        process->is_template = false;
        process->as_template.template = NULL;
        process->as_template.ready_report_at = process->as_template.fork_report_at = USEC_INFINITY;
        process->index = worker->index;
        process->worker = worker;
        worker->handle = process;
        shell_record(sim, process, 0);
        identify_added(sim, process->fleet);
        sim->shell.pass.unsaved = true;
        return true;
}

static bool proc_fails(struct sim *sim)
{
        return sim->now < sim->proc_fails_until && rng_chance(&sim->rng, 700);
}

static void look(struct sim *sim, struct template *template, bool fast)
{
        const struct process *process = process_of(template);

        if (template_forks(template))
                template_observe_fork_waits(template, is_held(sim, process) && !proc_fails(sim), sim->now);
        if (fast || proc_fails(sim))
                return;
        if (process->runner_alive)
                template_observe_memory(template, process_bytes(sim, process));
        if (template->state == TEMPLATE_LOADING && template->serving_pid == 0)
                (void)look_booted(sim, template);
}

void template_looks(struct sim *sim, struct fleet *fleet, bool fast)
{
        for (size_t i = 0; i < TEMPLATES_MAX; i++)
                if (template_is_alive(&fleet->templates[i]))
                        look(sim, &fleet->templates[i], fast);
        for (size_t i = 0; i < fleet->n_workers && !fast; i++) {
                struct worker *worker = fleet->workers[i];

                if (worker->process.forked && worker->state == WORKER_ACTIVE &&
                    (sim->shell.pass.n_regular + worker->index) % OWN_MEMORY_EVERY == 0 && !proc_fails(sim))
                        observe_own_memory(worker, process_own_bytes(sim, worker->handle));
        }
}

static void load(struct sim *sim, struct fleet *fleet)
{
        if (sim->now < sim->fork_fails_until) {
                template_observe_start_failed(fleet, EAGAIN, sim->now);
                return;
        }
        struct process *process = spawn(sim, fleet);
        report(sim, "loads %s", process_name(sim, process));
        if (shell_dies_here(sim))
                return;
        struct template *template = template_observe_started(fleet, process->pid, process->start, sim->now);
        template->process = &process->as_template;
        process->as_template.template = template;
}

static void end(struct sim *sim, struct template *template)
{
        struct process *process = process_of(template);

        if (template->serving_pid == 0) {
                if (proc_fails(sim) || look_booted(sim, template))
                        return;
                check_template_end(sim, template->process);
                hang_up(sim, template->process);
                process_signal(sim, process, SIGTERM, true);
        } else {
                check_template_end(sim, template->process);
                hang_up(sim, template->process);
                if (process->runner_alive)
                        process_kill(sim, process, false);
        }
        report(sim, "ends %s", process_name(sim, process));
        check_template_trouble(sim, template->process, false);
        template->process->ended_at = sim->now;
        if (!shell_dies_here(sim))
                template_observe_ended(template, sim->now);
}

static void kill_it(struct sim *sim, struct template *template)
{
        struct process *process = process_of(template);

        report(sim, "kills %s", process_name(sim, process));
        check_template_kill(sim, template->process);
        if (template->serving_pid == 0)
                process_kill(sim, process, false);
        process_kill(sim, process, true);
        if (!shell_dies_here(sim))
                template_observe_killed(template, sim->now);
}

bool template_act(struct sim *sim, const struct action *action)
{
        if (action->kind == ACTION_LOAD)
                load(sim, action->fleet);
        else if (action->kind == ACTION_TEMPLATE_END)
                end(sim, action->template);
        else
                kill_it(sim, action->template);
        return true;
}

/* Chooses the result of a requested fork; in the calm, a quick success. */
static void choose_fate(struct sim *sim, struct template_process *template)
{
        struct rng *rng = &template->process->rng;
        usec_t most = 130 * MSEC;

        template->fate = FORK_MADE;
        if (!sim->calm && rng_chance(rng, 10))
                template->fate = FORK_STICKS;
        else if (!sim->calm && rng_chance(rng, 10))
                template->fate = FORK_DIES;
        else if (!sim->calm && rng_chance(rng, 10))
                template->fate = FORK_LACKS;
        if (!sim->calm && rng_chance(rng, 40))
                most = rng_chance(rng, 300) ? 60 * SEC : 8 * SEC;
        template->fork_at = sim->now + rng_range(rng, 20 * MSEC, most);
        template->process->next_at = MIN(template->process->next_at, template->fork_at);
}

bool template_fork(struct sim *sim, const struct action *action)
{
        struct template *core = action->template;
        struct template_process *template = core->process;
        int error = 0;

        if (!template->connected || !template->process->runner_alive)
                error = EPIPE;
        else if (sim->now < sim->fork_fails_until && rng_chance(&sim->rng, 500))
                error = EMFILE;
        report(sim, "asks %s for %u%s", process_name(sim, template->process), action->index,
               error != 0 ? ", which fails" : "");
        if (error == 0) {
                template->index = action->index;
                template->asked_at = sim->now;
                choose_fate(sim, template);
        }
        if (sim->shell.kill_forking >= 0)
                sim->shell.kill_in = sim->shell.kill_forking;
        if (error == EPIPE)
                check_template_trouble(sim, template, false);
        if (shell_dies_here(sim))
                return false;
        template_observe_fork_asked(core, action->index, action->reason, error, sim->now);
        return false;
}

/* Like templates.c: returns true if other processes with the pid of the fork were searched for, or could not
 * be for long enough. */
static bool siblings_are_seen(const struct sim *sim, const struct worker *worker)
{
        const struct process *process = worker->handle;

        return !worker->fleet->redis_up || sim->now >= worker->state_at + SIBLING_SCAN_USEC ||
               match_scanned_at(&sim->fleets[process->fleet].link.match) >= worker->state_at;
}

bool template_go(struct sim *sim, const struct action *action)
{
        struct process *process = action->worker->handle;

        if (!siblings_are_seen(sim, action->worker)) {
                process->poll_items |= POLL_HEARTBEAT;
                shell_ask(sim, process->fleet);
                return false;
        }
        report(sim, "%s may go on", process_name(sim, process));
        check_go(sim, process);
        ledger_go(process->ledger, process->record);
        if (shell_dies_here(sim))
                return false;
        if (process->runner_alive)
                process_go(sim, process);
        if (!shell_dies_here(sim))
                template_observe_go(action->worker, sim->now);
        return false;
}

void template_orphaned(struct sim *sim, struct process *process)
{
        struct template_process *template = &process->as_template;

        if (process->is_template) {
                template->template = NULL;
                hang_up(sim, template);
        }
        if (!template->awaits_start && !process->awaits_go)
                return;
        process->boot_at = USEC_INFINITY;
        process->crash_at = MIN(process->crash_at, sim->now + rng_range(&process->rng, MSEC, 30 * MSEC));
        process->next_at = MIN(process->next_at, MAX(process->crash_at, process->hang_until));
}

static void adopt(struct sim *sim, struct fleet *fleet, const struct template *known)
{
        SIM_FOREACH_PROCESS(sim, process) {
                bool lives = process->main_alive && process->pid == known->pid &&
                             process->start == known->pid_start;
                bool serves = process->runner_alive && known->serving_pid == process->runner_pid &&
                              known->serving_start == process->runner_start;

                /* The earlier sqmgr may have known that this one works, and not have written it. */
                if (!process->as_template.process || (!lives && !serves))
                        continue;
                process->is_template = true;
                if (lives && !serves && known->serving_pid != 0)
                        process_kill(sim, process, true);
                struct template *template = template_observe_adopted(
                        fleet, known, false, lives ? process->start : 0, serves ? process->runner_start : 0);
                if (!template)
                        violate(sim, "P4", "%s lives, and is not taken over", process_name(sim, process));
                if (!template)
                        return;
                report(sim, "takes over %s", process_name(sim, process));
                template->process = &process->as_template;
                process->as_template.template = template;
                /* Report its exit again, now to this sqmgr. */
                if (!process_is_alive(process) || !process->main_alive)
                        process->exit_report_at = sim->now + MSEC;
                return;
        }
}

void templates_begin(struct sim *sim)
{
        SIM_FOREACH_PROCESS(sim, process)
                if (process->as_template.template)
                        process->as_template.awaits_start = false;
}

void templates_adopt(struct sim *sim, struct fleet *fleet, const struct state_fleet *saved)
{
        for (size_t i = 0; i < TEMPLATES_MAX; i++)
                if (template_is_alive(&saved->templates[i]))
                        adopt(sim, fleet, &saved->templates[i]);
}

void template_befalls(struct sim *sim, const struct act *act)
{
        if (act->kind == ACT_FORK_LACKS) {
                sim->fork_lacks_until = sim->now + act->a;
                return;
        }
        if (act->kind == ACT_FORK_KILLS_SQMGR) {
                sim->shell.kill_forking = (int)(act->b % 8);
                sim->shell.kill_fate = 0;
                sim->shell.down_usec = act->a;
                return;
        }
        struct process *process = process_pick(sim, act->b, true);
        if (!process)
                return;
        report(sim, "  that is %s", process_name(sim, process));
        if (act->kind == ACT_TEMPLATE_KILL)
                process_kill(sim, process, false);
        else
                process->hang_until = MAX(process->hang_until, sim->now + act->a);
}

void template_repair(struct sim *sim, struct process *process)
{
        process->release = sim->fleets[process->fleet].good;
        process->release.late_heartbeats = process->release.slow_trips = 0;
}

void template_unknown(struct sim *sim, bool read)
{
        SIM_FOREACH_PROCESS(sim, process) {
                /* If the state is lost, a template that works or never loads need not be found. */
                if (process->as_template.process && !process->worker && !process->as_template.template &&
                    !read)
                        process->let_go = true;
        }
}
