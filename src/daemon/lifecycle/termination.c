/* SPDX-License-Identifier: MIT */
/* Ends sqmgr. */
#include "daemon/lifecycle/termination.h"
#include "decide/command.h"
#include "io/clock.h"
#include "io/log.h"
#include "io/systemd.h"
#include "model/world.h"

static void drain(struct runtime *runtime)
{
        struct world *world = runtime->world;

        log_info("%s all workers", world->shutting_down ? "stopping" : "draining");
        systemd_notify("STOPPING=1");
        command_shutdown(world, clock_now(CLOCK_MONOTONIC));
        wakeup_arm(runtime->wakeup);
}

static void end(struct runtime *runtime, enum systemd_intent intent)
{
        const struct settings *settings = runtime->world->settings;
        /* When the machine shuts down, workers cannot outlive sqmgr for long. */
        bool leave = intent == SYSTEMD_RESTARTS ||
                     (intent != SYSTEMD_SHUTS_DOWN && settings->on_stop == ON_STOP_LEAVE);

        if (!leave) {
                drain(runtime);
                return;
        }
        log_info("workers are left running%s", intent == SYSTEMD_RESTARTS ? " (systemd restarts sqmgr)" : "");
        systemd_notify("STOPPING=1");
        (void)sd_event_exit(runtime->event, 0);
}

static void on_intent(enum systemd_intent intent, void *userdata)
{
        struct runtime *runtime = userdata;

        termination_forget(runtime);
        if (intent == SYSTEMD_UNKNOWN)
                log_warning("systemd does not report whether sqmgr is being stopped or restarted; assuming a "
                            "stop");
        end(runtime, intent);
}

void termination_request(struct runtime *runtime, int signo)
{
        int r = -ENXIO;

        log_info("asked to exit by SIG%s", sigabbrev_np(signo));
        if (runtime->world->shutting_down) {
                drain(runtime);
                return;
        }
        if (runtime->end_query) {
                termination_forget(runtime);
                drain(runtime);
                drain(runtime);
                return;
        }
        if (signo == SIGTERM)
                r = systemd_ask(runtime->event, on_intent, runtime, &runtime->end_query);
        if (r == -ENXIO)
                end(runtime, SYSTEMD_UNKNOWN);
        else if (r < 0)
                on_intent(SYSTEMD_UNKNOWN, runtime);
}

void termination_forget(struct runtime *runtime)
{
        runtime->end_query = systemd_query_free(runtime->end_query);
}
