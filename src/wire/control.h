/* SPDX-License-Identifier: MIT */
/* The control interface: methods, access classes, and the description for introspection.
 *
 * GetStatus, GetEvents, GetJobs, GetMetrics, GetQueues, GetDiagnosis, Follow, Ping and GetVersion are
 * read-only. All of them but GetDiagnosis are answered to viewers, too. GetDiagnosis shows commands and
 * users, rehearses starts, and queries each Redis anew.
 *
 * Restart, Rollback, Abort, Quiet, Stop, Start, Scale and Reload each record an order and reply at once.
 * Restart with a release is answered after the check for it. Reexec is answered by the new image.
 *
 * Restart, Rollback and Follow called with `more` keep replying on each change until the rollouts of all
 * their fleets have ended. A null or empty list of fleets means all fleets. */
#pragma once

#include "base/macro.h"
#include <sys/types.h>

#define CONTROL_INTERFACE "org.sqmgr.Control"

#define CONTROL_UNKNOWN_FLEET  CONTROL_INTERFACE ".UnknownFleet"
#define CONTROL_UNKNOWN_WORKER CONTROL_INTERFACE ".UnknownWorker"
#define CONTROL_REFUSED        CONTROL_INTERFACE ".Refused"
#define CONTROL_NOT_IN_MEMORY  CONTROL_INTERFACE ".NotInMemory"

/* The group of viewers; created by sysusers.d. */
#define CONTROL_VIEW_GROUP "sqmgr-read"

/* Begins the reason of CONTROL_REFUSED that strangers are sent, and no other. */
#define CONTROL_NOT_PERMITTED "not permitted: "

/* Each class of methods includes those above it. */
enum control_access {
        CONTROL_NONE,    /* strangers: no method */
        CONTROL_VIEW,    /* members of CONTROL_VIEW_GROUP; without what messages quote (wire/quoted.h) */
        CONTROL_OPERATE, /* members of socket_group */
        CONTROL_OWN,     /* root and sqmgr's own user */
        _CONTROL_ACCESS_MAX,
};

struct control_method {
        const char *name; /* without the interface name */
        enum control_access access;
        bool more; /* accepts `more` */
};

/* ROW(method, name, access, more): the daemon handles a method in handle_NAME(). */
#define CONTROL_METHODS(ROW)                                                                                 \
        ROW(GetStatus, get_status, CONTROL_VIEW, false)                                                      \
        ROW(Restart, restart, CONTROL_OPERATE, true)                                                         \
        ROW(Rollback, rollback, CONTROL_OPERATE, true)                                                       \
        ROW(Follow, follow, CONTROL_VIEW, true)                                                              \
        ROW(Abort, abort, CONTROL_OPERATE, false)                                                            \
        ROW(Quiet, quiet, CONTROL_OPERATE, false)                                                            \
        ROW(Stop, stop, CONTROL_OPERATE, false)                                                              \
        ROW(Start, start, CONTROL_OPERATE, false)                                                            \
        ROW(Scale, scale, CONTROL_OPERATE, false)                                                            \
        ROW(Reload, reload, CONTROL_OPERATE, false)                                                          \
        ROW(Reexec, reexec, CONTROL_OWN, false)                                                              \
        ROW(GetEvents, get_events, CONTROL_VIEW, true)                                                       \
        ROW(GetJobs, get_jobs, CONTROL_VIEW, false)                                                          \
        ROW(GetMetrics, get_metrics, CONTROL_VIEW, false)                                                    \
        ROW(GetQueues, get_queues, CONTROL_VIEW, false)                                                      \
        ROW(GetDiagnosis, get_diagnosis, CONTROL_OPERATE, false)                                             \
        ROW(Ping, ping, CONTROL_VIEW, false)                                                                 \
        ROW(GetVersion, get_version, CONTROL_VIEW, false)

extern const struct control_method control_methods[];
extern const size_t control_n_methods;

/* Returns the method of that name (without the interface name), or NULL. */
const struct control_method *control_find_method(const char *name);

/* The interface in Varlink's interface definition language: org.sqmgr.Control.varlink, which is installed,
 * too. */
extern const char *const control_description;

/* Returns true if the description lists a parameter of that name for the method. */
bool control_has_parameter(const struct control_method *method, const char *name);

/* The process at the other end of a connection. */
struct control_peer {
        uid_t uid;
        gid_t gid;
        const gid_t *groups; /* supplementary groups */
        size_t n_groups;
};

#define CONTROL_NO_GROUP ((gid_t)-1)

/* Returns the access class of a peer. own_uid is the server's user. Either group may be CONTROL_NO_GROUP. */
enum control_access control_peer_access(const struct control_peer *peer, uid_t own_uid, gid_t view_group,
                                        gid_t operate_group);
