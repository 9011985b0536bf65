/* SPDX-License-Identifier: MIT */
/* The loop: look, plan, execute, tell. */
#include "daemon/supervisor.h"
#include "base/hash.h"
#include "daemon/api/handover.h"
#include "io/clock.h"
#include "io/log.h"
#include "model/command.h"
#include "model/observe.h"
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <systemd/sd-daemon.h>
#include <time.h>

/* One look at all workers of so many has a look at the queues, too. */
#define QUEUES_LOOK_EACH 6
/* Timers may be late by this much, so that the machine may sleep on. */
#define TIMER_ACCURACY_USEC (5 * USEC_PER_MSEC)
#define MEMORY_WAIT_NSEC    (100 * 1000 * 1000)
/* Beyond two looks, so much more time is asked of systemd while the workers drain at the end. */
#define STOP_EXTEND_USEC (60 * USEC_PER_SEC)

void supervisor_arm_turn(struct supervisor *supervisor)
{
        (void)sd_event_source_set_enabled(supervisor->turn, SD_EVENT_ONESHOT);
}

static void tell_events(struct supervisor *supervisor)
{
        struct world *world = supervisor->world;
        usec_t realtime = clock_now(CLOCK_REALTIME);

        for (size_t i = 0; i < world->n_events; i++) {
                log_event(&world->events[i]);
                control_event(supervisor->control, &world->events[i], realtime);
                alerts_event(supervisor->alerts, &world->events[i], realtime);
        }
        world_events_clear(world);
}

/* How the end comes forward. */
static void stopping_text(const struct world *world, usec_t now, char *text, size_t size)
{
        usec_t left = usec_sub(usec_add(world->shutdown_at, world->settings->shutdown_timeout), now);
        unsigned workers = 0, jobs = 0;

        for (size_t i = 0; i < world->n_fleets; i++) {
                struct fleet_counts counts = fleet_count(world->fleets[i], now);

                workers += counts.live;
                jobs += counts.busy;
        }
        int n = snprintf(text, size, "STATUS=Stopping: %u worker%s left, %u running job%s, ", workers,
                         workers == 1 ? "" : "s", jobs, jobs == 1 ? "" : "s");
        if (n < 0 || (size_t)n >= size)
                return;
        if (world->shutdown_now || left == 0)
                snprintf(text + n, size - (size_t)n, "all told to exit");
        else
                snprintf(text + n, size - (size_t)n, "%llu s until all are told to exit",
                         (unsigned long long)((left + USEC_PER_SEC - 1) / USEC_PER_SEC));
}

static void running_text(const struct world *world, usec_t now, char *text, size_t size)
{
        unsigned target = 0, active = 0, starting = 0, hung = 0, leaving = 0;

        for (size_t i = 0; i < world->n_fleets; i++) {
                const struct fleet *fleet = world->fleets[i];
                struct fleet_counts counts = fleet_count(fleet, now);

                target += fleet_target(fleet);
                active += counts.active;
                starting += counts.starting;
                hung += counts.hung;
                leaving += counts.quiet + counts.stopping;
        }
        int n = snprintf(text, size, "STATUS=%u of %u worker%s active, %u starting, %u draining", active,
                         target, target == 1 ? "" : "s", starting, leaving);
        if (hung > 0 && n > 0 && (size_t)n < size)
                snprintf(text + n, size - (size_t)n, ", %u hung", hung);
}

static void tell_systemd(struct supervisor *supervisor, usec_t now)
{
        const struct world *world = supervisor->world;
        char text[sizeof(supervisor->status_text)];

        if (supervisor->watchdog_usec > 0 &&
            now >= usec_add(supervisor->fed_at, supervisor->watchdog_usec / 4)) {
                systemd_tell("WATCHDOG=1");
                supervisor->fed_at = now;
        }
        if (world->shutting_down) {
                stopping_text(world, now, text, sizeof(text));
                /* A drain may last longer than the unit allows for its stop: as long as we turn it may. */
                usec_t more = 2 * supervisor->settings->check_interval + STOP_EXTEND_USEC;
                char extend[64];
                snprintf(extend, sizeof(extend), "EXTEND_TIMEOUT_USEC=%llu", (unsigned long long)more);
                systemd_tell(extend);
        } else {
                running_text(world, now, text, sizeof(text));
        }
        if (strcmp(text, supervisor->status_text) == 0)
                return;
        snprintf(supervisor->status_text, sizeof(supervisor->status_text), "%s", text);
        systemd_tell(text);
}

