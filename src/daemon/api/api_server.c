/* SPDX-License-Identifier: MIT */
/* Serves the control socket: connections, limits and permissions. */
#include "daemon/api/api_server.h"
#include "daemon/runtime/runtime.h"
#include "io/log.h"
#include "io/timer.h"
#include "io/users.h"
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define MESSAGE_TIMEOUT_USEC (10 * USEC_PER_SEC)
#define ACCEPT_PAUSE_USEC    USEC_PER_SEC
/* After that many strangers, nobody is accepted for that time: refusing them takes a small part of one CPU,
 * and others wait in the queue of the socket for some milliseconds at most. */
#define STRANGERS_AT_ONCE 16
/* A peer in more groups counts as in none but its primary one: the kernel takes milliseconds to copy 65,536.
 */
#define PEER_GROUPS_MAX      1024
#define STRANGERS_PAUSE_USEC USEC_PER_MSEC
#define READ_BYTES           ((size_t)16 * 1024)
/* Unread bytes: above OUTPUT_PAUSE, the next calls of the peer wait; above OUTPUT_MAX, it is disconnected. */
#define OUTPUT_PAUSE ((size_t)256 * 1024)
#define OUTPUT_MAX   ((size_t)4 * 1024 * 1024)

struct call {
        struct client_connection *connection;
        struct varlink_call message;
        bool open;
        bool kept;
        void (*cancelled)(struct call *call, void *userdata);
        void *userdata;
};

struct client_connection {
        struct api_server *server;
        struct client_connection *next;
        int fd;
        uid_t uid;                  /* of the peer */
        enum control_access access; /* of the peer; not CONTROL_NONE */
        sd_event_source *io;
        sd_event_source *deadline;
        sd_event_source *resume; /* advances the connection without a socket event */
        struct varlink_input input;
        char *output;
        size_t output_start, output_end, output_allocated;
        struct call call;
        bool end;     /* the peer sends no more */
        bool hung_up; /* the peer reads no more either */
        bool closing; /* to be closed once the output is sent */
        bool dead;    /* to be freed later: callers may still use the call */
};

struct api_server {
        struct listener listener;
        sd_event_source *accept;
        sd_event_source *accept_pause;
        bool accept_failed;   /* the last accept failed for lack of resources, which was logged */
        unsigned n_strangers; /* refused since the last pause */
        sd_event *event;
        uid_t uid;
        struct api_server_options options;
        struct client_connection *connections;
};

/* The priority of new connections: after events of fleets, and with the owner's calls. */
#define QUOTA_ACCEPT_PRIORITY 10

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

/* The share of the socket that each class of clients may use. No class uses anything of another's. */
static const struct quota {
        int64_t priority;
        unsigned connections, of_user; /* of the class, and of one user in it */
        unsigned calls;                /* per connection and loop iteration */
        size_t call_max;               /* bytes of one call */
        /* Bytes buffered for the class: calls that have not ended, and unread replies. SIZE_MAX: no limit. */
        size_t input_max, output_max;
} quotas[_CONTROL_ACCESS_MAX] = {
        /* A viewer's connection gets one call, so that other clients wait for one at most. */
        [CONTROL_VIEW] = {QUOTA_ACCEPT_PRIORITY + 10, QUOTA_VIEWERS_MAX, QUOTA_VIEWERS_MAX / 2, 1, 64 * KIB,
                          2 * MIB, 16 * MIB},
        [CONTROL_OPERATE] = {QUOTA_ACCEPT_PRIORITY + 5, QUOTA_OPERATORS_MAX, QUOTA_OPERATORS_MAX / 2, 16,
                             VARLINK_CALL_MAX, 16 * MIB, 64 * MIB},
        /* The user of sqmgr, whose workers could connect, too, leaves some connections to root. */
        [CONTROL_OWN] = {QUOTA_ACCEPT_PRIORITY, QUOTA_OWNERS_MAX, QUOTA_OWNERS_MAX - 16, 16, VARLINK_CALL_MAX,
                         SIZE_MAX, SIZE_MAX},
};

static const struct quota *quota_of(const struct client_connection *connection)
{
        return &quotas[connection->access];
}

static size_t output_size(const struct client_connection *connection)
{
        return connection->output_end - connection->output_start;
}

