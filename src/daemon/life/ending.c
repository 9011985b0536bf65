/* SPDX-License-Identifier: MIT */
/* How sqmgr ends. */
#include "daemon/life/ending.h"
#include "decide/command.h"
#include "io/clock.h"
#include "io/log.h"
#include "io/systemd.h"
#include "model/world.h"
#include <signal.h>
#include <string.h>

static void drain(struct ending *ending)
{
        struct world *world = ending->runtime->world;

        log_info("the workers are %s", world->shutting_down ? "stopped now" : "drained");
        systemd_tell("STOPPING=1");
        command_shutdown(world, clock_now(CLOCK_MONOTONIC));
        wakeup_arm(ending->runtime->wakeup);
}

static void end(struct ending *ending, enum systemd_intent intent)
{
        const struct settings *settings = ending->runtime->world->settings;
        /* Once the machine ends, nothing outlives us for long. */
        bool leave = intent == SYSTEMD_RESTARTS ||
                     (intent != SYSTEMD_SHUTS_DOWN && settings->on_stop == ON_STOP_LEAVE);

        if (!leave) {
                drain(ending);
                return;
        }
        log_info("the workers are left running%s",
                 intent == SYSTEMD_RESTARTS ? ": systemd starts sqmgr again" : "");
        systemd_tell("STOPPING=1");
        (void)sd_event_exit(ending->runtime->event, 0);
}

static void on_intent(enum systemd_intent intent, void *userdata)
{
        struct ending *ending = userdata;

        ending_forget(ending);
        if (intent == SYSTEMD_UNKNOWN)
                log_warning(
                        "systemd does not say whether it stops or restarts sqmgr: it is taken for a stop");
        end(ending, intent);
}

void ending_request(struct ending *ending, int signo)
{
        int r = -ENXIO;

        log_info("told to end by SIG%s", sigabbrev_np(signo));
        if (ending->runtime->world->shutting_down) {
                drain(ending);
                return;
        }
        if (ending->query) {
                ending_forget(ending);
                drain(ending);
                drain(ending);
                return;
        }
        if (signo == SIGTERM)
                r = systemd_ask(ending->runtime->event, on_intent, ending, &ending->query);
        if (r == -ENXIO)
                end(ending, SYSTEMD_UNKNOWN);
        else if (r < 0)
                on_intent(SYSTEMD_UNKNOWN, ending);
}

void ending_forget(struct ending *ending)
{
        ending->query = systemd_query_free(ending->query);
}
