/* SPDX-License-Identifier: MIT */
/* The rights of each class of clients on the socket, and its share of the socket: connections, memory and
 * time, which others then lack. With real sockets, as other users. */
/* promises: P8 */
#include "client.h"
#include "daemon/runtime/runtime.h"
#include "golden.h"
#include <grp.h>
#include <malloc.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define CALL(method) "{\"method\":\"org.sqmgr.Control." method "\"}"
#define PING         CALL("Ping")
#define VIEWERS      4241
#define OPERATORS    4242
#define USER         4000

static char dir[] = "/tmp/sqmgr-test-XXXXXX";
static char path[64];
static sd_event *event;
static struct api_server *server;
static unsigned n_kept, n_orders;

/* GetEvents is kept, the status has 2 MiB, and all else tells a secret. */
static void on_call(struct call *call, const struct control_method *method, json_t *parameters _unused_,
                    void *userdata _unused_)
{
        static char large[2 * 1024 * 1024];
        json_t *reported = json_pack("{s:s}", "text", "it died");
        struct quoted quoted;

        quoted_set(&quoted, "a secret");
        ck_assert_ptr_nonnull(quoted_put(reported, &quoted));
        n_orders += method->access > CONTROL_VIEW;
        if (strcmp(method->name, "GetEvents") == 0) {
                json_decref(reported);
                call_keep(call, NULL, NULL);
                n_kept++;
        } else if (strcmp(method->name, "GetStatus") == 0) {
                json_decref(reported);
                memset(large, 'x', sizeof(large) - 1);
                call_reply(call, json_pack("{s:s}", "large", large), false);
        } else if (strcmp(method->name, "Follow") == 0) {
                call_reply_error(call, CONTROL_REFUSED, reported);
        } else if (strcmp(method->name, "GetVersion") == 0 || strcmp(method->name, "GetQueues") == 0) {
                bool is_queues = strcmp(method->name, "GetQueues") == 0;
                struct shared_reply reply;

                /* The reply to GetQueues was encoded for others than viewers. */
                shared_reply_make(&reply, call_is_view(call) && !is_queues, NULL, reported);
                call_reply_shared(call, &reply);
                shared_reply_clear(&reply);
        } else {
                call_reply(call, reported, false);
        }
}

static void start(void)
{
        const struct api_server_options options = {
                .path = path,
                .groups = {VIEWERS, OPERATORS, "operators"},
                .version = "1.2.3",
                .message_timeout = USEC_PER_HOUR,
                .handle = on_call,
        };
        char error[512] = "";
        struct stat status;
        mode_t mask = umask(0077);

        ck_assert_msg(api_server_new(event, &options, &server, error, sizeof(error)) == 0, "%s", error);
        umask(mask);
        ck_assert_int_eq(stat(path, &status), 0);
        ck_assert_uint_eq(status.st_mode & 07777, 0666);
}

static void setup(void)
{
        unit_make_folder(dir);
        ck_assert_int_eq(chmod(dir, 0755), 0);
        snprintf(path, sizeof(path), "%s/run/control.sock", dir);
        ck_assert_int_ge(sd_event_new(&event), 0);
        n_kept = n_orders = 0;
        start();
}

static void teardown(void)
{
        server = api_server_free(server);
        event = sd_event_unref(event);
        unit_remove_tree(dir);
}

static const char *ask(struct client *client)
{
        client_send(client, PING);
        return client_answer(event, client);
}

static struct client open_viewer(void)
{
        return client_open_as(path, USER, VIEWERS);
}

static const struct {
        uid_t uid;
        gid_t gid;
        enum control_access access;
} callers[] = {
        {0, 0, CONTROL_OWN},
        {USER, VIEWERS, CONTROL_VIEW},
        {USER, OPERATORS, CONTROL_OPERATE},
};

