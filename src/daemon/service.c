/* SPDX-License-Identifier: MIT */
/* Opens the control socket, dispatches each call to its handler, and serves waiting clients. The calls about
 * sqmgr itself, Reload, Reexec, Ping and GetVersion, are handled here. */
#include "daemon/service.h"
#include "config.h"
#include "io/clock.h"
#include "io/log.h"
#include "io/users.h"
#include "model/world.h"
#include <grp.h>
#include <malloc.h>

void control_end(struct control *control)
{
        assert(!control->watchers);
        control->events = events_free(control->events);
        (void)handler_forget(control, USEC_INFINITY);
}

/* Same order as control_methods: both are generated from CONTROL_METHODS. */
#define ROW(method, name, ...) handle_##name,
static void (*const handlers[])(struct control *control, struct call *call, json_t *parameters,
                                usec_t now) = {CONTROL_METHODS(ROW)};
#undef ROW

void handle_reload(struct control *control, struct call *call, json_t *parameters _unused_,
                   usec_t now _unused_)
{
        const struct orderer by = handler_orderer(call);
        _cleanup_free_ char *lines = NULL;
        int r = reload_settings(control->reloader, &by, &lines);

        if (r < 0) {
                handler_refuse(call, "cannot reload the configuration: %s; the old settings remain active",
                               strerrordesc_np(-r));
                return;
        }
        json_t *list = handler_lines(lines);
        if (r > 0) {
                call_reply_error(call, CONTROL_REFUSED,
                                 json_pack("{s:s, s:o}", "reason",
                                           "the configuration has errors; the old settings remain active",
                                           "details", list));
                return;
        }
        handler_changed(control);
        call_reply(call, json_pack("{s:o}", "changes", list), false);
}

void handle_reexec(struct control *control, struct call *call, json_t *parameters _unused_,
                   usec_t now _unused_)
{
        const struct orderer by = handler_orderer(call);
        char who[ORDERER_TEXT_MAX];

        event_by(&by, world_event(control->runtime->world, EVENT_ORDER, NULL, NULL, "re-exec requested by %s",
                                  orderer_text(&by, who)));
        reexec_request(control->reexec, call);
}

void handle_ping(struct control *control _unused_, struct call *call, json_t *parameters _unused_,
                 usec_t now _unused_)
{
        call_reply(call, json_object(), false);
}

void handle_get_version(struct control *control, struct call *call, json_t *parameters _unused_,
                        usec_t now _unused_)
{
        call_reply(call, json_pack("{s:s, s:s}", "version", control->version, "instance", control->instance),
                   false);
}

/* Returns a parameter that the method does not have, or NULL. A misspelled parameter must not be ignored. */
static const char *unknown_parameter(const struct control_method *method, json_t *parameters)
{
        const char *key;
        json_t *value;

        json_object_foreach(parameters, key, value) if (!control_has_parameter(method, key)) return key;
        return NULL;
}

void control_handle(struct call *call, const struct control_method *method, json_t *parameters,
                    void *userdata)
{
        struct control *control = userdata;
        const char *unknown = unknown_parameter(method, parameters);

        if (unknown)
                handler_refuse_parameter(call, unknown);
        else
                handlers[method - control_methods](control, call, parameters, clock_now(CLOCK_MONOTONIC));
}

void control_tick(struct control *control, usec_t now)
{
        events_tick(control->events);
        /* Without recent requests, free the latest replies and return memory: with many workers both are
         * large. */
        if (handler_forget(control, usec_sub(now, USEC_PER_SEC)))
                (void)malloc_trim(0);
        watch_tick(control, now);
}

static gid_t find_viewers(void)
{
        gid_t group;

        return users_group(CONTROL_VIEW_GROUP, &group) ? group : CONTROL_NO_GROUP;
}

int service_start(struct service *service, const struct handover *handover)
{
        const struct settings *settings = service->control.runtime->world->settings;
        struct api_server_groups *groups = &service->groups;
        char error[512];

        *groups = (struct api_server_groups){.view = find_viewers(), .operate = CONTROL_NO_GROUP};
        if (settings->socket_group) {
                const struct group *group = getgrnam(settings->socket_group);

                if (!group) {
                        log_error("socket_group '%s' does not exist", settings->socket_group);
                        return -ENOENT;
                }
                if (!users_is_of_unmapped(group->gr_gid))
                        groups->operate = group->gr_gid;
                snprintf(groups->operate_name, sizeof(groups->operate_name), "%s", settings->socket_group);
        }
        int r = events_new(&service->control.events);
        if (r < 0)
                return r;
        const struct api_server_options options = {
                .path = settings->socket,
                .inherited = handover_fd(handover, HANDED_LISTEN),
                .groups = *groups,
                .version = PACKAGE_VERSION,
                .handle = control_handle,
                .userdata = &service->control,
        };
        r = api_server_new(service->control.runtime->event, &options, &service->server, error, sizeof(error));
        if (r >= 0)
                r = listener_lock(settings->state_file, &service->state_lock_fd, error, sizeof(error));
        if (r >= 0)
                r = listener_claim(settings->state_file, &service->claim_fd, error, sizeof(error));
        if (r < 0)
                log_error("%s", error);
        return r;
}

void service_continue(struct service *service, const struct handover *handover)
{
        if (handover->taken)
                log_info("re-exec: sqmgr " PACKAGE_VERSION " has taken over");
        for (size_t i = 0; i < handover->n; i++) {
                const struct handed *handed = &handover->list[i];

                if (handed->kind == HANDED_IDLE)
                        api_server_continue(service->server, handed->fd, NULL);
                else if (handed->kind == HANDED_CALLER)
                        api_server_continue(service->server, handed->fd,
                                            json_pack("{s:s, s:I}", "version", PACKAGE_VERSION, "pid",
                                                      (json_int_t)getpid()));
        }
}

void service_keep(struct service *service)
{
        const char *path = service->control.runtime->world->settings->state_file;
        char error[512];

        if (service->claim_fd < 0)
                (void)listener_claim(path, &service->claim_fd, error, sizeof(error));
        if (access(path, F_OK) < 0)
                service->control.runtime->wakeup->pass.unsaved = true;
        int r = api_server_keep_socket(service->server, error, sizeof(error));

        if (r > 0)
                log_warning(
                        "the control socket '%s' was deleted while sqmgr runs and has been created again; "
                        "find what deletes files there",
                        service->control.runtime->world->settings->socket);
        else if (r < 0 && r != service->socket_error)
                log_error("the control socket is lost: %s", error);
        service->socket_error = MIN(r, 0);
}

void service_find_groups(struct service *service)
{
        service->groups.view = find_viewers();
        api_server_set_groups(service->server, &service->groups);
}

void service_end(struct service *service)
{
        service->server = api_server_free(service->server);
        control_end(&service->control);
        service->state_lock_fd = close_fd(service->state_lock_fd);
        service->claim_fd = close_fd(service->claim_fd);
}
