/* SPDX-License-Identifier: MIT */
/* Tests of how another program takes the place of sqmgr (daemon/lifecycle/reexec.h): with scripts that stand
 * for the program, and clients on a real socket. */
/* promises: P4 P10 */
#include "client.h"
#include "daemon/lifecycle/reexec.h"
#include "daemon/workers/exits.h"
#include "runtime.h"
#include <unistd.h>

#define REEXEC "{\"method\":\"org.sqmgr.Control.Reexec\"}"
#define DONE   5 /* the exit status of a program that has taken over, and found everything */

/* It takes the state, and must not be run in our place. */
#define TAKES_OVER "[ $# -gt 0 ] && echo '/state: ok' && exit 0; exit 9"

static char dir[] = "/tmp/sqmgr-test-XXXXXX";
static char program[64], path[64];
static char *arguments[] = {program, NULL};
static const struct invocation invocation = {
        .program = program, .argv = arguments, .config_path = "/nonexistent/ini"};
static struct persist persist;
static struct termination termination;
static struct reexec reexec;

static void on_call(struct call *call, const struct control_method *method, json_t *parameters _unused_,
                    void *userdata)
{
        if (strcmp(method->name, "Reexec") == 0)
                reexec_request(userdata, call);
        else
                server_reply(call, json_object(), false);
}

