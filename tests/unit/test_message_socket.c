/* SPDX-License-Identifier: MIT */
/* Do messages arrive whole, in order and within bounds? */
#include "io/message_socket.h"
#include "loop.h"
#include <string.h>
#include <sys/socket.h>

#define RECEIVE_MAX ((size_t)1024 * 1024)
#define SEND_MAX    (2 * RECEIVE_MAX)

static struct end {
        struct message_socket *message_socket;
        unsigned messages;
        size_t bytes;
        uint64_t sum; /* depends on the order of the bytes */
        int ended;    /* 1: it has not */
        bool free_at_message;
} ends[2];
static int plain_fd; /* the other end where only one is a message socket */

static void on_message(const uint8_t *bytes, size_t n, void *userdata)
{
        struct end *end = userdata;

        end->messages++;
        end->bytes += n;
        for (size_t i = 0; i < n; i++)
                end->sum = end->sum * 31 + bytes[i];
        if (end->free_at_message)
                end->message_socket = message_socket_free(end->message_socket);
}

static void on_end(int error, void *userdata)
{
        struct end *end = userdata;

        ck_assert_int_eq(end->ended, 1);
        end->ended = error;
}

static const struct message_socket_ops ops = {.on_message = on_message, .on_end = on_end};
static const struct message_socket_limits limits = {.receive = RECEIVE_MAX, .send = SEND_MAX};

static void use(int fd, struct end *end)
{
        *end = (struct end){.ended = 1};
        ck_assert_int_eq(message_socket_new(event, fd, &limits, &ops, end, &end->message_socket), 0);
}

static void setup(void)
{
        int fds[2];

        ck_assert_int_ge(sd_event_new(&event), 0);
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
        use(fds[0], &ends[0]);
        use(fds[1], &ends[1]);
        plain_fd = -1;
}

/* The second end writes what it likes. */
static void setup_plain(void)
{
        int fds[2];

        message_socket_free(ends[0].message_socket);
        ends[1].message_socket = message_socket_free(ends[1].message_socket);
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
        use(fds[0], &ends[0]);
        plain_fd = fds[1];
}

static void teardown(void)
{
        message_socket_free(ends[0].message_socket);
        message_socket_free(ends[1].message_socket);
        close_fd(plain_fd);
        event = sd_event_unref(event);
}

static uint64_t send_bytes(struct end *end, size_t n, uint64_t sum)
{
        _cleanup_free_ uint8_t *bytes = malloc(n + 1);

        ck_assert_ptr_nonnull(bytes);
        for (size_t i = 0; i < n; i++) {
                bytes[i] = (uint8_t)(i * 7 + n);
                sum = sum * 31 + bytes[i];
        }
        ck_assert_int_eq(message_socket_send(end->message_socket, bytes, n), 0);
        return sum;
}

TEST(messages_of_any_size_arrive_whole_and_in_order)
{
        const size_t sizes[] = {0, 1, 100, 65531, 65532, 65533, 200000, RECEIVE_MAX, 5};
        uint64_t sum = 0;

        for (size_t i = 0; i < ELEMENTSOF(sizes); i++) {
                unsigned before = ends[1].messages;

                sum = send_bytes(&ends[0], sizes[i], sum);
                run_until(ends[1].messages > before);
        }
        ck_assert_uint_eq(ends[1].sum, sum);
        for (unsigned i = 0; i < 5000; i++)
                sum = send_bytes(&ends[0], 100, sum);
        run_until(ends[1].messages == ELEMENTSOF(sizes) + 5000);
        ck_assert_uint_eq(ends[1].sum, sum);
        send_bytes(&ends[1], 10, 0);
        run_until(ends[0].messages == 1);
}

TEST(what_was_sent_before_the_end_arrives)
{
        send_bytes(&ends[0], 300000, 0);
        run_until(ends[1].messages == 1);
        ends[0].message_socket = message_socket_free(ends[0].message_socket);
        run_until(ends[1].ended != 1);
        ck_assert_int_eq(ends[1].ended, 0);
}

TEST(a_message_over_the_bound_is_the_end)
{
        const uint8_t length[] = {1, 0, 16, 0}; /* RECEIVE_MAX + 1 */

        setup_plain();
        ck_assert_int_eq(send(plain_fd, length, sizeof(length), 0), sizeof(length));
        run_until(ends[0].ended != 1);
        ck_assert_int_eq(ends[0].ended, -EMSGSIZE);
        ck_assert_uint_eq(ends[0].messages, 0);
}

TEST(a_message_in_many_pieces_is_one)
{
        const uint8_t bytes[] = {5, 0, 0, 0, 'h', 'e', 'l', 'l', 'o'};

        setup_plain();
        for (size_t i = 0; i < sizeof(bytes); i++)
                ck_assert_int_eq(send(plain_fd, bytes + i, 1, 0), 1);
        run_until(ends[0].messages == 1);
        ck_assert_uint_eq(ends[0].bytes, 5);
}

TEST(a_peer_that_takes_nothing_is_sent_no_more_than_the_bound)
{
        _cleanup_free_ uint8_t *bytes = calloc(1, RECEIVE_MAX);
        size_t sent = 0;

        setup_plain();
        for (int i = 0; i < 10; i++) {
                sent += message_socket_send(ends[0].message_socket, bytes, RECEIVE_MAX) == 0;
                ck_assert_int_ge(sd_event_run(event, 0), 0);
        }
        ck_assert_uint_ge(sent, 1);
        ck_assert_uint_le(sent, 3);
        ck_assert_int_eq(message_socket_send(ends[0].message_socket, bytes, RECEIVE_MAX), -ENOBUFS);
}

TEST(the_callback_may_free_the_socket)
{
        ends[1].free_at_message = true;
        send_bytes(&ends[0], 10, 0);
        send_bytes(&ends[0], 10, 0);
        run_until(!ends[1].message_socket);
        ck_assert_uint_eq(ends[1].messages, 1);
        run_until(ends[0].ended != 1);
}

TEST_MAIN("message_socket", .each = {setup, teardown})
