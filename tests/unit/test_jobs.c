/* SPDX-License-Identifier: MIT */
/* Tests of how those are answered who ask for the jobs (daemon/api/jobs.h), with a real process, a real
 * redis-server and clients on a real socket. */
/* promises: P8 */
#include "client.h"
#include "daemon/api/handler.h"
#include "daemon/poll/poll.h"
#include "redis_runtime.h"

#define VIEWERS  4241
#define IDENTITY "host:77:0123456789ab"
#define GET_JOBS "{\"method\":\"org.sqmgr.Control.GetJobs\",\"parameters\":%s}"

static char path[80];
static struct api_server *server;
static struct control control;

/* The tests ask for one fleet in turn with its index, or with none for all. */
static void on_call(struct call *call, const struct control_method *method _unused_, json_t *parameters,
                    void *userdata _unused_)
{
        json_int_t one = json_integer_value(json_object_get(parameters, "fleet"));

        if (one > 0)
                jobs_calls_add(&control, call, &runtime_world->fleets[one - 1], 1,
                               clock_now(CLOCK_MONOTONIC));
        else
                jobs_calls_add(&control, call, runtime_world->fleets, runtime_world->n_fleets,
                               clock_now(CLOCK_MONOTONIC));
}

static bool views; /* the clients are viewers */
static unsigned rendered;

/* Counts the jobs that are rendered. */
char *__real_json_text(const json_t *value, size_t flags);
char *__wrap_json_text(const json_t *value, size_t flags);
char *__wrap_json_text(const json_t *value, size_t flags)
{
        rendered += !!json_object_get(value, "jid");
        return __real_json_text(value, flags);
}

static void setup(void)
{
        const struct api_server_options options = {.path = path,
                                                   .groups = {VIEWERS, CONTROL_NO_GROUP, ""},
                                                   .version = "1.2.3",
                                                   .handle = on_call};
        char text[1024], error[512] = "";
        size_t length;

        redis_runtime_setup();
        length = (size_t)snprintf(text, sizeof(text), "[redis]\nurl=%s\n", server_url);
        for (unsigned i = 1; i <= 10; i++)
                length += (size_t)snprintf(text + length, sizeof(text) - length,
                                           "[fleet:f%u%s]\ncommand=/bin/sleep 1000\n", i,
                                           i > 1 ? "" : "-whose-name-takes-space-in-each-reply");
        snprintf(text + length, sizeof(text) - length,
                 "[fleet:files]\nframework=native\nheartbeat=file\ncommand=/bin/sleep 1000\n"
                 "[sqmgr]\nsocket=%s/sqmgr.sock\n",
                 server_directory);
        runtime_patience = SERVER_PATIENCE; /* a busy machine takes more than a second for 8 MiB */
        runtime_start(text);
        snprintf(path, sizeof(path), "%s/control.sock", server_directory);
        control = (struct control){.runtime = &runtime};
        ck_assert_msg(api_server_new(event, &options, &server, error, sizeof(error)) == 0, "%s", error);
        views = false;

        struct worker *worker = runtime_start_worker();
        ck_assert_ptr_nonnull(worker->handle);
        run_until(runtime_world->fleets[0]->redis_up);
        attach_heartbeat(worker, worker->process.pid, clock_now(CLOCK_MONOTONIC));
        ck_assert_int_eq(heartbeats_know(worker->handle->slot, IDENTITY), 0);
        worker->state = WORKER_ACTIVE;
}

static void teardown(void)
{
        server = api_server_free(server);
        ck_assert_ptr_null(control.jobs_queries);
        redis_runtime_teardown_all();
}

/* Adds n jobs, whose class has size characters. */
static void put_jobs(unsigned n, const char *filler, unsigned size)
{
        const char *script = "local entry = cjson.encode({queue='low', run_at=1700000000,"
                             " payload={class=string.rep(ARGV[2], ARGV[3]), jid='j'}}) "
                             "for i = 1, ARGV[1] do redis.call('HSET', KEYS[1], 't' .. i, entry) end";

        server_do("EVAL %s 1 " IDENTITY ":work %u %s %u", script, n, filler, size);
}

static struct client ask(const char *parameters)
{
        struct client client = views ? client_open_as(path, 4000, VIEWERS) : client_open(path);
        char text[128];

        snprintf(text, sizeof(text), GET_JOBS, parameters);
        client_send(&client, text);
        return client;
}

/* The number of jobs reported; -1: an error. */
static int n_jobs(struct client *client)
{
        struct varlink_reply reply = {0};

        ck_assert_int_eq(client_wait(event, client, &reply), 1);
        int n = reply.error ? -1 : (int)json_array_size(json_object_get(reply.parameters, "jobs"));
        varlink_reply_free(&reply);
        return n;
}

