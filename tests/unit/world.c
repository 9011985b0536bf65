/* SPDX-License-Identifier: MIT */
/* The simulated world. */
#include "world.h"
#include "autoscaling/autoscale_rules.h"
#include "decide/command.h"
#include "frameworks/sidekiq/format.h"
#include "model/deadlines.h"
#include "model/describe.h"
#include "model/fleets.h"
#include "model/preload.h"
#include "model/world.h"
#include "observe/observe.h"
#include "observe/observe_template.h"
#include "rollout_trial/trial_rules.h"

#define TEST_START_USEC     (1000 * USEC_PER_SEC)
#define TEST_WALL_USEC      ((int64_t)1700000000 * (int64_t)USEC_PER_SEC)
#define TEST_HEARTBEAT_USEC (5 * USEC_PER_SEC)
#define TEST_SCRIPT         "sqmgr-preload.rb"

void test_world_open(struct test_world *t, unsigned count)
{
        *t = (struct test_world){
                .settings = {.check_interval = 5 * USEC_PER_SEC, .shutdown_timeout = 60 * USEC_PER_SEC},
                .fleet_settings =
                        {
                                .name = (char *)"default",
                                .traits = &sidekiq_traits,
                                .active_process_count = count,
                                .restart_surge = {.value = 100, .percent = true},
                                .ready_after = 10 * USEC_PER_SEC,
                                .boot_timeout = 120 * USEC_PER_SEC,
                                .rollout_timeout = 10 * USEC_PER_MIN,
                                .stop_timeout = 60 * USEC_PER_SEC,
                        },
                .now = TEST_START_USEC,
                .newborn = {.boot_usec = 3 * USEC_PER_SEC,
                            .die_usec = USEC_INFINITY,
                            .memory_bytes = (uint64_t)200 << 20},
                .newborn_template = {.load_usec = 5 * USEC_PER_SEC,
                                     .die_usec = USEC_INFINITY,
                                     .fork_usec = 50 * USEC_PER_MSEC,
                                     .memory_bytes = (uint64_t)150 << 20},
                .next_pid = 100,
        };
        t->fleet_list[0] = &t->fleet_settings;
        t->settings.fleets = t->fleet_list;
        t->settings.n_fleets = 1;
        ck_assert_int_eq(world_new(&t->settings, 42, &t->world), 0);
        t->pass.world = t->world;
        t->fleet = world_fleet(t->world, "default");
        ck_assert_ptr_nonnull(t->fleet);
        test_redis(t, true);
}

void test_world_close(struct test_world *t)
{
        WORLD_FOREACH_FLEET(t->world, fleet) {
                FLEET_FOREACH_WORKER(fleet, worker)
                        free(worker->handle);
                FLEET_FOREACH_TEMPLATE(fleet, template)
                        free(template->process);
                autoscale_forget(fleet);
                fleet_trial_forget(fleet);
        }
        plan_free(&t->pass.plan);
        t->world = world_free(t->world);
}

void test_redis(struct test_world *t, bool up)
{
        t->redis_up = up;
        observe_redis(t->fleet, up, t->now);
}

struct process *test_process(const struct worker *worker)
{
        return worker->handle;
}

void test_process_free(struct process *process)
{
        free(process);
}

struct worker *test_worker(struct test_world *t, unsigned index)
{
        char id[32];

        snprintf(id, sizeof(id), "default/%u", index);
        return world_worker(t->world, id);
}

struct fleet_counts test_counts(const struct test_world *t)
{
        return fleet_count(t->fleet, t->now);
}

unsigned test_of_generation(const struct test_world *t, uint64_t generation)
{
        unsigned n = 0;

        FLEET_FOREACH_WORKER(t->fleet, worker)
                n += worker->generation == generation && worker->state < WORKER_QUIET;
        return n;
}

/* Of a worker that is there. */
static struct worker *give_process(struct test_world *t, struct worker *worker)
{
        struct process *process = malloc(sizeof(*process));

