/* SPDX-License-Identifier: MIT */
/* Serves the control socket and the one for those who may only look: connections, limits and permissions.
 * What the calls do is the handler's. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include "daemon/api/listen.h"
#include "daemon/api/quota.h"
#include "wire/varlink.h"
#include <systemd/sd-event.h>

/* So many calls are in progress at most: one for each connection. */
#define SERVER_CONNECTIONS_MAX (QUOTA_CONNECTIONS_MAX + QUOTA_VIEW_CONNECTIONS_MAX)

struct handed; /* daemon/runtime/runtime.h */
struct server;
/* One call in progress. It lives until its last reply, or until cancelled; then the pointer is dead. */
struct call;

struct server_options {
        struct listener_place place;
        const char *group_name; /* of place.group, reported to a client that lacks the right; NULL: none */
        const char *version;    /* of sqmgr; outlives the server */
        usec_t message_timeout; /* for half a message; 0: 10 s */
        /* Called for each method of the control interface that the peer may call. Replies before it returns,
         * or keeps the call. parameters is borrowed. */
        void (*handle)(struct call *call, const struct control_method *method, json_t *parameters,
                       void *userdata);
        void *userdata;
};

/* Opens the listener of options.place and serves it on event. Returns 0 with *ret to be freed by
 * server_free(); or -errno with a sentence in error, as listener_open() does. */
int server_new(sd_event *event, const struct server_options *options, struct server **ret, char *error,
               size_t error_size);

/* Listens at another place, too: whoever connects there may only look, whoever he is, is told nothing that
 * wire/withhold.h speaks of, and has bounds of his own. Once only. Returns 0; or -errno with a sentence in
 * error, and the server as it was. */
int server_open_view(struct server *server, const struct listener_place *place, char *error,
                     size_t error_size);

/* Cancels the calls in progress, closes and removes the sockets, and lets go of their locks. Returns NULL. */
struct server *server_free(struct server *server);

/* Does the caller want to know at all? */
bool call_wants_reply(const struct call *call);
/* Did the caller ask for more than one reply? */
bool call_wants_more(const struct call *call);

/* Who called, as the kernel told when he connected; (uid_t)-1: it did not tell. */
uid_t call_uid(const struct call *call);

/* Does it come from where one may only look? */
bool call_is_view(const struct call *call);

/* Replies; parameters is taken over, and NULL stands for an allocation that failed: the connection is closed
 * then. Where continues is false the call has ended. */
void server_reply(struct call *call, json_t *parameters, bool continues);
/* Ends the call with an error; parameters as above. */
void server_reply_error(struct call *call, const char *error, json_t *parameters);
/* Ends the call with a reply that varlink_encode_reply() made. */
void server_reply_text(struct call *call, const char *text, size_t size);

/* The call stays in progress after the handler returns. cancelled is called where its connection closes
 * before the last reply; after that reply it is not. */
void server_keep(struct call *call, void (*cancelled)(struct call *call, void *userdata), void *userdata);

/* For the next image of the program, which an execve() puts in the place of this one: the sockets that
 * listen, and the connections of the control socket that are between two calls. They stay the server's.
 * Read-only clients connect again. Returns how many: at most SERVER_CONNECTIONS_MAX + 2. */
size_t server_hand(const struct server *server, struct handed *ret);
int call_fd(const struct call *call);
/* Goes on with a connection of the image before; fd is taken over. reply answers the call that it still waits
 * for, and is taken over, too; NULL: it waits for none. */
void server_continue(struct server *server, int fd, json_t *reply);
