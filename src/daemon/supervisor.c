/* SPDX-License-Identifier: MIT */
/* Composes the daemon of its parts, and runs its loop: look, plan, execute, tell. */
#include "daemon/supervisor.h"
#include "base/hash.h"
#include "base/socket_path.h"
#include "daemon/life/alerts.h"
#include "daemon/life/ending.h"
#include "daemon/life/tell.h"
#include "daemon/poll/local_beats.h"
#include "daemon/poll/look.h"
#include "daemon/poll/pressure_watch.h"
#include "daemon/poll/status_files.h"
#include "daemon/poll/work_list.h"
#include "daemon/service.h"
#include "daemon/subsystems.h"
#include "daemon/takeover/adopt.h"
#include "daemon/workers/after_exit.h"
#include "daemon/workers/execute.h"
#include "daemon/workers/exits.h"
#include "daemon/workers/hold.h"
#include "daemon/workers/last_words.h"
#include "daemon/workers/rescue.h"
#include "daemon/workers/templates.h"
#include "io/clock.h"
#include "io/host.h"
#include "io/log.h"
#include "model/counts.h"
#include "model/fleets.h"
#include "model/preload.h"
#include "model/template.h"
#include "model/world.h"
#include "settings/operations.h"
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* One look at all workers of so many has a look at the queues, too. */
#define QUEUES_LOOK_EACH 6
#define MEMORY_WAIT_NSEC (100 * 1000 * 1000)

/* Each part stands behind those that it leans on: the end takes them down from the last to the first. */
struct supervisor {
        sd_event *event;
        struct world *world;
        struct turn turn;
        struct crew crew;
        struct reloader reloader; /* with the settings in force */
        struct keeper keeper;
        struct queue_reading queue_reading;
        struct pressure_watch pressure;
        struct alerts *alerts;
        struct ending ending;
        struct reexec reexec;
        struct service service;
        struct tell tell;
        bool grown; /* workers were started since memory was last given back */
};

static bool anything_lives(const struct world *world)
{
        for (size_t i = 0; i < world->n_fleets; i++)
                if (world->fleets[i]->n_workers > 0 || fleet_has_templates(world->fleets[i]))
                        return true;
        return false;
}

/* Fleets that are no longer configured, and have drained. What is being adopted may be theirs. */
static void forget_removed(struct supervisor *supervisor)
{
        struct settings *settings = supervisor->reloader.settings;
        struct world *world = supervisor->world;
        size_t n = world->n_fleets;

        if (supervisor->keeper.search || rescues_need_removed(&supervisor->crew))
                return;
        world_forget_removed(world);
        if (world->n_fleets == n)
                return;
        for (size_t i = settings->n_fleets; i-- > 0;)
                if (settings->fleets[i]->removed && !world_fleet(world, settings->fleets[i]->name))
                        settings_drop_removed(settings, i);
        links_join(&supervisor->crew.links);
        turn_changed(&supervisor->turn);
}

static void set_timer(struct supervisor *supervisor, usec_t now)
{
        struct pass *pass = &supervisor->turn.pass;
        usec_t at = pass_wake_at(pass, now);

        /* What many workers took while they started lies scattered among what stays. */
        if (pass->calm && supervisor->grown) {
                (void)malloc_trim(0);
                supervisor->grown = false;
        }
        turn_wake_at(&supervisor->turn, MIN(at, tell_wake_at(&supervisor->tell, now)));
}

static bool on_save(const struct plan *starting, usec_t now, void *userdata)
{
        struct supervisor *supervisor = userdata;

        return keeper_save(&supervisor->keeper, starting, now);
}

static bool on_action(const struct action *action, usec_t now, void *userdata)
{
        struct supervisor *supervisor = userdata;

        supervisor->grown |= action->kind == ACTION_START;
        return execute_action(&supervisor->crew, action, now);
}

static void look(struct supervisor *supervisor, usec_t now)
{
        struct pass *pass = &supervisor->turn.pass;
        enum pass_look due = pass_look(pass, now);

        if (due == PASS_LOOK_REGULAR && pass->n_regular % QUEUES_LOOK_EACH == 1)
                queue_reading_look(&supervisor->queue_reading);
        if (due == PASS_LOOK_REGULAR) {
                subsystems_poll(&supervisor->crew.subsystems, now);
                pressure_watch_look(&supervisor->pressure);
        }
        if (due != PASS_LOOK_NONE)
                look_run(&supervisor->crew, due == PASS_LOOK_FAST, now);
}

