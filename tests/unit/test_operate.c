/* SPDX-License-Identifier: MIT */
/* The calls of the control interface, over a real socket, on worlds made by hand. */
/* promises: P8 P10 */
#include "observe/observe.h"
#include "operate.h"

/* A field of the first change in the reply. */
static const char *change_field(const struct varlink_reply *reply, const char *field)
{
        json_t *change = json_array_get(json_object_get(reply->parameters, "changes"), 0);

        return json_string_value(json_object_get(change, field));
}

static const struct {
        const char *call, *error;
} refusals[] = {
        {CONTROL("GetStatus", "{\"fleets\":[\"nosuch\"]}"), CONTROL_UNKNOWN_FLEET},
        {CONTROL("GetStatus", "{\"fleets\":\"web\"}"), VARLINK_INVALID_PARAMETER},
        {CONTROL("GetStatus", "{\"fleets\":[1]}"), VARLINK_INVALID_PARAMETER},
        {CONTROL("GetStatus", "{\"fleet\":[\"web\"]}"), VARLINK_INVALID_PARAMETER},
        {CONTROL("Restart", "{\"wait\":\"replaced\"}"), VARLINK_EXPECTED_MORE},
        {CONTROL("Restart", "{\"wait\":\"never\"}"), VARLINK_INVALID_PARAMETER},
        {CONTROL("Restart", "{\"wait\":1}"), VARLINK_INVALID_PARAMETER},
        {CONTROL("Restart", "{\"workers\":1}"), VARLINK_INVALID_PARAMETER},
        {CONTROL("Restart", "{\"fleets\":[\"web\",\"nosuch\"]}"), CONTROL_UNKNOWN_FLEET},
        {CONTROL("Follow", "{\"wait\":\"drained\"}"), VARLINK_EXPECTED_MORE},
        {CONTROL("Follow", "{\"wait\":\"never\"}"), VARLINK_INVALID_PARAMETER},
        {CONTROL("Follow", "{\"fleets\":[\"web\",\"nosuch\"]}"), CONTROL_UNKNOWN_FLEET},
        {CONTROL("Abort", "{\"fleets\":[\"nosuch\"]}"), CONTROL_UNKNOWN_FLEET},
        {CONTROL("Quiet", "{}"), VARLINK_INVALID_PARAMETER},
        {CONTROL("Quiet", "{\"target\":\"nosuch\"}"), CONTROL_UNKNOWN_FLEET},
        {CONTROL("Quiet", "{\"target\":\"nosuch/1\"}"), CONTROL_UNKNOWN_FLEET},
        {CONTROL("Quiet", "{\"target\":\"web/2\"}"), CONTROL_UNKNOWN_WORKER},
        {CONTROL("Quiet", "{\"target\":\"web/01\"}"), CONTROL_UNKNOWN_WORKER},
        {CONTROL("Stop", "{\"fleet\":\"nosuch\"}"), CONTROL_UNKNOWN_FLEET},
        {CONTROL("Stop", "{\"fleet\":\"web\",\"force\":1}"), VARLINK_INVALID_PARAMETER},
        {CONTROL("Start", "{\"fleet\":null}"), VARLINK_INVALID_PARAMETER},
        {CONTROL("Scale", "{\"fleet\":\"web\"}"), VARLINK_INVALID_PARAMETER},
        {CONTROL("Scale", "{\"fleet\":\"web\",\"count\":\"2\"}"), VARLINK_INVALID_PARAMETER},
        {CONTROL("Scale", "{\"fleet\":\"web\",\"count\":0}"), CONTROL_REFUSED},
        {CONTROL("Scale", "{\"fleet\":\"web\",\"count\":5}"), CONTROL_REFUSED},
        {CONTROL("Scale", "{\"fleet\":\"web\",\"count\":-1}"), CONTROL_REFUSED},
        {CONTROL("Scale", "{\"fleet\":\"web\",\"count\":4294967297}"), CONTROL_REFUSED},
        {CONTROL("GetJobs", "{\"fleets\":[\"nosuch\"]}"), CONTROL_UNKNOWN_FLEET},
        {CONTROL("GetJobs", "{\"fleets\":7}"), VARLINK_INVALID_PARAMETER},
        {CONTROL("Ping", "{\"x\":1}"), VARLINK_INVALID_PARAMETER},
};