static void call_end(struct call *call)
{
        varlink_call_free(&call->message);
        call->open = call->kept = false;
        call->cancelled = NULL;
}

static struct client_connection *connection_free(struct client_connection *connection)
{
        LIST_UNLINK(connection->server->connections, connection);
        if (connection->call.open && connection->call.cancelled)
                connection->call.cancelled(&connection->call, connection->call.userdata);
        call_end(&connection->call);
        sd_event_source_disable_unref(connection->io);
        sd_event_source_disable_unref(connection->deadline);
        sd_event_source_disable_unref(connection->resume);
        varlink_input_free(&connection->input);
        free(connection->output);
        close_fd(connection->fd);
        free(connection);
        return NULL;
}

static void connection_resume(struct client_connection *connection)
{
        if (sd_event_source_set_enabled(connection->resume, SD_EVENT_ONESHOT) < 0)
                connection->dead = true;
}

static void connection_flush(struct client_connection *connection)
{
        while (output_size(connection) > 0) {
                ssize_t n = send(connection->fd, connection->output + connection->output_start,
                                 output_size(connection), MSG_DONTWAIT | MSG_NOSIGNAL);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        return;
                if (n < 0) {
                        /* The peer reads no more, but calls already received are still executed. A connection
                         * that waits for an unsent reply must not wait forever. */
                        connection->hung_up = errno == EPIPE || errno == ECONNRESET;
                        connection->dead = !connection->hung_up;
                        break;
                }
                connection->output_start += (size_t)n;
        }
        connection->output_start = connection->output_end = 0;
        free(connection->output);
        connection->output = NULL;
        connection->output_allocated = 0;
}

static int output_add(struct client_connection *connection, const char *text, size_t size)
{
        if (connection->output_start > 0) {
                memmove(connection->output, connection->output + connection->output_start,
                        output_size(connection));
                connection->output_end -= connection->output_start;
                connection->output_start = 0;
        }
        if (connection->output_allocated - connection->output_end < size) {
                if (!ARRAY_RESIZE(connection->output, connection->output_end + size))
                        return -ENOMEM;
                connection->output_allocated = connection->output_end + size;
        }
        memcpy(connection->output + connection->output_end, text, size);
        connection->output_end += size;
        return 0;
}

static void connection_send(struct client_connection *connection, const char *text, size_t size)
{
        if (connection->dead || connection->hung_up)
                return;
        if (output_size(connection) > OUTPUT_MAX || output_add(connection, text, size) < 0)
                connection->dead = true;
        else
                connection_flush(connection);
        connection_resume(connection);
}

bool call_wants_reply(const struct call *call)
{
        return !call->message.oneway;
}

bool call_wants_more(const struct call *call)
{
        return call->message.more;
}

/* True if size more bytes of output fit into the limit. */
static bool has_output_space(const struct client_connection *connection, size_t size)
{
        size_t total = size;

        for (const struct client_connection *i = connection->server->connections; i; i = i->next)
                total += i->access == connection->access ? output_size(i) : 0;
        return total <= quota_of(connection)->output_max;
}

/* Sends text as the reply to the call; r is the result of encoding text. */
static void call_send(struct call *call, int r, const char *text, size_t size, bool continues)
{
        static const char too_many_replies[] =
                "{\"parameters\":{\"reason\":\"too many replies are waiting to be read; try again "
                "later\",\"details\":[]},\"error\":\"" CONTROL_REFUSED "\"}";
        struct client_connection *connection = call->connection;
        bool oneway = call->message.oneway;

        assert(call->open);
        if (!continues)
                call_end(call);
        if (r >= 0 && !oneway && !has_output_space(connection, size)) {
                r = continues ? -ENOBUFS : 0;
                text = too_many_replies;
                size = sizeof(too_many_replies);
        }
        if (r < 0) {
                connection->dead = true;
                connection_resume(connection);
        } else if (!oneway) {
                connection_send(connection, text, size);
        } else {
                connection_resume(connection);
        }
}

static void reply(struct call *call, const char *error, json_t *parameters, bool continues)
{
        _cleanup_free_ char *text = NULL;
        size_t size = 0;

        if (call_is_view(call))
                quoted_drop(parameters);
        int r = varlink_encode_reply(error, parameters, continues, &text, &size);
        call_send(call, r, text, size, continues);
}