TEST_LOOP(each_class_may_call_its_methods_and_those_below, ELEMENTSOF(callers))
{
        struct client client = client_open_as(path, callers[_i].uid, callers[_i].gid);

        for (size_t i = 0; i < control_n_methods; i++) {
                const struct control_method *method = &control_methods[i];
                char text[128];

                if (strcmp(method->name, "GetEvents") == 0 || strcmp(method->name, "Follow") == 0 ||
                    strcmp(method->name, "GetQueues") == 0)
                        continue;
                snprintf(text, sizeof(text), "{\"method\":\"org.sqmgr.Control.%s\"}", method->name);
                struct varlink_reply reply = client_call(event, &client, text);
                bool may = method->access <= callers[_i].access;

                ck_assert_pstr_eq(reply.error, may ? NULL : VARLINK_PERMISSION_DENIED);
                ck_assert_pstr_eq(json_string_value(json_object_get(reply.parameters, "group")),
                                  !may && method->access == CONTROL_OPERATE ? "operators" : NULL);
                varlink_reply_free(&reply);
        }
        ck_assert_int_eq(n_orders > 0, callers[_i].access > CONTROL_VIEW);
        client_expect(event, &client, "{\"method\":\"org.varlink.service.GetInfo\"}", NULL);
        client_end(&client);
}

static void expect_refused(const char *section)
{
        struct client client = client_open_as(path, USER, USER);

        golden_expect("refusals", section, client_answer(event, &client));
        client_expect_closed(event, &client);
        client_end(&client);
}

TEST(a_stranger_is_sent_which_group_helps)
{
        struct api_server_groups groups = {.view = CONTROL_NO_GROUP, .operate = CONTROL_NO_GROUP};
        struct client viewer = open_viewer();

        expect_refused("a stranger");
        ck_assert_str_eq(ask(&viewer), "");
        /* After a reload, for those who connect then. */
        api_server_set_groups(server, &groups);
        expect_refused("a stranger without socket_group");
        struct client late = open_viewer();
        golden_expect("refusals", "a stranger without socket_group", client_answer(event, &late));
        client_end(&late);
        groups.view = USER;
        api_server_set_groups(server, &groups);
        late = client_open_as(path, USER, USER);
        ck_assert_str_eq(ask(&late), "");
        ck_assert_str_eq(ask(&viewer), "");
        client_end(&late);
        client_end(&viewer);
}

/* Copying 65,536 groups takes milliseconds: with more than 1,024, the primary group alone counts. */
TEST(a_peer_in_too_many_groups_counts_as_in_none)
{
        static gid_t many[1025];
        struct client client;

        for (size_t i = 0; i < ELEMENTSOF(many); i++)
                many[i] = i == 0 ? VIEWERS : 50000 + (gid_t)i;
        ck_assert_int_eq(setgroups(ELEMENTSOF(many), many), 0);
        client = client_open_as(path, USER, USER);
        golden_expect("refusals", "a stranger", client_answer(event, &client));
        client_end(&client);
        ck_assert_int_eq(setgroups(ELEMENTSOF(many) - 1, many), 0);
        client = client_open_as(path, USER, USER);
        ck_assert_str_eq(ask(&client), "");
        client_end(&client);
}

/* quoted: NULL: there is no such member. */
static void expect_text(struct client *client, const char *call, const char *quoted)
{
        struct varlink_reply reply = client_call(event, client, call);

        ck_assert_str_eq(json_string_value(json_object_get(reply.parameters, "text")), "it died");
        ck_assert_pstr_eq(json_string_value(json_object_get(reply.parameters, "quoted")), quoted);
        ck_assert(quoted || !json_object_get(reply.parameters, "quoted"));
        varlink_reply_free(&reply);
}

/* Replies, those that were encoded before, and errors. */
TEST(viewers_are_sent_nothing_of_what_workers_wrote)
{
        static const char *const calls[] = {PING, CALL("GetVersion"), CALL("Follow")};
        struct client viewer = open_viewer(),
                      owner = client_open(path), operator= client_open_as(path, USER, OPERATORS);

        for (size_t i = 0; i < ELEMENTSOF(calls); i++) {
                expect_text(&viewer, calls[i], NULL);
                expect_text(&owner, calls[i], "a secret");
                expect_text(&operator, calls[i], "a secret");
        }
        /* A reply that was encoded for others ends the connection of a viewer. */
        expect_text(&owner, CALL("GetQueues"), "a secret");
        client_send(&viewer, CALL("GetQueues"));
        client_expect_closed(event, &viewer);
        client_end(&viewer);
        client_end(&owner);
        client_end(&operator);
}

