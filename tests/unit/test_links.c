/* SPDX-License-Identifier: MIT */
/* Tests of the runtime's connections and of what follows a death (daemon/runtime/runtime.h,
 * daemon/workers/rescue.h) with a real redis-server. */
/* promises: P5 */
#include "continuity/quarantine.h"
#include "model/world.h"
#include "redis_runtime.h"

#define IDENTITY "host:77:abc"

TEST(a_connection_is_observed_and_has_a_look_follow_at_once)
{
        web_start("");
        runtime_wakeup.pass.poll_at = USEC_INFINITY;
        run_until(web_is_up());
        ck_assert_uint_le(runtime_wakeup.pass.poll_at, clock_now(CLOCK_MONOTONIC));
        unsigned turns = runtime_wakeups;
        run_until(runtime_wakeups > turns);
}

#define JOBS                                                                                                 \
        "framework=solid_queue\ncommand=/bin/true\n"                                                         \
        "database_url=postgresql:///queue?host=/nonexistent\n"

TEST(fleets_of_one_server_share_a_connection)
{
        web_start("[fleet:mail]\ncommand=/bin/true\n[fleet:far]\ncommand=/bin/true\nredis_url=unix:///"
                  "nonexistent/s\n[fleet:one]\n" JOBS "[fleet:same]\n" JOBS);
        ck_assert_uint_eq(runtime.links.n, 3);
        ck_assert_ptr_eq(world_fleet(runtime_world, "same")->link, world_fleet(runtime_world, "one")->link);
        ck_assert_ptr_eq(web()->link, world_fleet(runtime_world, "mail")->link);
        ck_assert_ptr_ne(web()->link, world_fleet(runtime_world, "far")->link);
        run_until(web_is_up());
        ck_assert(world_fleet(runtime_world, "mail")->redis_up);
        ck_assert(!world_fleet(runtime_world, "far")->redis_up);
}

/* The connection for the queues of a broker holds back nothing. */
TEST(a_fleet_whose_heartbeats_are_in_files_waits_for_no_broker)
{
        web_start("[fleet:tasks]\ncommand=/bin/true\nframework=celery\nredis_url=unix:///nonexistent/s\n"
                  "[fleet:more]\ncommand=/bin/true\nframework=celery\nredis_url=unix:///nonexistent/s\n"
                  "[fleet:mails]\ncommand=/bin/true\nframework=bullmq\n"
                  "[fleet:other]\ncommand=/bin/true\nframework=celery\n"
                  "environment=CELERY_BROKER_URL=amqp://localhost\n");
        const struct fleet *tasks = world_fleet(runtime_world, "tasks");
        const struct fleet *mails = world_fleet(runtime_world, "mails");
        const struct fleet *other = world_fleet(runtime_world, "other");

        ck_assert_uint_eq(runtime.links.n, 3);
        ck_assert(tasks->redis_up && mails->redis_up && other->redis_up);
        ck_assert(!tasks->link && !mails->link && !other->link && !other->queue_link);
        ck_assert_ptr_nonnull(tasks->queue_link);
        ck_assert_ptr_eq(tasks->queue_link, world_fleet(runtime_world, "more")->queue_link);
        ck_assert_ptr_null(tasks->queue_link->heartbeats);
        /* Another framework reads with a reader of its own. */
        ck_assert_ptr_ne(mails->queue_link, web()->link);
        ck_assert_ptr_eq(web()->queue_link, web()->link);
        run_until(web_is_up() && reader_state(mails->queue_link->reader) == READER_STATE_CONNECTED &&
                  reader_state(tasks->queue_link->reader) == READER_STATE_DOWN);
        ck_assert(tasks->redis_up);
        links_join(&runtime);
        ck_assert_uint_eq(runtime.links.n, 3);
}

TEST(the_connection_that_no_fleet_needs_is_closed)
{
        web_start("[fleet:far]\ncommand=/bin/true\nredis_url=unix:///nonexistent/s\n");
        ck_assert_uint_eq(runtime.links.n, 2);
        runtime_settings->fleets[1]->removed = true;
        world_forget_removed(runtime_world);
        links_join(&runtime);
        ck_assert_uint_eq(runtime.links.n, 1);
        ck_assert_ptr_eq(runtime.links.list[0], web()->link);
}

TEST(a_fleet_that_comes_later_is_reported_that_its_server_is_there)
{
        struct settings *settings = NULL;
        char text[512];

        web_start("");
        run_until(web_is_up());
        snprintf(text, sizeof(text),
                 "[redis]\nurl=%s\n[fleet:web]\ncommand=/bin/true\n[fleet:mail]\ncommand=/bin/true\n",
                 server_url);
        settings = read_good(text);
        ck_assert_int_eq(links_make(&runtime, settings), 0);
        ck_assert_uint_eq(runtime.links.n, 1);
        ck_assert_int_eq(world_reload(runtime_world, settings, NULL, clock_now(CLOCK_MONOTONIC)), 0);
        settings_free(runtime_settings);
        runtime_settings = settings;
        links_join(&runtime);
        ck_assert(world_fleet(runtime_world, "mail")->redis_up);
}

static bool web_state_is(enum reader_state state)
{
        return reader_state(web()->link->reader) == state;
}

