/* SPDX-License-Identifier: MIT */
/* Opens the control socket and the read socket, and provides the context of their handlers. */
#include "daemon/service.h"
#include "config.h"
#include "io/log.h"
#include "io/users.h"
#include "model/fleet.h"
#include "model/world.h"
#include "privileged/listen.h"
#include <grp.h>

/* Members may connect to read_socket; created by sysusers.d. */
#define READERS "sqmgr-read"

/* Failures are only logged: workers are supervised even if nobody can read their status. */
static void open_view(struct service *service, int inherited)
{
        struct listener_place place = {
                .path = settings_read_socket(service->host.world->settings),
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
                log_error("read_socket: %s; read-only clients cannot connect until sqmgr is restarted",
                          error);
}

int service_start(struct service *service, const struct handover *handover)
{
        const struct settings *settings = service->host.world->settings;
        struct server_options options = {
                .place = {.path = settings->socket,
                          .mode = settings->socket_mode,
                          .group = CONTROL_NO_GROUP,
                          .inherited = handover_fd(handover, HANDED_LISTEN)},
                .group_name = settings->socket_group,
                .version = PACKAGE_VERSION,
                .handle = control_handle,
        };
        char error[512];

        if (settings->socket_group) {
                const struct group *group = getgrnam(settings->socket_group);

                if (!group) {
                        log_error("socket_group '%s' does not exist", settings->socket_group);
                        return -ENOENT;
                }
                options.place.group = group->gr_gid;
        }
        int r = control_new(&service->host, &service->control);
        if (r < 0)
                return r;
        options.userdata = service->control;
        r = server_new(service->host.persist->runtime->event, &options, &service->server, error,
                       sizeof(error));
        if (r >= 0)
                open_view(service, handover_fd(handover, HANDED_VIEW));
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

void service_keep_lock(struct service *service)
{
        struct persist *persist = service->host.persist;
        const char *path = service->host.world->settings->state_file;
        char error[512];

        int r = listener_lock_again(path, &service->state_lock_fd, error, sizeof(error));
        if (r > 0) {
                log_warning("the lock '%s.lock' was deleted while sqmgr runs and has been created again; "
                            "find what deletes files there",
                            path);
                /* Write the state again: it may have been deleted together with the lock file. */
                persist->runtime->wakeup->pass.unsaved = true;
        } else if (r < 0 && r != service->lock_error) {
                log_error("the lock '%s.lock' is lost: %s%s", path, error,
                          r == -EBUSY ? ". Both manage the same workers: stop one of them" : "");
        }
        service->lock_error = MIN(r, 0);
        persist->locked_out = r == -EBUSY;
}

void service_keep_sockets(struct service *service)
{
        static const char *const names[] = {"control", "read"};
        const struct settings *settings = service->host.world->settings;

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                char error[512];
                int r = server_keep_socket(service->server, i > 0, error, sizeof(error));

                if (r > 0)
                        log_warning("the %s socket '%s' was deleted while sqmgr runs and has been created "
                                    "again; find what deletes files there",
                                    names[i], i > 0 ? settings_read_socket(settings) : settings->socket);
                else if (r < 0 && r != service->socket_errors[i])
                        log_error("the %s socket is lost: %s", names[i], error);
                service->socket_errors[i] = MIN(r, 0);
        }
}

void service_end(struct service *service)
{
        service->server = server_free(service->server);
        service->control = control_free(service->control);
        service->state_lock_fd = close_fd(service->state_lock_fd);
}