TEST_LOOP(bad_calls_are_refused_whole, ELEMENTSOF(refusals))
{
        client_expect(event, &client, refusals[_i].call, refusals[_i].error);
        ck_assert_uint_eq(wakeup.pass.serial, 0);
        ck_assert_uint_eq(web->generation, 1);
}

/* Calls this, and expects these parameters, which are freed. */
static void expect_parameters(const char *text, json_t *wanted)
{
        struct varlink_reply reply = client_call(event, &client, text);

        ck_assert(json_equal(reply.parameters, wanted));
        json_decref(wanted);
        varlink_reply_free(&reply);
}

TEST(an_unknown_name_is_answered_with_those_there_are)
{
        expect_parameters(CONTROL("Start", "{\"fleet\":\"x\"}"),
                          json_pack("{s:s, s:[s, s]}", "name", "x", "fleets", "web", "mail"));
        expect_parameters(CONTROL("Quiet", "{\"target\":\"web/9\"}"),
                          json_pack("{s:s, s:[s]}", "name", "web/9", "workers", "web/1"));
}

TEST(commands_record_their_orders)
{
        client_expect(event, &client, CONTROL("Quiet", "{\"target\":\"web/1\"}"), NULL);
        ck_assert(web->workers[0]->orders.quiet);
        client_expect(event, &client, CONTROL("Quiet", "{\"target\":\"web\"}"), NULL);
        ck_assert_int_eq(web->order, ORDER_QUIET);
        client_expect(event, &client, CONTROL("Stop", "{\"fleet\":\"web\",\"force\":true}"), NULL);
        ck_assert_int_eq(web->order, ORDER_STOP);
        ck_assert(web->force);
        client_expect(event, &client, CONTROL("Start", "{\"fleet\":\"web\"}"), NULL);
        ck_assert_int_eq(web->order, ORDER_RUN);
        client_expect(event, &client, CONTROL("Scale", "{\"fleet\":\"web\",\"count\":3}"), NULL);
        ck_assert_uint_eq(web->scale, 3);
        client_expect(event, &client, CONTROL("Restart", "{\"fleets\":[\"web\",\"web\"]}"), NULL);
        ck_assert_uint_eq(web->generation, 2);
        client_expect(event, &client, CONTROL("Abort", "{}"), NULL);
        ck_assert_int_eq(web->rollout.state, ROLLOUT_ABORTED);
        /* Before a start, a scale and a restart, and after each order. */
        ck_assert_uint_eq(n_changed, 3 + 7);
        ck_assert_uint_eq(mail->generation, 1);
        ck_assert_int_eq(mail->order, ORDER_RUN);
}

/* The reason of a refusal. */
static void expect_refused(const char *call, const char *reason)
{
        struct varlink_reply reply = client_call(event, &client, call);

        ck_assert_ptr_nonnull(reply.error);
        ck_assert_str_eq(reply.error, CONTROL_REFUSED);
        ck_assert_ptr_nonnull(strstr(json_string_value(json_object_get(reply.parameters, "reason")), reason));
        varlink_reply_free(&reply);
}

TEST(without_a_state_what_must_be_remembered_is_refused_and_what_ends_is_carried_out)
{
        static const char refused[] = "refused, nothing has changed: the state file '";
        static const char carried_out[] = "carried out but not recorded: the state file '";

        save_error = -EROFS;
        expect_refused(CONTROL("Restart", "{}"), refused);
        expect_refused(CONTROL("Restart", "{}"), "Read-only file system");
        expect_refused(RESTART("{\"fleets\":[\"web\"]}"), refused);
        ck_assert_uint_eq(web->generation, 1);
        ck_assert_int_eq(web->rollout.state, ROLLOUT_NONE);
        expect_refused(CONTROL("Scale", "{\"fleet\":\"web\",\"count\":3}"), refused);
        expect_refused(CONTROL("Scale", "{\"fleet\":\"web\",\"auto\":true}"), refused);
        ck_assert_uint_eq(web->scale, 0);
        expect_refused(CONTROL("Quiet", "{\"target\":\"web/1\"}"), carried_out);
        ck_assert(web->workers[0]->orders.quiet);
        expect_refused(CONTROL("Stop", "{\"fleet\":\"web\"}"), carried_out);
        ck_assert_int_eq(web->order, ORDER_STOP);
        expect_refused(CONTROL("Start", "{\"fleet\":\"web\"}"), refused);
        ck_assert_int_eq(web->order, ORDER_STOP);
        mail->rollout.state = ROLLOUT_RUNNING;
        expect_refused(CONTROL("Abort", "{}"), carried_out);
        ck_assert_int_eq(mail->rollout.state, ROLLOUT_ABORTED);

        save_error = 0;
        client_expect(event, &client, CONTROL("Start", "{\"fleet\":\"web\"}"), NULL);
        ck_assert_int_eq(web->order, ORDER_RUN);
        client_expect(event, &client, CONTROL("Restart", "{}"), NULL);
        ck_assert_uint_eq(web->generation, 2);
}

