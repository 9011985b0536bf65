/* SPDX-License-Identifier: MIT */
/* One connection to one sqmgr: asks, one question after another, and connects again by itself. */
#include "web/link.h"
#include "base/fd.h"
#include "web/loop.h"
#include "wire/control.h"
#include "wire/varlink.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define READ_BYTES       ((size_t)64 * 1024)
#define ACCURACY_USEC    USEC_PER_MSEC
#define INPUT_KEEP_BYTES ((size_t)1 << 20)

/* The bytes are those of some ten thousand workers; what stands behind them in memory is a multiple. */
const struct link_limits link_default_limits = {
        .reply_bytes = (size_t)8 << 20,
        .answer_usec = 5 * USEC_PER_SEC,
        .backoff_min_usec = 250 * USEC_PER_MSEC,
        .backoff_max_usec = 5 * USEC_PER_SEC,
};

static const char *const methods[] = {
        [LINK_STATUS] = CONTROL_INTERFACE ".GetStatus",     [LINK_EVENTS] = CONTROL_INTERFACE ".GetEvents",
        [LINK_QUEUES] = CONTROL_INTERFACE ".GetQueues",     [LINK_METRICS] = CONTROL_INTERFACE ".GetMetrics",
        [LINK_ROLLOUTS] = CONTROL_INTERFACE ".GetRollouts",
};
static_assert(ELEMENTSOF(methods) == _LINK_QUESTION_MAX, "each question has its method");

struct link {
        const char *path;
        const struct link_limits *limits;
        const struct link_ops *ops;
        void *userdata;
        int fd;                 /* -1: none */
        sd_event_source *io;    /* of fd, or NULL */
        sd_event_source *timer; /* the next try, or until when an answer is waited for */
        usec_t backoff;
        unsigned wanted; /* a bit for each question */
        int asked;       /* the question whose answer is to come; -1: none */
        struct varlink_input input;
};

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata);

static void disconnect(struct link *link)
{
        link->io = sd_event_source_disable_unref(link->io);
        link->fd = close_fd(link->fd);
        varlink_input_free(&link->input);
        link->wanted = 0;
        link->asked = -1;
}

/* Says why, and tries again later: the longer, the more often it was in vain. */
static _printf_(2, 3) void lose(struct link *link, const char *format, ...)
{
        char error[512];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(error, sizeof(error), format, arguments);
        va_end(arguments);
        disconnect(link);
        loop_arm(link->timer, link->backoff);
        link->backoff = MIN(link->backoff * 2, link->limits->backoff_max_usec);
        link->ops->lost(link->userdata, error);
}

static const char *connect_error(int error)
{
        switch (error) {
        case ENOENT:
                return "there is no such socket: sqmgr does not run, or has another read_socket";
        case ECONNREFUSED:
                return "nobody answers there: sqmgr does not run";
        case EACCES:
        case EPERM:
                return "not permitted: the user of sqmgr-web must be of the socket's group";
        case EAGAIN:
                return "sqmgr takes no more connections now";
        default:
                return strerrordesc_np(error);
        }
}

/* Returns 0 or -errno. */
static int try_connect(struct link *link, sd_event *event)
{
        _cleanup_close_ int fd = fd_connect(link->path, SOCK_NONBLOCK, USEC_INFINITY);

        if (fd < 0)
                return fd;
        int r = sd_event_add_io(event, &link->io, fd, EPOLLIN, on_io, link);
        if (r < 0)
                return r;
        link->fd = TAKE_FD(fd);
        return 0;
}

static int send_question(struct link *link, enum link_question question)
{
        _cleanup_free_ char *text = NULL;
        size_t size;
        json_t *parameters = link->ops->parameters(link->userdata, question);
        int r = varlink_encode_call(methods[question], parameters ?: json_object(), false, &text, &size);

        if (r < 0)
                return r;
        ssize_t n = send(link->fd, text, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0)
                return -errno;
        /* One question at a time never fills a socket. */
        return (size_t)n == size ? 0 : -EAGAIN;
}