        ck_assert_ptr_nonnull(worker);
        ck_assert_ptr_nonnull(process);
        *process = t->newborn;
        process->started_at = t->now;
        process->next_heartbeat_at =
                worker->process.awaits_go ? USEC_INFINITY : usec_add(t->now, process->boot_usec);
        worker->handle = process;
        return worker;
}

static struct worker *start(struct test_world *t, unsigned index, enum reason reason)
{
        pid_t pid = t->next_pid++;

        return give_process(t, observe_started(t->fleet, index, reason, pid, (uint64_t)pid * 7, t->now));
}

struct worker *test_spawn(struct test_world *t)
{
        return start(t, fleet_free_index(t->fleet), REASON_NONE);
}

void test_heartbeat(struct test_world *t, struct worker *worker, double sent_at, unsigned busy, bool quiet)
{
        struct heartbeat heartbeat = {
                .sent_usec = (uint64_t)(sent_at * 1e6),
                .busy = busy,
                .concurrency = 5,
                .quiet = quiet,
                .work_list_known = true,
                .work_list_empty = busy == 0,
        };

        test_process(worker)->silent = true;
        if (worker->process.heartbeat_pid == 0)
                observe_heartbeat_process(worker, worker->process.pid, worker->process.start, t->now);
        observe_heartbeat(worker, &heartbeat, t->now);
}

struct worker *test_spawn_ready(struct test_world *t)
{
        struct worker *worker = test_spawn(t);

        test_heartbeat(t, worker, 100, 0, false);
        t->now += t->fleet_settings.ready_after;
        test_heartbeat(t, worker, 110, 0, false);
        ck_assert(worker_ready(worker, t->now));
        return worker;
}

struct worker *test_spawn_quiet(struct test_world *t)
{
        struct worker *worker = test_spawn_ready(t);

        observe_quieted(worker, REASON_OPERATOR, 0, t->now);
        ck_assert_int_eq(worker->state, WORKER_QUIET);
        return worker;
}

void test_exit(struct test_world *t, struct worker *worker, int status)
{
        observe_exit(worker, &(struct exit_status){.known = true, .status = status}, t->now);
}

void test_preload(struct test_world *t)
{
        t->fleet_settings.preload = 1;
}

struct template *test_template(struct test_world *t, uint64_t generation)
{
        FLEET_FOREACH_TEMPLATE(t->fleet, template)
                if (template_is_alive(template) && template->generation == generation)
                        return template;
        return NULL;
}

unsigned test_templates(const struct test_world *t)
{
        unsigned n = 0;

        FLEET_FOREACH_TEMPLATE(t->fleet, template)
                n += template_is_alive(template);
        return n;
}

struct template *test_load(struct test_world *t)
{
        for (unsigned i = 0; i < 300; i++) {
                struct template *template = fleet_template(t->fleet);

                if (template && template->state == TEMPLATE_READY)
                        return template;
                test_tick(t, 1);
        }
        ck_abort_msg("no template is ready");
}

unsigned test_forked(const struct test_world *t)
{
        unsigned n = 0;

        FLEET_FOREACH_WORKER(t->fleet, worker)
                n += worker->process.forked;
        return n;
}

struct template_process *test_template_process(const struct template *template)
{
        return template->process;
}

struct worker *test_hello(struct test_world *t, struct template *template)
{
        pid_t pid = t->next_pid++;

        return give_process(t, template_observe_hello(template, pid, (uint64_t)pid * 7, t->now));
}

static void template_exit(struct test_world *t, struct template *template, int status)
{
        struct template_process *process = template->process;
        struct quoted log_tail;
        const struct exit_status exit = {
                .known = true, .status = status, .log_tail = process->log_tail ? &log_tail : NULL};

        quoted_set(&log_tail, process->log_tail);

        template_observe_exit(template, &exit, TEST_SCRIPT, t->now);
        free(process);
}

void test_template_exit(struct test_world *t, struct template *template)
{
        template_exit(t, template, 1);
}