TEST(abort_reports_what_it_ended_and_what_it_acknowledged)
{
        client_expect(event, &client, CONTROL("Restart", "{\"fleets\":[\"web\"]}"), NULL);
        mail->rollout.state = ROLLOUT_HALTED;
        expect_parameters(CONTROL("Abort", "{}"),
                          json_pack("{s:[s], s:[s]}", "aborted", "web", "acknowledged", "mail"));
        expect_parameters(CONTROL("Abort", "{}"), json_pack("{s:[], s:[]}", "aborted", "acknowledged"));
}

TEST(reload_reports_what_changed_or_why_not)
{
        struct varlink_reply reply = client_call(event, &client, CONTROL("Reload", "{}"));
        json_t *changes = json_object_get(reply.parameters, "changes");

        ck_assert_str_eq(json_string_value(json_array_get(changes, 0)), "a line");
        varlink_reply_free(&reply);
        reload_result = 1;
        reply = client_call(event, &client, CONTROL("Reload", "{}"));
        ck_assert_str_eq(reply.error, CONTROL_REFUSED);
        changes = json_object_get(reply.parameters, "details");
        ck_assert_str_eq(json_string_value(json_array_get(changes, 0)), "a line");
        varlink_reply_free(&reply);
        reload_result = -EIO;
        client_expect(event, &client, CONTROL("Reload", "{}"), CONTROL_REFUSED);
}

TEST(status_is_rendered_once_for_each_state_of_the_model)
{
        for (int i = 0; i < 3; i++)
                client_expect(event, &client, CONTROL("GetStatus", "{}"), NULL);
        ck_assert_uint_eq(n_rendered, 1);
        wakeup.pass.serial++;
        client_expect(event, &client, CONTROL("GetStatus", "{}"), NULL);
        ck_assert_uint_eq(n_rendered, 2);
        client_expect(event, &client, CONTROL("Quiet", "{\"target\":\"web\"}"), NULL);
        struct varlink_reply reply = client_call(event, &client, CONTROL("GetStatus", "{\"fleets\":[]}"));
        ck_assert_str_eq(json_string_value(fleet_field(&reply, 0, "state")), "quiet");
        varlink_reply_free(&reply);
        reply = client_call(event, &client, CONTROL("GetStatus", "{\"fleets\":[\"mail\"]}"));
        ck_assert_uint_eq(json_array_size(json_object_get(reply.parameters, "fleets")), 1);
        varlink_reply_free(&reply);
}

TEST(metrics_are_one_text)
{
        struct varlink_reply reply = {0};

        client_send(&client, CONTROL("GetMetrics", "{}"));
        client_settle(event);
        queue_calls_answer(&control, clock_usec);
        ck_assert_int_eq(client_wait(event, &client, &reply), 1);
        const char *text = json_string_value(json_object_get(reply.parameters, "text"));

        ck_assert_ptr_nonnull(text);
        ck_assert_ptr_nonnull(strstr(text, "\nsqmgr_tick_duration_seconds_count 7\n"));
        ck_assert_ptr_nonnull(strstr(text, "\nsqmgr_fleet_target_workers{fleet=\"mail\"} 1\n"));
        varlink_reply_free(&reply);
}

/* Starts to follow a restart of web, which is reported to run. */
static void follow_restart(const char *text)
{
        struct varlink_reply reply = client_call(event, &client, text);

        expect_fleet(&reply, 0, "running", true);
}

