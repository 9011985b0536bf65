/* SPDX-License-Identifier: MIT */
/* Tests of what is read where a count follows its queues (autoscaling/autoscaling.h), with a real
 * redis-server. */
#include "autoscaling/autoscaling.h"
#include "golden.h"
#include "model/counts.h"
#include "model/world.h"
#include "redis_runtime.h"

#define SCALES "active_process_max=4\nlatency_target=30s\n"

static void *begun;

static void serve_fleet(struct fleet *fleet, const char *names, size_t size)
{
        char *copy = malloc(size);

        ck_assert_ptr_nonnull(copy);
        memcpy(copy, names, size);
        autoscale_serves(fleet, copy);
}

static void serve(const char *names, size_t size)
{
        serve_fleet(web(), names, size);
}

/* Has the fleet serve this many queues: q0, q1 and so on. */
static void serve_many(struct fleet *fleet, unsigned n)
{
        char names[512];
        size_t used = 0;

        for (unsigned i = 0; i < n; i++)
                used += (size_t)snprintf(names + used, sizeof(names) - used, "q%u", i) + 1;
        names[used++] = '\0';
        serve_fleet(fleet, names, used);
}

/* As the daemon begins it. */
static void *scaler(void)
{
        if (!begun)
                ck_assert_int_eq(autoscaling_subsystem.begin(&runtime, &begun), 0);
        return begun;
}

static bool is_answered(void)
{
        return scaled_link_of(web()->link)->answered;
}

static void look(void)
{
        autoscaling_subsystem.poll(scaler(), clock_now(CLOCK_MONOTONIC));
        run_until(is_answered());
        autoscaling_subsystem.observe(scaler(), clock_now(CLOCK_MONOTONIC));
}

static long long calls(void)
{
        redisReply *reply = server_ask("INFO stats");

        ck_assert_ptr_nonnull(reply);
        const char *line = strstr(reply->str, "total_commands_processed:");
        ck_assert_ptr_nonnull(line);
        long long n = strtoll(line + strlen("total_commands_processed:"), NULL, 10);
        freeReplyObject(reply);
        return n;
}

TEST(a_fleet_that_does_not_scale_costs_no_command)
{
        web_start("");
        run_until(web_is_up());
        long long before = calls();
        for (unsigned i = 0; i < 5; i++) {
                autoscaling_subsystem.poll(scaler(), clock_now(CLOCK_MONOTONIC));
                autoscaling_subsystem.observe(scaler(), clock_now(CLOCK_MONOTONIC));
                ck_assert_int_ge(sd_event_run(event, 10 * USEC_PER_MSEC), 0);
        }
        /* The question before is one itself. */
        ck_assert_int_eq(calls(), before + 1);
        ck_assert_ptr_null(scaled_link_of(web()->link));
}

static void add_worker(unsigned index, bool works)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);
        const struct worker model = {
                .index = index,
                .state = WORKER_ACTIVE,
                .active_at = 1,
                .heartbeat = {.seen = true, .changed_at = now, .busy = works},
                .deaf.took_at = works ? now : 0,
        };

        ck_assert_ptr_nonnull(fleet_add_worker(web(), &model));
}

TEST(a_fleet_with_a_fixed_count_is_read_while_a_worker_may_be_deaf)
{
        web_start("");
        run_until(web_is_up());
        serve("default\0", 9);
        server_do("LPUSH queue:default x");
        add_worker(1, true);
        autoscaling_subsystem.poll(scaler(), clock_now(CLOCK_MONOTONIC));
        ck_assert_ptr_null(scaled_link_of(web()->link));
        add_worker(2, false);
        look();
        ck_assert_ptr_nonnull(autoscale_of(web())->queues);
        ck_assert_uint_eq(autoscale_of(web())->queues->n, 1);
        ck_assert_uint_eq(autoscale_of(web())->queues->list[0].size, 1);
        /* Who else serves the queue is of no interest. */
        ck_assert_uint_eq(scaled_link_of(web()->link)->begun_at, 0);
        ck_assert_uint_eq(autoscale_of(web())->read_at, 0);
        /* The end of the runtime waits for others. */
        FLEET_FOREACH_WORKER(web(), worker)
                worker->state = WORKER_GONE;
}