/* Those who ask while Redis is silent. */
static void take_all(void)
{
        while (sd_event_run(event, 0) > 0)
                ;
}

TEST(one_reading_answers_all_who_ask_meanwhile)
{
        struct client clients[20];

        put_jobs(3, "x", 10);
        ck_assert_int_eq(kill(server_pid, SIGSTOP), 0);
        for (size_t i = 0; i < ELEMENTSOF(clients); i++) {
                clients[i] = ask(i % 2 == 0 ? "{}" : "{\"fleet\":1}");
                take_all();
        }
        client_end(&clients[4]); /* it is not waited for */
        take_all();
        ck_assert_int_eq(kill(server_pid, SIGCONT), 0);
        for (size_t i = 0; i < ELEMENTSOF(clients); i++) {
                if (i == 4)
                        continue;
                ck_assert_int_eq(n_jobs(&clients[i]), 3);
                client_end(&clients[i]);
        }
        /* A reading has two lists, of the old name and of the new. */
        ck_assert_int_eq(server_calls("hgetall"), 2 * 2);
        struct client late = ask("{}");
        ck_assert_int_eq(n_jobs(&late), 3);
        ck_assert_int_eq(server_calls("hgetall"), 3 * 2);
        client_end(&late);
}

TEST(who_asks_for_other_fleets_has_an_answer_of_his_own)
{
        put_jobs(3, "x", 10);
        struct client all = ask("{}"), first = ask("{\"fleet\":1}"), second = ask("{\"fleet\":2}");

        ck_assert_int_eq(n_jobs(&second), 0);
        ck_assert_int_eq(n_jobs(&first), 3);
        ck_assert_int_eq(n_jobs(&all), 3);
        client_end(&all);
        client_end(&first);
        client_end(&second);
}

/* Starts the worker of the last fleet, and has it run two jobs according to its file. */
static void start_with_file(void)
{
        struct fleet *fleet = runtime_world->fleets[10];
        const struct action action = {.kind = ACTION_START, .fleet = fleet, .index = 1};
        char name[64], record[256];

        ck_assert(execute_action(&runtime, &action, clock_now(CLOCK_MONOTONIC)));
        const struct worker *worker = fleet->workers[0];
        snprintf(name, sizeof(name), "%s/sqmgr.status/files", server_directory);
        run_until(access(name, F_OK) == 0);
        snprintf(name, sizeof(name), "sqmgr.status/files/%d", (int)worker->process.pid);
        for (unsigned n = 1; !worker->heartbeat.seen; n++) {
                poll_run(&runtime, false, clock_now(CLOCK_MONOTONIC));
                snprintf(record, sizeof(record),
                         "v=1\nbeat=%u\nbusy=2\nquiet=0\nstart=%ju\njob=a 1700000000.5 x\x1b\njob=b 7 y\n", n,
                         (uintmax_t)worker->process.start);
                unit_write_file(server_directory, name, record);
        }
}

TEST(jobs_in_files_are_listed_with_those_in_redis)
{
        struct varlink_reply reply = {0};

        start_with_file();
        put_jobs(3, "x", 10);
        struct client all = ask("{}");
        ck_assert_int_eq(n_jobs(&all), 5);
        client_end(&all);
        /* Jobs from heartbeat files need no Redis. */
        ck_assert_int_eq(kill(server_pid, SIGSTOP), 0);
        struct client one = ask("{\"fleet\":11}");
        ck_assert_int_eq(client_wait(event, &one, &reply), 1);
        char *text = json_dumps(json_object_get(reply.parameters, "jobs"), JSON_SORT_KEYS | JSON_COMPACT);
        char expected[256];
        snprintf(expected, sizeof(expected),
                 "[{\"class\":\"x?\",\"jid\":\"a\",\"pid\":%d,\"queue\":\"\",\"started_at\":1700000000,"
                 "\"thread\":\"\",\"worker\":\"files/1\"},",
                 (int)runtime_world->fleets[10]->workers[0]->process.pid);
        ck_assert_int_eq(strncmp(text, expected, strlen(expected)), 0);
        ck_assert_uint_eq(json_array_size(json_object_get(reply.parameters, "jobs")), 2);
        free(text);
        varlink_reply_free(&reply);
        client_end(&one);
        ck_assert_int_eq(kill(server_pid, SIGCONT), 0);
}