/* Reports the events so far, as the loop does. */
static void notify_events(void)
{
        for (size_t i = 0; i < world->n_events; i++)
                events_add(control.events, &world->events[i], 1700000000 * USEC_PER_SEC);
        world_events_clear(world);
}

static void expect_events(const struct varlink_reply *reply, size_t n, const char *last_text)
{
        json_t *events = json_object_get(reply->parameters, "events");
        json_t *last = json_array_get(events, n - 1);

        ck_assert_uint_eq(json_array_size(events), n);
        if (n > 0)
                ck_assert_str_eq(json_string_value(json_object_get(last, "text")), last_text);
}

/* Calls this, and expects so many events, the last with this text. */
static void expect_reported(const char *text, size_t n, const char *last_text)
{
        struct varlink_reply reply = client_call(event, &client, text);

        ck_assert_pstr_eq(reply.error, NULL);
        expect_events(&reply, n, last_text);
        varlink_reply_free(&reply);
}

TEST(events_are_kept_reported_by_fleet_and_worker_and_followed)
{
        world_events_clear(world);
        world_event(world, EVENT_CRASHED, web, web->workers[0], "one");
        world_event(world, EVENT_ORDER, mail, NULL, "two");
        world_event(world, EVENT_TIME_DOUBT, NULL, NULL, "three");
        notify_events();

        struct varlink_reply reply = client_call(event, &client, CONTROL("GetEvents", "{}"));
        expect_events(&reply, 3, "three");
        json_t *first = json_array_get(json_object_get(reply.parameters, "events"), 0);
        ck_assert_str_eq(json_string_value(json_object_get(first, "worker")), "web/1");
        ck_assert_str_eq(json_string_value(json_object_get(first, "event")), "crashed");
        ck_assert_str_eq(json_string_value(json_object_get(first, "level")), "error");
        ck_assert_int_eq(json_integer_value(json_object_get(first, "pid")), 100);
        ck_assert_double_eq(json_number_value(json_object_get(first, "at")), 1700000000);
        varlink_reply_free(&reply);
        expect_reported(CONTROL("GetEvents", "{\"fleets\":[\"mail\"]}"), 1, "two");
        expect_reported(CONTROL("GetEvents", "{\"worker\":\"web/1\"}"), 1, "one");

        /* More than are kept: the oldest make room. */
        for (int i = 0; i < 600; i++) {
                world_event(world, EVENT_ORDER, web, NULL, "event %d", i);
                notify_events();
        }
        expect_reported(CONTROL("GetEvents", "{}"), 512, "event 599");

        reply = client_call(event, &client,
                            "{\"method\":\"org.sqmgr.Control.GetEvents\",\"more\":true,"
                            "\"parameters\":{\"fleets\":[\"web\"]}}");
        ck_assert(reply.continues);
        expect_events(&reply, 512, "event 599");
        varlink_reply_free(&reply);
        ck_assert(!next_reply(&reply));
        world_event(world, EVENT_ORDER, mail, NULL, "not for it");
        notify_events();
        ck_assert(!next_reply(&reply));
        world_event(world, EVENT_ORDER, web, NULL, "for it");
        notify_events();
        ck_assert(next_reply(&reply));
        ck_assert(reply.continues);
        expect_events(&reply, 1, "for it");
        varlink_reply_free(&reply);
}

static void report_event_at(const char *text, double at)
{
        world_event(world, EVENT_TIME_DOUBT, NULL, NULL, "%s", text);
        events_add(control.events, &world->events[0], (usec_t)(at * (double)USEC_PER_SEC));
        world_events_clear(world);
}

/* Each after: as JSON; how many are reported, and the last of them. */
static void expect_after(const char *after, size_t n, const char *last_text)
{
        char call[256];

        snprintf(call, sizeof(call), CONTROL("GetEvents", "{\"after\":%s}"), after);
        expect_reported(call, n, last_text);
}