static void expect_order(void)
{
        struct client owner = client_open(path);

        client_expect(event, &owner, CALL("Reload"), NULL);
        client_end(&owner);
}

/* A user has at most half of the connections of a class, and no class takes any of another's. */
TEST(silent_connections_take_no_place_of_others)
{
        static struct client silent[2][300];
        static const gid_t groups[] = {VIEWERS, OPERATORS};
        static const unsigned most[] = {QUOTA_VIEWERS_MAX, QUOTA_OPERATORS_MAX};

        for (size_t k = 0; k < 2; k++) {
                for (unsigned i = 0; i < ELEMENTSOF(silent[k]); i++) {
                        silent[k][i] = client_open_as(path, USER, groups[k]);
                        client_settle(event);
                }
                expect_order();
                ck_assert_str_eq(ask(&silent[k][most[k] / 2 - 1]), "");
                golden_expect("refusals", "a user with too many connections",
                              client_answer(event, &silent[k][most[k] / 2]));
                client_expect_closed(event, &silent[k][most[k] / 2]);
                for (unsigned i = most[k] / 2; i < most[k]; i++) {
                        client_end(&silent[k][i]);
                        silent[k][i] = client_open_as(path, USER + 1, groups[k]);
                        ck_assert_str_eq(ask(&silent[k][i]), "");
                }
                struct client late = client_open_as(path, USER + 2, groups[k]);
                golden_expect("refusals", "too many connections", client_answer(event, &late));
                client_end(&late);
                /* A place that is given back is another's. */
                client_end(&silent[k][0]);
                client_settle(event);
                silent[k][0] = client_open_as(path, USER + 2, groups[k]);
                ck_assert_str_eq(ask(&silent[k][0]), "");
                expect_order();
        }
        for (size_t k = 0; k < 2; k++)
                for (unsigned i = 0; i < ELEMENTSOF(silent[k]); i++)
                        client_end(&silent[k][i]);
}

/* Returns the memory of this process in MiB. Sanitizers and valgrind do not report it. */
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