static void plan(struct supervisor *supervisor)
{
        static const struct pass_ops ops = {.save = on_save, .execute = on_action, .release = process_free};
        struct world *world = supervisor->world;
        struct control *control = supervisor->service.control;
        const struct pass_clocks clocks = {
                .monotonic = clock_now(CLOCK_MONOTONIC),
                .boottime = clock_now(CLOCK_BOOTTIME),
                .realtime = clock_now(CLOCK_REALTIME),
        };
        usec_t now = clocks.monotonic;

        pressure_watch_apply(&supervisor->pressure);
        if (queue_reading_turn(&supervisor->queue_reading))
                queue_calls_answer(&control->queue_calls, now);
        subsystems_observe(&supervisor->crew.subsystems, now);
        work_lists_turn(world);
        if (pass_run(&supervisor->turn.pass, &ops, &clocks, supervisor) < 0)
                log_error("memory is short: the plan is incomplete, and made again at the next look");
        subsystems_tick(&supervisor->crew.subsystems, now);
        tell_events(world, control->events, supervisor->alerts);
        forget_removed(supervisor);
        if (!supervisor->keeper.search)
                status_files_tidy(&supervisor->crew);
        control_tick(control, now);
        tell_systemd(&supervisor->tell, world, now);
        if (world->shutting_down && !anything_lives(world) && !rescues_hold_the_end(&supervisor->crew, now) &&
            (world->shutdown_now || !after_exits_run(&supervisor->crew)))
                (void)sd_event_exit(supervisor->event, 0);
        set_timer(supervisor, now);
}

static void on_turn(bool timer, void *userdata)
{
        struct supervisor *supervisor = userdata;
        struct tick_totals *ticks = &supervisor->turn.pass.ticks;
        usec_t begun = clock_now(CLOCK_MONOTONIC);

        if (timer)
                look(supervisor, begun);
        plan(supervisor);
        ticks->n++;
        ticks->usec += usec_sub(clock_now(CLOCK_MONOTONIC), begun);
}

static int on_end(sd_event_source *source _unused_, const struct signalfd_siginfo *info, void *userdata)
{
        struct supervisor *supervisor = userdata;

        ending_request(&supervisor->ending, (int)info->ssi_signo);
        return 0;
}

static int on_reload(sd_event_source *source _unused_, const struct signalfd_siginfo *info _unused_,
                     void *userdata)
{
        struct supervisor *supervisor = userdata;

        reload_by_signal(&supervisor->reloader);
        return 0;
}

static int on_reexec(sd_event_source *source _unused_, const struct signalfd_siginfo *info _unused_,
                     void *userdata)
{
        struct supervisor *supervisor = userdata;

        reexec_request(&supervisor->reexec, NULL);
        return 0;
}

static int on_child(sd_event_source *source _unused_, const struct signalfd_siginfo *info _unused_,
                    void *userdata)
{
        struct supervisor *supervisor = userdata;

        /* What is left has a signal of its own, which comes after all that waits now. */
        if (exits_sweep(&supervisor->crew))
                (void)kill(getpid(), SIGCHLD);
        return 0;
}

static int add_signals(struct supervisor *supervisor)
{
        sd_event *event = supervisor->event;
        struct sigaction inherited;
        sigset_t blocked;
        int r;

        sigemptyset(&blocked);
        sigaddset(&blocked, SIGCHLD);
        sigaddset(&blocked, SIGTERM);
        sigaddset(&blocked, SIGINT);
        sigaddset(&blocked, SIGHUP);
        sigaddset(&blocked, SIGUSR2);
        if (sigprocmask(SIG_BLOCK, &blocked, NULL) < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR ||
            sigaction(SIGCHLD, NULL, &inherited) < 0)
                return -errno;
        /* Whoever started us may have ignored SIGCHLD: then the kernel would keep no exit status for us. Else
         * it stays as it is: to set it drops the one that waits, after a re-exec. */
        if (inherited.sa_handler == SIG_IGN && signal(SIGCHLD, SIG_DFL) == SIG_ERR)
                return -errno;
        if ((r = sd_event_add_signal(event, NULL, SIGTERM, on_end, supervisor)) < 0 ||
            (r = sd_event_add_signal(event, NULL, SIGINT, on_end, supervisor)) < 0 ||
            (r = sd_event_add_signal(event, NULL, SIGHUP, on_reload, supervisor)) < 0 ||
            (r = sd_event_add_signal(event, NULL, SIGUSR2, on_reexec, supervisor)) < 0 ||
            (r = sd_event_add_signal(event, NULL, SIGCHLD, on_child, supervisor)) < 0)
                return r;
        return 0;
}