TEST(events_after_a_time_are_those_reported_behind_it_whatever_the_clock_does)
{
        world_events_clear(world);
        report_event_at("a", 1700000000.25);
        report_event_at("b", 1700000000.25);
        report_event_at("c", 1700000007.123456);
        expect_after("null", 3, "c");
        expect_after("0", 3, "c");
        expect_after("1700000000", 3, "c");
        expect_after("1700000000.25", 1, "c");
        expect_after("1700000003.5", 1, "c");
        expect_after("1700000008", 0, NULL);

        /* As a client returns what it was sent. */
        struct varlink_reply reply = client_call(event, &client, CONTROL("GetEvents", "{}"));
        json_t *last = json_array_get(json_object_get(reply.parameters, "events"), 2);
        _cleanup_free_ char *reported = json_dumps(json_object_get(last, "at"), JSON_ENCODE_ANY);
        varlink_reply_free(&reply);
        expect_after(reported, 0, NULL);
        /* The clock is set back by an hour. */
        report_event_at("d", 1699996407);
        expect_after(reported, 1, "d");
        expect_after("1699996407", 0, NULL);
        expect_after("1699996408", 4, "d");

        client_expect(event, &client, CONTROL("GetEvents", "{\"after\":\"1\"}"), VARLINK_INVALID_PARAMETER);

        reply = client_call(event, &client,
                            "{\"method\":\"org.sqmgr.Control.GetEvents\",\"more\":true,"
                            "\"parameters\":{\"after\":1700000008}}");
        ck_assert(reply.continues);
        expect_events(&reply, 0, NULL);
        varlink_reply_free(&reply);
        report_event_at("e", 1699996409);
        ck_assert(next_reply(&reply));
        expect_events(&reply, 1, "e");
        varlink_reply_free(&reply);
}

TEST(an_order_names_who_called_and_what_comes_later_nobody)
{
        world_events_clear(world);
        client_expect(event, &client, CONTROL("Scale", "{\"fleet\":\"web\",\"count\":2}"), NULL);
        world_event(world, EVENT_TIME_DOUBT, NULL, NULL, "later");
        notify_events();

        struct varlink_reply reply = client_call(event, &client, CONTROL("GetEvents", "{}"));
        json_t *events = json_object_get(reply.parameters, "events");
        json_t *by = json_object_get(json_array_get(events, 0), "by");
        ck_assert_uint_eq(json_integer_value(json_object_get(by, "uid")), getuid());
        if (getuid() == 0)
                ck_assert_str_eq(json_string_value(json_object_get(by, "name")), "root");
        ck_assert(json_is_null(json_object_get(json_array_get(events, 1), "by")));
        varlink_reply_free(&reply);
}

TEST(a_restart_is_followed_until_all_are_replaced)
{
        struct varlink_reply reply = client_call(event, &client, RESTART("{\"fleets\":[\"web\"]}"));
        struct heartbeat heartbeat = {.sent_usec = 5}, quiet = {.sent_usec = 6, .quiet = true};

        expect_fleet(&reply, 0, "running", true);
        ck_assert(!next_reply(&reply));

        struct worker *replacement = observe_started(web, 2, REASON_RESTART, 200, 1, clock_usec);
        ck_assert(next_reply(&reply));
        ck_assert_str_eq(change_field(&reply, "id"), "web/2");
        ck_assert_str_eq(change_field(&reply, "state"), "starting");
        expect_fleet(&reply, 0, "running", true);

        observe_heartbeat(replacement, &heartbeat, clock_usec += USEC_PER_SEC);
        observe_heartbeat(web->workers[0], &heartbeat, clock_usec);
        ck_assert(next_reply(&reply));
        ck_assert_uint_eq(json_array_size(json_object_get(reply.parameters, "changes")), 2);
        expect_fleet(&reply, 0, "running", true);

        observe_heartbeat(web->workers[0], &quiet, clock_usec += USEC_PER_SEC);
        observe_time(world, clock_usec);
        ck_assert_int_eq(web->rollout.state, ROLLOUT_DONE);
        expect_next(0, "done", false);
}

TEST(who_follows_is_reported_whether_more_was_replaced)
{
        struct varlink_reply reply = client_call(event, &client, RESTART("{\"fleets\":[\"web\"]}"));

        ck_assert(json_is_true(fleet_field(&reply, 0, "moved")));
        ck_assert(json_is_null(fleet_field(&reply, 0, "workers")));
        varlink_reply_free(&reply);
        observe_started(web, 2, REASON_RESTART, 200, 1, clock_usec);
        ck_assert(next_reply(&reply));
        ck_assert(json_is_false(fleet_field(&reply, 0, "moved")));
        varlink_reply_free(&reply);
        web->workers[0]->state = WORKER_QUIET;
        ck_assert(next_reply(&reply));
        ck_assert(json_is_true(fleet_field(&reply, 0, "moved")));
        varlink_reply_free(&reply);
}