static void make_dir(void)
{
        strcpy(dir, "/tmp/sqmgr-test-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(dir));
        snprintf(program, sizeof(program), "%s/sqmgr", dir);
        snprintf(path, sizeof(path), "%s/socket", dir);
}

static void remove_dir(void)
{
        unit_remove_tree(dir);
}

static void start(void)
{
        char text[256], error[512] = "";

        ck_assert_int_ge(sd_event_new(&event), 0);
        snprintf(text, sizeof(text),
                 "[sqmgr]\nstate_file=%s/state\n" RUNTIME_REDIS "[fleet:web]\ncommand=x\n", dir);
        runtime_start(text);
        persist = (struct persist){.runtime = &runtime};
        statefile_boot_id(persist.boot_id);
        termination = (struct termination){.runtime = &runtime};
        reexec = (struct reexec){
                .invocation = &invocation,
                .runtime = &runtime,
                .persist = &persist,
                .termination = &termination,
        };
        const struct server_options options = {
                .place.path = path,
                .place.mode = 0600,
                .place.group = CONTROL_NO_GROUP,
                .version = "1.2.3",
                .handle = on_call,
                .userdata = &reexec,
        };
        ck_assert_msg(server_new(event, &options, &reexec.server, error, sizeof(error)) == 0, "%s", error);
}

static void end(void)
{
        reexec.server = server_free(reexec.server);
        reexec_end(&reexec);
        runtime_end();
        event = sd_event_unref(event);
}

static void setup(void)
{
        make_dir();
        start();
}

static void teardown(void)
{
        end();
        remove_dir();
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
        exits_sweep(&runtime);
        ck_assert_int_ge(sd_event_run(event, 10 * USEC_PER_MSEC), 0);
}

/* What was sent has been read. */
static void settle(void)
{
        while (sd_event_run(event, 0) > 0)
                ;
}

/* Waits for what a caller is told: the reason, then the details, a line each. To be
 * freed. */
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

static void expect_refusal(const char *reason, const char *details)
{
        struct client client = client_open(path);
        char expected[1024];

        client_send(&client, REEXEC);
        char *reported = refusal(&client);
        snprintf(expected, sizeof(expected), "re-exec refused, nothing has changed: %s\n%s", reason, details);
        ck_assert_str_eq(reported, expected);
        free(reported);
        ck_assert_int_eq(reexec.child.pid, 0);
        client_expect(event, &client, "{\"method\":\"org.sqmgr.Control.Ping\"}", NULL);
        client_end(&client);
}

START_TEST(a_program_that_does_not_take_the_state_does_not_take_over)
{
        char reason[256];

        install("echo \"$1 $2 $3\" | sed \"s|=$d|=|\"; echo 'it is of another kind' >&2; exit 3");
        snprintf(reason, sizeof(reason), "'%s --check-state' refuses (exit status 3)", program);
        expect_refusal(reason, "-c /nonexistent/ini --check-state=/state\nit is of another kind\n");
        ck_assert_uint_eq(runs(), 1);
}
END_TEST

START_TEST(one_that_has_nothing_against_it_but_is_no_sqmgr_does_not_take_over)
{
        char reason[256];

        snprintf(reason, sizeof(reason), "'%s --check-state' does not answer as sqmgr does", program);
        install("[ $# -gt 0 ] && exit 0; exit 9");
        expect_refusal(reason, "");
        install("[ $# -gt 0 ] && echo ok && exit 0; exit 9");
        expect_refusal(reason, "ok\n");
}
END_TEST

START_TEST(one_that_dies_does_not_take_over)
{
        char reason[256];

        install("kill -SEGV $$");
        snprintf(reason, sizeof(reason), "'%s --check-state' was ended by SIGSEGV", program);
        expect_refusal(reason, "");
}
END_TEST

START_TEST(one_that_cannot_be_run_does_not_take_over)
{
        char reason[256], details[256];

        snprintf(reason, sizeof(reason), "'%s --check-state' refuses (exit status 127)", program);
        snprintf(details, sizeof(details), "%s: No such file or directory\n", program);
        expect_refusal(reason, details);
}
END_TEST

/* It is not stuck on a full pipe, and what it says is cut. */
START_TEST(one_that_says_much_is_heard_to_its_end)
{
        struct client client = client_open(path);

        install("i=0; while [ $i -lt 20000 ]; do echo 'and so on'; i=$((i + 1)); done; exit 1");
        client_send(&client, REEXEC);
        char *reported = refusal(&client);
        ck_assert_ptr_nonnull(strstr(reported, "exit status 1"));
        ck_assert_uint_gt(strlen(reported), 1024);
        ck_assert_uint_lt(strlen(reported), 4096);
        free(reported);
        client_end(&client);
}
END_TEST

static void shuts_down(void)
{
        runtime_world->shutting_down = true;
}

static void ends(void)
{
        termination.query = (struct systemd_query *)&termination; /* any but NULL */
}

static void searches(void)
{
        persist.search = (struct search *)&persist; /* any but NULL */
}

static void has_no_place(void)
{
        runtime_settings->state_file[strlen("/tmp/")] = '!'; /* in no folder that there is */
}

static const struct {
        void (*prepare)(void);
        const char *reason;
} bad_times[] = {
        {shuts_down, "sqmgr is shutting down"},
        {ends, "sqmgr is told to end"},
        {searches, "the workers of an earlier sqmgr are still being looked for: try again"},
        {has_no_place, "the state file cannot be written, see the log"},
};

START_TEST(at_a_bad_time_nobody_is_asked)
{
        install(TAKES_OVER);
        bad_times[_i].prepare();
        expect_refusal(bad_times[_i].reason, "");
        ck_assert_uint_eq(runs(), 0);
        termination.query = NULL;
        persist.search = NULL;
}
END_TEST

/* What is begun meanwhile must not be lost. */
START_TEST(what_became_a_bad_time_meanwhile_stops_it)
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
        char *reported = refusal(&client);
        ck_assert_str_eq(reported, "re-exec refused, nothing has changed: sqmgr is shutting down\n");
        free(reported);
        close(fd);
        client_end(&client);
}
END_TEST

static void hold_up(char *fifo, size_t size)
{
        install("read x <$d/fifo; exit 4");
        snprintf(fifo, size, "%s/fifo", dir);
        ck_assert_int_eq(mkfifo(fifo, 0600), 0);
}