/* The processes of the workers are let go of, not ended. */
static void end_crew(struct crew *crew)
{
        const struct world *world = crew->world;

        last_words_forget(crew);
        after_exits_forget(crew);
        templates_forget(crew);
        for (size_t i = 0; world && i < world->n_fleets; i++)
                for (size_t j = 0; j < world->fleets[i]->n_workers; j++)
                        process_free(world->fleets[i]->workers[j]->handle);
        rescues_forget(crew);
        links_end(&crew->links);
        beats_free(crew->local);
        free(crew->status_parent);
        free(crew->preload_script);
        free(crew->handed);
        proc_host_close(crew->host);
}

struct supervisor *supervisor_free(struct supervisor *supervisor)
{
        if (!supervisor)
                return NULL;
        service_end(&supervisor->service);
        reexec_end(&supervisor->reexec);
        ending_forget(&supervisor->ending);
        alerts_free(supervisor->alerts);
        adopt_free(supervisor->keeper.search);
        subsystems_end(&supervisor->crew.subsystems);
        pressure_watch_close(&supervisor->pressure);
        end_crew(&supervisor->crew);
        turn_close(&supervisor->turn);
        world_free(supervisor->world);
        settings_free(supervisor->reloader.settings);
        sd_event_unref(supervisor->event);
        free(supervisor);
        return NULL;
}

DEFINE_CLEANUP(struct supervisor *, supervisor_free)

/* Workers carry the instance, and are known by it when the state is lost: so it follows from where the state
 * is, which no other sqmgr shares. */
static void name_instance(struct crew *crew)
{
        const char *path = crew->world->settings->state_file;

        snprintf(crew->instance, sizeof(crew->instance), "%016llx",
                 (unsigned long long)hash_bytes(HASH_INIT, path, strlen(path)));
}

/* Each worker takes some descriptors, of its process, its beat and its log, and a client one. */
static void check_nofile(const struct world *world)
{
        unsigned long long needed = 64 + SERVER_CONNECTIONS_MAX;
        struct rlimit limit;

        for (size_t i = 0; i < world->n_fleets; i++)
                needed += 5ULL * fleet_max_processes(world->fleets[i]);
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < needed)
                log_warning("the limit of %llu open files is low for these fleets: raise it to %llu "
                            "(LimitNOFILE= in "
                            "a systemd unit)",
                            (unsigned long long)limit.rlim_cur, needed);
}

/* Says to each part on which others it leans. */
static void compose(struct supervisor *supervisor, const struct invocation *invocation)
{
        sd_event *event = supervisor->event;
        struct crew *crew = &supervisor->crew;
        struct links *links = &crew->links;
        struct turn *turn = &supervisor->turn;
        struct keeper *keeper = &supervisor->keeper;

        crew->event = links->event = supervisor->ending.event = supervisor->reexec.event = event;
        crew->turn = links->turn = supervisor->ending.turn = turn;
        crew->world = links->world = supervisor->world;
        crew->pressure = &supervisor->pressure;
        supervisor->pressure.crew = crew;
        links->found = hold_beat;
        keeper->crew = crew;
        supervisor->reloader.config_path = invocation->config_path;
        supervisor->reloader.links = links;
        supervisor->reloader.subsystems = &supervisor->crew.subsystems;
        supervisor->queue_reading.links = links;
        supervisor->reexec.invocation = invocation;
        supervisor->reexec.crew = crew;
        supervisor->reexec.keeper = keeper;
        supervisor->reexec.ending = &supervisor->ending;
        supervisor->service.keeper = keeper;
        supervisor->service.reloader = &supervisor->reloader;
        supervisor->service.reexec = &supervisor->reexec;
        supervisor->service.queue_reading = &supervisor->queue_reading;
}

/* As it was installed; of one that was not, as it stands among its sources. NULL: memory is short. */
static char *preload_script(void)
{
        char program[PATH_MAX];
        char *script = NULL;

        ssize_t n =
                access(PRELOAD_SCRIPT, F_OK) == 0 ? 0 : readlink("/proc/self/exe", program, sizeof(program));
        char *slash = n > 0 ? memrchr(program, '/', (size_t)n) : NULL;
        if (!slash)
                return strdup(PRELOAD_SCRIPT);
        if (asprintf(&script, "%.*s/src/preload/sqmgr-preload.rb", (int)(slash - program), program) < 0)
                return NULL;
        return script;
}