TEST(who_wants_the_workers_is_reported_them_each_second)
{
        fleet_settings[0].memory_threshold = 1000;
        struct varlink_reply reply =
                client_call(event, &client, RESTART("{\"fleets\":[\"web\"],\"workers\":true}"));

        /* The second comes by itself. */
        for (int i = 0; i < 2; i++) {
                json_t *worker = json_array_get(fleet_field(&reply, 0, "workers"), 0);
                ck_assert_int_eq(json_integer_value(fleet_field(&reply, 0, "memory_threshold_bytes")), 1000);
                ck_assert_str_eq(json_string_value(json_object_get(worker, "id")), "web/1");
                ck_assert(json_is_true(fleet_field(&reply, 0, "moved")) == (i == 0));
                ck_assert(reply.continues);
                varlink_reply_free(&reply);
                if (i == 0)
                        ck_assert_int_eq(client_wait(event, &client, &reply), 1);
        }
}

TEST(a_drained_wait_lasts_until_the_old_workers_are_gone)
{
        struct varlink_reply reply =
                client_call(event, &client, RESTART("{\"fleets\":[\"web\"],\"wait\":\"drained\"}"));
        struct exit_status exited = {.known = true};

        expect_fleet(&reply, 0, "running", true);
        web->workers[0]->state = WORKER_QUIET;
        web->rollout.state = ROLLOUT_DONE;
        expect_next(0, "running", true);
        observe_exit(web->workers[0], &exited, clock_usec);
        fleet_reap(web, NULL);
        ck_assert(next_reply(&reply));
        ck_assert_str_eq(change_field(&reply, "state"), "gone");
        expect_fleet(&reply, 0, "done", false);
}

TEST(jobs_are_asked_of_the_fleets_that_are_named)
{
        struct varlink_reply reply =
                client_call(event, &client, CONTROL("GetJobs", "{\"fleets\":[\"mail\"]}"));

        ck_assert_str_eq(json_string_value(json_object_get(reply.parameters, "first")), "mail");
        ck_assert_int_eq(json_integer_value(json_object_get(reply.parameters, "n")), 1);
        varlink_reply_free(&reply);
        reply = client_call(event, &client, CONTROL("GetJobs", "{}"));
        ck_assert_int_eq(json_integer_value(json_object_get(reply.parameters, "n")), 2);
        varlink_reply_free(&reply);
}

TEST(a_waiting_caller_follows_the_newest_generation)
{
        struct varlink_reply reply;

        follow_restart(RESTART("{\"fleets\":[\"web\"]}"));
        web->generation++;
        ck_assert(next_reply(&reply));
        ck_assert_int_eq(json_integer_value(fleet_field(&reply, 0, "generation")), 3);
        expect_fleet(&reply, 0, "running", true);
}

TEST(a_restart_during_another_reports_whose_place_it_takes)
{
        struct varlink_reply reply = client_call(event, &client, CONTROL("Restart", "{}"));

        ck_assert(json_is_null(fleet_field(&reply, 0, "superseded")));
        varlink_reply_free(&reply);
        rollout_abort(mail, "a test", NULL);
        reply = client_call(event, &client, CONTROL("Restart", "{}"));
        ck_assert_int_eq(json_integer_value(fleet_field(&reply, 0, "superseded")), 2);
        ck_assert_int_eq(json_integer_value(fleet_field(&reply, 0, "generation")), 3);
        ck_assert(json_is_null(fleet_field(&reply, 1, "superseded")));
        varlink_reply_free(&reply);
}

