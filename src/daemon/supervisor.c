/* SPDX-License-Identifier: MIT */
/* Composes the daemon from its parts, and runs the loop: poll, plan, execute, report. */
#include "daemon/supervisor.h"
#include "autoscaling/autoscaling.h"
#include "base/hash.h"
#include "base/locate.h"
#include "base/socket_path.h"
#include "config.h"
#include "daemon/lifecycle/alerts.h"
#include "daemon/lifecycle/termination.h"
#include "daemon/poll/local_heartbeats.h"
#include "daemon/poll/poll.h"
#include "daemon/poll/running_jobs.h"
#include "daemon/service.h"
#include "daemon/takeover/search.h"
#include "daemon/workers/attach.h"
#include "daemon/workers/execute.h"
#include "daemon/workers/exit_log.h"
#include "daemon/workers/exits.h"
#include "daemon/workers/rescue.h"
#include "daemon/workers/side_start.h"
#include "daemon/workers/start_record.h"
#include "daemon/workers/templates.h"
#include "io/clock.h"
#include "io/launcher.h"
#include "io/log.h"
#include "io/own_program.h"
#include "io/program.h"
#include "model/fleets.h"
#include "model/preload.h"
#include "model/world.h"
#include "rollout_trial/trial_rules.h"
#include "settings/operations.h"
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/random.h>

/* The queues are read with every sixth regular poll of the workers. */
#define QUEUES_POLL_EACH 6
#define MEMORY_WAIT_NSEC (100 * 1000 * 1000)

/* The optional features, in the order in which they are called. */
static const struct subsystem *const optional_features[] = {
        &autoscaling_subsystem,
        &rollout_trial_subsystem,
        NULL,
};

/* Each part follows those that it depends on; end() frees them in reverse order. */
struct daemon {
        struct wakeup wakeup;
        struct runtime runtime;
        struct reloader reloader; /* holds the current settings */
        struct alerts *alerts;
        struct reexec reexec;
        struct service service;
        struct notify notify;
        char *instance, *selector; /* see struct control */
        bool grown;                /* workers were started since memory was last returned to the system */
};

static bool any_process_alive(const struct world *world)
{
        WORLD_FOREACH_FLEET(world, fleet)
                if (fleet->n_workers > 0 || fleet_has_templates(fleet))
                        return true;
        return false;
}

/* Forgets fleets that are no longer configured and have drained. Waits for the search for workers to end:
 * found workers may belong to such a fleet. */
static void forget_removed(struct daemon *daemon)
{
        struct settings *settings = daemon->reloader.settings;
        struct world *world = daemon->runtime.world;
        size_t n = world->n_fleets;

        if (daemon->runtime.search || rescues_need_removed(&daemon->runtime))
                return;
        world_forget_removed(world);
        if (world->n_fleets == n)
                return;
        for (size_t i = settings->n_fleets; i-- > 0;)
                if (settings->fleets[i]->removed && !world_fleet(world, settings->fleets[i]->name))
                        settings_drop_removed(settings, i);
        links_join(&daemon->runtime);
        wakeup_changed(&daemon->wakeup);
}

static void set_timer(struct daemon *daemon, usec_t now)
{
        struct pass *pass = &daemon->wakeup.pass;
        usec_t at = pass_wake_at(pass, now);

        /* After many starts, freed memory is scattered among memory in use. */
        if (pass->calm && daemon->grown) {
                (void)malloc_trim(0);
                daemon->grown = false;
        }
        wakeup_at(&daemon->wakeup, MIN(at, notify_wake_at(&daemon->notify, now)));
}

static bool on_save(usec_t now, void *userdata)
{
        struct daemon *daemon = userdata;

        return persist_save(&daemon->runtime, now);
}

static bool on_action(const struct action *action, usec_t now, void *userdata)
{
        struct daemon *daemon = userdata;

        daemon->grown |= action->kind == ACTION_START;
        return execute_action(&daemon->runtime, action, now);
}

static void poll_due(struct daemon *daemon, usec_t now)
{
        struct pass *pass = &daemon->wakeup.pass;
        enum pass_poll due = pass_poll(pass, now);

        if (due == PASS_POLL_REGULAR && pass->n_regular % QUEUES_POLL_EACH == 1)
                queue_reading_poll(&daemon->runtime);
        if (due == PASS_POLL_REGULAR) {
                SUBSYSTEMS_CALL(&daemon->runtime.subsystems, poll, now);
                launcher_rest();
                service_keep(&daemon->service);
                start_record_keep(&daemon->runtime);
                order_writer_poll(&daemon->runtime.orders, now);
        }
        if (due != PASS_POLL_NONE)
                poll_run(&daemon->runtime, due == PASS_POLL_FAST, now);
}

