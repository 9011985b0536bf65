/* SPDX-License-Identifier: MIT */
/* A connection to one sqmgr: sends queries one at a time and reconnects automatically. */
#include "web/instance_client.h"
#include "base/fd.h"
#include "base/locate.h"
#include "base/printable.h"
#include "web/loop.h"
#include "wire/control.h"
#include "wire/quoted.h"
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>

#define READ_BYTES       ((size_t)64 * 1024)
#define ACCURACY_USEC    USEC_PER_MSEC
#define INPUT_KEEP_BYTES ((size_t)1 << 20)
/* All instances wait for one that takes so long to accept a connection. */
#define CONNECT_USEC (100 * USEC_PER_MSEC)

const struct instance_client_limits instance_client_default_limits = {
        .reply_bytes = (size_t)8 << 20,
        .answer_usec = 5 * USEC_PER_SEC,
        .backoff_min_usec = 250 * USEC_PER_MSEC,
        .backoff_max_usec = 5 * USEC_PER_SEC,
};

static const char *const methods[] = {
        [INSTANCE_QUERY_STATUS] = CONTROL_INTERFACE ".GetStatus",
        [INSTANCE_QUERY_EVENTS] = CONTROL_INTERFACE ".GetEvents",
        [INSTANCE_QUERY_QUEUES] = CONTROL_INTERFACE ".GetQueues",
        [INSTANCE_QUERY_METRICS] = CONTROL_INTERFACE ".GetMetrics",
};
static_assert(ELEMENTSOF(methods) == _INSTANCE_QUERY_MAX, "each question has its method");

struct instance_client {
        struct instance_address address;
        const struct instance_client_limits *limits;
        const struct instance_client_ops *ops;
        void *userdata;
        int fd;                 /* -1: not connected */
        sd_event_source *io;    /* for fd, or NULL */
        sd_event_source *timer; /* next connection attempt, or timeout of the current query */
        usec_t backoff;
        unsigned wanted; /* set of due queries: a bit for each */
        int asked;       /* current query; -1: none */
        int last;        /* query asked last; -1: none. The other due queries come first, so that one which is
                            due again with each reply cannot keep them waiting. */
        int refused;     /* query whose reply was refused: the next connection begins with it, so that an
                            instance counts as failed until a reply to it is accepted; -1: none */
        struct varlink_input input;
};

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata);

static void disconnect(struct instance_client *instance_client)
{
        instance_client->io = sd_event_source_disable_unref(instance_client->io);
        instance_client->fd = close_fd(instance_client->fd);
        varlink_input_free(&instance_client->input);
        instance_client->wanted = 0;
        instance_client->asked = -1;
}

/* Reports the error and reconnects later, with exponential backoff. */
static _printf_(2, 3) void disconnect_and_retry(struct instance_client *instance_client, const char *format,
                                                ...)
{
        char error[512];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(error, sizeof(error), format, arguments);
        va_end(arguments);
        /* The end of a cut text may be half of a character, which no JSON may have. */
        printable_replace(error, strlen(error), false);
        disconnect(instance_client);
        loop_arm(instance_client->timer, instance_client->backoff);
        instance_client->backoff =
                MIN(instance_client->backoff * 2, instance_client->limits->backoff_max_usec);
        instance_client->ops->lost(instance_client->userdata, error);
}

static const char *connect_error(int error)
{
        switch (error) {
        case ENOENT:
                return "no such socket: sqmgr is not running";
        case ECONNREFUSED:
                return "connection refused: sqmgr is not running";
        case EAGAIN:
                return "sqmgr accepts no more connections now";
        default:
                return strerrordesc_np(error);
        }
}

/* Returns 0 or -errno. */
static int try_connect(struct instance_client *instance_client, sd_event *event, const char **ret_reason)
{
        /* The queue of an instance may be full of strangers for some milliseconds. */
        _cleanup_close_ int fd = locate_connect(instance_client->address.path, instance_client->address.name,
                                                0, CONNECT_USEC, ret_reason);

        if (fd < 0)
                return fd;
        if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
                return -errno;
        int r = sd_event_add_io(event, &instance_client->io, fd, EPOLLIN, on_io, instance_client);
        if (r < 0)
                return r;
        instance_client->fd = TAKE_FD(fd);
        return 0;
}