static bool anything_lives(const struct world *world)
{
        for (size_t i = 0; i < world->n_fleets; i++)
                if (world->fleets[i]->n_workers > 0)
                        return true;
        return false;
}

/* Fleets that are no longer configured, and have drained. What is being adopted may be theirs. */
static void forget_removed(struct supervisor *supervisor)
{
        struct settings *settings = supervisor->settings;
        size_t n = supervisor->world->n_fleets;

        if (supervisor->adoption != NULL || rescues_need_removed(supervisor))
                return;
        world_forget_removed(supervisor->world);
        if (supervisor->world->n_fleets == n)
                return;
        for (size_t i = settings->n_fleets; i-- > 0;)
                if (settings->fleets[i]->removed &&
                    world_fleet(supervisor->world, settings->fleets[i]->name) == NULL)
                        settings_drop_removed(settings, i);
        links_join(supervisor);
        supervisor->pass.serial++;
        supervisor->pass.unsaved = true;
        supervisor_arm_turn(supervisor);
}

static void set_timer(struct supervisor *supervisor, usec_t now)
{
        usec_t at = pass_wake_at(&supervisor->pass, now);

        /* What many workers took while they started lies scattered among what stays. */
        if (supervisor->pass.calm && supervisor->grown) {
                (void)malloc_trim(0);
                supervisor->grown = false;
        }
        if (supervisor->watchdog_usec > 0)
                at = MIN(at, usec_add(now, supervisor->watchdog_usec / 4));
        (void)sd_event_source_set_time(supervisor->timer, at);
        (void)sd_event_source_set_enabled(supervisor->timer, SD_EVENT_ONESHOT);
}

static bool on_save(const struct plan *starting, usec_t now, void *userdata)
{
        return keep(userdata, starting, now);
}

static bool on_action(const struct action *action, usec_t now, void *userdata)
{
        struct supervisor *supervisor = userdata;

        supervisor->grown |= action->kind == ACTION_START;
        return execute(supervisor, action, now);
}

/* A pass that began at begun. */
static void turn(struct supervisor *supervisor, usec_t begun)
{
        static const struct pass_ops ops = {.save = on_save, .execute = on_action, .release = worker_io_free};
        const struct world *world = supervisor->world;
        const struct pass_clocks clocks = {
                .monotonic = clock_now(CLOCK_MONOTONIC),
                .boottime = clock_now(CLOCK_BOOTTIME),
                .realtime = clock_now(CLOCK_REALTIME),
        };
        usec_t now = clocks.monotonic;

        queues_turn(supervisor);
        work_lists_turn(supervisor);
        if (pass_run(&supervisor->pass, &ops, &clocks, supervisor) < 0)
                log_error("memory is short: the plan is incomplete, and made again at the next look");
        tell_events(supervisor);
        forget_removed(supervisor);
        control_tick(supervisor->control, now);
        tell_systemd(supervisor, now);
        if (world->shutting_down && !anything_lives(world) && !rescues_hold_the_end(supervisor, now))
                (void)sd_event_exit(supervisor->event, 0);
        set_timer(supervisor, now);
        supervisor->pass.ticks.n++;
        supervisor->pass.ticks.usec += usec_sub(clock_now(CLOCK_MONOTONIC), begun);
}

static int on_turn(sd_event_source *source, void *userdata)
{
        (void)source;
        turn(userdata, clock_now(CLOCK_MONOTONIC));
        return 0;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct supervisor *supervisor = userdata;
        usec_t now = clock_now(CLOCK_MONOTONIC);

        (void)source, (void)usec;
        enum pass_look due = pass_look(&supervisor->pass, now);
        if (due == PASS_LOOK_REGULAR && supervisor->pass.n_regular % QUEUES_LOOK_EACH == 1)
                queues_look(supervisor);
        if (due != PASS_LOOK_NONE)
                look(supervisor, due == PASS_LOOK_FAST, now);
        turn(supervisor, now);
        return 0;
}

static void drain(struct supervisor *supervisor)
{
        log_info("the workers are %s", supervisor->world->shutting_down ? "stopped now" : "drained");
        systemd_tell("STOPPING=1");
        command_shutdown(supervisor->world, clock_now(CLOCK_MONOTONIC));
        supervisor_arm_turn(supervisor);
}

