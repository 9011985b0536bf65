/* SPDX-License-Identifier: MIT */
/* Watches memory pressure; see the header. */
#include "daemon/poll/pressure_watch.h"
#include "decide/pressure_response.h"
#include "io/clock.h"
#include "io/host.h"
#include "io/log.h"
#include "io/psi.h"
#include "model/world.h"
#include <string.h>
#include <sys/epoll.h>

/* The kernel updates its averages this often. */
#define READ_USEC (2 * USEC_PER_SEC)
/* After this time, a single burst has no effect on avg10 any more. */
#define NO_PRESSURE_USEC (60 * USEC_PER_SEC)

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata);

/* Returns false if any value is not known. */
static bool take_reading(const struct pressure_watch *watch, struct pressure_reading *ret)
{
        const struct proc_host *host = watch->runtime->host;
        char text[256];

        return psi_read(watch->psi, text, sizeof(text)) > 0 && pressure_parse(text, ret) &&
               proc_available_memory_bytes(host, &ret->available_bytes) == 0 &&
               proc_total_memory_bytes(host, &ret->total_bytes) == 0;
}

static void read_again(struct pressure_watch *watch)
{
        int r = 0;

        if (!watch->timer)
                r = sd_event_add_time_relative(watch->runtime->event, &watch->timer, CLOCK_MONOTONIC,
                                               READ_USEC, 0, on_timer, watch);
        else if ((r = sd_event_source_set_time_relative(watch->timer, READ_USEC)) >= 0)
                r = sd_event_source_set_enabled(watch->timer, SD_EVENT_ONESHOT);
        /* On failure, the next poll or the next event of the kernel tries again. */
        if (r < 0)
                watch->timer = sd_event_source_disable_unref(watch->timer);
}

static void observe(struct pressure_watch *watch)
{
        struct world *world = watch->runtime->world;
        usec_t now = clock_now(CLOCK_MONOTONIC);
        struct pressure_reading reading = {0};
        bool known = take_reading(watch, &reading);

        observe_pressure(world, known ? &reading : NULL, now);
        if (world->pressure.high || world->pressure.turned_at != 0 ||
            (known && reading.avg10 > world->settings->pressure_limit * 100))
                watch->no_pressure_at = 0;
        else if (watch->no_pressure_at == 0)
                watch->no_pressure_at = now;
        if (watch->no_pressure_at == 0 || now < usec_add(watch->no_pressure_at, NO_PRESSURE_USEC))
                read_again(watch);
        wakeup_arm(watch->runtime->wakeup);
}

static int on_timer(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        observe(userdata);
        return 0;
}

static bool is_awake(const struct pressure_watch *watch)
{
        return watch->timer && sd_event_source_get_enabled(watch->timer, NULL) > 0;
}

static int on_trigger(sd_event_source *source, int fd _unused_, uint32_t events, void *userdata)
{
        struct pressure_watch *watch = userdata;

        /* The control group was removed, and we were moved out of it. */
        if (events & EPOLLERR) {
                watch->trigger = sd_event_source_disable_unref(source);
                return 0;
        }
        watch->no_pressure_at = 0;
        if (!is_awake(watch))
                observe(watch);
        return 0;
}

void pressure_watch_close(struct pressure_watch *watch)
{
        watch->trigger = sd_event_source_disable_unref(watch->trigger);
        watch->timer = sd_event_source_disable_unref(watch->timer);
        watch->psi = psi_close(watch->psi);
        watch->no_pressure_at = 0;
}

static void begin(struct pressure_watch *watch, unsigned limit)
{
        int r = psi_open(NULL, NULL, limit, &watch->psi);

        if (r < 0) {
                log_warning(
                        "cannot monitor memory pressure: %s; pressure_limit has no effect",
                        r == -EOPNOTSUPP || r == -ENOENT
                                ? "the kernel does not measure it (CONFIG_PSI is needed, and psi=1 at boot)"
                                : strerrordesc_np(-r));
                /* Reset the observed pressure: a shortage seen by an earlier sqmgr or with another limit
                 * would stay forever. */
                observe_pressure(watch->runtime->world, NULL, clock_now(CLOCK_MONOTONIC));
                return;
        }
        /* A plain file has no events. */
        if (psi_trigger_fd(watch->psi) >= 0 &&
            sd_event_add_io(watch->runtime->event, &watch->trigger, psi_trigger_fd(watch->psi), EPOLLPRI,
                            on_trigger, watch) < 0)
                watch->trigger = NULL;
        log_info("monitoring memory pressure: %s, %s", psi_path(watch->psi),
                 watch->trigger ? "notified by the kernel" : "read with each check");
        /* Pressure may exist already. */
        observe(watch);
}

void pressure_watch_apply(struct pressure_watch *watch)
{
        struct world *world = watch->runtime->world;
        unsigned limit = world->settings->pressure_limit;

        if (limit == watch->limit)
                return;
        pressure_watch_close(watch);
        watch->limit = limit;
        if (limit == 0)
                observe_pressure(world, &(struct pressure_reading){0}, clock_now(CLOCK_MONOTONIC));
        else
                begin(watch, limit);
}

void pressure_watch_poll(struct pressure_watch *watch)
{
        if (watch->psi && !watch->trigger && !is_awake(watch))
                observe(watch);
}

const char *pressure_watch_path(const struct pressure_watch *watch)
{
        return watch->psi ? psi_path(watch->psi) : NULL;
}
