/* SPDX-License-Identifier: MIT */
/* The socket server, with real sockets in a folder of its own. */
/* promises: P8 P10 */
#include "client.h"
#include "io/listen.h"
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PING      "{\"method\":\"org.sqmgr.Control.Ping\"}"
#define SUBSCRIBE "{\"method\":\"org.sqmgr.Control.Restart\",\"more\":true}"
#define SCALE     "{\"method\":\"org.sqmgr.Control.Scale\",\"parameters\":{\"count\":%d}%s}"

static char dir[] = "/tmp/sqmgr-test-XXXXXX";
static char path[64];
static sd_event *event;
static struct api_server *server;
static struct client client;
static struct call *kept;
static unsigned n_handled, n_cancelled;

static void on_cancelled(struct call *call, void *userdata)
{
        ck_assert_ptr_eq(call, kept);
        ck_assert_ptr_eq(userdata, &kept);
        kept = NULL;
        n_cancelled++;
}

/* Restart is kept, Reload answers with 300 KiB, Scale with its count, and all others with nothing. */
static void on_call(struct call *call, const struct control_method *method, json_t *parameters,
                    void *userdata)
{
        static char large[300 * 1024];

        ck_assert_ptr_eq(userdata, &n_handled);
        n_handled++;
        if (strcmp(method->name, "Restart") == 0 && call_wants_more(call)) {
                call_reply(call, json_pack("{s:s}", "state", "begun"), true);
                call_keep(call, on_cancelled, &kept);
                kept = call;
        } else if (strcmp(method->name, "Reload") == 0) {
                memset(large, 'x', sizeof(large) - 1);
                call_reply(call, json_pack("{s:s}", "large", large), false);
        } else if (strcmp(method->name, "Scale") == 0) {
                call_reply(call, json_pack("{s:O}", "count", json_object_get(parameters, "count")), false);
        } else {
                call_reply(call, json_object(), false);
        }
}

static struct api_server_options options(void)
{
        return (struct api_server_options){
                .path = path,
                .groups = {CONTROL_NO_GROUP, CONTROL_NO_GROUP, ""},
                .version = "1.2.3",
                .handle = on_call,
                .userdata = &n_handled,
        };
}

static void start_server(usec_t message_timeout)
{
        struct api_server_options all = options();
        char error[512] = "";

        all.message_timeout = message_timeout;
        ck_assert_msg(api_server_new(event, &all, &server, error, sizeof(error)) == 0, "%s", error);
}

static void setup(void)
{
        unit_make_folder(dir);
        snprintf(path, sizeof(path), "%s/run/control.sock", dir);
        ck_assert_int_ge(sd_event_new(&event), 0);
        kept = NULL;
        n_handled = n_cancelled = 0;
}

static void teardown(void)
{
        server = api_server_free(server);
        event = sd_event_unref(event);
        unit_remove_tree(dir);
}

static void setup_client(void)
{
        setup();
        start_server(0);
        client = client_open(path);
}

static void teardown_client(void)
{
        client_end(&client);
        teardown();
}

TEST(answers_a_call_sent_byte_by_byte)
{
        struct varlink_reply reply = {0};

        for (size_t i = 0; i < sizeof(PING); i++) {
                client_write(&client, PING + i, 1);
                ck_assert_int_ge(sd_event_run(event, 1000), 0);
        }
        ck_assert_int_eq(client_wait(event, &client, &reply), 1);
        ck_assert_ptr_null(reply.error);
        varlink_reply_free(&reply);
}

TEST(answers_pipelined_calls_in_order)
{
        char batch[200 * 128];
        size_t length = 0;

        for (int i = 0; i < 200; i++)
                length += (size_t)sprintf(batch + length, SCALE, i, "") + 1;
        client_write(&client, batch, length);
        for (int i = 0; i < 200; i++) {
                struct varlink_reply reply = {0};

                ck_assert_int_eq(client_wait(event, &client, &reply), 1);
                ck_assert_int_eq(json_integer_value(json_object_get(reply.parameters, "count")), i);
                varlink_reply_free(&reply);
        }
}

TEST(answers_what_was_sent_before_the_sender_shut_down)
{
        struct varlink_reply reply = {0};

        client_send(&client, PING);
        client_send(&client, PING);
        ck_assert_int_eq(shutdown(client.fd, SHUT_WR), 0);
        for (int i = 0; i < 2; i++) {
                ck_assert_int_eq(client_wait(event, &client, &reply), 1);
                varlink_reply_free(&reply);
        }
        client_expect_closed(event, &client);
}