static struct foreign_count count(const char *names)
{
        return foreign_consumers_count(scaled_link_of(web()->link), names, clock_now(CLOCK_MONOTONIC));
}

TEST(what_waits_and_who_else_serves_is_read)
{
        const struct queues *queues;
        long long now = time(NULL);

        web_start(SCALES);
        server_do("LPUSH queue:default {\"class\":\"Mail\",\"enqueued_at\":%lld}", now - 100);
        server_do("LPUSH queue:default {\"class\":\"Mail\",\"enqueued_at\":%lld}", now);
        server_do("SADD paused low");
        server_do("SET stat:processed 17");
        server_do("SADD processes there:7:0123456789ab there:8:0123456789ab there:9:0123456789ab "
                  "dead:9:0123456789ab nonsense wrong:9:0123456789ab");
        server_do("SET wrong:9:0123456789ab x");
        server_do("HSET there:7:0123456789ab busy 2 beat 1700000000.5 quiet false info "
                  "{\"concurrency\":5,\"queues\":[\"default\",\"mail\",\"low\"]}");
        server_do("HSET there:8:0123456789ab busy 0 beat 1700000000.5 quiet false concurrency 10 info "
                  "{\"queues\":[\"other\"]}");
        server_do("HSET there:9:0123456789ab busy 1 beat 1700000000.5 quiet false concurrency 4 info "
                  "{\"queues\":[\"low\"]}");
        run_until(web_is_up());
        serve("default\0low\0", 13);
        look();
        queues = autoscale_of(web())->queues;
        ck_assert_ptr_nonnull(queues);
        ck_assert_uint_eq(queues->n, 2);
        ck_assert_str_eq(queues->list[0].name, "default");
        ck_assert_uint_eq(queues->list[0].size, 2);
        ck_assert(queues->list[0].latency_known && !queues->list[0].paused);
        ck_assert_uint_ge(queues->list[0].latency, 100 * USEC_PER_SEC);
        ck_assert(queues->list[1].paused);
        ck_assert(scaled_link_of(web()->link)->demanded.done_known);
        ck_assert_uint_eq(scaled_link_of(web()->link)->demanded.done, 17);
        run_until(count("default\0").known);
        struct foreign_count both = count("default\0low\0");
        ck_assert(both.known && both.any && !both.unread);
        ck_assert_uint_eq(both.serving, 2);
        ck_assert_double_eq_tol(both.idle, 6, 0.001);
        /* Only one process serves both queues. */
        ck_assert_double_eq_tol(both.partial_idle, 3, 0.001);
        ck_assert_double_eq_tol(both.threads, 5, 0.001);
        look();
        ck_assert_uint_eq(autoscale_of(web())->foreign_consumers, 2);
        /* A host without a worker counts as one worker of one thread. */
        ck_assert_double_eq_tol(autoscale_of(web())->share, 1.0 / 6, 0.001);
}

static unsigned pages;

static char *endless_url_text(const struct reader_options *options _unused_)
{
        return strdup("redis://endless");
}

static int endless_begin(struct reader *reader _unused_, const struct reader_options *options _unused_,
                         struct error_report *error _unused_, void **ret)
{
        *ret = &pages;
        return 0;
}

static void endless_end(void *backend _unused_)
{
}

/* Each page of the list of processes is empty, and names a next one. */
static void endless_ask(void *backend _unused_, struct ask *ask)
{
        struct answer answer = {.scan.cursor = "1"};

        ck_assert_uint_lt(++pages, 100 * 1000);
        ask_done(ask, &answer);
}

TEST(a_list_of_processes_without_end_is_not_followed_for_ever)
{
        static const struct reader_backend backend = {
                .url_text = endless_url_text, .begin = endless_begin, .end = endless_end, .ask = endless_ask};
        const struct reader_options options = {.backend = &backend};
        struct link link = {0};
        struct scaled_link scaled = {.link = &link};

        web_start("");
        ck_assert_int_eq(reader_new(event, &options, &link.reader), 0);
        reader_report_state(link.reader, &(struct reader_report){.state = READER_STATE_CONNECTED});
        foreign_consumers_poll(&scaled, clock_now(CLOCK_MONOTONIC));
        run_until(scaled.next_at != 0);
        ck_assert_uint_eq(scaled.counted_at, 0);
        ck_assert_uint_gt(pages, 500);
        pages = 0;
        foreign_consumers_poll(&scaled, clock_now(CLOCK_MONOTONIC));
        ck_assert_uint_eq(pages, 0);
        reader_free(link.reader);
}