TEST(a_server_in_quarantine_is_open_for_a_moment_of_each_period)
{
        static union {
                struct ledger_header header;
                char bytes[sizeof(struct ledger_header)];
        } memory;
        struct ledger ledger = {0};
        usec_t now = clock_now(CLOCK_MONOTONIC);

        memory.header = (struct ledger_header){0};
        ledger_attach(&ledger, memory.bytes, sizeof(memory));
        web_start("[fleet:far]\ncommand=/bin/true\nredis_url=unix:///nonexistent/s\n");
        struct link *link = web()->link, *far = world_fleet(runtime_world, "far")->link;
        uint32_t key = quarantine_key(reader_url_text(link->reader));
        runtime.ledger.ledger = ledger;
        quarantine_decoding(&ledger, key);
        ck_assert_int_eq(links_judge_crash(&runtime, now), 0);
        ck_assert(!link->quarantine.lasts);
        quarantine_decoding(&ledger, key);
        ck_assert_int_eq(links_judge_crash(&runtime, now), 0);
        ck_assert(link->quarantine.lasts && !far->quarantine.lasts);
        ck_assert(web_state_is(READER_STATE_DOWN));
        ck_assert_ptr_nonnull(strstr(reader_error(link->reader)->text, "once a minute"));
        uint64_t due, count = 0;
        ck_assert_int_ge(sd_event_source_get_time(link->quarantine.timer, &due), 0);
        ck_assert_uint_ge(due, now + QUARANTINE_PERIOD_USEC);
        for (unsigned i = 0; i < 2; i++) {
                /* The minute has passed. */
                (void)sd_event_source_set_time(link->quarantine.timer, 0);
                run_until(web_state_is(READER_STATE_CONNECTED));
                /* The connection is another one than before, and its fleets do not count on it. */
                ck_assert_uint_gt(reader_connection_count(link->reader), count);
                count = reader_connection_count(link->reader);
                ck_assert(!web_is_up());
                /* A poll ends. */
                usec_t opened_at = link->quarantine.opened_at;
                link->heartbeats->ops->on_done(link->heartbeats, link);
                run_until(web_state_is(READER_STATE_DOWN));
                ck_assert_int_ge(sd_event_source_get_time(link->quarantine.timer, &due), 0);
                ck_assert_uint_eq(due, opened_at + QUARANTINE_PERIOD_USEC);
        }
        ck_assert_uint_eq(memory.header.decoding, 0);
        links_end_quarantine(&runtime);
        run_until(web_is_up());
        ck_assert(!link->quarantine.lasts && !quarantine_holds(&ledger, key));
}

/* A worker that was killed while it ran a job, which stands in its work list. */
static struct worker dead_worker(void)
{
        server_do("HSET " IDENTITY ":work t1 %s",
                  "{\"queue\":\"low\",\"payload\":\"{\\\"class\\\":\\\"Hard\\\",\\\"jid\\\":\\\"j1\\\","
                  "\\\"args\\\":[]}\",\"run_at\":1700000000}");
        run_until(web_is_up());
        return (struct worker){.fleet = web(),
                               .index = 1,
                               .process.pid = 77,
                               .process.heartbeat_pid = 77,
                               .state = WORKER_ACTIVE};
}

static const struct exit_status killed = {.known = true, .by_signal = true, .status = SIGKILL};

/* The second one is from the state. */
TEST_LOOP(the_job_of_a_worker_that_was_killed_is_put_back, 2)
{
        web_start("rescue_jobs=requeue\n");
        struct worker dead = dead_worker();

        if (_i == 1)
                dead.fleet = NULL;
        rescue_begin(&runtime, web(), &dead, IDENTITY, &killed, NULL);
        ck_assert(rescues_delay_exit(&runtime, clock_now(CLOCK_MONOTONIC)));
        runtime_wakeup.pass.unsaved = false;
        run_until(!runtime.rescues);
        ck_assert(runtime_event(EVENT_JOB_RESCUED));
        ck_assert(runtime_wakeup.pass.unsaved);
        redisReply *reply = server_ask("LLEN queue:low");
        ck_assert_ptr_nonnull(reply);
        ck_assert_int_eq(reply->integer, 1);
        freeReplyObject(reply);
}

TEST(a_worker_that_ended_well_and_one_of_no_known_identity_are_not_followed_up)
{
        const struct exit_status well = {.known = true};

        web_start("rescue_jobs=requeue\n");
        struct worker dead = dead_worker();

        rescue_begin(&runtime, web(), &dead, IDENTITY, &well, NULL);
        ck_assert_ptr_null(runtime.rescues);
        rescue_begin(&runtime, web(), &dead, NULL, &killed, NULL);
        ck_assert_ptr_null(runtime.rescues);
}

TEST(what_cannot_be_read_now_is_tried_again)
{
        web_start("rescue_jobs=requeue\n");
        struct worker dead = dead_worker();

        rescue_begin(&runtime, web(), &dead, IDENTITY, &killed, NULL);
        server_kill();
        run_until(!web_is_up());
        server_start(0, NULL, NULL);
        server_wait();
        dead = dead_worker();
        run_until(!runtime.rescues);
        ck_assert(runtime_event(EVENT_JOB_RESCUED));
}

/* What the server was asked is not taken from the socket any more. */
TEST_LOOP(a_rescue_ends_with_the_runtime_whatever_is_under_way, 3)
{
        static const char *const under_way[] = {"hgetall", "eval"};

        web_start("rescue_jobs=requeue\n");
        struct worker dead = dead_worker();

        rescue_begin(&runtime, web(), &dead, IDENTITY, &killed, NULL);
        while (_i > 0 && server_calls(under_way[_i - 1]) == 0)
                ck_assert_int_ge(sd_event_run(event, 10 * USEC_PER_MSEC), 0);
        ck_assert_ptr_nonnull(runtime.rescues);
}

REDIS_RUNTIME_MAIN("links", redis_runtime_setup, redis_runtime_teardown)