TEST(a_oneway_call_gets_no_reply_and_is_done_though_the_sender_left)
{
        struct client other;
        char text[128];

        sprintf(text, SCALE, 1, ",\"oneway\":true");
        client_send(&client, text);
        client_expect(event, &client, PING, NULL);
        ck_assert_uint_eq(n_handled, 2);
        client_send(&client, text);
        client_end(&client);
        other = client_open(path);
        for (unsigned i = 0; i < 100 && n_handled < 3; i++)
                client_expect(event, &other, "{\"method\":\"org.varlink.service.GetInfo\"}", NULL);
        ck_assert_uint_eq(n_handled, 3);
        client_end(&other);
}

static const char *const garbage[] = {
        "",
        "GET / HTTP/1.1\r\n\r\n",
        "{\"method\":",
        "[1]",
        "{}",
        "\xff\xfe",
        "{\"method\":\"a.B\",\"parameters\":1}",
};

TEST_LOOP(garbage_gets_an_error_and_harms_nobody_else, ELEMENTSOF(garbage))
{
        struct client other = client_open(path);

        client_expect(event, &other, PING, NULL);
        client_expect(event, &client, garbage[_i], CONTROL_REFUSED);
        client_expect_closed(event, &client);
        client_expect(event, &other, PING, NULL);
        client_end(&other);
}

