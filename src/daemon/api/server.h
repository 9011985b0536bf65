/* SPDX-License-Identifier: MIT */
/* Serves the control socket and the read socket: connections, limits and permissions. The handler implements
 * the calls. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include "daemon/api/quota.h"
#include "daemon/api/shared_reply.h"
#include "privileged/listen.h"
#include "wire/varlink.h"
#include <systemd/sd-event.h>

/* Maximum of calls in progress: one per connection. */
#define SERVER_CONNECTIONS_MAX (QUOTA_CONNECTIONS_MAX + QUOTA_VIEW_CONNECTIONS_MAX)

struct handed; /* daemon/runtime/runtime.h */
struct server;
/* A call in progress. The pointer is valid until the last reply or cancellation. */
struct call;

struct server_options {
        struct listener_place place;
        const char *group_name; /* name of place.group, reported to clients without the right; NULL: none */
        const char *version;    /* of sqmgr; must outlive the server */
        usec_t message_timeout; /* for an incomplete message; 0: 10 s */
        /* Called for each method of the control interface that the peer may call. Must reply or keep the call
         * before returning. parameters is borrowed. */
        void (*handle)(struct call *call, const struct control_method *method, json_t *parameters,
                       void *userdata);
        void *userdata;
};

/* Opens the listener at options->place and serves it on event. Returns 0 with *ret, to be freed with
 * server_free(), or -errno with a sentence in error, like listener_open(). */
int server_new(sd_event *event, const struct server_options *options, struct server **ret, char *error,
               size_t error_size);

/* Also serves the read socket at place. All its clients, whatever their user, are read-only, are not sent
 * what messages quote (wire/quoted.h), and have separate limits. Call at most once. Returns 0, or -errno with
 * a sentence in error and the server unchanged. */
int server_open_view(struct server *server, const struct listener_place *place, char *error,
                     size_t error_size);

/* Makes the control socket or the read socket again if somebody has deleted or replaced its file. Returns 1
 * if it did, 0 if the socket is in place or was never opened, or -errno with a sentence in error. */
int server_keep_socket(struct server *server, bool view, char *error, size_t error_size);

/* Cancels the calls in progress, closes and removes the sockets, and releases their locks. Returns NULL. */
struct server *server_free(struct server *server);

/* False if the caller wants no reply ("oneway"). */
bool call_wants_reply(const struct call *call);
/* True if the caller accepts more than one reply ("more"). */
bool call_wants_more(const struct call *call);

/* Returns the user of the caller, as the kernel reported when the connection was accepted; (uid_t)-1: not
 * known. */
uid_t call_uid(const struct call *call);

/* The access of the caller. CONTROL_VIEW: the call came in on the read socket. */
enum control_access call_access(const struct call *call);
static inline bool call_is_view(const struct call *call)
{
        return call_access(call) == CONTROL_VIEW;
}

/* Sends a reply and takes ownership of parameters. NULL stands for a failed allocation and closes the
 * connection. The call ends unless continues is set. */
void server_reply(struct call *call, json_t *parameters, bool continues);
/* Ends the call with an error; parameters as for server_reply(). */
void server_reply_error(struct call *call, const char *error, json_t *parameters);

/* Ends the call with a reply. Without a text, or if it is for others than viewers and the caller is one,
 * closes the connection. */
void server_reply_shared(struct call *call, const struct shared_reply *reply);

/* Keeps the call in progress after the handler returns. cancelled is called if the connection closes before
 * the last reply, never after. */
void server_keep(struct call *call, void (*cancelled)(struct call *call, void *userdata), void *userdata);

/* Lists sockets for the next image of the program: the listening sockets, and idle connections of the control
 * socket. The server keeps ownership. Clients of the read socket must reconnect. Returns the number of
 * entries, at most SERVER_CONNECTIONS_MAX + 2. */
size_t server_hand(const struct server *server, struct handed *ret);
/* Returns the descriptor of the call's connection, which the server owns. */
int call_fd(const struct call *call);
/* Continues a connection of the previous image and takes ownership of fd. reply answers the call that still
 * waits, and is consumed; NULL: no call waits. On failure the connection is closed. */
void server_continue(struct server *server, int fd, json_t *reply);