/* Asks what is due next, where nothing is being asked. */
static void ask_next(struct link *link)
{
        if (link->fd < 0 || link->asked >= 0)
                return;
        link->asked = ffs((int)link->wanted) - 1;
        if (link->asked < 0) {
                (void)sd_event_source_set_enabled(link->timer, SD_EVENT_OFF);
                return;
        }
        link->wanted &= ~(1U << link->asked);
        int r = send_question(link, (enum link_question)link->asked);
        /* Where it has hung up, that is read next, and told then. */
        loop_arm(link->timer, r < 0 ? 0 : link->limits->answer_usec);
}

static int on_timer(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        struct link *link = userdata;

        if (link->fd >= 0) {
                lose(link, "sqmgr does not answer: nothing came within %u seconds",
                     (unsigned)(link->limits->answer_usec / USEC_PER_SEC));
                return 0;
        }
        int r = try_connect(link, sd_event_source_get_event(source));
        if (r < 0) {
                lose(link, "cannot connect: %s", connect_error(-r));
                return 0;
        }
        link_ask(link, LINK_STATUS);
        link_ask(link, LINK_EVENTS);
        link_ask(link, LINK_QUEUES);
        return 0;
}

/* Returns false where the connection is no longer of use. */
static bool take_reply(struct link *link, const char *text, size_t size)
{
        struct varlink_reply reply;
        enum link_question question = (enum link_question)link->asked;

        if (link->asked < 0)
                return false;
        int r = varlink_decode_reply(text, size, &reply);
        if (r < 0)
                return false;
        bool good = !reply.continues;
        if (good) {
                link->asked = -1;
                link->backoff = link->limits->backoff_min_usec;
                link->ops->answered(link->userdata, question, reply.error ? NULL : reply.parameters);
        }
        varlink_reply_free(&reply);
        return good;
}

static void take_replies(struct link *link)
{
        const char *text;
        size_t size;
        int r;

        while ((r = varlink_input_take(&link->input, link->limits->reply_bytes, &text, &size)) > 0) {
                if (take_reply(link, text, size))
                        continue;
                lose(link, "what answers there does not speak as sqmgr does");
                return;
        }
        if (r < 0) {
                lose(link, "an answer is longer than %zu bytes", link->limits->reply_bytes);
                return;
        }
        if (varlink_input_size(&link->input) == 0 && link->input.allocated > INPUT_KEEP_BYTES)
                varlink_input_free(&link->input);
        ask_next(link);
}

static int on_io(sd_event_source *source _unused_, int fd, uint32_t revents _unused_, void *userdata)
{
        struct link *link = userdata;
        char *room;

        if (varlink_input_reserve(&link->input, READ_BYTES, &room) < 0) {
                lose(link, "there is too little memory");
                return 0;
        }
        ssize_t n = recv(fd, room, READ_BYTES, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n <= 0) {
                lose(link, "the connection was lost: %s",
                     n < 0 ? strerrordesc_np(errno) : "sqmgr has closed it");
                return 0;
        }
        varlink_input_filled(&link->input, (size_t)n);
        take_replies(link);
        return 0;
}

void link_ask(struct link *link, enum link_question question)
{
        if (link->fd < 0)
                return;
        link->wanted |= 1U << question;
        ask_next(link);
}

bool link_awaits(const struct link *link, enum link_question question)
{
        return (link->wanted & 1U << question) != 0 || link->asked == (int)question;
}

int link_new(struct link **ret, sd_event *event, const char *path, const struct link_limits *limits,
             const struct link_ops *ops, void *userdata)
{
        struct link *link = calloc(1, sizeof(*link));

        if (!link)
                return -ENOMEM;
        *link = (struct link){.path = path,
                              .limits = limits,
                              .ops = ops,
                              .userdata = userdata,
                              .fd = -1,
                              .asked = -1,
                              .backoff = limits->backoff_min_usec};
        int r = sd_event_add_time_relative(event, &link->timer, CLOCK_MONOTONIC, 0, ACCURACY_USEC, on_timer,
                                           link);
        *ret = r < 0 ? link_free(link) : link;
        return MIN(r, 0);
}

struct link *link_free(struct link *link)
{
        if (!link)
                return NULL;
        disconnect(link);
        sd_event_source_disable_unref(link->timer);
        free(link);
        return NULL;
}
