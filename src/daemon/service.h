/* SPDX-License-Identifier: MIT */
/* The control socket's view of the daemon. */
#pragma once

#include "daemon/api/doctor.h"
#include "daemon/api/handover.h"
#include "daemon/api/jobs.h"
#include "daemon/api/queue_calls.h"
#include "daemon/life/reexec.h"
#include "daemon/life/reload.h"
#include "daemon/run/keep.h"

struct service {
        struct keeper *keeper; /* not owned; nor are reloader and reexec */
        struct reloader *reloader;
        struct reexec *reexec;
        usec_t started_at;
        struct queue_calls queue_calls;
        struct jobs_calls jobs_calls;
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
/* For queue_calls: userdata is the service. */
void service_diagnose(struct call *call, void *userdata);
void service_end(struct service *service);