void test_plan(struct test_world *t)
{
        ck_assert_int_eq(plan_make(&t->pass.plan, t->world, t->now), 0);
}

unsigned test_planned(const struct test_world *t, enum action_kind kind, const struct worker *worker)
{
        unsigned n = 0;

        for (size_t i = 0; i < t->pass.plan.n_actions; i++)
                n += t->pass.plan.actions[i].kind == kind &&
                     (!worker || t->pass.plan.actions[i].worker == worker);
        return n;
}

unsigned test_plans(struct test_world *t, enum action_kind kind, const struct worker *worker)
{
        test_plan(t);
        return test_planned(t, kind, worker);
}

bool test_stops(struct test_world *t, const struct worker *worker)
{
        return test_plans(t, ACTION_STOP, worker) > 0;
}

static void load(struct test_world *t)
{
        pid_t pid = t->next_pid++;
        struct template_process *process;

        t->loads++;
        if (t->load_error) {
                template_observe_start_failed(t->fleet, t->load_error, t->now);
                return;
        }
        ck_assert_ptr_nonnull(process = malloc(sizeof(*process)));
        *process = t->newborn_template;
        process->started_at = t->now;
        template_observe_started(t->fleet, pid, (uint64_t)pid * 7, t->now)->process = process;
}

/* Returns whether anything came of it. */
static bool execute_template(struct test_world *t, const struct action *action)
{
        struct template *template = action->template;

        switch (action->kind) {
        case ACTION_START:
                t->starts++;
                template_observe_fork_asked(template, action->index, action->reason, t->ask_error, t->now);
                break;
        case ACTION_GO:
                ck_assert(action->worker->process.awaits_go);
                t->gos++;
                test_process(action->worker)->next_heartbeat_at =
                        usec_add(t->now, test_process(action->worker)->boot_usec);
                template_observe_go(action->worker, t->now);
                break;
        case ACTION_LOAD:
                load(t);
                break;
        case ACTION_TEMPLATE_END:
                t->template_ends++;
                template->process->ending = true;
                template_observe_ended(template, t->now);
                break;
        case ACTION_TEMPLATE_KILL:
                ck_assert_int_eq(template->state, TEMPLATE_ENDING);
                t->template_kills++;
                template->process->killed = true;
                template_observe_killed(template, t->now);
                break;
        case ACTION_QUIET:
        case ACTION_STOP:
        case ACTION_KILL:
                ck_abort_msg("an action on a worker");
        }
        return true;
}

/* Returns whether anything came of it. */
static bool execute(struct test_world *t, const struct action *action)
{
        struct process *process = action->worker ? test_process(action->worker) : NULL;

        switch (action->kind) {
        case ACTION_START:
                if (action->template)
                        return execute_template(t, action);
                t->starts++;
                if (t->start_error)
                        observe_start_failed(t->fleet, action->index, t->start_error, t->now);
                else
                        start(t, action->index, action->reason);
                return true;
        case ACTION_QUIET:
                t->quiets++;
                process->quiet = process->quiet || t->quiet_error == 0;
                observe_quieted(action->worker, action->reason, t->quiet_error, t->now);
                break;
        case ACTION_STOP:
                t->stops++;
                process->stopping = process->stopping || t->stop_error == 0;
                observe_stopped(action->worker, action->reason, t->stop_error, t->now);
                break;
        case ACTION_KILL:
                t->kills++;
                process->killed = process->killed || t->kill_error == 0;
                observe_killed(action->worker, t->kill_error, t->now);
                break;
        case ACTION_GO:
        case ACTION_LOAD:
        case ACTION_TEMPLATE_END:
        case ACTION_TEMPLATE_KILL:
                return execute_template(t, action);
        }
        return action->worker->orders.signal_error == 0;
}

void test_execute(struct test_world *t)
{
        for (size_t i = 0; i < t->pass.plan.n_actions; i++)
                (void)execute(t, &t->pass.plan.actions[i]);
}