TEST(viewers_have_redis_queried_at_most_once_a_second)
{
        if (geteuid() != 0)
                return;
        ck_assert_int_eq(chmod(server_directory, 0755), 0);
        put_jobs(3, "x", 10);
        ck_assert_int_eq(kill(server_pid, SIGSTOP), 0);
        views = true;
        struct client first = ask("{}");
        take_all();
        struct client same = ask("{}"), other = ask("{\"fleet\":1}");
        ck_assert_int_eq(n_jobs(&other), -1);
        views = false;
        struct client orders = ask("{\"fleet\":1}");
        take_all();
        ck_assert_int_eq(kill(server_pid, SIGCONT), 0);
        ck_assert_int_eq(n_jobs(&first), 3);
        ck_assert_int_eq(n_jobs(&same), 3);
        ck_assert_int_eq(n_jobs(&orders), 3);
        client_end(&orders);

        /* One is over, but was within the second: the time of this test has no end. */
        control.jobs_view_at = clock_now(CLOCK_MONOTONIC) + USEC_PER_HOUR;
        views = true;
        struct client late = ask("{}");
        ck_assert_int_eq(n_jobs(&late), -1);
        control.jobs_view_at = clock_now(CLOCK_MONOTONIC) - USEC_PER_SEC;
        struct client later = ask("{}");
        ck_assert_int_eq(n_jobs(&later), 3);
        client_end(&first);
        client_end(&same);
        client_end(&other);
        client_end(&late);
        client_end(&later);
}

TEST(the_last_who_goes_takes_the_reading_along)
{
        ck_assert_int_eq(kill(server_pid, SIGSTOP), 0);
        struct client one = ask("{}"), two = ask("{}");
        take_all();
        client_end(&one);
        take_all();
        ck_assert_ptr_nonnull(control.jobs_queries);
        client_end(&two);
        take_all();
        ck_assert_ptr_null(control.jobs_queries);
}

static long peak(void)
{
        struct rusage usage;

        ck_assert_int_eq(getrusage(RUSAGE_SELF, &usage), 0);
        return usage.ru_maxrss / 1024;
}

/* Work lists of 8 MiB, and a reply of 200 bytes for each of their jobs. */
TEST(many_who_ask_take_little_more_memory_than_one)
{
        struct client clients[30];

        put_jobs(4000, "x", 2000);
        struct client client = ask("{}");
        ck_assert_int_eq(n_jobs(&client), 4000);
        client_end(&client);
        long before = peak();
        for (size_t i = 0; i < ELEMENTSOF(clients); i++) {
                clients[i] = ask("{}");
                take_all();
        }
        for (size_t i = 0; i < ELEMENTSOF(clients); i++) {
                ck_assert_int_eq(n_jobs(&clients[i]), 4000);
                client_end(&clients[i]);
        }
        printf("%ld MiB with one who asks, %ld with %zu\n", before, peak(), ELEMENTSOF(clients));
#ifndef __SANITIZE_ADDRESS__ /* which keeps what is freed for a while */
        /* The replies wait for their clients, who are slow here. */
        ck_assert_int_lt(peak() - before, 60);
#endif
}

/* 16 MB of entries, whose quotes take twice as much in a reply. */
TEST(a_hostile_list_is_rendered_in_slices_up_to_the_limit_of_a_reply)
{
        struct varlink_reply reply = {0};
        unsigned most = 0;

        put_jobs(65536, "\"", 200);
        struct client one = ask("{}"), two = ask("{}"), leaves = ask("{}");
        while (rendered < 1000) {
                unsigned before = rendered;

                ck_assert_int_ge(sd_event_run(event, UINT64_MAX), 0);
                most = MAX(most, rendered - before);
        }
        ck_assert_uint_le(most, 256);
        client_end(&leaves);
        ck_assert_int_eq(client_wait(event, &one, &reply), 1);
        /* The client has taken the reply, so it is within VARLINK_REPLY_MAX. */
        ck_assert_uint_gt(json_array_size(json_object_get(reply.parameters, "jobs")), 20000);
        const json_t *errors = json_object_get(reply.parameters, "errors");
        ck_assert_uint_eq(json_array_size(errors), 2);
        ck_assert_ptr_nonnull(strstr(json_string_value(json_array_get(errors, 0)), "too large to read"));
        ck_assert_ptr_nonnull(strstr(json_string_value(json_array_get(errors, 1)),
                                     " more running, left out: the reply is full"));
        varlink_reply_free(&reply);
        ck_assert_int_eq(client_wait(event, &two, &reply), 1);
        varlink_reply_free(&reply);
        client_end(&one);
        client_end(&two);
}

REDIS_RUNTIME_MAIN("jobs", setup, teardown)