void call_reply(struct call *call, json_t *parameters, bool continues)
{
        reply(call, NULL, parameters, continues);
}

void call_reply_error(struct call *call, const char *error, json_t *parameters)
{
        reply(call, error, parameters, false);
}

void shared_reply_make(struct shared_reply *ret, bool is_view, const char *error, json_t *parameters)
{
        *ret = (struct shared_reply){.is_view = is_view};
        if (is_view)
                quoted_drop(parameters);
        if (varlink_encode_reply(error, parameters, false, &ret->text, &ret->size) < 0)
                ret->text = NULL;
}

void shared_reply_clear(struct shared_reply *reply)
{
        free(reply->text);
        *reply = (struct shared_reply){0};
}

void call_reply_shared(struct call *call, const struct shared_reply *reply)
{
        bool may_see = reply->text && (reply->is_view || !call_is_view(call));

        call_send(call, may_see ? 0 : -EINVAL, reply->text, reply->size, false);
}

void call_keep(struct call *call, void (*cancelled)(struct call *call, void *userdata), void *userdata)
{
        assert(call->open);
        call->kept = true;
        call->cancelled = cancelled;
        call->userdata = userdata;
}

/* Encodes an error with this reason, and a NUL byte. */
static int encode_refusal(const char *error, const char *reason, char **ret, size_t *ret_size)
{
        return varlink_encode_reply(error, json_pack("{s:s, s:[]}", "reason", reason, "details"), false, ret,
                                    ret_size);
}

/* Reports an error to a peer that does not speak Varlink, and closes: later input cannot be trusted. */
static void connection_refuse(struct client_connection *connection, const char *reason)
{
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        int r = encode_refusal(CONTROL_REFUSED, reason, &text, &size);

        connection->closing = true;
        if (r < 0)
                connection->dead = true;
        else
                connection_send(connection, text, size);
}

/* The interface that every Varlink service must offer. */
#define INTROSPECT_INTERFACE "org.varlink.service"

static const char service_description[] =
        "interface org.varlink.service\n"
        "\n"
        "method GetInfo() -> (vendor: string, product: string, version: string, url: string, interfaces: "
        "[]string)\n"
        "\n"
        "method GetInterfaceDescription(interface: string) -> (description: string)\n"
        "\n"
        "error InterfaceNotFound (interface: string)\n"
        "\n"
        "error MethodNotFound (method: string)\n"
        "\n"
        "error MethodNotImplemented (method: string)\n"
        "\n"
        "error InvalidParameter (parameter: string)\n"
        "\n"
        "error PermissionDenied ()\n"
        "\n"
        "error ExpectedMore ()\n";

static void describe(struct call *call, json_t *interface)
{
        const char *name = json_string_value(interface);
        const char *text = !name                                     ? NULL
                           : strcmp(name, CONTROL_INTERFACE) == 0    ? control_description
                           : strcmp(name, INTROSPECT_INTERFACE) == 0 ? service_description
                                                                     : NULL;

        if (text)
                call_reply(call, json_pack("{s:s}", "description", text), false);
        else if (name)
                call_reply_error(call, VARLINK_INTERFACE_NOT_FOUND,
                                 json_pack("{s:O}", "interface", interface));
        else
                call_reply_error(call, VARLINK_INVALID_PARAMETER,
                                 json_pack("{s:s}", "parameter", "interface"));
}

/* Answers a call of that interface. */
static void call_introspect(struct call *call)
{
        const char *name = strrchr(call->message.method, '.') + 1;
        const char *version = call->connection->server->options.version;

        if (strcmp(name, "GetInfo") == 0)
                call_reply(call,
                           json_pack("{s:s, s:s, s:s, s:s, s:[s, s]}", "vendor", "sqmgr", "product", "sqmgr",
                                     "version", version, "url", "", "interfaces", INTROSPECT_INTERFACE,
                                     CONTROL_INTERFACE),
                           false);
        else if (strcmp(name, "GetInterfaceDescription") == 0)
                describe(call, json_object_get(call->message.parameters, "interface"));
        else
                call_reply_error(call, VARLINK_METHOD_NOT_FOUND,
                                 json_pack("{s:s}", "method", call->message.method));
}