static bool on_save(_unused_ usec_t now, void *userdata)
{
        struct test_world *t = userdata;

        t->saves++;
        for (size_t i = 0; i < t->fleet->n_workers && !t->save_fails; i++)
                test_process(t->fleet->workers[i])->saved = true;
        return !t->save_fails;
}

static bool on_action(const struct action *action, _unused_ usec_t now, void *userdata)
{
        struct test_world *t = userdata;

        ck_assert_msg(action->kind != ACTION_GO || !t->world->ledger_volatile ||
                              test_process(action->worker)->saved,
                      "P4: told to go on before it was saved");
        return execute(t, action);
}

/* What the process does by itself up to now, and what can be read of it. */
static void process_live(struct test_world *t, struct worker *worker)
{
        struct process *process = test_process(worker);

        if (process->killed || (process->stopping && !process->deaf)) {
                observe_exit(worker, &(struct exit_status){.known = true}, t->now);
                return;
        }
        if (t->now >= usec_add(process->started_at, process->die_usec)) {
                test_exit(t, worker, 1);
                return;
        }
        if (process->silent || process->hung || t->now < process->next_heartbeat_at || !t->redis_up)
                return;
        process->quiet_written = process->quiet;
        process->busy_written = process->busy_copied;
        process->sent_usec = (uint64_t)((int64_t)t->now + TEST_WALL_USEC + t->stepped_usec);
        process->next_heartbeat_at = t->now + TEST_HEARTBEAT_USEC;
}

static void fork_live(struct test_world *t, struct template *template)
{
        const struct template_process *process = template->process;

        if (process->held || t->now < usec_add(template->fork.asked_at, process->fork_usec))
                template_observe_fork_waits(template, process->held, t->now);
        else if (process->fork_error != 0 || process->fork_fails)
                template_observe_fork_failed(template, process->fork_error,
                                             process->fork_fails ?: strerrordesc_np(process->fork_error),
                                             NULL, t->now);
        else
                test_hello(t, template);
}

/* What a template's process does by itself up to now. */
static void template_live(struct test_world *t, struct template *template)
{
        struct template_process *process = template->process;
        struct quoted unsafe;

        if (process->killed || (process->ending && !process->deaf)) {
                template_exit(t, template, 0);
                return;
        }
        if (t->now >= usec_add(process->started_at, process->die_usec)) {
                template_exit(t, template, 1);
                return;
        }
        template_observe_memory(template, process->memory_bytes);
        bool loaded = !process->held && t->now >= usec_add(process->started_at, process->load_usec);
        quoted_set(&unsafe, process->unsafe);
        if (template->state == TEMPLATE_LOADING && loaded && !process->running_jobs)
                template_observe_ready(template, template->pid, template->pid_start,
                                       process->unsafe ? &unsafe : NULL, t->now);
        else if (template->state == TEMPLATE_LOADING) {
                struct worker *worker =
                        template_observe_booted(template, loaded && process->running_jobs, t->now);
                if (worker) {
                        give_process(t, worker);
                        free(process);
                }
        } else if (template_forks(template))
                fork_live(t, template);
}

static void process_read(struct test_world *t, struct worker *worker, unsigned poll_items)
{
        struct process *process = test_process(worker);

        if (poll_items & POLL_MEMORY)
                observe_memory(worker, process->memory_bytes, t->now);
        if ((poll_items & POLL_THREADS) && worker->heartbeat.seen)
                observe_threads(worker, process->native_thread + (process->quiet ? process->busy : 5));
        if ((poll_items & POLL_BOOT) && process->sent_usec == 0)
                observe_activity(worker, !process->works, 1, t->now);
        if (poll_items & POLL_BOOT)
                observe_booted(worker, process->sent_usec > 0, t->now);
        if (!t->redis_up || process->silent || process->sent_usec == 0 || !(poll_items & POLL_HEARTBEAT))
                return;
        struct heartbeat heartbeat = {
                .sent_usec = process->sent_usec,
                .busy = process->busy_written,
                .quiet = process->quiet_written,
                .concurrency = 5,
                .work_list_known = poll_items & POLL_WORK_LIST,
                .work_list_empty = process->busy_written == 0,
        };

        if (worker->process.heartbeat_pid == 0)
                observe_heartbeat_process(worker, worker->process.pid, worker->process.start, t->now);
        observe_heartbeat(worker, &heartbeat, t->now);
}