static int send_question(struct instance_client *instance_client, enum instance_query question)
{
        _cleanup_free_ char *text = NULL;
        size_t size;
        json_t *parameters = instance_client->ops->parameters(instance_client->userdata, question);
        int r = varlink_encode_call(methods[question], parameters ?: json_object(), false, &text, &size);

        if (r < 0)
                return r;
        ssize_t n = send(instance_client->fd, text, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0)
                return -errno;
        /* A single query always fits in the socket buffer. */
        return (size_t)n == size ? 0 : -EAGAIN;
}

/* Sends the next due query, if no other query is pending. */
static void ask_next(struct instance_client *instance_client)
{
        if (instance_client->fd < 0 || instance_client->asked >= 0)
                return;
        unsigned others = instance_client->wanted & ~0U << (instance_client->last + 1);
        instance_client->asked = ffs((int)(others ?: instance_client->wanted)) - 1;
        if (instance_client->asked < 0) {
                /* All queries were answered. A process whose replies are refused does not get here. */
                instance_client->backoff = instance_client->limits->backoff_min_usec;
                (void)sd_event_source_set_enabled(instance_client->timer, SD_EVENT_OFF);
                return;
        }
        instance_client->wanted &= ~(1U << instance_client->asked);
        instance_client->last = instance_client->asked;
        int r = send_question(instance_client, (enum instance_query)instance_client->asked);
        /* If sqmgr has closed the connection, the next read reports that. */
        loop_arm(instance_client->timer, r < 0 ? 0 : instance_client->limits->answer_usec);
}

static void ask_initially(struct instance_client *instance_client)
{
        instance_client->wanted =
                1U << INSTANCE_QUERY_STATUS | 1U << INSTANCE_QUERY_EVENTS | 1U << INSTANCE_QUERY_QUEUES;
        instance_client->last = -1;
        if (instance_client->refused >= 0) {
                instance_client->wanted |= 1U << instance_client->refused;
                instance_client->last = instance_client->refused - 1;
        }
        ask_next(instance_client);
}

