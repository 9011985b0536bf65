/* SPDX-License-Identifier: MIT */
/* Tests of how another program takes the place of sqmgr (daemon/lifecycle/reexec.h): with scripts that stand
 * for the program, and clients on a real socket. */
/* promises: P4 P10 */
#include "client.h"
#include "daemon/lifecycle/reexec.h"
#include "daemon/workers/exits.h"
#include "golden.h"
#include "runtime.h"

#define REEXEC "{\"method\":\"org.sqmgr.Control.Reexec\"}"
#define DONE   5 /* the exit status of a program that has taken over, and found everything */

/* It takes the state, and must not be run in our place. */
#define TAKES_OVER "[ $# -gt 0 ] && echo '/state: ok' && exit 0; exit 9"

static char dir[] = "/tmp/sqmgr-test-XXXXXX";
static char program[64], path[64];
static char *arguments[] = {program, NULL};
static const struct invocation invocation = {
        .program = program, .argv = arguments, .config_path = "/nonexistent/ini"};
static struct reexec reexec;

static void publish(void *userdata _unused_)
{
        unit_write_file(dir, "published", "yes");
}

static void on_call(struct call *call, const struct control_method *method, json_t *parameters _unused_,
                    void *userdata)
{
        if (strcmp(method->name, "Reexec") == 0)
                reexec_request(userdata, call);
        else
                call_reply(call, json_object(), false);
}

static void make_dir(void)
{
        unit_make_folder(dir);
        snprintf(program, sizeof(program), "%s/sqmgr", dir);
        snprintf(path, sizeof(path), "%s/socket", dir);
}

static void remove_dir(void)
{
        unit_remove_tree(dir);
}

/* In an empty directory: the test of TEST_EXITS() ends as another program, which removes nothing. */
static void start(void)
{
        char text[256], error[512] = "";

        unit_remove_tree(dir);
        ck_assert_int_eq(mkdir(dir, 0700), 0);
        ck_assert_int_ge(sd_event_new(&event), 0);
        snprintf(text, sizeof(text),
                 "[sqmgr]\nstate_file=%s/state\n" RUNTIME_REDIS "[fleet:web]\ncommand=x\n", dir);
        runtime_start(text);
        state_load_boot_id(runtime.boot_id);
        reexec = (struct reexec){
                .invocation = &invocation,
                .runtime = &runtime,
                .publish = publish,
        };
        const struct api_server_options options = {
                .path = path,
                .groups = {CONTROL_NO_GROUP, CONTROL_NO_GROUP, ""},
                .version = "1.2.3",
                .handle = on_call,
                .userdata = &reexec,
        };
        ck_assert_msg(api_server_new(event, &options, &reexec.server, error, sizeof(error)) == 0, "%s",
                      error);
}

static void end(void)
{
        reexec.server = api_server_free(reexec.server);
        reexec_end(&reexec);
        runtime_end();
        event = sd_event_unref(event);
}

/* The program is this script, which finds the folder in $d; a line for each time that it runs. */
static void install(const char *script)
{
        char text[2048];

        snprintf(text, sizeof(text), "#!/bin/sh\nd=%s\necho run >>$d/runs\n%s\n", dir, script);
        unit_write_file(dir, "sqmgr", text);
        ck_assert_int_eq(chmod(program, 0700), 0);
}

static unsigned runs(void)
{
        char file_path[64], line[16];
        unsigned n = 0;

        snprintf(file_path, sizeof(file_path), "%s/runs", dir);
        FILE *file = fopen(file_path, "re");
        while (file && fgets(line, sizeof(line), file))
                n++;
        if (file)
                fclose(file);
        return n;
}

/* One turn of the loop, as the daemon's with the exits of its children. */
static void wakeup(void)
{
        exits_reap(&runtime);
        ck_assert_int_ge(sd_event_run(event, 10 * USEC_PER_MSEC), 0);
}