TEST(of_many_queues_those_with_a_target_are_read)
{
        web_start("active_process_max=4\nlatency_target=q89=30s\n");
        run_until(web_is_up());
        serve_many(web(), 90);
        look();
        ck_assert_ptr_nonnull(autoscale_of(web())->queues);
        ck_assert_uint_eq(autoscale_of(web())->queues->n, 64);
        ck_assert_str_eq(autoscale_of(web())->queues->list[0].name, "q89");
        ck_assert(!autoscale_of(web())->queues_left_out);
}

/* Also where that fleet comes first, and serves as many queues as are read. */
TEST(queues_of_a_fleet_with_a_fixed_count_take_no_place)
{
        char text[1024];

        snprintf(text, sizeof(text),
                 "[redis]\nurl=%s\n[fleet:fixed]\ncommand=/bin/true\n[fleet:web]\ncommand=/bin/true\n" SCALES,
                 server_url);
        runtime_start(text);
        run_until(web_is_up());
        serve_many(world_fleet(runtime_world, "fixed"), 64);
        serve("default\0", sizeof("default\0"));
        look();
        ck_assert_ptr_nonnull(autoscale_of(web())->queues);
        ck_assert_uint_eq(autoscale_of(web())->queues->n, 1);
        ck_assert(!autoscale_of(web())->queues_left_out);
}

/* The other consumers of a broker are not known: only its queues are read. */
TEST(queues_of_a_broker_scale_a_fleet_as_if_it_were_alone)
{
        web_start("framework=celery\n" SCALES);
        server_do("LPUSH celery x x x");
        run_until(reader_state(web()->queue_link->reader) == READER_STATE_CONNECTED);
        serve("celery\0", sizeof("celery\0"));
        autoscaling_subsystem.poll(scaler(), clock_now(CLOCK_MONOTONIC));
        run_until(scaled_link_of(web()->queue_link)->answered);
        autoscaling_subsystem.observe(scaler(), clock_now(CLOCK_MONOTONIC));
        ck_assert_uint_eq(scaled_link_of(web()->queue_link)->begun_at, 0);
        ck_assert_ptr_nonnull(autoscale_of(web())->queues);
        ck_assert_uint_eq(autoscale_of(web())->queues->list[0].size, 3);
        ck_assert_uint_ne(autoscale_of(web())->read_at, 0);
        /* While it is away, the count is kept. */
        server_kill();
        run_until(reader_state(web()->queue_link->reader) != READER_STATE_CONNECTED);
        autoscaling_subsystem.poll(scaler(), clock_now(CLOCK_MONOTONIC));
        run_until(scaled_link_of(web()->queue_link)->answered);
        autoscaling_subsystem.observe(scaler(), clock_now(CLOCK_MONOTONIC));
        ck_assert_int_eq(autoscale_of(web())->verdict.hold, SCALING_HELD_REDIS);
        ck_assert(web()->redis_up);
}

TEST(nothing_is_kept_of_a_fleet_that_is_removed)
{
        web_start(SCALES);
        run_until(web_is_up());
        serve("default\0", sizeof("default\0"));
        look();
        ck_assert_ptr_nonnull(web()->autoscale);
        runtime_settings->fleets[0]->removed = true;
        autoscaling_subsystem.join(scaler());
        ck_assert_ptr_null(web()->autoscale);
        autoscaling_subsystem.poll(scaler(), clock_now(CLOCK_MONOTONIC));
        ck_assert_ptr_null(web()->autoscale);
}

TEST(that_some_of_too_many_queues_are_left_out_is_reported)
{
        struct problems problems = {0};

        web_start(SCALES);
        run_until(web_is_up());
        serve_many(web(), 65);
        look();
        ck_assert_uint_eq(autoscale_of(web())->queues->n, 64);
        autoscale_problems(NULL, web(), clock_now(CLOCK_MONOTONIC), &problems);
        ck_assert_uint_eq(problems.n, 1);
        golden_expect("autoscaling", "that some of too many queues are left out is reported",
                      problems.list[0].text);
        problems_clear(&problems);
        serve("default\0", 9);
        look();
        autoscale_problems(NULL, web(), clock_now(CLOCK_MONOTONIC), &problems);
        ck_assert_uint_eq(problems.n, 0);
}