static void publish(void *userdata)
{
        struct daemon *daemon = userdata;

        notify_events(daemon->runtime.world, daemon->service.control.events, daemon->alerts);
}

static void plan(struct daemon *daemon)
{
        static const struct pass_ops ops = {
                .save = on_save,
                .execute = on_action,
                .release = process_release,
        };
        struct world *world = daemon->runtime.world;
        struct control *control = &daemon->service.control;
        const struct pass_clocks clocks = {
                .monotonic = clock_now(CLOCK_MONOTONIC),
                .boottime = clock_now(CLOCK_BOOTTIME),
                .realtime = clock_now(CLOCK_REALTIME),
        };
        usec_t now = clocks.monotonic;

        if (queue_reading_tick(&daemon->runtime))
                queue_calls_answer(control, now);
        SUBSYSTEMS_CALL(&daemon->runtime.subsystems, observe, now);
        if (pass_run(&daemon->wakeup.pass, &ops, &clocks, daemon) < 0)
                log_error("out of memory: the plan is incomplete; retrying with the next check");
        if (pass_is_deferred(&daemon->wakeup.pass)) {
                set_timer(daemon, now);
                return;
        }
        running_jobs_tick(world);
        publish(daemon);
        forget_removed(daemon);
        control_tick(control, now);
        notify_systemd(&daemon->notify, world, now);
        if (world->shutting_down && !any_process_alive(world) && !rescues_delay_exit(&daemon->runtime, now) &&
            (world->shutdown_now || !after_exits_run(&daemon->runtime)))
                (void)sd_event_exit(daemon->runtime.event, 0);
        set_timer(daemon, now);
}

static void on_wakeup(bool timer, void *userdata)
{
        struct daemon *daemon = userdata;
        struct tick_totals *ticks = &daemon->wakeup.pass.ticks;
        usec_t begun = clock_now(CLOCK_MONOTONIC);

        start_record_renew(&daemon->runtime);
        if (timer)
                poll_due(daemon, begun);
        plan(daemon);
        ticks->n++;
        ticks->usec += usec_sub(clock_now(CLOCK_MONOTONIC), begun);
}

static int on_signal(sd_event_source *source _unused_, const struct signalfd_siginfo *info, void *userdata)
{
        struct daemon *daemon = userdata;

        switch (info->ssi_signo) {
        case SIGHUP:
                reload_by_signal(&daemon->reloader);
                break;
        case SIGUSR2:
                reexec_request(&daemon->reexec, NULL);
                break;
        case SIGCHLD:
                /* The next signal handles the remaining children, after all other pending events. */
                if (exits_reap(&daemon->runtime))
                        (void)raise(SIGCHLD);
                break;
        default:
                termination_request(&daemon->runtime, (int)info->ssi_signo);
        }
        return 0;
}

static int add_signals(struct daemon *daemon)
{
        static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR2, SIGCHLD};
        struct sigaction inherited;
        sigset_t blocked;
        int r;

        sigemptyset(&blocked);
        FOREACH_ELEMENT(signo, signals)
                sigaddset(&blocked, *signo);
        if (sigprocmask(SIG_BLOCK, &blocked, NULL) < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR ||
            signal(SIGXFSZ, SIG_IGN) == SIG_ERR || sigaction(SIGCHLD, NULL, &inherited) < 0)
                return -errno;
        /* sqmgr may have been started with SIGCHLD ignored, and the kernel would then keep no exit status.
         * Otherwise leave the action alone: setting it drops a pending signal after a re-exec. */
        if (inherited.sa_handler == SIG_IGN && signal(SIGCHLD, SIG_DFL) == SIG_ERR)
                return -errno;
        r = ledger_file_guard();
        launcher_find_actions();
        for (size_t i = 0; i < ELEMENTSOF(signals) && r >= 0; i++)
                r = sd_event_add_signal(daemon->runtime.event, NULL, signals[i], on_signal, daemon);
        return r;
}

/* Frees the handles of the worker processes. The processes keep running. */
static void end_runtime(struct runtime *runtime)
{
        exit_log_forget(runtime);
        after_exits_forget(runtime);
        templates_forget(runtime);
        WORLD_FOREACH_FLEET(runtime->world, fleet)
                FLEET_FOREACH_WORKER(fleet, worker)
                        process_free(worker->handle);
        rescues_forget(runtime);
        links_end(runtime);
        database_helpers_clear(&runtime->database_helpers);
        heartbeats_free(runtime->local);
        free(runtime->status_parent);
        free(runtime->preload_script);
        free(runtime->outcomes_script);
        free(runtime->shims);
        proc_host_close(runtime->host);
        proc_facts_free(runtime->proc_facts);
        start_record_close(runtime);
}

