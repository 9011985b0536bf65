/* SPDX-License-Identifier: MIT */
/* Publishes events and the status of sqmgr. */
#include "daemon/lifecycle/notify.h"
#include "base/parse.h"
#include "io/clock.h"
#include "io/log.h"
#include "io/systemd.h"
#include "model/counts.h"
#include "model/describe.h"
#include "model/world.h"
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#define STOP_EXTEND_USEC (60 * USEC_PER_SEC)

void notify_events(struct world *world, struct events *events, struct alerts *alerts)
{
        usec_t realtime = clock_now(CLOCK_REALTIME);

        for (size_t i = 0; i < world->n_events; i++) {
                log_event(&world->events[i]);
                events_add(events, &world->events[i], realtime);
                alerts_event(alerts, &world->events[i], realtime);
        }
        world_events_clear(world);
}

static void running_text(const struct world *world, usec_t now, char *text, size_t size)
{
        unsigned target = 0, active = 0, starting = 0, hung = 0, leaving = 0;

        WORLD_FOREACH_FLEET(world, fleet) {
                struct fleet_counts counts = fleet_count(fleet, now);

                target += fleet_target(fleet);
                active += counts.active;
                starting += counts.starting;
                hung += counts.hung;
                leaving += counts.quiet + counts.stopping;
        }
        int n = snprintf(text, size, "STATUS=%u of %u worker%s active, %u starting, %u draining", active,
                         target, plural(target), starting, leaving);
        if (hung > 0 && n > 0 && (size_t)n < size)
                snprintf(text + n, size - (size_t)n, ", %u hung", hung);
}

/* Extends the stop timeout of the unit while the loop runs: a drain may last longer. */
static void extend_stop(const struct settings *settings)
{
        usec_t more = 2 * settings->check_interval + STOP_EXTEND_USEC;
        char text[64];

        snprintf(text, sizeof(text), "EXTEND_TIMEOUT_USEC=%llu", (unsigned long long)more);
        systemd_notify(text);
}

void notify_systemd(struct notify *notify, const struct world *world, usec_t now)
{
        char text[sizeof(notify->status_text)], stopping[128];

        if (notify->watchdog_usec > 0 && now >= usec_add(notify->fed_at, notify->watchdog_usec / 4)) {
                systemd_notify("WATCHDOG=1");
                notify->fed_at = now;
        }
        if (world->shutting_down) {
                (void)snprintf(text, sizeof(text), "STATUS=Stopping: %s",
                               world_stopping_text(world, now, stopping, sizeof(stopping)));
                extend_stop(world->settings);
        } else {
                running_text(world, now, text, sizeof(text));
        }
        if (strcmp(text, notify->status_text) == 0)
                return;
        snprintf(notify->status_text, sizeof(notify->status_text), "%s", text);
        systemd_notify(text);
}

usec_t notify_wake_at(const struct notify *notify, usec_t now)
{
        return notify->watchdog_usec > 0 ? usec_add(now, notify->watchdog_usec / 4) : USEC_INFINITY;
}

void notify_ready(struct notify *notify)
{
        uint64_t watchdog_usec;

        if (sd_watchdog_enabled(false, &watchdog_usec) > 0)
                notify->watchdog_usec = watchdog_usec;
        systemd_notify("READY=1");
}