TEST(sidekiqs_own_metrics_report_what_a_job_takes)
{
        usec_t now = clock_now(CLOCK_REALTIME);
        time_t at = (time_t)(now / USEC_PER_SEC);
        struct tm tm;
        char key[40];

        web_start(SCALES);
        /* The minute may turn meanwhile: it is read with the next one. */
        for (int minute = -1; minute <= 0; minute++) {
                time_t then = at + 60 * minute;

                ck_assert_ptr_nonnull(gmtime_r(&then, &tm));
                snprintf(key, sizeof(key), "j|%04d%02d%02d|%d:%d", tm.tm_year + 1900, tm.tm_mon + 1,
                         tm.tm_mday, tm.tm_hour, tm.tm_min);
                server_do("HSET %s Mail|ms 9000 Mail|p 3", key);
        }
        run_until(web_is_up());
        serve("default\0", 9);
        look();
        ck_assert_uint_eq(queues_service(autoscale_of(web())->queues), 3 * USEC_PER_SEC);
}

TEST(what_is_no_list_or_no_job_hides_nothing)
{
        web_start(SCALES);
        server_do("SET queue:default x");
        server_do("LPUSH queue:mail nonsense");
        server_do("SET stat:processed nonsense");
        run_until(web_is_up());
        serve("default\0mail\0", 14);
        look();
        ck_assert_uint_eq(autoscale_of(web())->queues->list[0].size, 0);
        ck_assert_uint_eq(autoscale_of(web())->queues->list[1].size, 1);
        ck_assert(!autoscale_of(web())->queues->list[1].latency_known);
        ck_assert(!scaled_link_of(web()->link)->demanded.done_known);
}

TEST(while_redis_is_away_nothing_is_known)
{
        char text[AUTOSCALE_TEXT_MAX];

        web_start(SCALES);
        run_until(web_is_up());
        serve("default\0", 9);
        look();
        ck_assert_ptr_nonnull(autoscale_of(web())->queues);
        server_kill();
        run_until(!web_is_up());
        look();
        ck_assert_ptr_null(autoscale_of(web())->queues);
        golden_expect("autoscaling", "while redis is away nothing is known", autoscale_text(web(), text));
}

#define SLEEPS "active_process_count=0\nactive_process_max=4\nlatency_target=30s\n"

static void begin_sleep(void)
{
        web_start(SLEEPS);
        run_until(web_is_up());
        serve("default\0", 9);
        web()->autoscale->concurrency = 1;
        look();
        ck_assert(fleet_sleeps(web()));
        ck_assert_int_eq(autoscale_of(web())->verdict.cause, SCALING_ASLEEP);
}

static bool is_awake(void)
{
        autoscaling_subsystem.observe(scaler(), clock_now(CLOCK_MONOTONIC));
        return fleet_current_count(web()) == 1;
}

/* The regular poll comes every five seconds, and is not called here. */
TEST(a_sleeping_fleet_is_polled_by_its_own_timer)
{
        begin_sleep();
        server_do("LPUSH queue:default x");
        run_until(is_awake());
        ck_assert_int_eq(autoscale_of(web())->verdict.cause, SCALING_WAKE);
}

TEST(a_scheduled_job_of_a_served_queue_wakes_the_fleet)
{
        begin_sleep();
        server_do("ZADD schedule 1 %s", "{\"queue\":\"default\"}");
        run_until(is_awake());
        ck_assert_int_eq(autoscale_of(web())->verdict.cause, SCALING_DUE);
}

/* Returns the queue as read anew. */
static const struct queue *look_asleep(void)
{
        for (unsigned i = 0; i < 3; i++)
                look();
        ck_assert(fleet_sleeps(web()));
        ck_assert_uint_eq(autoscale_of(web())->queues->n, 1);
        return &autoscale_of(web())->queues->list[0];
}