static void end(struct supervisor *supervisor, enum systemd_intent intent)
{
        /* Once the machine ends, nothing outlives us for long. */
        bool leave = intent == SYSTEMD_RESTARTS ||
                     (intent != SYSTEMD_SHUTS_DOWN && supervisor->settings->on_stop == ON_STOP_LEAVE);

        if (!leave) {
                drain(supervisor);
                return;
        }
        log_info("the workers are left running%s",
                 intent == SYSTEMD_RESTARTS ? ": systemd starts sqmgr again" : "");
        systemd_tell("STOPPING=1");
        (void)sd_event_exit(supervisor->event, 0);
}

static void on_intent(enum systemd_intent intent, void *userdata)
{
        struct supervisor *supervisor = userdata;

        supervisor->query = systemd_query_free(supervisor->query);
        if (intent == SYSTEMD_UNKNOWN)
                log_warning(
                        "systemd does not say whether it stops or restarts sqmgr: it is taken for a stop");
        end(supervisor, intent);
}

static int on_end(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        struct supervisor *supervisor = userdata;
        int r = -ENXIO;

        (void)source;
        log_info("told to end by SIG%s", sigabbrev_np((int)info->ssi_signo));
        if (supervisor->world->shutting_down) {
                drain(supervisor);
        } else if (supervisor->query != NULL) {
                supervisor->query = systemd_query_free(supervisor->query);
                drain(supervisor);
                drain(supervisor);
        } else {
                if (info->ssi_signo == SIGTERM)
                        r = systemd_ask(supervisor->event, on_intent, supervisor, &supervisor->query);
                if (r == -ENXIO)
                        end(supervisor, SYSTEMD_UNKNOWN);
                else if (r < 0)
                        on_intent(SYSTEMD_UNKNOWN, supervisor);
        }
        return 0;
}

static int on_reload(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        struct supervisor *supervisor = userdata;
        char **lines = NULL;
        int r = reload(supervisor, &lines);

        (void)source, (void)info;
        if (r < 0)
                log_error("cannot reload: %s, the old settings stay in force", strerror(-r));
        else if (r > 0)
                log_error("'%s' is refused, the old settings stay in force", supervisor->config_path);
        for (char **line = lines; line != NULL && *line != NULL; line++) {
                log_write(r > 0 ? LOG_ERR : LOG_INFO, "reload: %s", *line);
                free(*line);
        }
        free(lines);
        supervisor_arm_turn(supervisor);
        return 0;
}

static int on_reexec(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        (void)source, (void)info;
        reexec_request(userdata, NULL);
        return 0;
}

static int on_child(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        (void)source, (void)info;
        worker_io_sweep(userdata);
        return 0;
}

static int add_sources(struct supervisor *supervisor)
{
        sd_event *event = supervisor->event;
        sigset_t blocked;
        int r;

        sigemptyset(&blocked);
        sigaddset(&blocked, SIGCHLD);
        sigaddset(&blocked, SIGTERM);
        sigaddset(&blocked, SIGINT);
        sigaddset(&blocked, SIGHUP);
        sigaddset(&blocked, SIGUSR2);
        if (sigprocmask(SIG_BLOCK, &blocked, NULL) < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
                return -errno;
        if ((r = sd_event_add_signal(event, NULL, SIGTERM, on_end, supervisor)) < 0 ||
            (r = sd_event_add_signal(event, NULL, SIGINT, on_end, supervisor)) < 0 ||
            (r = sd_event_add_signal(event, NULL, SIGHUP, on_reload, supervisor)) < 0 ||
            (r = sd_event_add_signal(event, NULL, SIGUSR2, on_reexec, supervisor)) < 0 ||
            (r = sd_event_add_signal(event, NULL, SIGCHLD, on_child, supervisor)) < 0 ||
            (r = sd_event_add_defer(event, &supervisor->turn, on_turn, supervisor)) < 0 ||
            (r = sd_event_add_time(event, &supervisor->timer, CLOCK_MONOTONIC, 0, TIMER_ACCURACY_USEC,
                                   on_timer, supervisor)) < 0)
                return r;
        return 0;
}

struct supervisor *supervisor_free(struct supervisor *supervisor)
{
        if (supervisor == NULL)
                return NULL;
        service_end(supervisor);
        queues_end(supervisor);
        alerts_free(supervisor->alerts);
        reexec_free(supervisor->reexec);
        systemd_query_free(supervisor->query);
        adoption_free(supervisor->adoption);
        last_lines_forget(supervisor);
        for (size_t i = 0; supervisor->world != NULL && i < supervisor->world->n_fleets; i++) {
                struct fleet *fleet = supervisor->world->fleets[i];

                for (size_t j = 0; j < fleet->n_workers; j++)
                        worker_io_free(fleet->workers[j]->process);
        }
        links_free(supervisor);
        rescues_forget(supervisor);
        pass_end(&supervisor->pass);
        world_free(supervisor->world);
        settings_free(supervisor->settings);
        proc_host_close(supervisor->host);
        sd_event_source_disable_unref(supervisor->turn);
        sd_event_source_disable_unref(supervisor->timer);
        sd_event_unref(supervisor->event);
        free(supervisor);
        return NULL;
}

static void supervisor_free_pointer(struct supervisor **supervisor)
{
        supervisor_free(*supervisor);
}

/* Workers carry the instance, and are known by it when the state is lost: so it follows from where the state
 * is, which no other sqmgr shares. */
static void name_instance(struct supervisor *supervisor)
{
        const char *path = supervisor->settings->state_file;

        snprintf(supervisor->instance, sizeof(supervisor->instance), "%016llx",
                 (unsigned long long)hash_bytes(HASH_INIT, path, strlen(path)));
}

/* Each worker takes some descriptors, of its process, its beat and its log, and a client one. */
static void check_nofile(const struct supervisor *supervisor)
{
        unsigned long long needed = 64 + SERVER_CONNECTIONS_MAX;
        struct rlimit limit;

        for (size_t i = 0; i < supervisor->world->n_fleets; i++)
                needed += 5ULL * fleet_max_processes(supervisor->world->fleets[i]);
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < needed)
                log_warning("the limit of %llu open files is low for these fleets: raise it to %llu "
                            "(LimitNOFILE= in "
                            "a systemd unit)",
                            (unsigned long long)limit.rlim_cur, needed);
}