static void call_dispatch(struct call *call)
{
        struct client_connection *connection = call->connection;
        struct api_server *server = connection->server;
        struct varlink_call *message = &call->message;
        char *dot = strrchr(message->method, '.');

        if (!dot) {
                call_reply_error(call, VARLINK_INVALID_PARAMETER, json_pack("{s:s}", "parameter", "method"));
                return;
        }
        size_t length = (size_t)(dot - message->method);
        if (length == strlen(INTROSPECT_INTERFACE) &&
            strncmp(message->method, INTROSPECT_INTERFACE, length) == 0) {
                call_introspect(call);
                return;
        }
        if (length != strlen(CONTROL_INTERFACE) || strncmp(message->method, CONTROL_INTERFACE, length) != 0) {
                call_reply_error(call, VARLINK_INTERFACE_NOT_FOUND,
                                 json_pack("{s:s%}", "interface", message->method, length));
                return;
        }

        const struct control_method *method = control_find_method(dot + 1);
        if (!method) {
                call_reply_error(call, VARLINK_METHOD_NOT_FOUND,
                                 json_pack("{s:s}", "method", message->method));
                return;
        }
        if (message->upgrade) {
                call_reply_error(call, VARLINK_METHOD_NOT_IMPLEMENTED,
                                 json_pack("{s:s}", "method", message->method));
                return;
        }
        if (method->access > connection->access) {
                const char *group = server->options.groups.operate_name;
                bool helps = method->access == CONTROL_OPERATE && group[0] != '\0';

                call_reply_error(
                        call, VARLINK_PERMISSION_DENIED,
                        json_pack("{s:s, s:s?}", "method", message->method, "group", helps ? group : NULL));
                return;
        }
        message->more = message->more && method->more && !message->oneway;
        server->options.handle(call, method, message->parameters, server->options.userdata);
        assert(!call->open || call->kept);
        /* Handlers that keep the call have copied what they need. Parsed JSON may take twenty times the bytes
         * received. */
        if (call->open)
                varlink_call_free(message);
}

/* True if the next call may be taken. */
static bool connection_is_free(const struct client_connection *connection)
{
        return !connection->dead && !connection->closing && !connection->call.open &&
               (connection->hung_up || output_size(connection) < OUTPUT_PAUSE);
}

/* Takes the next call. Returns false if there is none. */
static bool connection_take(struct client_connection *connection)
{
        const char *text;
        char reason[64];
        size_t size;
        int r = varlink_input_take(&connection->input, quota_of(connection)->call_max, &text, &size);

        if (r == 0)
                return false;
        if (r < 0) {
                snprintf(reason, sizeof(reason), "message too long (maximum %zu KiB)",
                         quota_of(connection)->call_max / 1024);
                connection_refuse(connection, reason);
                return false;
        }
        r = varlink_decode_call(text, size, &connection->call.message);
        if (r < 0) {
                connection_refuse(
                        connection,
                        r == -ENOMEM
                                ? "out of memory for this call"
                                : "not a Varlink call; send a JSON object with \"method\", then a NUL byte");
                return false;
        }
        connection->call.open = true;
        call_dispatch(&connection->call);
        return true;
}

static int on_deadline(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        connection_free(userdata);
        return 0;
}

/* Limits the time for an incomplete message, and for unread output before closing. */
static int connection_arm(struct client_connection *connection, bool wanted)
{
        uint64_t at = 0;
        int r = sd_event_source_get_time(connection->deadline, &at);

        if (r < 0 || wanted == (at != USEC_INFINITY))
                return MIN(r, 0);
        return wanted ? sd_event_source_set_time_relative(connection->deadline,
                                                          connection->server->options.message_timeout)
                      : sd_event_source_set_time(connection->deadline, USEC_INFINITY);
}

/* Maximum of buffered input: not more than one whole message ahead, and almost nothing while a call is in
 * progress. */
static size_t input_max(const struct client_connection *connection)
{
        return connection->call.open ? READ_BYTES : quota_of(connection)->call_max + READ_BYTES;
}