static void end(struct daemon *daemon)
{
        service_end(&daemon->service);
        reexec_end(&daemon->reexec);
        config_check_end(&daemon->reloader.config);
        termination_forget(&daemon->runtime);
        alerts_free(daemon->alerts);
        adopt_free(daemon->runtime.search);
        order_writer_end(&daemon->runtime.orders);
        subsystems_end(&daemon->runtime.subsystems);
        if (daemon->runtime.world)
                end_runtime(&daemon->runtime);
        wakeup_close(&daemon->wakeup);
        world_free(daemon->runtime.world);
        settings_free(daemon->reloader.settings);
        free(daemon->instance);
        free(daemon->selector);
        sd_event_unref(daemon->runtime.event);
}

/* Derives the instance from the path of the state file, which no other sqmgr shares. Workers carry the
 * instance and are recognized by it when the state is lost. */
static void name_instance(struct runtime *runtime)
{
        const char *path = runtime->world->settings->state_file;

        snprintf(runtime->instance, sizeof(runtime->instance), "%016llx",
                 (unsigned long long)hash_bytes(HASH_INIT, path, strlen(path)));
}

static void check_nofile(const struct world *world)
{
        unsigned long long needed = problems_files_needed(world);
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < needed)
                log_warning("the limit of %llu open files is too low for these fleets; raise the limit to "
                            "%llu (LimitNOFILE= in a systemd unit)",
                            (unsigned long long)limit.rlim_cur, needed);
}

static void on_reloaded(void *userdata)
{
        struct daemon *daemon = userdata;

        service_find_groups(&daemon->service);
}

/* Connects each part to those that it depends on. */
static void compose(struct daemon *daemon, const struct invocation *invocation)
{
        struct runtime *runtime = &daemon->runtime;

        runtime->ledger = LEDGER_FILE_INIT;
        runtime->wakeup = &daemon->wakeup;
        runtime->links.found = attach_heartbeat;
        /* A reload does not change the path. */
        runtime->orders.runtime = runtime;
        runtime->orders.path = TAKE_PTR(daemon->reloader.settings->orders_file);
        runtime->orders.makes_folder = daemon->reloader.settings->orders_make_folder;
        daemon->reexec.runtime = runtime;
        daemon->reloader.runtime = runtime;
        daemon->reloader.reloaded = on_reloaded;
        daemon->reloader.userdata = daemon;
        daemon->reloader.config = (struct config_check){
                .runtime = runtime, .program = invocation->program, .config_path = invocation->config_path};
        config_check_accept(&daemon->reloader.config, clock_now(CLOCK_MONOTONIC));
        daemon->reexec.invocation = invocation;
        daemon->reexec.publish = publish;
        daemon->reexec.userdata = daemon;
        daemon->service.control = (struct control){
                .runtime = runtime,
                .settings = &daemon->reloader.age,
                .config = &daemon->reloader.config,
                .version = PACKAGE_VERSION,
                .instance = daemon->instance,
                .selector = daemon->selector,
                .started_at = clock_now(CLOCK_MONOTONIC),
                .reloader = &daemon->reloader,
                .reexec = &daemon->reexec,
        };
}

/* Continues everything that awaited the proc reader, which has answered or is late. */
static void on_facts(void *userdata)
{
        struct daemon *daemon = userdata;
        struct runtime *runtime = &daemon->runtime;

        exits_resume(runtime);
        poll_resume(runtime, clock_now(CLOCK_MONOTONIC));
        adopt_resume(runtime);
        wakeup_arm(&daemon->wakeup);
}

static int open_proc_facts(struct daemon *daemon)
{
        const struct proc_facts_ops ops = {.start = helper_start, .arrived = on_facts, .userdata = daemon};
        struct runtime *runtime = &daemon->runtime;

        int program_fd = own_program_open(PROC_READER_NAME, PROC_READER);
        if (program_fd < 0) {
                log_error("cannot open '" PROC_READER "': %s", strerrordesc_np(-program_fd));
                return program_fd;
        }
        return proc_facts_new(runtime->event, &runtime->children, program_fd, &ops, &runtime->proc_facts);
}