/* Waits for the reply to a caller: the reason, then the details, a line each. To be freed. */
static char *refusal(struct client *client)
{
        struct varlink_reply reply = {0};
        char *room, *text = NULL;

        while (true) {
                const char *bytes;
                size_t size;

                if (varlink_input_take(&client->input, VARLINK_REPLY_MAX, &bytes, &size) == 1) {
                        ck_assert_int_eq(varlink_decode_reply(bytes, size, VARLINK_REPLY_MAX, &reply), 0);
                        break;
                }
                wakeup();
                ck_assert_int_eq(varlink_input_reserve(&client->input, 65536, &room), 0);
                ssize_t n = recv(client->fd, room, 65536, MSG_DONTWAIT);
                ck_assert(n > 0 || (n < 0 && errno == EAGAIN));
                varlink_input_filled(&client->input, n > 0 ? (size_t)n : 0);
        }
        ck_assert_pstr_eq(reply.error, CONTROL_REFUSED);
        size_t length;
        FILE *file = open_memstream(&text, &length);
        fprintf(file, "%s\n", json_string_value(json_object_get(reply.parameters, "reason")));
        json_t *details = json_object_get(reply.parameters, "details");
        for (size_t i = 0; i < json_array_size(details); i++)
                fprintf(file, "%s\n", json_string_value(json_array_get(details, i)));
        fclose(file);
        varlink_reply_free(&reply);
        return text;
}

/* The refusal is that of the case in tests/golden/reexec, the directory of this test as "D". */
static void expect_text(const char *what, char *reported)
{
        golden_expect_with("reexec", what, reported, dir, "D");
        free(reported);
}

static void expect_refusal(const char *what)
{
        struct client client = client_open(path);

        client_send(&client, REEXEC);
        expect_text(what, refusal(&client));
        ck_assert_int_eq(reexec.child.pid, 0);
        client_expect(event, &client, "{\"method\":\"org.sqmgr.Control.Ping\"}", NULL);
        client_end(&client);
}

TEST(a_program_that_does_not_take_the_state_does_not_take_over)
{
        install("echo \"$1 $2 $3\" | sed \"s|=$d|=|\"; echo 'it is of another kind' >&2; exit 3");
        expect_refusal("refuses");
        ck_assert_uint_eq(runs(), 1);
}

TEST(one_that_has_nothing_against_it_but_is_no_sqmgr_does_not_take_over)
{
        install("[ $# -gt 0 ] && exit 0; exit 9");
        expect_refusal("says nothing");
        install("[ $# -gt 0 ] && echo ok && exit 0; exit 9");
        expect_refusal("says something else");
}

TEST(one_that_dies_does_not_take_over)
{
        install("kill -SEGV $$");
        expect_refusal("dies");
}

TEST(one_that_cannot_be_run_does_not_take_over)
{
        expect_refusal("cannot be run");
}

/* It is not stuck on a full pipe, and what it says is cut. */
TEST(one_that_says_much_is_heard_to_its_end)
{
        struct client client = client_open(path);

        install("i=0; while [ $i -lt 20000 ]; do echo 'and so on'; i=$((i + 1)); done; exit 1");
        client_send(&client, REEXEC);
        char *reported = refusal(&client);
        ck_assert_uint_gt(strlen(reported), 1024);
        ck_assert_uint_lt(strlen(reported), 4096);
        reported[strcspn(reported, "\n")] = '\0';
        expect_text("says much", reported);
        client_end(&client);
}

static void shuts_down(void)
{
        runtime_world->shutting_down = true;
}

static void ends(void)
{
        runtime.end_query = (struct systemd_query *)&reexec; /* any but NULL */
}

static void searches(void)
{
        runtime.search = (struct search *)&runtime; /* any but NULL */
}

static void has_no_place(void)
{
        runtime_settings->state_file[strlen("/tmp/")] = '!'; /* in no folder that there is */
}

static const struct {
        void (*prepare)(void);
        const char *what;
} bad_times[] = {
        {shuts_down, "bad time: shuts down"},
        {ends, "bad time: ends"},
        {searches, "bad time: searches"},
        {has_no_place, "bad time: the state cannot be written"},
};

TEST_LOOP(at_a_bad_time_nobody_is_asked, ELEMENTSOF(bad_times))
{
        install(TAKES_OVER);
        bad_times[_i].prepare();
        expect_refusal(bad_times[_i].what);
        ck_assert_uint_eq(runs(), 0);
        runtime.end_query = NULL;
        runtime.search = NULL;
}