/* A reply that has arrived counts, however late this process reads it. */
static bool input_waits(int fd)
{
        return recv(fd, &(char){0}, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static int on_timer(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        struct instance_client *instance_client = userdata;
        const char *reason = NULL;

        if (instance_client->fd >= 0 && input_waits(instance_client->fd)) {
                loop_arm(instance_client->timer, ACCURACY_USEC);
                return 0;
        }
        if (instance_client->fd >= 0) {
                disconnect_and_retry(instance_client, "sqmgr does not answer: no reply within %u seconds",
                                     (unsigned)(instance_client->limits->answer_usec / USEC_PER_SEC));
                return 0;
        }
        int r = try_connect(instance_client, sd_event_source_get_event(source), &reason);
        if (r == -EKEYREJECTED) {
                disconnect_and_retry(instance_client, "not trusted: %s", reason);
                return 0;
        }
        if (r < 0) {
                disconnect_and_retry(instance_client, "cannot connect: %s", connect_error(-r));
                return 0;
        }
        ask_initially(instance_client);
        return 0;
}

#define LOST_MAX 512

/* Checks what depends on the question. Returns true if the reply may be passed on. Otherwise lost says why;
 * it stays "" if the reply is not one of sqmgr. */
static bool check_reply(const struct instance_client *instance_client, const struct varlink_reply *reply,
                        char lost[static LOST_MAX])
{
        enum instance_query question = (enum instance_query)instance_client->asked;
        char reason[REPLY_REASON_MAX];

        if (reply->continues)
                return false;
        if (reply->error && (strcmp(reply->error, CONTROL_REFUSED) == 0 ||
                             strcmp(reply->error, VARLINK_PERMISSION_DENIED) == 0)) {
                snprintf(lost, LOST_MAX, "%s", reply_string(reply->parameters, "reason"));
                return false;
        }
        if (!reply_limits_check(question, reply->parameters, reason)) {
                snprintf(lost, LOST_MAX, "reply to %s refused: it has %s",
                         methods[question] + sizeof(CONTROL_INTERFACE), reason);
                return false;
        }
        if (question == INSTANCE_QUERY_STATUS && instance_client->address.name &&
            !reply_is(reply->parameters, "instance", instance_client->address.name)) {
                snprintf(lost, LOST_MAX, "not trusted: the instance that answers calls itself '%.200s'",
                         reply_string(reply->parameters, "instance"));
                return false;
        }
        return true;
}

/* Returns false if the connection is no longer usable; lost as in check_reply(). */
static bool take_reply(struct instance_client *instance_client, const char *text, size_t size,
                       char lost[static LOST_MAX])
{
        enum instance_query question = (enum instance_query)instance_client->asked;
        char reason[REPLY_REASON_MAX];
        struct varlink_reply reply;

        lost[0] = '\0';
        if (instance_client->asked < 0)
                return false;
        if (!reply_limits_scan(question, text, size, reason)) {
                snprintf(lost, LOST_MAX, "reply to %s refused: it has %s",
                         methods[question] + sizeof(CONTROL_INTERFACE), reason);
                return false;
        }
        int r = reply_decode(text, size, instance_client->limits->reply_bytes,
                             question == INSTANCE_QUERY_METRICS ? "text" : NULL, &reply);
        if (r < 0)
                return false;
        bool good = check_reply(instance_client, &reply, lost);
        if (good) {
                /* The user of sqmgr-web may be more than a viewer: the page shows nothing that viewers are
                 * not sent. */
                quoted_drop(reply.parameters);
                instance_client->asked = instance_client->refused = -1;
                instance_client->ops->answered(instance_client->userdata, question,
                                               reply.error ? NULL : reply.parameters);
        }
        varlink_reply_free(&reply);
        return good;
}

static void take_replies(struct instance_client *instance_client)
{
        char lost[LOST_MAX];
        const char *text;
        size_t size;
        int r;

        while ((r = varlink_input_take(&instance_client->input, instance_client->limits->reply_bytes, &text,
                                       &size)) > 0) {
                if (take_reply(instance_client, text, size, lost))
                        continue;
                /* The instance is shown as failed until a reply to that query is accepted. */
                if (lost[0] != '\0')
                        instance_client->refused = instance_client->asked;
                disconnect_and_retry(
                        instance_client, "%s",
                        lost[0] != '\0' ? lost
                                        : "the process at this socket does not speak the protocol of sqmgr");
                return;
        }
        if (r < 0) {
                instance_client->refused = instance_client->asked;
                disconnect_and_retry(instance_client, "a reply is longer than %zu bytes",
                                     instance_client->limits->reply_bytes);
                return;
        }
        if (varlink_input_size(&instance_client->input) == 0 &&
            instance_client->input.allocated > INPUT_KEEP_BYTES)
                varlink_input_free(&instance_client->input);
        ask_next(instance_client);
}

static int on_io(sd_event_source *source _unused_, int fd, uint32_t revents _unused_, void *userdata)
{
        struct instance_client *instance_client = userdata;
        char *space;

        if (varlink_input_reserve(&instance_client->input, READ_BYTES, &space) < 0) {
                disconnect_and_retry(instance_client, "not enough memory");
                return 0;
        }
        ssize_t n = recv(fd, space, READ_BYTES, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n <= 0) {
                disconnect_and_retry(instance_client, "connection lost: %s",
                                     n < 0 ? strerrordesc_np(errno) : "closed by sqmgr");
                return 0;
        }
        varlink_input_filled(&instance_client->input, (size_t)n);
        take_replies(instance_client);
        return 0;
}

void instance_client_ask(struct instance_client *instance_client, enum instance_query question)
{
        if (instance_client->fd < 0)
                return;
        instance_client->wanted |= 1U << question;
        ask_next(instance_client);
}

bool instance_client_awaits(const struct instance_client *instance_client, enum instance_query question)
{
        return (instance_client->wanted & 1U << question) != 0 || instance_client->asked == (int)question;
}

int instance_client_new(struct instance_client **ret, sd_event *event, struct instance_address address,
                        const struct instance_client_limits *limits, const struct instance_client_ops *ops,
                        void *userdata)
{
        struct instance_client *instance_client = calloc(1, sizeof(*instance_client));

        if (!instance_client)
                return -ENOMEM;
        *instance_client = (struct instance_client){.address = address,
                                                    .limits = limits,
                                                    .ops = ops,
                                                    .userdata = userdata,
                                                    .fd = -1,
                                                    .asked = -1,
                                                    .refused = -1,
                                                    .backoff = limits->backoff_min_usec};
        int r = sd_event_add_time_relative(event, &instance_client->timer, CLOCK_MONOTONIC, 0, ACCURACY_USEC,
                                           on_timer, instance_client);
        *ret = r < 0 ? instance_client_free(instance_client) : instance_client;
        return MIN(r, 0);
}

struct instance_client *instance_client_free(struct instance_client *instance_client)
{
        if (!instance_client)
                return NULL;
        disconnect(instance_client);
        sd_event_source_disable_unref(instance_client->timer);
        free(instance_client);
        return NULL;
}
