/* SPDX-License-Identifier: MIT */
/* Opens the control socket and the read socket, and lends their handlers what they need. */
#pragma once

#include "daemon/api/control.h"
#include "daemon/api/handover.h"
#include "daemon/lifecycle/reexec.h"
#include "daemon/lifecycle/reload.h"

struct service {
        struct control_host host;
        struct control *control;
        struct server *server;
        struct doctor_readers readers;
        int state_lock_fd; /* -1: not locked */
};

/* handover: what the image before left, which is taken over. Returns 0 or -errno, which was told; -EBUSY:
 * another sqmgr holds the socket. service_end() is due in all cases. */
int service_start(struct service *service, const struct handover *handover);
/* Once the workers are adopted: goes on with the connections of the image before. */
void service_continue(struct service *service, const struct handover *handover);
void service_end(struct service *service);