/* Closes the connection, or waits for the next event. */
static void connection_settle(struct client_connection *connection)
{
        bool ready = varlink_input_ready(&connection->input, quota_of(connection)->call_max) != 0;
        bool half = !ready && varlink_input_size(&connection->input) > 0;
        uint32_t events = 0;

        /* Idle connections hold no buffers, and waiting ones almost none. */
        if (varlink_input_size(&connection->input) == 0)
                varlink_input_free(&connection->input);
        else if (connection->call.open)
                varlink_input_trim(&connection->input);
        if (connection->hung_up)
                connection->output_start = connection->output_end = 0;
        bool sent = output_size(connection) == 0;
        bool over = connection->end && !ready && !connection->call.open;
        bool abandoned = connection->hung_up && (connection->closing || connection->call.open);
        if (connection->dead || abandoned || (sent && (connection->closing || over))) {
                connection_free(connection);
                return;
        }

        if (!connection->end && !connection->closing &&
            varlink_input_size(&connection->input) < input_max(connection))
                events |= EPOLLIN;
        if (!sent)
                events |= EPOLLOUT;
        if (sd_event_source_set_io_events(connection->io, events) < 0 ||
            connection_arm(connection, connection->closing || (half && !connection->call.open)) < 0) {
                connection_free(connection);
                return;
        }
        if (ready && connection_is_free(connection))
                connection_resume(connection);
}

static void connection_advance(struct client_connection *connection)
{
        for (unsigned i = 0; i < quota_of(connection)->calls && connection_is_free(connection); i++)
                if (!connection_take(connection))
                        break;
        connection_settle(connection);
}

/* Small calls are always accepted: large calls of some clients must not lock out others. */
static bool has_input_space(const struct client_connection *connection)
{
        size_t total = 0;

        if (varlink_input_size(&connection->input) <= READ_BYTES)
                return true;
        for (const struct client_connection *i = connection->server->connections; i; i = i->next)
                total += i->access == connection->access ? i->input.allocated : 0;
        return total <= quota_of(connection)->input_max;
}

static void connection_receive(struct client_connection *connection)
{
        char *space;

        if (!has_input_space(connection)) {
                connection_refuse(connection, "too many long calls are being sent; try again later");
                return;
        }
        if (varlink_input_reserve(&connection->input, READ_BYTES, &space) < 0) {
                connection->dead = true;
                return;
        }
        ssize_t n = recv(connection->fd, space, READ_BYTES, MSG_DONTWAIT);
        if (n > 0)
                varlink_input_filled(&connection->input, (size_t)n);
        else if (n == 0)
                connection->end = true;
        else if (errno != EAGAIN && errno != EINTR)
                connection->end = connection->hung_up = true;
}

static int on_io(sd_event_source *source _unused_, int fd _unused_, uint32_t revents, void *userdata)
{
        struct client_connection *connection = userdata;

        if (revents & (EPOLLHUP | EPOLLERR))
                connection->hung_up = true;
        if (revents & EPOLLOUT)
                connection_flush(connection);
        if (!connection->end && varlink_input_size(&connection->input) < input_max(connection))
                connection_receive(connection);
        connection_advance(connection);
        return 0;
}

static int on_resume(sd_event_source *source _unused_, void *userdata)
{
        connection_advance(userdata);
        return 0;
}

/* Returns what the peer may do, as the kernel reports its user and groups, with the user in *ret_uid. */
static enum control_access access_of(const struct api_server *server, int fd, uid_t *ret_uid)
{
        struct ucred credentials;
        socklen_t size = sizeof(credentials);
        gid_t groups[PEER_GROUPS_MAX];

        *ret_uid = (uid_t)-1;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0)
                return CONTROL_NONE;
        *ret_uid = credentials.uid;
        if (users_is_of_unmapped(credentials.uid))
                return CONTROL_NONE;
        struct control_peer peer = {.uid = credentials.uid, .gid = credentials.gid};

        size = sizeof(groups);
        if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) == 0) {
                peer.groups = groups;
                peer.n_groups = size / sizeof(gid_t);
        }
        return control_peer_access(&peer, server->uid, server->options.groups.view,
                                   server->options.groups.operate);
}