/* What is begun meanwhile must not be lost. */
TEST(what_became_a_bad_time_meanwhile_stops_it)
{
        struct client client = client_open(path);

        install("read x <$d/fifo\n" TAKES_OVER);
        char fifo[64];
        snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
        ck_assert_int_eq(mkfifo(fifo, 0600), 0);
        client_send(&client, REEXEC);
        while (runs() == 0)
                wakeup();
        runtime_world->shutting_down = true;
        int fd = open(fifo, O_RDWR | O_CLOEXEC);
        ck_assert_int_eq(write(fd, "\n", 1), 1);
        expect_text("bad time: shuts down", refusal(&client));
        close(fd);
        client_end(&client);
}

static void hold_up(char *fifo, size_t size)
{
        install("read x <$d/fifo; exit 4");
        snprintf(fifo, size, "%s/fifo", dir);
        ck_assert_int_eq(mkfifo(fifo, 0600), 0);
}

TEST(all_who_ask_meanwhile_are_reported_and_who_has_gone_is_not)
{
        struct client clients[3] = {client_open(path), client_open(path), client_open(path)};
        char fifo[64];

        hold_up(fifo, sizeof(fifo));
        for (size_t i = 0; i < 3; i++) {
                client_send(&clients[i], REEXEC);
                client_settle(event);
        }
        reexec_request(&reexec, NULL); /* a signal, too */
        while (runs() == 0)
                wakeup();
        client_end(&clients[1]);
        client_settle(event);
        int fd = open(fifo, O_RDWR | O_CLOEXEC);
        ck_assert_int_eq(write(fd, "\n", 1), 1);
        for (size_t i = 0; i < 3; i += 2) {
                expect_text("refuses with 4", refusal(&clients[i]));
                client_end(&clients[i]);
        }
        ck_assert_uint_eq(runs(), 1);
        close(fd);
}

TEST(too_many_who_ask_are_reported_so)
{
        struct client clients[17];
        char fifo[64];

        hold_up(fifo, sizeof(fifo));
        for (size_t i = 0; i < ELEMENTSOF(clients); i++) {
                clients[i] = client_open(path);
                client_send(&clients[i], REEXEC);
                client_settle(event);
        }
        expect_text("too many", refusal(&clients[16]));
        for (size_t i = 0; i < ELEMENTSOF(clients); i++)
                client_end(&clients[i]);
}

/* The end of the daemon does not wait for it. */
TEST(the_end_takes_the_program_that_is_asked_along)
{
        char fifo[64];

        hold_up(fifo, sizeof(fifo));
        reexec_request(&reexec, NULL);
        while (runs() == 0)
                wakeup();
        reexec_end(&reexec);
        ck_assert_int_eq(reexec.child.pid, 0);
        ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
        ck_assert_int_eq(errno, ECHILD);
}

/* The same process, the same socket, the caller that waits, and a state of now. Pending events are published.
 */
TEST_EXITS(one_that_takes_the_state_takes_over, DONE)
{
        char script[512];

        snprintf(script, sizeof(script),
                 "case $3 in --check-state=*) [ -s $d/state ] && echo $d/state: ok; exit;; esac\n"
                 "n=0\n"
                 "for fd in /proc/$$/fd/*; do\n"
                 "case $fd in */[012]) continue;; esac\n"
                 "case $(readlink $fd) in socket:*) n=$((n + 1));; esac\n"
                 "done\n"
                 "[ $# = 0 ] && [ $$ = %d ] && [ $n = 3 ] && [ -f $d/published ] && exit %d\n"
                 "exit 1",
                 (int)getpid(), DONE);
        install(script);
        struct client client = client_open(path), idle = client_open(path);
        client_expect(event, &idle, "{\"method\":\"org.sqmgr.Control.Ping\"}", NULL);
        client_send(&client, REEXEC);
        char *reported = refusal(&client);
        ck_abort_msg("%s", reported);
}

TEST_MAIN("reexec", .each = {start, end}, .once = {make_dir, remove_dir})
