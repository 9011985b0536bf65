/* SPDX-License-Identifier: MIT */
/* The control socket's view of the daemon. */
#include "config.h"
#include "daemon/api/handover.h"
#include "daemon/api/jobs.h"
#include "daemon/api/listen.h"
#include "daemon/supervisor.h"
#include "io/clock.h"
#include "io/log.h"
#include <grp.h>

static int on_control_reload(void *userdata, char ***ret_lines)
{
        return reload(userdata, ret_lines);
}

static void on_control_reexec(void *userdata, struct call *call)
{
        reexec_request(userdata, call);
}

static void on_control_queues(void *userdata, struct call *call)
{
        queues_request(userdata, call, false);
}

static void on_control_metrics(void *userdata, struct call *call)
{
        queues_request(userdata, call, true);
}

static void on_control_jobs(void *userdata, struct call *call, struct fleet *const *fleets, size_t n_fleets)
{
        (void)userdata;
        jobs_reply(call, fleets, n_fleets);
}

static void on_control_doctor(void *userdata, struct call *call)
{
        doctor_request(userdata, call);
}

static size_t on_control_redis(void *userdata, struct status_redis *entries, size_t max)
{
        const struct supervisor *supervisor = userdata;
        size_t n = MIN(max, supervisor->n_links);

        for (size_t i = 0; i < n; i++) {
                const struct redis *redis = supervisor->links[i]->redis;
                usec_t rtt_usec = redis_rtt_usec(redis);

                entries[i] = (struct status_redis){
                        .url = redis_url_text(redis),
                        .server = redis_server_text(redis),
                        .state = redis_state_name(redis_state(redis)),
                        .queues = supervisor->links[i]->queues,
                        .rtt_ms = rtt_usec == 0 ? -1 : (double)rtt_usec / (double)USEC_PER_MSEC,
                };
        }
        return n;
}

static uint64_t on_control_serial(void *userdata)
{
        const struct supervisor *supervisor = userdata;

        return supervisor->pass.serial;
}

static void on_control_changed(void *userdata)
{
        struct supervisor *supervisor = userdata;

        supervisor->pass.serial++;
        /* Before the reply: who was told that an order is recorded finds it again. */
        supervisor->pass.unsaved = !keep(supervisor, NULL, clock_now(CLOCK_MONOTONIC));
        supervisor_arm_turn(supervisor);
}

static usec_t on_control_now(void *userdata)
{
        (void)userdata;
        return clock_now(CLOCK_MONOTONIC);
}

int service_start(struct supervisor *supervisor, const struct handover *handover)
{
        const struct settings *settings = supervisor->settings;
        struct control_host host = {
                .world = supervisor->world,
                .event = supervisor->event,
                .version = PACKAGE_VERSION,
                .started_at = supervisor->started_at,
                .ticks = &supervisor->pass.ticks,
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
                .userdata = supervisor,
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

        if (settings->socket_group != NULL) {
                const struct group *group = getgrnam(settings->socket_group);

                if (group == NULL) {
                        log_error("socket_group '%s' does not exist", settings->socket_group);
                        return -ENOENT;
                }
                options.group = group->gr_gid;
        }
        int r = control_new(&host, &supervisor->control);
        if (r < 0)
                return r;
        options.userdata = supervisor->control;
        r = server_new(supervisor->event, &options, &supervisor->server, error, sizeof(error));
        if (r >= 0)
                r = listener_lock(settings->state_file, &supervisor->state_lock_fd, error, sizeof(error));
        if (r < 0)
                log_error("%s", error);
        return r;
}

void service_continue(struct supervisor *supervisor, const struct handover *handover)
{
        if (handover->taken)
                log_info("re-exec: sqmgr " PACKAGE_VERSION " has taken over");
        for (size_t i = 0; i < handover->n_idle; i++)
                server_continue(supervisor->server, handover->idle[i], NULL);
        for (size_t i = 0; i < handover->n_callers; i++)
                server_continue(supervisor->server, handover->callers[i],
                                control_reexec_reply(supervisor->control));
}

void service_end(struct supervisor *supervisor)
{
        supervisor->server = server_free(supervisor->server);
        supervisor->control = control_free(supervisor->control);
        supervisor->state_lock_fd = close_fd(supervisor->state_lock_fd);
}
