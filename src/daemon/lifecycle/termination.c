/* SPDX-License-Identifier: MIT */
/* Ends sqmgr. */
#include "daemon/lifecycle/termination.h"
#include "decide/command.h"
#include "io/clock.h"
#include "io/log.h"
#include "io/systemd.h"
#include "model/world.h"
#include <signal.h>
#include <string.h>

static void drain(struct termination *termination)
{
        struct world *world = termination->runtime->world;

        log_info("%s all workers", world->shutting_down ? "stopping" : "draining");
        systemd_notify("STOPPING=1");
        command_shutdown(world, clock_now(CLOCK_MONOTONIC));
        wakeup_arm(termination->runtime->wakeup);
}

static void end(struct termination *termination, enum systemd_intent intent)
{
        const struct settings *settings = termination->runtime->world->settings;
        /* When the machine shuts down, workers cannot outlive sqmgr for long. */
        bool leave = intent == SYSTEMD_RESTARTS ||
                     (intent != SYSTEMD_SHUTS_DOWN && settings->on_stop == ON_STOP_LEAVE);

        if (!leave) {
                drain(termination);
                return;
        }
        log_info("workers are left running%s", intent == SYSTEMD_RESTARTS ? " (systemd restarts sqmgr)" : "");
        systemd_notify("STOPPING=1");
        (void)sd_event_exit(termination->runtime->event, 0);
}

static void on_intent(enum systemd_intent intent, void *userdata)
{
        struct termination *termination = userdata;

        termination_forget(termination);
        if (intent == SYSTEMD_UNKNOWN)
                log_warning("systemd does not report whether sqmgr is being stopped or restarted; assuming a "
                            "stop");
        end(termination, intent);
}

void termination_request(struct termination *termination, int signo)
{
        int r = -ENXIO;

        log_info("asked to exit by SIG%s", sigabbrev_np(signo));
        if (termination->runtime->world->shutting_down) {
                drain(termination);
                return;
        }
        if (termination->query) {
                termination_forget(termination);
                drain(termination);
                drain(termination);
                return;
        }
        if (signo == SIGTERM)
                r = systemd_ask(termination->runtime->event, on_intent, termination, &termination->query);
        if (r == -ENXIO)
                end(termination, SYSTEMD_UNKNOWN);
        else if (r < 0)
                on_intent(SYSTEMD_UNKNOWN, termination);
}

void termination_forget(struct termination *termination)
{
        termination->query = systemd_query_free(termination->query);
}