START_TEST(all_who_ask_meanwhile_are_reported_and_who_has_gone_is_not)
{
        struct client clients[3] = {client_open(path), client_open(path), client_open(path)};
        char fifo[64];

        hold_up(fifo, sizeof(fifo));
        for (size_t i = 0; i < 3; i++) {
                client_send(&clients[i], REEXEC);
                settle();
        }
        reexec_request(&reexec, NULL); /* a signal, too */
        while (runs() == 0)
                wakeup();
        client_end(&clients[1]);
        settle();
        int fd = open(fifo, O_RDWR | O_CLOEXEC);
        ck_assert_int_eq(write(fd, "\n", 1), 1);
        for (size_t i = 0; i < 3; i += 2) {
                char *reported = refusal(&clients[i]);

                ck_assert_ptr_nonnull(strstr(reported, "exit status 4"));
                free(reported);
                client_end(&clients[i]);
        }
        ck_assert_uint_eq(runs(), 1);
        close(fd);
}
END_TEST

START_TEST(too_many_who_ask_are_reported_so)
{
        struct client clients[17];
        char fifo[64];

        hold_up(fifo, sizeof(fifo));
        for (size_t i = 0; i < ELEMENTSOF(clients); i++) {
                clients[i] = client_open(path);
                client_send(&clients[i], REEXEC);
                settle();
        }
        char *reported = refusal(&clients[16]);
        ck_assert_str_eq(reported, "too many wait for this already\n");
        free(reported);
        for (size_t i = 0; i < ELEMENTSOF(clients); i++)
                client_end(&clients[i]);
}
END_TEST

/* The end of the daemon does not wait for it. */
START_TEST(the_end_takes_the_program_that_is_asked_along)
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
END_TEST

/* The same process, the same socket, the caller that waits, and a state of now. */
START_TEST(one_that_takes_the_state_takes_over)
{
        char script[512];

        snprintf(script, sizeof(script),
                 "case $3 in --check-state=*) [ -s $d/state ] && echo $d/state: ok; exit;; esac\n"
                 "n=0\n"
                 "for fd in /proc/$$/fd/*; do\n"
                 "case $fd in */[012]) continue;; esac\n"
                 "case $(readlink $fd) in socket:*) n=$((n + 1));; esac\n"
                 "done\n"
                 "[ $# = 0 ] && [ $$ = %d ] && [ $n = 3 ] && exit %d\n"
                 "exit 1",
                 (int)getpid(), DONE);
        install(script);
        struct client client = client_open(path), idle = client_open(path);
        client_expect(event, &idle, "{\"method\":\"org.sqmgr.Control.Ping\"}", NULL);
        client_send(&client, REEXEC);
        char *reported = refusal(&client);
        ck_abort_msg("%s", reported);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("reexec");
        TCase *cases = tcase_create("reexec");

        tcase_add_checked_fixture(cases, setup, teardown);
        tcase_add_test(cases, a_program_that_does_not_take_the_state_does_not_take_over);
        tcase_add_test(cases, one_that_has_nothing_against_it_but_is_no_sqmgr_does_not_take_over);
        tcase_add_test(cases, one_that_dies_does_not_take_over);
        tcase_add_test(cases, one_that_cannot_be_run_does_not_take_over);
        tcase_add_test(cases, one_that_says_much_is_heard_to_its_end);
        tcase_add_loop_test(cases, at_a_bad_time_nobody_is_asked, 0, ELEMENTSOF(bad_times));
        tcase_add_test(cases, what_became_a_bad_time_meanwhile_stops_it);
        tcase_add_test(cases, all_who_ask_meanwhile_are_reported_and_who_has_gone_is_not);
        tcase_add_test(cases, too_many_who_ask_are_reported_so);
        tcase_add_test(cases, the_end_takes_the_program_that_is_asked_along);
        suite_add_tcase(suite, cases);
        /* Its process is replaced, and cannot clean up. */
        cases = tcase_create("taken over");
        tcase_add_unchecked_fixture(cases, make_dir, remove_dir);
        tcase_add_checked_fixture(cases, start, end);
        tcase_add_exit_test(cases, one_that_takes_the_state_takes_over, DONE);
        suite_add_tcase(suite, cases);
        return unit_main(suite);
}