void test_pass(struct test_world *t)
{
        static const struct pass_ops ops = {
                .save = on_save, .execute = on_action, .release = test_process_free};
        usec_t boottime = t->now + t->suspended_usec;
        const struct pass_clocks clocks = {
                .monotonic = t->now,
                .boottime = boottime,
                .realtime = (usec_t)((int64_t)boottime + TEST_WALL_USEC + t->stepped_usec),
        };

        ck_assert_int_eq(pass_run(&t->pass, &ops, &clocks, t), 0);
}

void test_tick(struct test_world *t, double seconds)
{
        struct fleet *fleet = t->fleet;

        t->now += (usec_t)(seconds * 1e6);
        FLEET_FOREACH_WORKER(fleet, worker)
                process_live(t, worker);
        FLEET_FOREACH_TEMPLATE(fleet, template)
                if (template->process)
                        template_live(t, template);
        fleet_reap(fleet, test_process_free);
        FLEET_FOREACH_WORKER(fleet, worker) {
                struct process *process = test_process(worker);

                process_read(t, worker, worker_poll_items(worker, false, t->now));
                process->busy_copied = process->busy;
        }
        do
                test_pass(t);
        while (pass_is_deferred(&t->pass));

        unsigned live = test_counts(t).live;
        FLEET_FOREACH_TEMPLATE(fleet, template)
                live += template_forks(template);
        ck_assert_msg(live <= fleet_max_processes(fleet), "P3: %u processes live", live);
}

void test_run(struct test_world *t, unsigned seconds)
{
        for (unsigned i = 0; i < seconds; i++)
                test_tick(t, 1);
}

enum rollout_state test_rollout(const struct test_world *t)
{
        return t->fleet->rollout.state;
}

void test_restart(struct test_world *t)
{
        ck_assert_int_eq(command_restart(t->fleet, NULL, t->now), COMMAND_DONE);
        ck_assert_int_eq(test_rollout(t), ROLLOUT_RUNNING);
}

enum rollout_state test_run_out(struct test_world *t, unsigned seconds)
{
        for (unsigned i = 0; i < seconds && test_rollout(t) == ROLLOUT_RUNNING; i++)
                test_tick(t, 1);
        return test_rollout(t);
}

enum rollout_state test_restart_out(struct test_world *t)
{
        test_restart(t);
        return test_run_out(t, 600);
}

void test_settle(struct test_world *t)
{
        for (unsigned i = 0; i < 300; i++) {
                struct fleet_counts counts = test_counts(t);
                if (counts.ready == fleet_target(t->fleet) && counts.live == counts.ready)
                        return;
                test_tick(t, 1);
        }
        ck_abort_msg("the fleet does not settle");
}

unsigned test_events(const struct test_world *t, enum event_kind kind)
{
        unsigned n = 0;

        for (size_t i = 0; i < t->world->n_events; i++)
                n += t->world->events[i].kind == kind;
        return n;
}

const struct event *test_event(const struct test_world *t, enum event_kind kind)
{
        for (size_t i = t->world->n_events; i-- > 0;)
                if (t->world->events[i].kind == kind)
                        return &t->world->events[i];
        ck_abort_msg("no event '%s' was reported", event_kinds[kind].name);
}

const char *test_event_text(const struct test_world *t, enum event_kind kind)
{
        return test_events(t, kind) > 0 ? test_event(t, kind)->text : "";
}

const char *test_waits_for(const struct test_world *t, const struct worker *worker)
{
        static char text[512];

        return worker_waits_for(worker, t->now, text, sizeof(text));
}

const char *test_fleet_waits_for(const struct test_world *t)
{
        static char text[512];

        return fleet_waits_for(t->fleet, t->now, text, sizeof(text));
}
