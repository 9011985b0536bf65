/* SPDX-License-Identifier: MIT */
/* The viewers' socket, beside the control socket of one server: what it lets nobody do, what it does not
 * show, and that nothing done there is felt here. With real sockets. */
/* promises: P8 */
#include "client.h"
#include "daemon/runtime/runtime.h"
#include "golden.h"
#include "settings_text.h"
#include "wire/quoted.h"
#include <grp.h>
#include <malloc.h>
#include <unistd.h>

#define CALL(method) "{\"method\":\"org.sqmgr.Control." method "\"}"
#define PING         CALL("Ping")
static char dir[] = "/tmp/sqmgr-test-XXXXXX";
static char path[64], view_path[64];
static sd_event *event;
static struct server *server;
static unsigned n_kept, n_orders;

/* GetEvents is kept, the status has 2 MiB, and all else tells a secret. */
static void on_call(struct call *call, const struct control_method *method, json_t *parameters _unused_,
                    void *userdata _unused_)
{
        static char large[2 * 1024 * 1024];
        json_t *reported = json_pack("{s:s, s:b}", "text", "it died", "view", (int)call_is_view(call));
        struct quoted quoted;

        quoted_set(&quoted, "a secret");
        ck_assert_ptr_nonnull(quoted_put(reported, &quoted));

        n_orders += method->access > CONTROL_READ;
        if (strcmp(method->name, "GetEvents") == 0) {
                json_decref(reported);
                server_keep(call, NULL, NULL);
                n_kept++;
        } else if (strcmp(method->name, "GetStatus") == 0) {
                json_decref(reported);
                memset(large, 'x', sizeof(large) - 1);
                server_reply(call, json_pack("{s:s}", "large", large), false);
        } else if (strcmp(method->name, "Follow") == 0) {
                server_reply_error(call, CONTROL_REFUSED, reported);
        } else if (strcmp(method->name, "GetVersion") == 0) {
                struct shared_reply reply;

                shared_reply_make(&reply, call_is_view(call), NULL, reported);
                server_reply_shared(call, &reply);
                shared_reply_clear(&reply);
        } else if (strcmp(method->name, "GetQueues") == 0) {
                struct shared_reply reply;

                shared_reply_make(&reply, false, NULL, reported);
                server_reply_shared(call, &reply);
                shared_reply_clear(&reply);
        } else {
                server_reply(call, reported, false);
        }
}

static void open_view(mode_t mode)
{
        const struct listener_place place = {.path = view_path, .mode = mode, .group = CONTROL_NO_GROUP};
        char error[512] = "";

        ck_assert_msg(server_open_view(server, &place, error, sizeof(error)) == 0, "%s", error);
}

static void start(usec_t message_timeout)
{
        const struct server_options options = {
                .place.path = path,
                .place.mode = 0600,
                .place.group = CONTROL_NO_GROUP,
                .version = "1.2.3",
                .message_timeout = message_timeout,
                .handle = on_call,
        };
        char error[512] = "";

        ck_assert_msg(server_new(event, &options, &server, error, sizeof(error)) == 0, "%s", error);
        open_view(0666);
}