TEST(a_bare_restart_leaves_a_quieted_fleet_quiet)
{
        web->order = ORDER_QUIET;
        mail->order = ORDER_STOP;
        struct varlink_reply reply = client_call(event, &client, RESTART("{\"wait\":\"replaced\"}"));

        expect_fleet(&reply, 0, "quiet", false);
        ck_assert_uint_eq(web->generation, 1);
        reply = client_call(event, &client, CONTROL("Restart", "{\"resume\":true}"));
        ck_assert_str_eq(json_string_value(fleet_field(&reply, 0, "state")), "running");
        ck_assert_str_eq(json_string_value(fleet_field(&reply, 1, "state")), "stopped");
        varlink_reply_free(&reply);
        ck_assert_int_eq(web->order, ORDER_RUN);
        ck_assert_uint_eq(web->generation, 2);
        ck_assert_int_eq(mail->order, ORDER_STOP);
        ck_assert_uint_eq(mail->generation, 1);
}

TEST(following_starts_nothing_and_goes_on_to_the_same_end)
{
        command_restart(web, NULL, clock_usec);
        struct varlink_reply reply =
                client_call(event, &client, FOLLOW("{\"fleets\":[\"web\"],\"wait\":\"drained\"}"));

        ck_assert_uint_eq(web->generation, 2);
        ck_assert_uint_eq(n_changed, 0);
        expect_fleet(&reply, 0, "running", true);
        ck_assert(!next_reply(&reply));
        web->workers[0]->state = WORKER_QUIET;
        web->rollout.state = ROLLOUT_DONE;
        expect_next(0, "running", true);
        observe_exit(web->workers[0], &(struct exit_status){.known = true}, clock_usec);
        fleet_reap(web, NULL);
        expect_next(0, "done", false);
}

TEST(following_what_has_ended_ends_at_once)
{
        static const char *const states[] = {
                [ROLLOUT_NONE] = "none",
                [ROLLOUT_DONE] = "done",
                [ROLLOUT_HALTED] = "halted",
                [ROLLOUT_ABORTED] = "aborted",
        };

        for (size_t i = 0; i < ELEMENTSOF(states); i++) {
                if (!states[i])
                        continue;
                web->rollout.state = (enum rollout_state)i;
                struct varlink_reply reply = client_call(event, &client, FOLLOW("{\"fleets\":[\"web\"]}"));
                expect_fleet(&reply, 0, states[i], false);
        }
}

TEST(a_halt_and_an_abort_end_the_wait_with_their_reasons)
{
        struct varlink_reply reply;

        follow_restart(RESTART("{}"));
        web->rollout.state = ROLLOUT_HALTED;
        strcpy(web->rollout.error, "3 new workers failed");
        ck_assert(next_reply(&reply));
        ck_assert_str_eq(json_string_value(fleet_field(&reply, 0, "error")), "3 new workers failed");
        expect_fleet(&reply, 0, "halted", true);
        mail->rollout.state = ROLLOUT_ABORTED;
        expect_next(1, "aborted", false);
}

TEST(a_halt_whose_last_lines_are_being_read_is_reported_with_them)
{
        struct varlink_reply reply;

        follow_restart(RESTART("{\"fleets\":[\"web\"]}"));
        web->rollout.state = ROLLOUT_HALTED;
        web->rollout.lines_token = 5;
        strcpy(web->rollout.error, "it failed");
        expect_next(0, "halted", true);
        observe_log_tail(web, 5, QUOTED("boom"));
        ck_assert(next_reply(&reply));
        ck_assert_str_eq(json_string_value(fleet_field(&reply, 0, "error")), "it failed");
        ck_assert_str_eq(json_string_value(fleet_field(&reply, 0, "quoted")), "boom");
        expect_fleet(&reply, 0, "halted", false);
}

TEST(shutting_down_refuses_new_work_and_ends_waits)
{
        struct varlink_reply reply;

        follow_restart(RESTART("{\"fleets\":[\"web\"]}"));
        world->shutting_down = true;
        expect_next(0, "aborted", false);
        ck_assert_int_eq(client_wait(event, &client, &reply), 1);
        varlink_reply_free(&reply);
        client_expect(event, &client, CONTROL("Restart", "{}"), CONTROL_REFUSED);
}

TEST(a_waiting_caller_may_leave)
{
        struct varlink_reply reply = client_call(event, &client, RESTART("{}"));

        varlink_reply_free(&reply);
        client_end(&client);
        while (sd_event_run(event, 1000) > 0)
                ;
        control_tick(&control, clock_usec);
        ck_assert_int_eq(web->rollout.state, ROLLOUT_RUNNING);
}

TEST_MAIN("operate", .each = {setup, teardown})
