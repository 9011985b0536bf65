/* SPDX-License-Identifier: MIT */
/* Opens the control socket, and provides the context of its handlers. */
#include "daemon/service.h"
#include "config.h"
#include "io/log.h"
#include "io/users.h"
#include "model/fleet.h"
#include "model/world.h"
#include <grp.h>

static gid_t find_viewers(void)
{
        gid_t group;

        return users_group(CONTROL_VIEW_GROUP, &group) ? group : CONTROL_NO_GROUP;
}

int service_start(struct service *service, const struct handover *handover)
{
        const struct settings *settings = service->host.world->settings;
        struct server_groups *groups = &service->groups;
        char error[512];

        *groups = (struct server_groups){.view = find_viewers(), .operate = CONTROL_NO_GROUP};
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
        int r = control_new(&service->host, &service->control);
        if (r < 0)
                return r;
        const struct server_options options = {
                .path = settings->socket,
                .inherited = handover_fd(handover, HANDED_LISTEN),
                .groups = *groups,
                .version = PACKAGE_VERSION,
                .handle = control_handle,
                .userdata = service->control,
        };
        r = server_new(service->host.persist->runtime->event, &options, &service->server, error,
                       sizeof(error));
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
                        server_continue(service->server, handed->fd, NULL);
                else if (handed->kind == HANDED_CALLER)
                        server_continue(service->server, handed->fd,
                                        json_pack("{s:s, s:I}", "version", PACKAGE_VERSION, "pid",
                                                  (json_int_t)getpid()));
        }
}

void service_keep_state(struct service *service)
{
        const char *path = service->host.world->settings->state_file;
        char error[512];

        if (service->claim_fd < 0)
                (void)listener_claim(path, &service->claim_fd, error, sizeof(error));
        if (access(path, F_OK) < 0)
                service->host.persist->runtime->wakeup->pass.unsaved = true;
}

void service_keep_socket(struct service *service)
{
        char error[512];
        int r = server_keep_socket(service->server, error, sizeof(error));

        if (r > 0)
                log_warning(
                        "the control socket '%s' was deleted while sqmgr runs and has been created again; "
                        "find what deletes files there",
                        service->host.world->settings->socket);
        else if (r < 0 && r != service->socket_error)
                log_error("the control socket is lost: %s", error);
        service->socket_error = MIN(r, 0);
}

void service_find_groups(struct service *service)
{
        service->groups.view = find_viewers();
        server_set_groups(service->server, &service->groups);
}

void service_end(struct service *service)
{
        service->server = server_free(service->server);
        service->control = control_free(service->control);
        service->state_lock_fd = close_fd(service->state_lock_fd);
        service->claim_fd = close_fd(service->claim_fd);
}