TEST(a_message_of_a_mebibyte_is_taken_and_a_longer_one_refused)
{
        char *text = malloc(VARLINK_CALL_MAX + 2);
        struct varlink_reply reply = {0};

        for (size_t extra = 0; extra < 2; extra++) {
                size_t size = VARLINK_CALL_MAX + extra, sent = 0;

                memset(text, ' ', size + 1);
                memcpy(text, PING, strlen(PING));
                text[size] = '\0';
                while (sent <= size) {
                        ssize_t n =
                                send(client.fd, text + sent, size + 1 - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

                        if (n > 0)
                                sent += (size_t)n;
                        else if (errno != EAGAIN)
                                break;
                        ck_assert_int_ge(sd_event_run(event, 1000), 0);
                }
                ck_assert_int_eq(client_wait(event, &client, &reply), 1);
                ck_assert_pstr_eq(reply.error, extra == 0 ? NULL : CONTROL_REFUSED);
                varlink_reply_free(&reply);
        }
        client_expect_closed(event, &client);
        ck_assert_uint_eq(n_handled, 1);
        free(text);
}

TEST(a_subscriber_hears_all_until_the_last_reply_then_its_next_call_is_answered)
{
        struct varlink_reply reply = client_call(event, &client, SUBSCRIBE);

        ck_assert(reply.continues);
        varlink_reply_free(&reply);
        client_send(&client, PING);
        for (int i = 0; i < 3; i++) {
                ck_assert_int_ge(sd_event_run(event, 1000), 0);
                ck_assert_uint_eq(n_handled, 1);
                call_reply(kept, json_pack("{s:i}", "step", i), i < 2);
                ck_assert_int_eq(client_wait(event, &client, &reply), 1);
                ck_assert_int_eq(json_integer_value(json_object_get(reply.parameters, "step")), i);
                ck_assert_int_eq(reply.continues, i < 2);
                varlink_reply_free(&reply);
        }
        ck_assert_int_eq(client_wait(event, &client, &reply), 1);
        ck_assert_uint_eq(n_handled, 2);
        varlink_reply_free(&reply);
        ck_assert_uint_eq(n_cancelled, 0);
}

TEST(a_subscription_is_cancelled_when_its_client_leaves)
{
        struct varlink_reply reply = client_call(event, &client, SUBSCRIBE);

        varlink_reply_free(&reply);
        client_end(&client);
        for (unsigned i = 0; i < 100 && n_cancelled == 0; i++)
                ck_assert_int_ge(sd_event_run(event, 10000), 0);
        ck_assert_uint_eq(n_cancelled, 1);

        client = client_open(path);
        reply = client_call(event, &client, SUBSCRIBE);
        varlink_reply_free(&reply);
        server = api_server_free(server);
        ck_assert_uint_eq(n_cancelled, 2);
}

TEST(a_subscriber_that_does_not_read_is_dropped)
{
        struct client other = client_open(path);
        struct varlink_reply reply = client_call(event, &client, SUBSCRIBE);
        static char text[64 * 1024];
        unsigned sent = 0;

        varlink_reply_free(&reply);
        memset(text, 'x', sizeof(text) - 1);
        while (n_cancelled == 0) {
                ck_assert_uint_lt(sent++, 1000);
                call_reply(kept, json_pack("{s:s}", "text", text), true);
                ck_assert_int_ge(sd_event_run(event, 0), 0);
        }
        ck_assert_uint_gt(sent, 60);
        client_expect(event, &other, PING, NULL);
        client_end(&other);
}

TEST(calls_wait_while_their_answers_are_not_read)
{
        struct varlink_reply reply = {0};

        for (unsigned i = 0; i < 50; i++)
                client_send(&client, "{\"method\":\"org.sqmgr.Control.Reload\"}");
        for (unsigned i = 0; i < 200; i++)
                ck_assert_int_ge(sd_event_run(event, 0), 0);
        ck_assert_uint_lt(n_handled, 10);
        for (unsigned i = 0; i < 50; i++) {
                ck_assert_int_eq(client_wait(event, &client, &reply), 1);
                varlink_reply_free(&reply);
        }
        ck_assert_uint_eq(n_handled, 50);
}

static const struct {
        const char *call, *error;
} service_calls[] = {
        {"{\"method\":\"org.varlink.service.GetInfo\"}", NULL},
        {"{\"method\":\"org.varlink.service.GetInterfaceDescription\","
         "\"parameters\":{\"interface\":\"org.sqmgr.Control\"}}",
         NULL},
        {"{\"method\":\"org.varlink.service.GetInterfaceDescription\","
         "\"parameters\":{\"interface\":\"org.varlink.service\"}}",
         NULL},
        {"{\"method\":\"org.varlink.service.GetInterfaceDescription\",\"parameters\":{\"interface\":\"a.b\"}"
         "}",
         VARLINK_INTERFACE_NOT_FOUND},
        {"{\"method\":\"org.varlink.service.GetInterfaceDescription\"}", VARLINK_INVALID_PARAMETER},
        {"{\"method\":\"org.varlink.service.Nothing\"}", VARLINK_METHOD_NOT_FOUND},
        {"{\"method\":\"org.sqmgr.Control.Nothing\"}", VARLINK_METHOD_NOT_FOUND},
        {"{\"method\":\"org.sqmgr.Other.Ping\"}", VARLINK_INTERFACE_NOT_FOUND},
        {"{\"method\":\"Ping\"}", VARLINK_INVALID_PARAMETER},
        {"{\"method\":\"org.sqmgr.Control.Ping\",\"upgrade\":true}", VARLINK_METHOD_NOT_IMPLEMENTED},
        {"{\"method\":\"org.sqmgr.Control.Ping\",\"more\":true}", NULL},
};

TEST_LOOP(speaks_for_itself, ELEMENTSOF(service_calls))
{

        client_expect(event, &client, service_calls[_i].call, service_calls[_i].error);
        client_expect(event, &client, PING, NULL);
}

TEST_FIXTURE(setup, teardown)

TEST(half_a_message_is_borne_for_a_while_only)
{
        start_server(50 * USEC_PER_MSEC);
        struct client idle = client_open(path);

        client = client_open(path);
        client_expect(event, &idle, PING, NULL);
        client_expect(event, &client, PING, NULL);
        client_write(&client, PING, 5);
        client_expect_closed(event, &client);
        client_expect(event, &idle, PING, NULL);
        client_end(&client);
        client_end(&idle);
}

struct holding {
        pid_t sqmgr, child;
        int go; /* closed: the child may end its sharing */
};

/* Forks a sqmgr that listens at the path, and then calls then(), whose child it names. */
static struct holding hold(const char *at, pid_t (*then)(int go))
{
        struct listener listener = LISTENER_NONE;
        struct holding holding = {0};
        int go[2], ready[2];
        char error[256];
        pid_t child = 0;

        ck_assert_int_eq(pipe(go), 0);
        ck_assert_int_eq(pipe(ready), 0);
        ck_assert_int_ge(holding.sqmgr = fork(), 0);
        if (holding.sqmgr == 0) {
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                close(go[1]);
                if (listener_open(&listener, at, 0, error, sizeof(error)) == 0 && then)
                        child = then(go[0]);
                (void)!write(ready[1], &child, sizeof(child));
                for (;;)
                        pause();
        }
        holding.go = go[1];
        close(go[0]);
        ck_assert_int_eq(read(ready[0], &holding.child, sizeof(holding.child)), sizeof(holding.child));
        close(ready[0]);
        close(ready[1]);
        return holding;
}

static void end_holder(const struct holding *holding)
{
        ck_assert_int_eq(kill(holding->sqmgr, SIGKILL), 0);
        ck_assert_int_eq(waitpid(holding->sqmgr, NULL, 0), holding->sqmgr);
}

/* Listens at the path as another sqmgr does, and ends. */
static int listen_as_another(char *error, size_t error_size)
{
        struct listener listener = LISTENER_NONE;
        int outcome[2], r;

        ck_assert_int_eq(pipe(outcome), 0);
        pid_t pid = unit_fork();
        if (pid == 0) {
                r = listener_open(&listener, path, 0, error, error_size);
                _exit(write(outcome[1], &r, sizeof(r)) > 0 && write(outcome[1], error, error_size) > 0 ? 0
                                                                                                       : 1);
        }
        ck_assert_int_eq(read(outcome[0], &r, sizeof(r)), sizeof(r));
        ck_assert_int_eq(read(outcome[0], error, error_size), error_size);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        close(outcome[0]);
        close(outcome[1]);
        return r;
}

TEST(a_second_server_is_refused_and_reported_the_pid_of_the_first)
{
        char error[512] = "", wanted[512];

        start_server(0);
        snprintf(wanted, sizeof(wanted),
                 "another sqmgr (pid %d) holds '%s'; stop it, or give each its own socket and state_file",
                 (int)getpid(), path);
        ck_assert_int_eq(listen_as_another(error, sizeof(error)), -EBUSY);
        ck_assert_str_eq(error, wanted);
        client = client_open(path);
        client_expect(event, &client, PING, NULL);
        client_end(&client);
        server = api_server_free(server);
        ck_assert_int_eq(access(path, F_OK), -1);
        start_server(0);
}

TEST(replaces_a_dead_socket_but_nothing_else)
{
        struct api_server_options all = options();
        struct stat status;
        char error[512];

        start_server(0);
        ck_assert_int_eq(stat(path, &status), 0);
        ck_assert_uint_eq(status.st_mode & 07777, 0666);
        server = api_server_free(server);

        int fd = unit_listen(path, 0);
        ck_assert_int_eq(api_server_new(event, &all, &server, error, sizeof(error)), -EADDRINUSE);
        close(fd);
        start_server(0);
        server = api_server_free(server);

        unit_write_file(dir, "run/control.sock", "precious");
        ck_assert_int_eq(api_server_new(event, &all, &server, error, sizeof(error)), -EEXIST);
        ck_assert_ptr_nonnull(strstr(error, "not a socket"));
        ck_assert_int_eq(unlink(path), 0);
}

static ino_t socket_inode(void)
{
        struct stat status;

        ck_assert_int_eq(lstat(path, &status), 0);
        ck_assert(S_ISSOCK(status.st_mode));
        ck_assert_uint_eq(status.st_mode & 07777, 0666);
        return status.st_ino;
}

static void keep_socket(int outcome)
{
        char error[512] = "";

        ck_assert_int_eq(api_server_keep_socket(server, error, sizeof(error)), outcome);
        ck_assert_int_eq(error[0] != '\0', outcome < 0);
}

/* Alone, with its lock, or with its directory. */
TEST_LOOP(a_socket_that_was_deleted_is_made_again, 3)
{
        char run[48], lock[80];

        start_server(0);
        ino_t inode = socket_inode();
        keep_socket(0);
        ck_assert_uint_eq(socket_inode(), inode);
        struct client before = client_open(path);
        client_expect(event, &before, PING, NULL);
        snprintf(run, sizeof(run), "%s/run", dir);
        if (_i == 2)
                unit_remove_tree(run);
        else
                ck_assert_int_eq(unlink(path), 0);
        snprintf(lock, sizeof(lock), "%s.lock", path);
        if (_i == 1)
                ck_assert_int_eq(unlink(lock), 0);
        keep_socket(1);
        inode = socket_inode();
        keep_socket(0);
        ck_assert_uint_eq(socket_inode(), inode);
        struct client after = client_open(path);
        client_expect(event, &after, PING, NULL);
        client_expect(event, &before, PING, NULL);
        client_end(&before);
        client_end(&after);
        /* Another sqmgr is refused there, as before. */
        char error[512] = "";
        ck_assert_int_eq(listen_as_another(error, sizeof(error)), _i == 0 ? -EBUSY : -EADDRINUSE);
        server = api_server_free(server);
        ck_assert_int_lt(access(path, F_OK), 0);
}

TEST(a_socket_on_which_another_answers_stays_the_others)
{
        struct stat ours, there;
        char lock[80];

        /* Another program. */
        start_server(0);
        ck_assert_int_eq(unlink(path), 0);
        int fd = unit_listen(path, 0);
        ck_assert_int_eq(lstat(path, &ours), 0);
        keep_socket(-EADDRINUSE);
        server = api_server_free(server);
        ck_assert_int_eq(lstat(path, &there), 0);
        ck_assert_uint_eq(there.st_ino, ours.st_ino);
        close(fd);

        /* Another sqmgr, which has the lock, too. */
        start_server(0);
        snprintf(lock, sizeof(lock), "%s.lock", path);
        ck_assert_int_eq(unlink(path), 0);
        ck_assert_int_eq(unlink(lock), 0);
        const struct holding second = hold(path, NULL);
        ino_t inode = socket_inode();
        keep_socket(-EADDRINUSE);
        ck_assert_uint_eq(socket_inode(), inode);
        server = api_server_free(server);
        ck_assert_uint_eq(socket_inode(), inode);
        end_holder(&second);
        close(second.go);
}

TEST(a_directory_that_cannot_be_made_is_named)
{
        struct api_server_options all = options();
        char error[512];

        all.path = "/proc/nothing/there/control.sock";
        ck_assert_int_lt(api_server_new(event, &all, &server, error, sizeof(error)), 0);
        ck_assert_ptr_nonnull(strstr(error, "'/proc/nothing/there'"));
}

static void await_go(int go)
{
        char byte;

        (void)!read(go, &byte, 1);
}

/* A child between fork() and execve(). */
static pid_t fork_with_copies(int go)
{
        pid_t child = fork();

        if (child == 0) {
                await_go(go);
                _exit(EXIT_SUCCESS);
        }
        return child;
}

/* A child that has not run yet: its first act is to have descriptors of its own. */
static pid_t fork_sharing(int go)
{
        struct clone_args how = {.flags = CLONE_FILES, .exit_signal = SIGCHLD};
        long child = syscall(SYS_clone3, &how, sizeof(how));

        if (child == 0) {
                await_go(go);
                (void)usleep(100000);
                (void)unshare(CLONE_FILES);
                (void)close_range(STDERR_FILENO + 1, UINT_MAX, 0);
                _exit(EXIT_SUCCESS);
        }
        return (pid_t)child;
}

TEST(a_lock_is_held_by_its_process_and_a_start_names_it)
{
        struct listener listener = LISTENER_NONE;
        char error[256] = "", expected[64], lock[140];

        const struct holding holding = hold(path, fork_with_copies);
        ck_assert_int_eq(listener_open(&listener, path, 0, error, sizeof(error)), -EBUSY);
        snprintf(expected, sizeof(expected), "another sqmgr (pid %d) holds", (int)holding.sqmgr);
        ck_assert_ptr_nonnull(strstr(error, expected));
        /* Without its lock, a living sqmgr still has its socket. */
        snprintf(lock, sizeof(lock), "%s.lock", path);
        ck_assert_int_eq(unlink(lock), 0);
        ck_assert_int_eq(listener_open(&listener, path, 0, error, sizeof(error)), -EADDRINUSE);
        ck_assert_ptr_nonnull(strstr(error, "another program listens on"));
        end_holder(&holding);
        close(holding.go);
}

TEST(a_start_is_not_refused_by_a_child_of_a_killed_sqmgr)
{
        struct listener listener = LISTENER_NONE;
        char error[256] = "";

        /* Valgrind knows no pidfd_open, by which the end of a process is seen. */
        if (getenv("UNDER_VALGRIND"))
                return;
        const struct holding holding = hold(path, fork_with_copies);
        end_holder(&holding);
        /* The child lives, with copies of the lock and of the socket. */
        ck_assert_msg(listener_open(&listener, path, 0, error, sizeof(error)) == 0, "%s", error);
        ck_assert_int_eq(kill(holding.child, 0), 0);
        listener_close(&listener);
        close(holding.go);
}

TEST(a_child_that_shares_the_descriptors_of_a_killed_sqmgr_is_waited_for)
{
        struct listener listener = LISTENER_NONE;
        char error[256] = "";

        const struct holding holding = hold(path, fork_sharing);
        end_holder(&holding);
        close(holding.go);
        ck_assert_msg(listener_open(&listener, path, 0, error, sizeof(error)) == 0, "%s", error);
        listener_close(&listener);
}

/* Claims the path as another sqmgr does, until *ret_go is closed. */
static pid_t claim_as_another(int *ret_go)
{
        char error[256] = "", byte = 0;
        int fd = -1, go[2], ready[2];

        ck_assert_int_eq(pipe2(go, O_CLOEXEC), 0);
        ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
        pid_t pid = unit_fork();
        if (pid == 0) {
                close(go[1]);
                byte = listener_claim(path, &fd, error, sizeof(error)) == 0 && fd >= 0;
                (void)!write(ready[1], &byte, 1);
                await_go(go[0]);
                _exit(EXIT_SUCCESS);
        }
        close(go[0]);
        close(ready[1]);
        ck_assert_int_eq(read(ready[0], &byte, 1), 1);
        ck_assert_int_eq(byte, 1);
        close(ready[0]);
        *ret_go = go[1];
        return pid;
}

TEST(a_path_is_claimed_without_any_file_until_its_holder_ends)
{
        char error[256] = "", expected[64], other[128];
        int fd = -1, other_fd = -1, go;

        pid_t holder = claim_as_another(&go);
        ck_assert_int_eq(listener_claim(path, &fd, error, sizeof(error)), -EBUSY);
        snprintf(expected, sizeof(expected), "another sqmgr (pid %d) manages the workers of", (int)holder);
        ck_assert_ptr_nonnull(strstr(error, expected));
        snprintf(other, sizeof(other), "%s.other", path);
        ck_assert_int_eq(listener_claim(other, &other_fd, error, sizeof(error)), 0);
        ck_assert_int_ge(other_fd, 0);
        close_fd(other_fd);
        close(go);
        ck_assert_int_eq(waitpid(holder, NULL, 0), holder);
        ck_assert_int_eq(listener_claim(path, &fd, error, sizeof(error)), 0);
        ck_assert_int_ge(fd, 0);

        /* A child of this process has a copy: no other sqmgr is running. */
        int pair[2];
        ck_assert_int_eq(pipe2(pair, O_CLOEXEC), 0);
        pid_t child = fork();
        if (child == 0) {
                close(pair[1]);
                await_go(pair[0]);
                _exit(EXIT_SUCCESS);
        }
        close(pair[0]);
        fd = close_fd(fd);
        ck_assert_int_eq(listener_claim(path, &fd, error, sizeof(error)), 0);
        ck_assert_int_eq(fd, -1);
        close(pair[1]);
        ck_assert_int_eq(waitpid(child, NULL, 0), child);
        ck_assert_int_eq(listener_claim(path, &fd, error, sizeof(error)), 0);
        ck_assert_int_ge(fd, 0);
        close_fd(fd);
}

TEST(a_lock_is_free_when_its_holder_is_gone_and_is_no_link_or_directory)
{
        char lock[128], error[512];
        int second = -1;

        snprintf(lock, sizeof(lock), "%s.lock", path);
        const struct holding holding = hold(path, NULL);
        ck_assert_int_eq(listener_lock(path, &second, error, sizeof(error)), -EBUSY);
        ck_assert_int_eq(second, -1);
        end_holder(&holding);
        close(holding.go);
        ck_assert_int_eq(listener_lock(path, &second, error, sizeof(error)), 0);
        close(second);
        ck_assert_int_eq(unlink(lock), 0);
        ck_assert_int_eq(mkdir(lock, 0700), 0);
        ck_assert_int_eq(listener_lock(path, &second, error, sizeof(error)), -EISDIR);
        ck_assert_int_eq(rmdir(lock), 0);
        ck_assert_int_eq(symlink("/tmp/sqmgr-test-elsewhere", lock), 0);
        ck_assert_int_eq(listener_lock(path, &second, error, sizeof(error)), -ELOOP);
}

TEST_MAIN("server", .each = {setup_client, teardown_client})
