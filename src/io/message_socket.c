/* SPDX-License-Identifier: MIT */
/* Messages over one SOCK_SEQPACKET socket; see the header. */
#include "io/message_socket.h"
#include "base/fd.h"
#include "continuity/codec.h"
#include <string.h>
#include <sys/socket.h>

#define LENGTH_BYTES sizeof(uint32_t)
/* Well below the default size of a socket's buffer, which a datagram must fit into. */
#define DATAGRAM_MAX ((size_t)64 * 1024)
/* A buffer that has become larger is freed once it is empty. */
#define KEEP_MAX (4 * DATAGRAM_MAX)

/* Bytes from start up to size are in use. */
struct queue_buffer {
        uint8_t *bytes;
        size_t start, size, allocated;
};

struct message_socket {
        int fd;
        sd_event_source *io;
        struct message_socket_limits limits;
        const struct message_socket_ops *ops;
        void *userdata;
        struct queue_buffer in, out;
        bool wants_write;
        unsigned entered; /* calls of on_io() in progress */
        bool freed;
};

static void socket_destroy(struct message_socket *message_socket)
{
        sd_event_source_disable_unref(message_socket->io);
        close_fd(message_socket->fd);
        free(message_socket->in.bytes);
        free(message_socket->out.bytes);
        free(message_socket);
}

/* Returns space for n bytes behind those in use, or NULL if memory is short. */
static uint8_t *buffer_reserve(struct queue_buffer *buffer, size_t n)
{
        if (buffer->start > 0 && buffer->size + n > buffer->allocated) {
                memmove(buffer->bytes, buffer->bytes + buffer->start, buffer->size - buffer->start);
                buffer->size -= buffer->start;
                buffer->start = 0;
        }
        if (buffer->size + n > buffer->allocated) {
                size_t allocated = MAX(buffer->size + n, 2 * buffer->allocated);

                if (!ARRAY_RESIZE(buffer->bytes, allocated))
                        return NULL;
                buffer->allocated = allocated;
        }
        return buffer->bytes + buffer->size;
}

static size_t buffer_used(const struct queue_buffer *buffer)
{
        return buffer->size - buffer->start;
}

static void buffer_take(struct queue_buffer *buffer, size_t n)
{
        buffer->start += n;
        if (buffer->start < buffer->size)
                return;
        buffer->start = buffer->size = 0;
        if (buffer->allocated > KEEP_MAX) {
                free(TAKE_PTR(buffer->bytes));
                buffer->allocated = 0;
        }
}

static void set_wants_write(struct message_socket *message_socket, bool wants)
{
        /* After a failure the next message tries again. */
        if (message_socket->wants_write != wants &&
            sd_event_source_set_io_events(message_socket->io, wants ? EPOLLIN | EPOLLOUT : EPOLLIN) >= 0)
                message_socket->wants_write = wants;
}

/* Sends as much as the peer accepts now. Returns 0 or -errno. */
static int send_queued(struct message_socket *message_socket)
{
        struct queue_buffer *out = &message_socket->out;

        while (buffer_used(out) > 0) {
                size_t n = MIN(buffer_used(out), DATAGRAM_MAX);

                if (send(message_socket->fd, out->bytes + out->start, n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
                        return errno == EAGAIN || errno == EINTR || errno == ENOBUFS ? 0 : -errno;
                buffer_take(out, n);
        }
        set_wants_write(message_socket, false);
        return 0;
}

/* Hands out the whole messages that were received. Returns 0 or -EMSGSIZE. */
static int hand_out(struct message_socket *message_socket)
{
        struct queue_buffer *in = &message_socket->in;

        while (!message_socket->freed && buffer_used(in) >= LENGTH_BYTES) {
                size_t length = codec_get_bytes(in->bytes + in->start, LENGTH_BYTES);

                if (length > message_socket->limits.receive)
                        return -EMSGSIZE;
                if (buffer_used(in) < LENGTH_BYTES + length)
                        break;
                message_socket->ops->on_message(in->bytes + in->start + LENGTH_BYTES, length,
                                                message_socket->userdata);
                buffer_take(in, LENGTH_BYTES + length);
        }
        return 0;
}

/* Receives one datagram; the loop calls again while there are more. Returns 1, 0 if the peer has closed its
 * end, or -errno. */
static int receive(struct message_socket *message_socket)
{
        uint8_t *space = buffer_reserve(&message_socket->in, DATAGRAM_MAX);

        if (!space)
                return -ENOMEM;
        ssize_t n = recv(message_socket->fd, space, DATAGRAM_MAX, MSG_DONTWAIT);
        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 1 : -errno;
        if (n == 0)
                return 0;
        message_socket->in.size += (size_t)n;
        int r = hand_out(message_socket);
        return r < 0 ? r : 1;
}

static int on_io(sd_event_source *source _unused_, int fd _unused_, uint32_t events, void *userdata)
{
        struct message_socket *message_socket = userdata;
        int r = 1;

        message_socket->entered++;
        if (events & EPOLLOUT)
                r = send_queued(message_socket) < 0 ? -EPIPE : 1;
        /* Receive on EPOLLHUP too: messages that the peer sent before it closed its end count. */
        if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
                r = receive(message_socket);
        if (r <= 0 && !message_socket->freed) {
                (void)sd_event_source_set_enabled(message_socket->io, SD_EVENT_OFF);
                message_socket->ops->on_end(r, message_socket->userdata);
        }
        if (--message_socket->entered == 0 && message_socket->freed)
                socket_destroy(message_socket);
        return 0;
}

int message_socket_new(sd_event *event, int fd, const struct message_socket_limits *limits,
                       const struct message_socket_ops *ops, void *userdata, struct message_socket **ret)
{
        struct message_socket *message_socket = calloc(1, sizeof(*message_socket));

        if (!message_socket) {
                close_fd(fd);
                return -ENOMEM;
        }
        *message_socket =
                (struct message_socket){.fd = fd, .limits = *limits, .ops = ops, .userdata = userdata};
        int r = sd_event_add_io(event, &message_socket->io, fd, EPOLLIN, on_io, message_socket);
        if (r < 0) {
                socket_destroy(message_socket);
                return r;
        }
        *ret = message_socket;
        return 0;
}

struct message_socket *message_socket_free(struct message_socket *message_socket)
{
        if (!message_socket || message_socket->freed)
                return NULL;
        message_socket->freed = true;
        (void)sd_event_source_set_enabled(message_socket->io, SD_EVENT_OFF);
        if (message_socket->entered == 0)
                socket_destroy(message_socket);
        return NULL;
}

int message_socket_send(struct message_socket *message_socket, const uint8_t *bytes, size_t n)
{
        struct queue_buffer *out = &message_socket->out;

        if (n > UINT32_MAX || buffer_used(out) + n > message_socket->limits.send)
                return -ENOBUFS;
        /* A helper may not return to its loop while the rows of a batch arrive. The loop sees an error. */
        if (buffer_used(out) >= DATAGRAM_MAX)
                (void)send_queued(message_socket);
        uint8_t *space = buffer_reserve(out, LENGTH_BYTES + n);
        if (!space)
                return -ENOMEM;
        codec_put_bytes(space, LENGTH_BYTES, n);
        memcpy(space + LENGTH_BYTES, bytes, n);
        out->size += LENGTH_BYTES + n;
        set_wants_write(message_socket, true);
        return 0;
}