TEST(a_job_that_falls_due_later_or_on_another_queue_lets_the_fleet_sleep)
{
        unsigned long long now = clock_now(CLOCK_REALTIME) / USEC_PER_SEC;

        begin_sleep();
        server_do("ZADD retry %llu.5 %s %llu %s", now + 200, "{\"queue\":\"default\"}", now,
                  "{\"queue\":\"other\"}");
        const struct queue *queue = look_asleep();
        ck_assert(queue->due_known);
        ck_assert(queue->due_in > 100 * USEC_PER_SEC && queue->due_in <= 202 * USEC_PER_SEC);
}

TEST(scheduled_jobs_that_cannot_be_read_or_fall_due_later_are_not_counted)
{
        unsigned long long now = clock_now(CLOCK_REALTIME) / USEC_PER_SEC;

        begin_sleep();
        server_do("ZADD schedule inf y %llu %s %llu %s", now + 100, "{\"queue\":7}", now + 3600,
                  "{\"queue\":\"default\"}");
        const struct queue *queue = look_asleep();
        ck_assert_msg(!queue->due_known, "%ju", (uintmax_t)queue->due_in);
}

/* Such jobs would hide all others. */
TEST(jobs_that_were_due_before_1970_wake_the_fleet)
{
        begin_sleep();
        server_do("ZADD schedule -inf a -7 b -1 c -0.5 d");
        run_until(is_awake());
        ck_assert_int_eq(autoscale_of(web())->verdict.cause, SCALING_DUE);
}

/* A reload has changed the command, for example: nothing shows which queues it names. */
TEST(a_sleeping_fleet_learns_the_queues_of_its_new_settings)
{
        begin_sleep();
        look();
        ck_assert(fleet_sleeps(web()));
        web()->generation++;
        look();
        ck_assert_uint_eq(fleet_current_count(web()), 1);
        ck_assert_int_eq(autoscale_of(web())->verdict.cause, SCALING_LEARN);
}

static struct fleet *mail(void)
{
        return world_fleet(runtime_world, "mail");
}

static void begin_sleep_beside_another(void)
{
        web_start(SLEEPS "[fleet:mail]\ncommand=/bin/true\n" SCALES);
        run_until(web_is_up());
        serve("default\0", 9);
        serve_fleet(mail(), "mail\0", 6);
        web()->autoscale->concurrency = 1;
        server_do("LPUSH queue:mail x");
        look();
        ck_assert(fleet_sleeps(web()));
        ck_assert_uint_eq(autoscale_of(mail())->queues->n, 1);
}

/* The reading of the timer is still there when a pass of the daemon asks for all queues. */
TEST(a_reading_for_a_sleeping_fleet_says_nothing_about_another)
{
        begin_sleep_beside_another();
        run_until(is_answered());
        autoscaling_subsystem.poll(scaler(), clock_now(CLOCK_MONOTONIC));
        autoscaling_subsystem.observe(scaler(), clock_now(CLOCK_MONOTONIC));
        ck_assert_uint_eq(autoscale_of(mail())->queues->n, 1);
        run_until(is_answered());
        autoscaling_subsystem.observe(scaler(), clock_now(CLOCK_MONOTONIC));
        ck_assert_uint_eq(autoscale_of(mail())->queues->n, 1);
}

static bool mail_has_two_jobs(void)
{
        autoscaling_subsystem.observe(scaler(), clock_now(CLOCK_MONOTONIC));
        return autoscale_of(mail())->queues->list[0].size == 2;
}

TEST(a_reading_for_a_sleeping_fleet_delays_that_of_another_at_most)
{
        begin_sleep_beside_another();
        run_until(scaled_link_of(web()->link)->asked);
        ck_assert(scaled_link_of(web()->link)->for_sleepers);
        server_do("LPUSH queue:mail y");
        autoscaling_subsystem.poll(scaler(), clock_now(CLOCK_MONOTONIC));
        run_until(mail_has_two_jobs());
}

/* Autoscaling frees what it keeps of each fleet, as the daemon has it do at its end. */
static void teardown(void)
{
        autoscaling_subsystem.end(scaler());
        begun = NULL;
        redis_runtime_teardown();
}

REDIS_RUNTIME_MAIN("scaler", redis_runtime_setup, teardown)