/* Those that the image before has left, for adopt.c. */
static int take_templates(struct crew *crew, const struct handover *handover)
{
        crew->handed = calloc(handover->n_templates + 1, sizeof(*crew->handed));
        if (!crew->handed)
                return -ENOMEM;
        memcpy(crew->handed, handover->templates, handover->n_templates * sizeof(*crew->handed));
        crew->n_handed = handover->n_templates;
        return 0;
}

static int open_crew(struct crew *crew)
{
        name_instance(crew);
        crew->status_parent = socket_path_status(crew->world->settings->socket);
        if (!crew->status_parent)
                return -ENOMEM;
        crew->preload_script = preload_script();
        if (!crew->preload_script)
                return -ENOMEM;
        status_files_begin(crew);
        int r = launch_raise_nofile(&crew->nofile);
        return r < 0 ? r : proc_host_open(NULL, NULL, &crew->host);
}

static int begin_alerts(struct supervisor *supervisor)
{
        const struct alerts_options options = {
                .event = supervisor->event,
                .world = supervisor->world,
                .children = &supervisor->crew.children,
                .nofile = supervisor->crew.nofile,
        };

        return alerts_new(&options, &supervisor->alerts);
}

/* Takes over what there is: the workers of an earlier sqmgr, and their Redis. */
static int begin_crew(struct supervisor *supervisor)
{
        struct crew *crew = &supervisor->crew;
        struct settings *settings = supervisor->reloader.settings;

        /* Workers that a wrapper leaves behind come to us, not to init. */
        if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
                return -errno;
        int r = local_beats_new(&crew->local);
        if (r >= 0)
                r = links_make(&crew->links, settings);
        if (r < 0)
                return r;
        links_join(&crew->links);
        subsystems_join(&supervisor->crew.subsystems);
        return adopt_begin(crew, &supervisor->keeper, settings, clock_now(CLOCK_MONOTONIC));
}

int supervisor_new(const struct invocation *invocation, struct settings *settings,
                   const struct handover *handover, struct supervisor **ret)
{
        _cleanup_(supervisor_free_pointer) struct supervisor *supervisor = calloc(1, sizeof(*supervisor));
        uint64_t seed;
        int r;

        if (!supervisor) {
                settings_free(settings);
                return -ENOMEM;
        }
        supervisor->reloader.settings = settings;
        supervisor->reloader.age.loaded_at = clock_now(CLOCK_REALTIME);
        supervisor->service.state_lock_fd = -1;
        supervisor->service.started_at = clock_now(CLOCK_MONOTONIC);
        statefile_boot_id(supervisor->keeper.boot_id);
        if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
                return -errno;
        if ((r = sd_event_new(&supervisor->event)) < 0 ||
            (r = world_new(settings, seed, &supervisor->world)) < 0)
                return r;
        compose(supervisor, invocation);
        if ((r = subsystems_begin(&supervisor->crew.subsystems, subsystem_table, &supervisor->keeper)) < 0)
                return r;
        if ((r = open_crew(&supervisor->crew)) < 0 || (r = take_templates(&supervisor->crew, handover)) < 0 ||
            (r = add_signals(supervisor)) < 0 ||
            (r = turn_open(&supervisor->turn, supervisor->event, supervisor->world, on_turn, supervisor)) <
                    0 ||
            (r = begin_alerts(supervisor)) < 0 || (r = service_start(&supervisor->service, handover)) < 0)
                return r;
        supervisor->reexec.server = supervisor->service.server;
        if ((r = begin_crew(supervisor)) < 0)
                return r;
        check_nofile(supervisor->world);
        service_continue(&supervisor->service, handover);
        *ret = TAKE_PTR(supervisor);
        return 0;
}

int supervisor_run(struct supervisor *supervisor)
{
        int r;

        tell_ready(&supervisor->tell);
        /* The loop takes memory of its own. Where that is short it can go on, without a signal that it may
         * just have taken. */
        while ((r = sd_event_loop(supervisor->event)) == -ENOMEM)
                (void)nanosleep(&(struct timespec){.tv_nsec = MEMORY_WAIT_NSEC}, NULL);
        (void)keeper_save(&supervisor->keeper, NULL, clock_now(CLOCK_MONOTONIC));
        return r;
}
