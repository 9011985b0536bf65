/* SPDX-License-Identifier: MIT */
/* Serves the control socket: connections, limits and permissions. The handler implements the calls. */
#pragma once

#include "io/listen.h"
#include "wire/control.h"
#include "wire/varlink.h"
#include <systemd/sd-event.h>

/* Maximum of connections: of viewers, of operators, and of root and the user of sqmgr. */
#define QUOTA_VIEWERS_MAX   64
#define QUOTA_OPERATORS_MAX 128
#define QUOTA_OWNERS_MAX    128
/* Maximum of calls in progress: one per connection. */
#define API_CONNECTIONS_MAX (QUOTA_VIEWERS_MAX + QUOTA_OPERATORS_MAX + QUOTA_OWNERS_MAX)

struct handed; /* daemon/runtime/runtime.h */
struct api_server;
/* A call in progress. The pointer is valid until the last reply or cancellation. */
struct call;

/* The groups whose members may read, and give orders. CONTROL_NO_GROUP: no such group. */
struct api_server_groups {
        gid_t view, operate;
        char operate_name[64]; /* reported to clients without the right; "": none */
};

struct api_server_options {
        const char *path;
        int inherited; /* socket that may listen at path already; 0: none */
        struct api_server_groups groups;
        const char *version;    /* of sqmgr; must outlive the server */
        usec_t message_timeout; /* for an incomplete message; 0: 10 s */
        /* Called for each method of the control interface that the peer may call. Must reply or keep the call
         * before returning. parameters is borrowed. */
        void (*handle)(struct call *call, const struct control_method *method, json_t *parameters,
                       void *userdata);
        void *userdata;
};

/* Opens the listener at options->path, taking ownership of options->inherited, and serves it on event.
 * Viewers are read-only and are not sent what messages quote (wire/quoted.h). Strangers, who belong to no
 * class, get one error that names the groups, and are closed. Returns 0 with *ret, to be freed with
 * api_server_free(), or -errno with a sentence in error, like listener_open(). */
int api_server_new(sd_event *event, const struct api_server_options *options, struct api_server **ret,
                   char *error, size_t error_size);

/* Sets the groups for connections that are accepted later. */
void api_server_set_groups(struct api_server *server, const struct api_server_groups *groups);

/* Makes the control socket again if somebody has deleted or replaced its file. Returns 1 if it did, 0 if the
 * socket is in place, or -errno with a sentence in error. */
int api_server_keep_socket(struct api_server *server, char *error, size_t error_size);

/* Cancels the calls in progress, closes and removes the socket, and releases its lock. Returns NULL. */
struct api_server *api_server_free(struct api_server *server);

/* False if the caller wants no reply ("oneway"). */
bool call_wants_reply(const struct call *call);
/* True if the caller accepts more than one reply ("more"). */
bool call_wants_more(const struct call *call);

/* Returns the user of the caller, as the kernel reported when the connection was accepted; (uid_t)-1: not
 * known. */
uid_t call_uid(const struct call *call);

/* True if the caller may only read. */
bool call_is_view(const struct call *call);

/* Sends a reply and takes ownership of parameters. NULL stands for a failed allocation and closes the
 * connection. The call ends unless continues is set. */
void call_reply(struct call *call, json_t *parameters, bool continues);
/* Ends the call with an error; parameters as for call_reply(). */
void call_reply_error(struct call *call, const char *error, json_t *parameters);

/* A reply that several calls share, encoded once: for viewers, without text from elsewhere, or for others. */
struct shared_reply {
        char *text; /* NULL: none */
        size_t size;
        bool is_view; /* for viewers */
};

/* Encodes a reply, or an error unless error is NULL. Consumes parameters. *ret has no text when memory is
 * short. The caller clears *ret by shared_reply_clear(). */
void shared_reply_make(struct shared_reply *ret, bool is_view, const char *error, json_t *parameters);
void shared_reply_clear(struct shared_reply *reply);
/* Ends the call with a reply. Without a text, or if it is for others than viewers and the caller is one,
 * closes the connection. */
void call_reply_shared(struct call *call, const struct shared_reply *reply);

/* Keeps the call in progress after the handler returns. cancelled is called if the connection closes before
 * the last reply, never after. */
void call_keep(struct call *call, void (*cancelled)(struct call *call, void *userdata), void *userdata);

/* Lists sockets for the next image of the program: the listening socket and idle connections. The server
 * keeps ownership. Returns the number of entries, at most API_CONNECTIONS_MAX + 1. */
size_t api_server_hand(const struct api_server *server, struct handed *ret);
/* Returns the descriptor of the call's connection, which the server owns. */
int call_fd(const struct call *call);
/* Continues a connection of the previous image and takes ownership of fd. reply answers the call that still
 * waits, and is consumed; NULL: no call waits. The connection is closed on failure, and if its peer is a
 * stranger by now. */
void api_server_continue(struct api_server *server, int fd, json_t *reply);