/* The parameters are not kept with the call, and later input of the client is not read. */
TEST(a_call_that_is_kept_takes_next_to_no_memory)
{
        struct client clients[32];
        size_t size;
        _cleanup_free_ char *text = long_call(&size);
        long before = 0;

        for (size_t i = 0; i < ELEMENTSOF(clients); i++) {
                clients[i] = client_open_as(path, USER, OPERATORS);
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
        struct client clients[48], viewer = open_viewer();
        size_t size, n_taken = 0;
        _cleanup_free_ char *text = long_call(&size);
        long before = held();

        for (size_t i = 0; i < ELEMENTSOF(clients); i++) {
                clients[i] = client_open_as(path, USER, OPERATORS);
                n_taken += send_while_taken(&clients[i], text, size - 1) == size - 1;
        }
        ck_assert_uint_gt(n_taken, 4);
        ck_assert_uint_lt(n_taken, 24);
        ck_assert_int_lt(held() - before, 64);
        golden_expect("refusals", "too many long calls",
                      client_answer(event, &clients[ELEMENTSOF(clients) - 1]));
        /* Nobody else is kept from anything, and a viewer's calls are short. */
        struct client other = client_open_as(path, USER + 1, OPERATORS), root = client_open(path);
        ck_assert_str_eq(ask(&other), "");
        ck_assert_str_eq(ask(&viewer), "");
        ck_assert_uint_eq(send_while_taken(&root, text, size), size);
        ck_assert_uint_eq(n_kept, 1);
        (void)send_while_taken(&viewer, text, size);
        golden_expect("refusals", "a long message", client_answer(event, &viewer));
        client_expect_closed(event, &viewer);
        client_end(&viewer);
        client_end(&other);
        client_end(&root);
        for (size_t i = 0; i < ELEMENTSOF(clients); i++)
                client_end(&clients[i]);
}

static const struct {
        gid_t group;
        long mib; /* at most, with what one connection may have above its limit */
} bounds[] = {{VIEWERS, 24}, {OPERATORS, 80}};

TEST_LOOP(replies_that_nobody_reads_are_bounded, ELEMENTSOF(bounds))
{
        struct client clients[64];
        long before = held();
        size_t n = bounds[_i].group == VIEWERS ? QUOTA_VIEWERS_MAX / 2 : ELEMENTSOF(clients);

        for (size_t i = 0; i < n; i++) {
                clients[i] = client_open_as(path, USER, bounds[_i].group);
                client_send(&clients[i], CALL("GetStatus"));
                client_settle(event);
        }
        printf("%ld MiB, and %ld with %zu replies of 2 MiB that are not read\n", before, held(), n);
        ck_assert_int_lt(held() - before, bounds[_i].mib);
        golden_expect("refusals", "too many replies", client_answer(event, &clients[n - 1]));
        struct client other = client_open_as(path, USER + 1, bounds[_i].group), root = client_open(path);
        client_send(&root, CALL("GetStatus"));
        ck_assert_str_eq(client_answer(event, &root), "");
        /* The first is read: there is room again. */
        ck_assert_str_eq(client_answer(event, &clients[0]), "");
        client_send(&other, CALL("GetStatus"));
        ck_assert_str_eq(client_answer(event, &other), "");
        client_end(&other);
        client_end(&root);
        for (size_t i = 0; i < n; i++)
                client_end(&clients[i]);
}

/* Runs the loop until the order is handled, in that many iterations at most. */
static void expect_handled_within(unsigned most)
{
        for (unsigned n = 0; n_orders == 0; n++) {
                ck_assert_uint_lt(n, most);
                ck_assert_int_gt(sd_event_run(event, 0), 0);
        }
}

static void flood(struct client *clients, size_t n, gid_t group)
{
        char calls[sizeof(PING) * 64] = "";

        for (size_t i = 0; i < 64; i++)
                memcpy(calls + i * sizeof(PING), PING, sizeof(PING));
        for (size_t i = 0; i < n; i++) {
                clients[i] = client_open_as(path, USER, group);
                ck_assert_str_eq(ask(&clients[i]), "");
                client_write(&clients[i], calls, sizeof(calls));
        }
}

/* An order is answered at once while viewers and operators call without a pause. */
TEST(a_flood_of_calls_does_not_hold_up_an_order)
{
        struct client viewers[32], operators[32], owner = client_open(path);
        struct varlink_reply reply = {0};

        ck_assert_str_eq(ask(&owner), "");
        flood(viewers, ELEMENTSOF(viewers), VIEWERS);
        flood(operators, ELEMENTSOF(operators), OPERATORS);
        client_send(&owner, CALL("Reload"));
        expect_handled_within(3);
        ck_assert_int_eq(client_wait(event, &owner, &reply), 1);
        varlink_reply_free(&reply);
        /* A new connection is accepted before their calls, too. */
        client_end(&owner);
        owner = client_open(path);
        client_send(&owner, CALL("Reload"));
        n_orders = 0;
        expect_handled_within(4);
        client_end(&owner);
        for (size_t i = 0; i < ELEMENTSOF(viewers); i++) {
                client_end(&viewers[i]);
                client_end(&operators[i]);
        }
}

/* After 16 refusals the others wait, and existing connections are served. */
TEST(strangers_are_accepted_at_a_limited_rate)
{
        struct client strangers[17], owner = client_open(path), viewer = open_viewer();

        ck_assert_str_eq(ask(&owner), "");
        ck_assert_str_eq(ask(&viewer), "");
        for (size_t i = 0; i < ELEMENTSOF(strangers); i++)
                strangers[i] = client_open_as(path, USER, USER);
        client_send(&owner, CALL("Reload"));
        expect_handled_within(3);
        for (size_t i = 0; i < ELEMENTSOF(strangers); i++) {
                golden_expect("refusals", "a stranger", client_answer(event, &strangers[i]));
                client_expect_closed(event, &strangers[i]);
                client_end(&strangers[i]);
        }
        ck_assert_str_eq(ask(&viewer), "");
        expect_order();
        client_end(&viewer);
        client_end(&owner);
}

/* Connects without end. is_patient: reads the refusal before the next attempt. */
static void keep_connecting(bool is_patient)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        char text[512];

        snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
        if (setregid(USER, USER) < 0 || setreuid(USER, USER) < 0)
                _exit(EXIT_FAILURE);
        for (;;) {
                int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

                if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 && is_patient)
                        (void)!recv(fd, text, sizeof(text), 0);
                close(fd);
        }
}