static int open_runtime(struct runtime *runtime, struct handover *handover)
{
        name_instance(runtime);
        runtime->handed = handover->list;
        runtime->n_handed = handover->n;
        runtime->status_parent = socket_path_status(runtime->world->settings->socket);
        if (!runtime->status_parent)
                return -ENOMEM;
        runtime->preload_script = own_program_path(PRELOAD_SCRIPT, "src/preload/sqmgr-preload.rb");
        runtime->outcomes_script = own_program_path(OUTCOMES_SCRIPT, "src/preload/sqmgr-outcomes.rb");
        runtime->shims = own_program_path(SHIM_FOLDER, "src/shims");
        runtime->world->shims = runtime->shims;
        if (!runtime->preload_script || !runtime->outcomes_script || !runtime->shims)
                return -ENOMEM;
        database_helpers_init(&runtime->database_helpers, &runtime->children, NULL);
        int r = launcher_prepare();
        if (r < 0) {
                log_error("cannot open '" START_PROGRAM "': %s", strerrordesc_np(-r));
                return r;
        }
        r = launch_raise_nofile(&runtime->nofile);
        return r < 0 ? r : proc_host_open(NULL, NULL, &runtime->host);
}

/* Takes over the workers of an earlier sqmgr, and connects to Redis. */
static int begin_runtime(struct daemon *daemon)
{
        struct runtime *runtime = &daemon->runtime;
        struct settings *settings = daemon->reloader.settings;

        /* Workers left behind by a wrapper are reparented to us, not to init. */
        int r = prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 ? -errno : 0;
        if (r >= 0)
                r = local_heartbeats_new(&runtime->local);
        if (r >= 0)
                r = links_make(runtime, settings);
        if (r < 0)
                return r;
        links_join(runtime);
        SUBSYSTEMS_CALL(&daemon->runtime.subsystems, join);
        r = adopt_begin(runtime, settings, clock_now(CLOCK_MONOTONIC));
        return r < 0 ? r : links_judge_crash(runtime, clock_now(CLOCK_MONOTONIC));
}

static int begin(struct daemon *daemon, const struct invocation *invocation, struct handover *handover)
{
        struct settings *settings = daemon->reloader.settings;
        uint64_t seed;
        int r;

        daemon->reloader.age.loaded_at = clock_now(CLOCK_REALTIME);
        state_load_boot_id(daemon->runtime.boot_id);
        if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
                return -errno;
        daemon->instance = locate_name(settings->socket, geteuid());
        bool is_found = locate_finds(settings->socket, getenv("XDG_RUNTIME_DIR"));
        daemon->selector = strdup(is_found && daemon->instance ? daemon->instance : settings->socket);
        if (!daemon->instance || !daemon->selector)
                return -ENOMEM;
        if ((r = sd_event_new(&daemon->runtime.event)) < 0 ||
            (r = world_new(settings, seed, &daemon->runtime.world)) < 0)
                return r;
        compose(daemon, invocation);
        if ((r = subsystems_begin(&daemon->runtime.subsystems, optional_features, &daemon->runtime)) < 0)
                return r;
        if ((r = open_runtime(&daemon->runtime, handover)) < 0 || (r = open_proc_facts(daemon)) < 0 ||
            (r = add_signals(daemon)) < 0 ||
            (r = wakeup_open(&daemon->wakeup, daemon->runtime.event, daemon->runtime.world, on_wakeup,
                             daemon)) < 0 ||
            (r = alerts_new(&daemon->runtime, ALERT_TIMEOUT_USEC, &daemon->alerts)) < 0 ||
            (r = service_start(&daemon->service, handover)) < 0)
                return r;
        daemon->reexec.server = daemon->service.server;
        if ((r = begin_runtime(daemon)) < 0)
                return r;
        check_nofile(daemon->runtime.world);
        service_continue(&daemon->service, handover);
        notify_ready(&daemon->notify);
        return 0;
}

static int run(struct daemon *daemon)
{
        int r;

        /* The loop itself allocates memory. After -ENOMEM it can continue, but may have lost a signal. */
        while ((r = sd_event_loop(daemon->runtime.event)) == -ENOMEM)
                (void)nanosleep(&(struct timespec){.tv_nsec = MEMORY_WAIT_NSEC}, NULL);
        (void)persist_save(&daemon->runtime, clock_now(CLOCK_MONOTONIC));
        order_writer_finish(&daemon->runtime.orders, clock_now(CLOCK_MONOTONIC));
        return r;
}

int supervisor_run(const struct invocation *invocation, struct settings *settings, struct handover *handover)
{
        struct daemon daemon = {.reloader.settings = settings,
                                .service = {.state_lock_fd = -1, .claim_fd = -1}};
        int r = begin(&daemon, invocation, handover);

        if (r >= 0)
                r = run(&daemon);
        /* With -EBUSY (another sqmgr holds the socket or the state file), a better reason was logged. */
        if (r < 0 && r != -EBUSY)
                log_error("sqmgr exits: %s", strerror(-r));
        end(&daemon);
        return r;
}