static void setup(void)
{
        strcpy(dir, "/tmp/sqmgr-test-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(dir));
        ck_assert_int_eq(chmod(dir, 0755), 0);
        snprintf(path, sizeof(path), "%s/control.sock", dir);
        snprintf(view_path, sizeof(view_path), "%s/read.sock", dir);
        ck_assert_int_ge(sd_event_new(&event), 0);
        n_kept = n_orders = 0;
        start(USEC_PER_HOUR);
}

static void teardown(void)
{
        server = server_free(server);
        ck_assert_int_lt(access(view_path, F_OK), 0);
        event = sd_event_unref(event);
        unit_remove_tree(dir);
}

static const char *ask(struct client *client)
{
        client_send(client, PING);
        return client_answer(event, client);
}

TEST(nobody_gives_an_order_there)
{
        struct client viewer = client_open(view_path), owner = client_open(path);

        for (size_t i = 0; i < control_n_methods; i++) {
                char text[128];

                if (control_methods[i].access == CONTROL_VIEW)
                        continue;
                snprintf(text, sizeof(text), "{\"method\":\"org.sqmgr.Control.%s\"}",
                         control_methods[i].name);
                struct varlink_reply reply = client_call(event, &viewer, text);
                ck_assert_str_eq(reply.error, VARLINK_PERMISSION_DENIED);
                ck_assert(json_is_true(json_object_get(reply.parameters, "read_socket")));
                varlink_reply_free(&reply);
        }
        ck_assert_uint_eq(n_orders, 0);
        client_expect(event, &owner, CALL("Reexec"), NULL);
        ck_assert_uint_eq(n_orders, 1);
        client_expect(event, &viewer, "{\"method\":\"org.varlink.service.GetInfo\"}", NULL);
        client_end(&viewer);
        client_end(&owner);
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
TEST(nothing_is_reported_there_of_what_workers_wrote)
{
        static const char *const calls[] = {PING, CALL("GetVersion"), CALL("Follow")};
        struct client viewer = client_open(view_path), owner = client_open(path);

        for (size_t i = 0; i < ELEMENTSOF(calls); i++) {
                expect_text(&viewer, calls[i], NULL);
                expect_text(&owner, calls[i], "a secret");
        }
        /* A reply that was encoded for others ends the connection of a viewer. */
        expect_text(&owner, CALL("GetQueues"), "a secret");
        client_send(&viewer, CALL("GetQueues"));
        client_expect_closed(event, &viewer);
        client_end(&viewer);
        client_end(&owner);
}

/* Whoever he is: he takes no place of the control socket's, and leaves some to others. */
TEST(who_looks_takes_no_place_of_others)
{
        static struct client viewers[QUOTA_VIEW_CONNECTIONS_MAX], owners[QUOTA_CONNECTIONS_MAX];
        unsigned n = 0;

        for (; n < QUOTA_VIEW_CONNECTIONS_MAX / 2; n++) {
                viewers[n] = client_open(view_path);
                ck_assert_str_eq(ask(&viewers[n]), "");
        }
        struct client late = client_open(view_path);
        golden_expect("refusals", "a user with too many connections", client_answer(event, &late));
        client_expect_closed(event, &late);
        client_end(&late);
        for (; geteuid() == 0 && n < QUOTA_VIEW_CONNECTIONS_MAX; n++) {
                ck_assert_int_eq(seteuid(4000), 0);
                viewers[n] = client_open(view_path);
                ck_assert_int_eq(seteuid(0), 0);
                ck_assert_str_eq(ask(&viewers[n]), "");
        }
        if (geteuid() == 0) {
                ck_assert_int_eq(seteuid(4001), 0);
                late = client_open(view_path);
                ck_assert_int_eq(seteuid(0), 0);
                golden_expect("refusals", "too many connections", client_answer(event, &late));
                client_end(&late);
        }
        for (unsigned i = 0; i < QUOTA_CONNECTIONS_MAX; i++) {
                owners[i] = client_open(path);
                ck_assert_str_eq(ask(&owners[i]), "");
        }
        /* Nor does who gives orders take one of theirs. */
        client_end(&viewers[0]);
        client_settle(event);
        viewers[0] = client_open(view_path);
        ck_assert_str_eq(ask(&viewers[0]), "");
        while (n > 0)
                client_end(&viewers[--n]);
        for (unsigned i = 0; i < QUOTA_CONNECTIONS_MAX; i++)
                client_end(&owners[i]);
}

/* What this process holds, in MiB. Sanitizers and valgrind say nothing. */
static long held(void)
{
        struct mallinfo2 info = mallinfo2();

        return (long)((info.uordblks + info.hblkhd) >> 20);
}

TEST(who_does_not_read_what_he_asked_for_is_bounded)
{
        struct client viewers[QUOTA_VIEW_CONNECTIONS_MAX / 2], owner = client_open(path);
        long before = held();

        for (size_t i = 0; i < ELEMENTSOF(viewers); i++) {
                viewers[i] = client_open(view_path);
                for (unsigned k = 0; k < 4; k++)
                        client_send(&viewers[i], CALL("GetStatus"));
                client_settle(event);
        }
        printf("%ld MiB, and %ld with %zu who do not read\n", before, held(), ELEMENTSOF(viewers));
        ck_assert_int_lt(held() - before, 24);
        golden_expect("refusals", "too many replies",
                      client_answer(event, &viewers[ELEMENTSOF(viewers) - 1]));
        client_send(&owner, CALL("GetStatus"));
        ck_assert_str_eq(client_answer(event, &owner), "");
        client_end(&owner);
        for (size_t i = 0; i < ELEMENTSOF(viewers); i++)
                client_end(&viewers[i]);
}

/* The beginning of a call of that size, without its end. */
static char *half_call(size_t size)
{
        char *text = malloc(size + 1);

        ck_assert_ptr_nonnull(text);
        memset(text, ' ', size);
        memcpy(text, "{", 1);
        text[size] = '\0';
        return text;
}

TEST(long_calls_are_refused_and_half_ones_bounded)
{
        struct client viewers[QUOTA_VIEW_CONNECTIONS_MAX / 2], owner = client_open(path);
        size_t size = QUOTA_VIEW_CALL_MAX - 1;
        _cleanup_free_ char *half = half_call(size), *whole = half_call(QUOTA_VIEW_CALL_MAX + 1);
        long before = held();

        for (size_t i = 0; i < ELEMENTSOF(viewers); i++) {
                viewers[i] = client_open(view_path);
                for (size_t sent = 0; sent < size; client_settle(event)) {
                        ssize_t n =
                                send(viewers[i].fd, half + sent, size - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

                        ck_assert(n > 0 || errno == EAGAIN);
                        sent += n > 0 ? (size_t)n : 0;
                }
        }
        ck_assert_int_lt(held() - before, 4);
        struct client late = client_open(view_path);
        golden_expect("refusals", "a user with too many connections", client_answer(event, &late));
        client_end(&late);
        for (size_t i = 0; i < ELEMENTSOF(viewers); i++)
                client_end(&viewers[i]);
        client_settle(event);

        late = client_open(view_path);
        client_write(&late, whole, QUOTA_VIEW_CALL_MAX + 1);
        golden_expect("refusals", "a long message", client_answer(event, &late));
        client_expect_closed(event, &late);
        client_end(&late);
        ck_assert_str_eq(ask(&owner), "");
        client_end(&owner);
}

TEST(half_a_call_is_borne_for_a_while_only)
{
        server = server_free(server);
        start(50 * USEC_PER_MSEC);
        struct client viewer = client_open(view_path);
        client_write(&viewer, "{\"method\"", 9);
        client_expect_closed(event, &viewer);
        client_end(&viewer);
}

/* Of 32 who ask without end and one who gives an order the one is answered at once: as soon as the loop
 * turns. */
TEST(a_flood_there_does_not_hold_up_an_order)
{
        struct client viewers[32], owner = client_open(path);
        char calls[sizeof(PING) * 64] = "";
        struct varlink_reply reply = {0};

        ck_assert_str_eq(ask(&owner), "");
        for (size_t i = 0; i < 64; i++)
                memcpy(calls + i * sizeof(PING), PING, sizeof(PING));
        for (size_t i = 0; i < ELEMENTSOF(viewers); i++) {
                viewers[i] = client_open(view_path);
                ck_assert_str_eq(ask(&viewers[i]), "");
                client_write(&viewers[i], calls, sizeof(calls));
        }
        client_send(&owner, CALL("Reload"));
        /* One iteration of the loop handles the order first. */
        for (unsigned turns = 0; n_orders == 0; turns++) {
                ck_assert_uint_lt(turns, 3);
                ck_assert_int_gt(sd_event_run(event, 0), 0);
        }
        ck_assert_int_eq(client_wait(event, &owner, &reply), 1);
        varlink_reply_free(&reply);
        client_end(&owner);
        for (size_t i = 0; i < ELEMENTSOF(viewers); i++)
                client_end(&viewers[i]);
}

/* The next image would take one that is handed on for one of the control socket's. */
TEST(who_looks_is_not_handed_to_the_next_image)
{
        struct client viewer = client_open(view_path);
        struct handed handed[SERVER_CONNECTIONS_MAX + 2];

        ck_assert_str_eq(ask(&viewer), "");
        ck_assert_uint_eq(server_hand(server, handed), 2);
        ck_assert_int_eq(handed[0].kind, HANDED_LISTEN);
        ck_assert_int_eq(handed[1].kind, HANDED_VIEW);
        ck_assert_int_gt(handed[1].fd, 0);
        struct client owner = client_open(path);
        ck_assert_str_eq(ask(&owner), "");
        ck_assert_uint_eq(server_hand(server, handed), 3);
        ck_assert_int_eq(handed[2].kind, HANDED_IDLE);
        client_end(&viewer);
        client_end(&owner);
}

static const struct {
        const char *lines;
        const char *path; /* NULL: there is none */
} places[] = {
        {"", "/run/sqmgr/root/read.sock"},
        {"socket=/run/shop.sock\n", "/run/shop.read.sock"},
        {"read_socket=/run/r\n", "/run/r"},
        {"read_socket=None\n", NULL},
        /* A default that has no room must not make an error of what was good. */
        {"socket=/"
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "\n",
         NULL},
};

TEST_FIXTURE(NULL, NULL)

TEST_LOOP(is_beside_the_control_socket_unless_it_is_said, ELEMENTSOF(places))
{
        char text[256];

        snprintf(text, sizeof(text), "[sqmgr]\n%s[fleet:a]\ncommand=run", places[_i].lines);
        _cleanup_settings_ struct settings *settings = read_good(text);
        ck_assert_pstr_eq(settings_read_socket(settings), places[_i].path);
}

static const char *const refusals[] = {
        "run/s",
        "/run/sqmgr/root/control.sock",
        "/run/sqmgr/root/state",
        "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaa",
};

TEST(a_place_that_cannot_be_is_refused)
{
        char text[256];

        golden_begin();
        for (size_t i = 0; i < ELEMENTSOF(refusals); i++) {
                snprintf(text, sizeof(text), "[sqmgr]\nread_socket=%s\n[fleet:a]\ncommand=run", refusals[i]);
                add_refused_settings(&root_surroundings, text, refusals[i]);
        }
        golden_end("settings-errors", "read_socket");
}

TEST_MAIN("view", .each = {setup, teardown})
