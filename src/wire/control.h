/* SPDX-License-Identifier: MIT */
/* The control interface: its methods, who may call which, and its description for introspection.
 *
 * GetStatus, GetEvents, GetJobs, GetMetrics, GetQueues, GetRollouts, GetDiagnosis, Follow, Ping and
 * GetVersion only read; all but GetDiagnosis, which tells of commands and users and asks each Redis anew, are
 * answered on read_socket, too. Restart, Abort, Quiet, Stop, Start, Scale and Reload each record an order and
 * answer at once; RestartEverywhere, AbortEverywhere and ForgetHost once Redis has taken it; Reexec is
 * answered by the new image. Restart and Follow called with `more` go on to answer each time that something
 * moved, until the rollouts of all their fleets have ended. A list of fleets that is null or empty means all
 * fleets; for GetRollouts, all that have a rollout_group.
 */
#pragma once

#include "base/macro.h"
#include <sys/types.h>

#define CONTROL_INTERFACE "org.sqmgr.Control"

#define CONTROL_UNKNOWN_FLEET  CONTROL_INTERFACE ".UnknownFleet"
#define CONTROL_UNKNOWN_WORKER CONTROL_INTERFACE ".UnknownWorker"
#define CONTROL_REFUSED        CONTROL_INTERFACE ".Refused"

/* Each class of methods includes those above it. */
enum control_access {
        CONTROL_VIEW,    /* whoever may connect to read_socket: withhold.h says what he is not told */
        CONTROL_READ,    /* whoever may connect to the control socket */
        CONTROL_OPERATE, /* members of socket_group */
        CONTROL_OWN,     /* root and the user that sqmgr runs as */
};

struct control_method {
        const char *name; /* without the interface's */
        enum control_access access;
        bool more; /* may be called with `more` */
};

/* ROW(method, name, access, more): the handler of each in the daemon is handle_NAME(). */
#define CONTROL_METHODS(ROW)                                                                                 \
        ROW(GetStatus, get_status, CONTROL_VIEW, false)                                                      \
        ROW(Restart, restart, CONTROL_OPERATE, true)                                                         \
        ROW(Follow, follow, CONTROL_VIEW, true)                                                              \
        ROW(Abort, abort, CONTROL_OPERATE, false)                                                            \
        ROW(Quiet, quiet, CONTROL_OPERATE, false)                                                            \
        ROW(Stop, stop, CONTROL_OPERATE, false)                                                              \
        ROW(Start, start, CONTROL_OPERATE, false)                                                            \
        ROW(Scale, scale, CONTROL_OPERATE, false)                                                            \
        ROW(Reload, reload, CONTROL_OPERATE, false)                                                          \
        ROW(Reexec, reexec, CONTROL_OWN, false)                                                              \
        ROW(RestartEverywhere, restart_everywhere, CONTROL_OPERATE, false)                                   \
        ROW(AbortEverywhere, abort_everywhere, CONTROL_OPERATE, false)                                       \
        ROW(ForgetHost, forget_host, CONTROL_OPERATE, false)                                                 \
        ROW(GetRollouts, get_rollouts, CONTROL_VIEW, false)                                                  \
        ROW(GetEvents, get_events, CONTROL_VIEW, true)                                                       \
        ROW(GetJobs, get_jobs, CONTROL_VIEW, false)                                                          \
        ROW(GetMetrics, get_metrics, CONTROL_VIEW, false)                                                    \
        ROW(GetQueues, get_queues, CONTROL_VIEW, false)                                                      \
        ROW(GetDiagnosis, get_diagnosis, CONTROL_READ, false)                                                \
        ROW(Ping, ping, CONTROL_VIEW, false)                                                                 \
        ROW(GetVersion, get_version, CONTROL_VIEW, false)

extern const struct control_method control_methods[];
extern const size_t control_n_methods;

/* The method of that name (without the interface's), or NULL. */
const struct control_method *control_find_method(const char *name);

/* The interface in Varlink's own language. */
extern const char control_description[];

/* Does the description say that the method takes a parameter of that name? */
bool control_has_parameter(const struct control_method *method, const char *name);

/* Who is at the other end of a connection. */
struct control_peer {
        uid_t uid;
        gid_t gid;
        const gid_t *groups; /* supplementary ones */
        size_t n_groups;
};

#define CONTROL_NO_GROUP ((gid_t)-1)

/* The methods that this peer may call, where own_uid is the server's user and group is socket_group, or
 * CONTROL_NO_GROUP. */
enum control_access control_peer_access(const struct control_peer *peer, uid_t own_uid, gid_t group);