static int connection_new(struct api_server *server, int fd, uid_t uid, enum control_access access)
{
        struct client_connection *connection = calloc(1, sizeof(*connection));

        if (!connection) {
                close_fd(fd);
                return -ENOMEM;
        }
        *connection = (struct client_connection){
                .server = server,
                .next = server->connections,
                .fd = fd,
                .uid = uid,
                .access = access,
        };
        connection->call.connection = connection;
        server->connections = connection;

        int r = sd_event_add_io(server->event, &connection->io, fd, EPOLLIN, on_io, connection);
        if (r >= 0)
                r = sd_event_add_defer(server->event, &connection->resume, on_resume, connection);
        if (r >= 0)
                r = sd_event_source_set_enabled(connection->resume, SD_EVENT_OFF);
        if (r >= 0)
                r = timer_new(server->event, on_deadline, connection, &connection->deadline);
        sd_event_source *const sources[] = {connection->io, connection->resume, connection->deadline};
        for (size_t i = 0; i < ELEMENTSOF(sources) && r >= 0; i++)
                r = sd_event_source_set_priority(sources[i], quota_of(connection)->priority);
        if (r < 0)
                connection_free(connection);
        return r;
}

static void refuse_connection(int fd, const char *error, const char *reason)
{
        _cleanup_free_ char *text = NULL;
        size_t size;

        if (encode_refusal(error, reason, &text, &size) >= 0)
                (void)send(fd, text, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        close_fd(fd);
}

static void refuse_stranger(const struct api_server *server, int fd)
{
        const char *group = server->options.groups.operate_name;
        char reason[256];

        if (group[0] != '\0')
                snprintf(reason, sizeof(reason),
                         "members of group '" CONTROL_VIEW_GROUP
                         "' may read, and members of group '%s' may give orders",
                         group);
        else
                snprintf(reason, sizeof(reason),
                         "members of group '" CONTROL_VIEW_GROUP
                         "' may read, and only root and the user of sqmgr may give orders (to permit a "
                         "group, set 'socket_group' in sqmgr.ini)");
        refuse_connection(fd, VARLINK_PERMISSION_DENIED, reason);
}

static int pause_accepting(struct api_server *server, usec_t span)
{
        int r = sd_event_source_set_time_relative(server->accept_pause, span);

        if (r >= 0)
                r = sd_event_source_set_enabled(server->accept_pause, SD_EVENT_ONESHOT);
        if (r >= 0)
                r = sd_event_source_set_enabled(server->accept, SD_EVENT_OFF);
        return MIN(r, 0);
}

/* Without descriptors or memory, the listening socket stays readable: pause to avoid a busy loop. */
static int fail_accepting(struct api_server *server, int error)
{
        if (!server->accept_failed)
                log_error("cannot accept a connection on the control socket: %s; retrying", strerror(error));
        server->accept_failed = true;
        return pause_accepting(server, ACCEPT_PAUSE_USEC);
}

static int on_accept_pause(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct api_server *server = userdata;

        /* Enabling the source takes kernel memory, which may fail. */
        int r = sd_event_source_set_enabled(server->accept, SD_EVENT_ON);
        return r < 0 ? fail_accepting(server, -r) : 0;
}

/* Returns a sentence why a peer of this class is refused, or NULL if it may connect. */
static const char *find_no_place(const struct api_server *server, uid_t uid, enum control_access access)
{
        unsigned total = 0, same = 0;

        for (const struct client_connection *i = server->connections; i; i = i->next) {
                total += i->access == access;
                same += i->access == access && i->uid == uid;
        }
        return total >= quotas[access].connections ? "too many connections; try again later"
               : same >= quotas[access].of_user    ? "this user has too many connections; close some of them"
                                                   : NULL;
}

/* Accepts strangers, and one other peer at most, whose call is handled next. */
static int on_accept(sd_event_source *source _unused_, int listen_fd, uint32_t revents _unused_,
                     void *userdata)
{
        struct api_server *server = userdata;

        for (;;) {
                int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
                uid_t uid;

                if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
                        return fail_accepting(server, errno);
                if (fd < 0)
                        return 0;
                enum control_access access = access_of(server, fd, &uid);
                if (access == CONTROL_NONE) {
                        refuse_stranger(server, fd);
                        if (++server->n_strangers < STRANGERS_AT_ONCE)
                                continue;
                        server->n_strangers = 0;
                        return pause_accepting(server, STRANGERS_PAUSE_USEC);
                }
                const char *reason = find_no_place(server, uid, access);
                if (reason)
                        refuse_connection(fd, CONTROL_REFUSED, reason);
                else if (connection_new(server, fd, uid, access) == -ENOMEM && !server->connections)
                        return fail_accepting(server, ENOMEM);
                else
                        server->accept_failed = false;
                return 0;
        }
}

size_t api_server_hand(const struct api_server *server, struct handed *ret)
{
        size_t n = 0;

        ret[n++] = (struct handed){.kind = HANDED_LISTEN, .fd = server->listener.fd};
        for (const struct client_connection *i = server->connections; i; i = i->next)
                if (connection_is_free(i) && !i->end && output_size(i) == 0 &&
                    varlink_input_size(&i->input) == 0)
                        ret[n++] = (struct handed){.kind = HANDED_IDLE, .fd = i->fd};
        return n;
}

uid_t call_uid(const struct call *call)
{
        return call->connection->uid;
}

bool call_is_view(const struct call *call)
{
        return call->connection->access == CONTROL_VIEW;
}

int call_fd(const struct call *call)
{
        return call->connection->fd;
}

void api_server_continue(struct api_server *server, int fd, json_t *reply)
{
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        uid_t uid;
        enum control_access access = access_of(server, fd, &uid);
        int r = reply ? varlink_encode_reply(NULL, reply, false, &text, &size) : 0;

        if (r < 0 || access == CONTROL_NONE)
                close_fd(fd);
        else if (connection_new(server, fd, uid, access) >= 0 && reply)
                connection_send(server->connections, text, size);
}

void api_server_set_groups(struct api_server *server, const struct api_server_groups *groups)
{
        server->options.groups = *groups;
}

static int server_watch(struct api_server *server)
{
        int r = sd_event_add_io(server->event, &server->accept, server->listener.fd, EPOLLIN, on_accept,
                                server);

        if (r >= 0)
                r = sd_event_source_set_priority(server->accept, QUOTA_ACCEPT_PRIORITY);
        if (r >= 0)
                r = sd_event_add_time_relative(server->event, &server->accept_pause, CLOCK_MONOTONIC, 0, 1,
                                               on_accept_pause, server);
        if (r >= 0)
                r = sd_event_source_set_enabled(server->accept_pause, SD_EVENT_OFF);
        return MIN(r, 0);
}

int api_server_new(sd_event *event, const struct api_server_options *options, struct api_server **ret,
                   char *error, size_t error_size)
{
        struct api_server *server = calloc(1, sizeof(*server));

        if (!server) {
                snprintf(error, error_size, "out of memory for the control socket");
                return -ENOMEM;
        }
        *server = (struct api_server){
                .listener = LISTENER_NONE,
                .event = sd_event_ref(event),
                .uid = geteuid(),
                .options = *options,
        };
        if (server->options.message_timeout == 0)
                server->options.message_timeout = MESSAGE_TIMEOUT_USEC;
        int r = listener_open(&server->listener, options->path, options->inherited, error, error_size);
        if (r >= 0) {
                r = server_watch(server);
                if (r < 0)
                        snprintf(error, error_size, "cannot serve '%s': %s", options->path,
                                 strerrordesc_np(-r));
        }
        if (r < 0) {
                api_server_free(server);
                return r;
        }
        *ret = server;
        return 0;
}

int api_server_keep_socket(struct api_server *server, char *error, size_t error_size)
{
        struct listener *listener = &server->listener;
        int fd = -1;
        int r = listener_open_again(listener, &fd, error, error_size);

        if (r <= 0)
                return r;
        r = sd_event_source_set_io_fd(server->accept, fd);
        if (r < 0) {
                /* Closing the socket lets the next call of this function replace its file. */
                close_fd(fd);
                listener->inode = 0;
                snprintf(error, error_size, "cannot serve the socket: %s", strerrordesc_np(-r));
                return r;
        }
        close_fd(listener->fd);
        listener->fd = fd;
        return 1;
}

struct api_server *api_server_free(struct api_server *server)
{
        if (!server)
                return NULL;
        while (server->connections)
                connection_free(server->connections);
        server->accept = sd_event_source_disable_unref(server->accept);
        server->accept_pause = sd_event_source_disable_unref(server->accept_pause);
        listener_close(&server->listener);
        sd_event_unref(server->event);
        free(server);
        return NULL;
}
