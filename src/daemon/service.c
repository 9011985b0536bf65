/* SPDX-License-Identifier: MIT */
/* The control socket's view of the daemon. */
#include "daemon/service.h"
#include "config.h"
#include "daemon/api/listen.h"
#include "io/clock.h"
#include "io/log.h"
#include "io/place.h"
#include "io/users.h"
#include "model/fleet.h"
#include "model/world.h"
#include <grp.h>

/* Its members may look, by read_socket: of sysusers.d. */
#define READERS "sqmgr-read"

static int on_control_reload(void *userdata, const struct orderer *by, char ***ret_lines)
{
        const struct service *service = userdata;

        return reload_settings(service->reloader, by, ret_lines);
}

static void on_control_reexec(void *userdata, struct call *call)
{
        const struct service *service = userdata;

        reexec_request(service->reexec, call);
}

static void on_control_queues(void *userdata, struct call *call)
{
        struct service *service = userdata;

        queue_calls_add(&service->queue_calls, call, QUEUE_QUESTION_QUEUES, clock_now(CLOCK_MONOTONIC));
}

static void on_control_metrics(void *userdata, struct call *call)
{
        struct service *service = userdata;

        queue_calls_add(&service->queue_calls, call, QUEUE_QUESTION_METRICS, clock_now(CLOCK_MONOTONIC));
}

static void on_control_jobs(void *userdata, struct call *call, struct fleet *const *fleets, size_t n_fleets)
{
        struct service *service = userdata;

        jobs_calls_add(&service->jobs_calls, call, fleets, n_fleets, clock_now(CLOCK_MONOTONIC));
}

void service_diagnose(struct call *call, void *userdata)
{
        const struct service *service = userdata;

        doctor_request(service->keeper, &service->readers, service->groups, call);
}

/* Of fleets whose counts follow queues these are read before. */
static void on_control_doctor(void *userdata, struct call *call)
{
        struct service *service = userdata;
        const struct world *world = service->keeper->crew->world;
        bool scales = false;

        for (size_t i = 0; i < world->n_fleets; i++)
                scales |= fleet_scales(world->fleets[i]);
        if (scales)
                queue_calls_add(&service->queue_calls, call, QUEUE_QUESTION_DOCTOR,
                                clock_now(CLOCK_MONOTONIC));
        else
                service_diagnose(call, service);
}

static size_t on_control_redis(void *userdata, struct status_redis *entries, size_t max)
{
        const struct service *service = userdata;
        const struct links *links = &service->keeper->crew->links;
        size_t n = MIN(max, links->n);

        for (size_t i = 0; i < n; i++) {
                const struct redis *redis = links->list[i]->redis;
                usec_t rtt_usec = redis_rtt_usec(redis);

                entries[i] = (struct status_redis){
                        .url = redis_url_text(redis),
                        .server = redis_server_text(redis),
                        .state = redis_state_name(redis_state(redis)),
                        .error = redis_error(redis),
                        .queues = links->list[i]->queues,
                        .rtt_ms = rtt_usec == 0 ? -1 : (double)rtt_usec / (double)USEC_PER_MSEC,
                };
        }
        return n;
}

static uint64_t on_control_serial(void *userdata)
{
        const struct service *service = userdata;

        return service->keeper->crew->turn->pass.serial;
}

static void on_control_changed(void *userdata)
{
        const struct service *service = userdata;

        turn_changed(service->keeper->crew->turn);
        /* Before the reply: who was told that an order is recorded finds it again. */
        keeper_save_now(service->keeper, clock_now(CLOCK_MONOTONIC));
}

static usec_t on_control_now(void *userdata _unused_)
{
        return clock_now(CLOCK_MONOTONIC);
}

/* Workers are not left alone because nobody can look at them: what goes wrong is told. */
static void open_view(struct service *service, int inherited)
{
        struct listener_place place = {
                .path = settings_read_socket(service->keeper->crew->world->settings),
                .mode = 0600,
                .group = CONTROL_NO_GROUP,
                .inherited = inherited,
        };
        char error[512];

        if (!place.path) {
                listener_drop(inherited);
                return;
        }
        if (users_group(READERS, &place.group) && (geteuid() == 0 || group_member(place.group))) {
                place.mode = 0660;
                service->readers.group = READERS;
        } else {
                place.group = CONTROL_NO_GROUP;
        }
        service->readers.may_connect = server_open_view(service->server, &place, error, sizeof(error)) == 0;
        if (!service->readers.may_connect)
                log_error("read_socket: %s, nobody can look there until sqmgr is restarted", error);
}

int service_start(struct service *service, const struct handover *handover)
{
        const struct crew *crew = service->keeper->crew;
        const struct settings *settings = crew->world->settings;
        struct control_host host = {
                .world = crew->world,
                .event = crew->event,
                .version = PACKAGE_VERSION,
                .started_at = service->started_at,
                .ticks = &crew->turn->pass.ticks,
                .settings = &service->reloader->age,
                .groups = service->groups,
                .reload = on_control_reload,
                .reexec = on_control_reexec,
                .queues = on_control_queues,
                .metrics = on_control_metrics,
                .jobs = on_control_jobs,
                .doctor = on_control_doctor,
                .redis = on_control_redis,
                .serial = on_control_serial,
                .changed = on_control_changed,
                .now = on_control_now,
                .userdata = service,
        };
        struct server_options options = {
                .path = settings->socket,
                .mode = settings->socket_mode,
                .group = CONTROL_NO_GROUP,
                .group_name = settings->socket_group,
                .version = PACKAGE_VERSION,
                .listen_fd = handover->listen_fd,
                .handle = control_handle,
        };
        char error[512];

        if (settings->socket_group) {
                const struct group *group = getgrnam(settings->socket_group);

                if (!group) {
                        log_error("socket_group '%s' does not exist", settings->socket_group);
                        return -ENOENT;
                }
                options.group = group->gr_gid;
        }
        int r = control_new(&host, &service->control);
        if (r < 0)
                return r;
        options.userdata = service->control;
        r = server_new(crew->event, &options, &service->server, error, sizeof(error));
        if (r >= 0)
                open_view(service, handover->view_fd);
        if (r >= 0)
                r = place_explain(settings->state_file, error, sizeof(error));
        if (r >= 0)
                r = listener_lock(settings->state_file, &service->state_lock_fd, error, sizeof(error));
        if (r < 0)
                log_error("%s", error);
        return r;
}

void service_continue(struct service *service, const struct handover *handover)
{
        if (handover->taken)
                log_info("re-exec: sqmgr " PACKAGE_VERSION " has taken over");
        for (size_t i = 0; i < handover->n_idle; i++)
                server_continue(service->server, handover->idle[i], NULL);
        for (size_t i = 0; i < handover->n_callers; i++)
                server_continue(service->server, handover->callers[i],
                                control_reexec_reply(service->control));
}

void service_end(struct service *service)
{
        service->server = server_free(service->server);
        service->control = control_free(service->control);
        queue_calls_forget(&service->queue_calls, USEC_INFINITY);
        service->state_lock_fd = close_fd(service->state_lock_fd);
}
