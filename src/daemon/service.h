/* SPDX-License-Identifier: MIT */
/* Opens the control socket, and provides the context of its handlers. */
#pragma once

#include "daemon/api/handler.h"
#include "daemon/lifecycle/reexec.h"
#include "daemon/lifecycle/reload.h"

struct service {
        struct control control;
        struct api_server *server;
        struct api_server_groups groups;
        int state_lock_fd; /* -1: not locked */
        int claim_fd;      /* -1: not claimed yet */
        int socket_error;  /* -errno since the socket was lost and could not be made again; 0: none */
};

/* Takes over the sockets in handover, left by the previous image. Returns 0 or -errno, which is logged.
 * -EBUSY: another sqmgr holds the socket or the state file. Call service_end() in all cases. */
int service_start(struct service *service, const struct handover *handover);
/* Continues the connections of the previous image. Call once the workers are adopted. */
void service_continue(struct service *service, const struct handover *handover);
/* Has the state written again and makes the control socket again if somebody has deleted their files. Claims
 * the path of the state (listener_claim()) if it could not be claimed before. Call at each regular poll. */
void service_keep(struct service *service);
/* Looks up the group of viewers again. Call after a reload. */
void service_find_groups(struct service *service);
/* Closes the socket and releases its lock and that of the state file. Waiting calls are canceled. */
void service_end(struct service *service);

/* Call after api_server_free(), which cancels the calls that are kept here. */
void control_end(struct control *control);
/* Handler for api_server_options.handle; userdata is the struct control. */
void control_handle(struct call *call, const struct control_method *method, json_t *parameters,
                    void *userdata);
/* Sends pending replies to clients that wait or follow. Call after each plan, before or after
 * fleet_reap(). */
void control_tick(struct control *control, usec_t now);
