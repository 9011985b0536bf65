/* SPDX-License-Identifier: MIT */
/* How much of the control socket one may have: places, and memory, that others then lack. With real sockets,
 * as other users. */
/* promises: P8 */
#include "client.h"
#include "golden.h"
#include <grp.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#define PING   "{\"method\":\"org.sqmgr.Control.Ping\"}"
#define STATUS "{\"method\":\"org.sqmgr.Control.GetStatus\"}"
#define GROUP  4242

static char dir[] = "/tmp/sqmgr-test-XXXXXX";
static char path[64];
static sd_event *event;
static struct server *server;
static unsigned n_kept;

/* GetEvents is kept, and the status has 4 MiB. */
static void on_call(struct call *call, const struct control_method *method, json_t *parameters _unused_,
                    void *userdata _unused_)
{
        static char large[4 * 1024 * 1024];

        if (strcmp(method->name, "GetEvents") == 0) {
                server_keep(call, NULL, NULL);
                n_kept++;
        } else if (strcmp(method->name, "GetStatus") == 0) {
                memset(large, 'x', sizeof(large) - 1);
                server_reply(call, json_pack("{s:s}", "large", large), false);
        } else {
                server_reply(call, json_object(), false);
        }
}

static void setup(void)
{
        const struct server_options options = {
                .place.path = path,
                .place.mode = 0666,
                .place.group = GROUP,
                .group_name = "operators",
                .version = "1.2.3",
                .message_timeout = USEC_PER_HOUR,
                .handle = on_call,
        };
        char error[512] = "";

        strcpy(dir, "/tmp/sqmgr-test-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(dir));
        ck_assert_int_eq(chmod(dir, 0755), 0);
        snprintf(path, sizeof(path), "%s/control.sock", dir);
        ck_assert_int_ge(sd_event_new(&event), 0);
        n_kept = 0;
        ck_assert_msg(server_new(event, &options, &server, error, sizeof(error)) == 0, "%s", error);
}

static void teardown(void)
{
        server = server_free(server);
        event = sd_event_unref(event);
        unit_remove_tree(dir);
}

/* A client of another user, who may do more where he is an operator. */
static struct client open_as(uid_t uid, bool operates)
{
        ck_assert_int_eq(setegid(operates ? GROUP : 4243), 0);
        ck_assert_int_eq(seteuid(uid), 0);
        struct client client = client_open(path);
        ck_assert_int_eq(seteuid(0), 0);
        ck_assert_int_eq(setegid(0), 0);
        return client;
}

static const char *ask(struct client *client)
{
        client_send(client, PING);
        return client_answer(event, client);
}

TEST(no_user_keeps_out_another_and_nobody_root)
{
        static struct client clients[QUOTA_CONNECTIONS_MAX];
        unsigned n = 0;

        /* A user has 64 connections, all viewers have 128, and all but root 240. */
        for (uid_t uid = 4000; uid < 4002; uid++) {
                for (unsigned i = 0; i < 64; i++) {
                        clients[n] = open_as(uid, false);
                        ck_assert_str_eq(ask(&clients[n++]), "");
                }
                struct client late = open_as(uid, false);
                golden_expect("refusals", "a user with too many connections", client_answer(event, &late));
                client_expect_closed(event, &late);
                client_end(&late);
        }
        struct client late = open_as(4002, false);
        golden_expect("refusals", "too many connections", client_answer(event, &late));
        client_end(&late);
        for (unsigned i = 0; i < 112; i++) {
                clients[n] = open_as(4100 + i / 64, true);
                ck_assert_str_eq(ask(&clients[n++]), "");
        }
        late = open_as(4102, true);
        golden_expect("refusals", "too many connections", client_answer(event, &late));
        client_end(&late);
        while (n < QUOTA_CONNECTIONS_MAX) {
                clients[n] = client_open(path);
                ck_assert_str_eq(ask(&clients[n++]), "");
        }
        /* A place that is given back is another's. */
        client_end(&clients[0]);
        client_settle(event);
        clients[0] = open_as(4002, false);
        ck_assert_str_eq(ask(&clients[0]), "");
        while (n > 0)
                client_end(&clients[--n]);
}

/* What this process holds, in MiB. Sanitizers and valgrind say nothing. */
static long held(void)
{
        struct mallinfo2 info = mallinfo2();

        return (long)((info.uordblks + info.hblkhd) >> 20);
}

/* Sends all of it while the server takes any. Returns how much that was. */
static size_t send_while_taken(struct client *client, const char *data, size_t size)
{
        size_t sent = 0;

        while (sent < size) {
                ssize_t n = send(client->fd, data + sent, size - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n > 0)
                        sent += (size_t)n;
                else if (errno != EAGAIN || sd_event_run(event, 0) <= 0)
                        break;
        }
        client_settle(event);
        return sent;
}

/* A call of a mebibyte, which is several of them once it is read. */
static char *long_call(size_t *ret_size)
{
        static const char begin[] =
                "{\"method\":\"org.sqmgr.Control.GetEvents\",\"parameters\":{\"fleets\":[\"a\"",
                          item[] = ",\"a fleet with a name that is long\"", end[] = "]}}";
        char *text = malloc(VARLINK_CALL_MAX + 1);
        size_t size = strlen(begin);

        ck_assert_ptr_nonnull(text);
        memcpy(text, begin, size);
        while (size + strlen(item) + sizeof(end) < VARLINK_CALL_MAX) {
                memcpy(text + size, item, strlen(item));
                size += strlen(item);
        }
        memcpy(text + size, end, sizeof(end));
        *ret_size = size + sizeof(end);
        return text;
}

/* What was asked is not kept with the call, and what the client sends behind it is not read. */
TEST(a_call_that_is_kept_takes_next_to_no_memory)
{
        struct client clients[32];
        size_t size;
        _cleanup_free_ char *text = long_call(&size);
        long before = 0;

        for (size_t i = 0; i < ELEMENTSOF(clients); i++) {
                clients[i] = open_as(4000, false);
                ck_assert_uint_eq(send_while_taken(&clients[i], text, size), size);
                ck_assert_uint_eq(n_kept, i + 1);
                (void)send_while_taken(&clients[i], text, size);
                if (i == 0)
                        before = held();
        }
        printf("%ld MiB with one such call, %ld with %zu\n", before, held(), ELEMENTSOF(clients));
        ck_assert_int_lt(held() - before, 16);
        for (size_t i = 0; i < ELEMENTSOF(clients); i++)
                client_end(&clients[i]);
}

TEST(long_calls_that_do_not_come_to_their_end_are_bounded)
{
        struct client clients[48];
        size_t size, n_taken = 0;
        _cleanup_free_ char *text = long_call(&size);
        long before = held();

        for (size_t i = 0; i < ELEMENTSOF(clients); i++) {
                clients[i] = open_as(4000, false);
                n_taken += send_while_taken(&clients[i], text, size - 1) == size - 1;
        }
        ck_assert_uint_gt(n_taken, 4);
        ck_assert_uint_lt(n_taken, 24);
        ck_assert_int_lt(held() - before, 64);
        golden_expect("refusals", "too many long calls",
                      client_answer(event, &clients[ELEMENTSOF(clients) - 1]));
        /* Nobody else is kept from anything. */
        struct client other = open_as(4001, false), root = client_open(path);
        ck_assert_str_eq(ask(&other), "");
        ck_assert_uint_eq(send_while_taken(&root, text, size), size);
        ck_assert_uint_eq(n_kept, 1);
        client_end(&other);
        client_end(&root);
        for (size_t i = 0; i < ELEMENTSOF(clients); i++)
                client_end(&clients[i]);
}

TEST(replies_that_nobody_reads_are_bounded)
{
        struct client clients[48];
        long before = held();

        for (size_t i = 0; i < ELEMENTSOF(clients); i++) {
                clients[i] = open_as(4000, false);
                client_send(&clients[i], STATUS);
                client_settle(event);
        }
        printf("%ld MiB, and %ld with %zu replies of 4 MiB that are not read\n", before, held(),
               ELEMENTSOF(clients));
        ck_assert_int_lt(held() - before, 80);
        golden_expect("refusals", "too many replies",
                      client_answer(event, &clients[ELEMENTSOF(clients) - 1]));
        struct client other = open_as(4001, false), root = client_open(path);
        client_send(&root, STATUS);
        ck_assert_str_eq(client_answer(event, &root), "");
        /* The first is read: there is room again. */
        ck_assert_str_eq(client_answer(event, &clients[0]), "");
        client_send(&other, STATUS);
        ck_assert_str_eq(client_answer(event, &other), "");
        client_end(&other);
        client_end(&root);
        for (size_t i = 0; i < ELEMENTSOF(clients); i++)
                client_end(&clients[i]);
}

static bool root_is_missing(void)
{
        if (geteuid() != 0)
                fprintf(stderr, "skipped: only root can be other users\n");
        return geteuid() != 0;
}

TEST_MAIN("room", .each = {setup, teardown}, .is_missing = root_is_missing)