static usec_t now(void)
{
        struct timespec time;

        clock_gettime(CLOCK_MONOTONIC, &time);
        return (usec_t)time.tv_sec * USEC_PER_SEC + (usec_t)time.tv_nsec / 1000;
}

/* Gives orders on a new connection each, and writes the longest time that one took. */
static void give_orders(int result)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        usec_t longest = 0;
        char text[512];

        snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
        for (unsigned i = 0; i < 50; i++) {
                usec_t begun = now();
                int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

                if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
                    write(fd, CALL("Reload"), sizeof(CALL("Reload"))) < 0 ||
                    recv(fd, text, sizeof(text), 0) <= 0)
                        _exit(EXIT_FAILURE);
                close(fd);
                longest = MAX(longest, now() - begun);
        }
        _exit(write(result, &longest, sizeof(longest)) == sizeof(longest) ? EXIT_SUCCESS : EXIT_FAILURE);
}

TEST_LOOP(four_strangers_that_connect_in_a_loop_do_not_hold_up_orders, 2)
{
        pid_t pids[5];
        int result[2];
        usec_t longest;

        ck_assert_int_eq(pipe2(result, O_CLOEXEC), 0);
        for (size_t i = 0; i < ELEMENTSOF(pids); i++) {
                ck_assert_int_ge(pids[i] = fork(), 0);
                if (pids[i] == 0 && i == 4)
                        give_orders(result[1]);
                else if (pids[i] == 0)
                        keep_connecting(_i == 0);
        }
        struct pollfd ready = {.fd = result[0], .events = POLLIN};
        close(result[1]);
        while (poll(&ready, 1, 0) == 0)
                ck_assert_int_ge(sd_event_run(event, 10000), 0);
        ck_assert_int_eq(read(result[0], &longest, sizeof(longest)), sizeof(longest));
        close(result[0]);
        for (size_t i = 0; i < ELEMENTSOF(pids); i++) {
                (void)kill(pids[i], SIGKILL);
                ck_assert_int_eq(waitpid(pids[i], NULL, 0), pids[i]);
        }
        /* 100 ms on an idle machine; the bound is for a busy one. */
        printf("the slowest of 50 orders took %.1f ms\n", (double)longest / (double)USEC_PER_MSEC);
        ck_assert_uint_lt(longest, 5 * USEC_PER_SEC);
}

/* The next image finds out by itself what they may do. */
TEST(idle_connections_are_handed_to_the_next_image)
{
        struct client viewer = open_viewer();
        struct handed handed[API_CONNECTIONS_MAX + 1];
        const struct api_server_groups nobody = {.view = CONTROL_NO_GROUP, .operate = CONTROL_NO_GROUP};

        ck_assert_str_eq(ask(&viewer), "");
        ck_assert_uint_eq(api_server_hand(server, handed), 2);
        ck_assert_int_eq(handed[0].kind, HANDED_LISTEN);
        ck_assert_int_eq(handed[1].kind, HANDED_IDLE);
        int fd = dup(handed[1].fd);
        struct client owner = client_open(path);
        ck_assert_str_eq(ask(&owner), "");
        ck_assert_uint_eq(api_server_hand(server, handed), 3);
        server = api_server_free(server);
        start();
        api_server_continue(server, fd, NULL);
        expect_text(&viewer, PING, NULL);
        client_expect(event, &viewer, CALL("Reload"), VARLINK_PERMISSION_DENIED);

        /* The user has left the group: a stranger. */
        ck_assert_uint_eq(api_server_hand(server, handed), 2);
        fd = dup(handed[1].fd);
        server = api_server_free(server);
        start();
        api_server_set_groups(server, &nobody);
        api_server_continue(server, fd, NULL);
        client_expect_closed(event, &viewer);
        client_end(&viewer);
        client_end(&owner);
}

static bool root_is_missing(void)
{
        if (geteuid() != 0)
                fprintf(stderr, "skipped: only root can be other users\n");
        return geteuid() != 0;
}

TEST_MAIN("access", .each = {setup, teardown}, .is_missing = root_is_missing)
