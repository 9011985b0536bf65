/* SPDX-License-Identifier: MIT */
/* Opens the control socket, and provides the context of its handlers. */
#pragma once

#include "daemon/api/control.h"
#include "daemon/api/handover.h"
#include "daemon/lifecycle/reexec.h"
#include "daemon/lifecycle/reload.h"

struct service {
        struct control_host host;
        struct control *control;
        struct server *server;
        struct server_groups groups;
        int state_lock_fd; /* -1: not locked */
        int claim_fd;      /* -1: not claimed yet */
        int lock_error;    /* -errno since the lock was lost and could not be taken again; 0: none */
        int socket_error;  /* as lock_error, for the socket */
};

/* Takes over the sockets in handover, left by the previous image. Returns 0 or -errno, which is logged.
 * -EBUSY: another sqmgr holds the socket or the state file. Call service_end() in all cases. */
int service_start(struct service *service, const struct handover *handover);
/* Continues the connections of the previous image. Call once the workers are adopted. */
void service_continue(struct service *service, const struct handover *handover);
/* Takes the lock of the state file again if somebody has deleted its file, and logs that. Call at each
 * regular poll. */
void service_keep_lock(struct service *service);
/* Makes the control socket again if somebody has deleted its file, and logs that. Call at each regular
 * poll. */
void service_keep_socket(struct service *service);
/* Looks up the group of viewers again. Call after a reload. */
void service_find_groups(struct service *service);
/* Closes the socket and releases its lock and that of the state file. Waiting calls are canceled. */
void service_end(struct service *service);