int supervisor_new(const struct invocation *invocation, struct settings *settings,
                   const struct handover *handover, struct supervisor **ret)
{
        _cleanup_(supervisor_free_pointer) struct supervisor *supervisor = calloc(1, sizeof(*supervisor));
        uint64_t seed;
        int r;

        if (supervisor == NULL) {
                settings_free(settings);
                return -ENOMEM;
        }
        supervisor->settings = settings;
        supervisor->state_lock_fd = -1;
        supervisor->invocation = invocation;
        supervisor->config_path = invocation->config_path;
        supervisor->started_at = clock_now(CLOCK_MONOTONIC);
        statefile_boot_id(supervisor->boot_id);
        name_instance(supervisor);
        if (gethostname(supervisor->host_name, sizeof(supervisor->host_name) - 1) < 0 ||
            getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
                return -errno;
        if ((r = launch_raise_nofile(&supervisor->nofile)) < 0 ||
            (r = proc_host_open(NULL, NULL, &supervisor->host)) < 0 ||
            (r = sd_event_new(&supervisor->event)) < 0 || (r = add_sources(supervisor)) < 0 ||
            (r = world_new(settings, seed, &supervisor->world)) < 0)
                return r;
        supervisor->pass.world = supervisor->world;
        if ((r = alerts_new(
                     &(struct alerts_options){
                             .event = supervisor->event,
                             .world = supervisor->world,
                             .children = &supervisor->children,
                             .nofile = supervisor->nofile,
                     },
                     &supervisor->alerts)) < 0 ||
            (r = queues_begin(supervisor)) < 0 || (r = service_start(supervisor, handover)) < 0)
                return r;
        /* Workers that a wrapper leaves behind come to us, not to init. */
        if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
                return -errno;
        r = links_make(supervisor, settings);
        if (r < 0)
                return r;
        links_join(supervisor);
        r = adopt(supervisor, clock_now(CLOCK_MONOTONIC));
        if (r < 0)
                return r;
        check_nofile(supervisor);
        service_continue(supervisor, handover);
        *ret = TAKE_PTR(supervisor);
        return 0;
}

int supervisor_run(struct supervisor *supervisor)
{
        uint64_t watchdog_usec;
        int r;

        if (sd_watchdog_enabled(false, &watchdog_usec) > 0)
                supervisor->watchdog_usec = watchdog_usec;
        systemd_tell("READY=1");
        /* The loop takes memory of its own. Where that is short it can go on, without a signal that it may
         * just have taken. */
        while ((r = sd_event_loop(supervisor->event)) == -ENOMEM)
                (void)nanosleep(&(struct timespec){.tv_nsec = MEMORY_WAIT_NSEC}, NULL);
        (void)keep(supervisor, NULL, clock_now(CLOCK_MONOTONIC));
        return r;
}
