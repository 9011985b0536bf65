/* SPDX-License-Identifier: MIT */
/* The call Rollback: what returns, what is refused and why, how the return ends, and what the status shows.
 */
/* promises: P8 */
#include "operate.h"

#define ROLLBACK(parameters)                                                                                 \
        "{\"method\":\"org.sqmgr.Control.Rollback\",\"more\":true,\"parameters\":" parameters "}"

/* Web has been restarted from generation 1 to 2, and the template of generation 1 is kept. */
static void keep_template(void)
{
        fleet_settings[0].preload = true;
        command_restart(web, NULL, clock_usec);
        web->workers[0]->generation = 2;
        web->workers[0]->state = WORKER_ACTIVE;
        web->rollout.state = ROLLOUT_DONE;
        web->rollout.kept_since = clock_usec;
        web->templates[0] = (struct template){
                .fleet = web, .state = TEMPLATE_READY, .generation = 1, .pid = 50, .memory_bytes = 212 << 20};
}

static void expect_not_in_memory(const char *call, json_t *wanted)
{
        struct varlink_reply reply = client_call(event, &client, call);

        ck_assert_ptr_nonnull(reply.error);
        ck_assert_str_eq(reply.error, CONTROL_NOT_IN_MEMORY);
        ck_assert(json_equal(reply.parameters, wanted));
        json_decref(wanted);
        varlink_reply_free(&reply);
        ck_assert(!web->rollout.returned);
}

/* The only worker of web is replaced by one of generation 1. */
static void replace_worker(void)
{
        web->workers[0]->generation = 1;
}

static json_t *rollout_field(const char *member)
{
        struct varlink_reply reply = client_call(event, &client, CONTROL("GetStatus", "{}"));
        json_t *value = json_incref(json_object_get(fleet_field(&reply, 0, "rollout"), member));

        varlink_reply_free(&reply);
        return value;
}

TEST(a_return_is_recorded_and_followed_until_the_new_workers_are_replaced)
{
        keep_template();
        n_changed = 0;
        struct varlink_reply reply = client_call(event, &client, ROLLBACK("{\"fleets\":[\"web\"]}"));

        ck_assert_uint_eq(n_changed, 2);
        ck_assert(web->rollout.returned);
        ck_assert_int_eq(json_integer_value(fleet_field(&reply, 0, "rolled_back")), 2);
        ck_assert_int_eq(json_integer_value(fleet_field(&reply, 0, "generation")), 1);
        ck_assert_int_eq(json_integer_value(fleet_field(&reply, 0, "total")), 1);
        expect_fleet(&reply, 0, "running", true);
        ck_assert(!next_reply(&reply));
        replace_worker();
        web->workers[0]->state = WORKER_STARTING;
        wakeup.pass.serial++;
        /* The count is not reached yet. */
        expect_next(0, "running", true);
        web->workers[0]->state = WORKER_ACTIVE;
        expect_next(0, "done", false);
}

TEST(without_names_those_return_that_can)
{
        keep_template();
        fleet_settings[1].directory = (char *)"/srv/mail";
        struct varlink_reply reply = client_call(event, &client, ROLLBACK("{}"));

        ck_assert_uint_eq(json_array_size(json_object_get(reply.parameters, "fleets")), 2);
        ck_assert_str_eq(json_string_value(fleet_field(&reply, 0, "state")), "running");
        ck_assert(json_is_null(fleet_field(&reply, 0, "not_in_memory")));
        json_t *wanted = json_pack("{s:s, s:n, s:s, s:s}", "fleet", "mail", "generation", "directory",
                                   "/srv/mail", "reason", "no_restart");
        ck_assert(json_equal(fleet_field(&reply, 1, "not_in_memory"), wanted));
        json_decref(wanted);
        ck_assert(json_is_null(fleet_field(&reply, 1, "error")));
        expect_fleet(&reply, 1, "not_in_memory", true);
        ck_assert(web->rollout.returned);
        ck_assert(!mail->rollout.returned);
        /* The fleet that is left out is not waited for. */
        replace_worker();
        expect_next(0, "done", false);
        fleet_settings[1].directory = NULL;
}

TEST(a_second_order_follows_the_first)
{
        keep_template();
        client_expect(event, &client, CONTROL("Rollback", "{\"fleets\":[\"web\"]}"), NULL);
        replace_worker();
        struct varlink_reply reply = client_call(event, &client, ROLLBACK("{\"fleets\":[\"web\"]}"));

        expect_fleet(&reply, 0, "done", false);
        ck_assert_uint_eq(web->generation, 1);
}

TEST(what_is_not_in_memory_is_refused_with_the_facts)
{
        fleet_settings[0].directory = (char *)"/srv/app/current";
        expect_not_in_memory(CONTROL("Rollback", "{\"fleets\":[\"web\"]}"),
                             json_pack("{s:s, s:n, s:s, s:s}", "fleet", "web", "generation", "directory",
                                       "/srv/app/current", "reason", "no_restart"));
        keep_template();
        web->templates[0].state = TEMPLATE_NONE;
        json_t *ended = json_pack("{s:s, s:i, s:s, s:s}", "fleet", "web", "generation", 1, "directory",
                                  "/srv/app/current", "reason", "template_ended");
        expect_not_in_memory(CONTROL("Rollback", "{\"fleets\":[\"web\"]}"), json_incref(ended));
        /* Without names, the fleet that was restarted is chosen. */
        expect_not_in_memory(CONTROL("Rollback", "{}"), ended);
        fleet_settings[0].preload = false;
        fleet_settings[0].directory = NULL;
        expect_not_in_memory(CONTROL("Rollback", "{\"fleets\":[\"web\"]}"),
                             json_pack("{s:s, s:i, s:n, s:s}", "fleet", "web", "generation", 1, "directory",
                                       "reason", "no_preload"));
}

TEST(either_all_named_fleets_return_or_none)
{
        keep_template();
        expect_not_in_memory(CONTROL("Rollback", "{\"fleets\":[\"web\",\"mail\"]}"),
                             json_pack("{s:s, s:n, s:n, s:s}", "fleet", "mail", "generation", "directory",
                                       "reason", "no_restart"));
        client_expect(event, &client, CONTROL("Rollback", "{\"fleets\":[\"nosuch\"]}"),
                      CONTROL_UNKNOWN_FLEET);
        client_expect(event, &client, CONTROL("Rollback", "{\"wait\":\"drained\"}"), VARLINK_EXPECTED_MORE);
        fleet_settings[0].removed = true;
        client_expect(event, &client, CONTROL("Rollback", "{\"fleets\":[\"web\"]}"), CONTROL_REFUSED);
        fleet_settings[0].removed = false;
        save_error = -EROFS;
        client_expect(event, &client, CONTROL("Rollback", "{\"fleets\":[\"web\"]}"), CONTROL_REFUSED);
        save_error = 0;
        world->shutting_down = true;
        client_expect(event, &client, CONTROL("Rollback", "{\"fleets\":[\"web\"]}"), CONTROL_REFUSED);
        ck_assert(!web->rollout.returned);
}

TEST(a_restart_ends_a_return_that_is_followed)
{
        struct varlink_reply reply;

        keep_template();
        reply = client_call(event, &client, ROLLBACK("{\"fleets\":[\"web\"]}"));
        expect_fleet(&reply, 0, "running", true);
        command_restart(web, NULL, clock_usec);
        ck_assert(next_reply(&reply));
        ck_assert_str_eq(json_string_value(fleet_field(&reply, 0, "error")), "a restart has begun");
        ck_assert(json_is_null(fleet_field(&reply, 0, "rolled_back")));
        expect_fleet(&reply, 0, "aborted", false);
}

TEST(a_return_that_is_given_up_ends_as_aborted)
{
        struct varlink_reply reply;

        keep_template();
        reply = client_call(event, &client, ROLLBACK("{\"fleets\":[\"web\"]}"));
        expect_fleet(&reply, 0, "running", true);
        rollout_outdate(web, clock_usec);
        ck_assert(next_reply(&reply));
        ck_assert_ptr_nonnull(strstr(json_string_value(fleet_field(&reply, 0, "error")),
                                     "; the rollback to generation 1 ended: the settings that workers are "
                                     "started with have changed"));
        expect_fleet(&reply, 0, "aborted", false);
}

TEST(a_return_aborts_the_restart_that_is_followed)
{
        struct varlink_reply reply;

        keep_template();
        reply = client_call(event, &client, RESTART("{\"fleets\":[\"web\"]}"));
        expect_fleet(&reply, 0, "running", true);
        web->templates[0].generation = 2;
        ck_assert_int_eq(command_rollback(web, NULL, clock_usec), COMMAND_DONE);
        ck_assert(next_reply(&reply));
        ck_assert_int_eq(json_integer_value(fleet_field(&reply, 0, "rolled_back")), 3);
        ck_assert_str_eq(json_string_value(fleet_field(&reply, 0, "error")),
                         "rolled back to generation 2 by the operator");
        expect_fleet(&reply, 0, "aborted", false);
}

TEST(a_client_that_has_lost_its_connection_follows_the_return)
{
        struct varlink_reply reply;

        keep_template();
        ck_assert_int_eq(command_rollback(web, NULL, clock_usec), COMMAND_DONE);
        reply = client_call(event, &client, FOLLOW("{\"fleets\":[\"web\"],\"rollback\":true}"));
        expect_fleet(&reply, 0, "running", true);
        replace_worker();
        expect_next(0, "done", false);
        /* The reply to the ping of expect_next(). */
        ck_assert_int_eq(client_wait(event, &client, &reply), 1);
        varlink_reply_free(&reply);
        /* Followed as a restart: that was aborted. */
        reply = client_call(event, &client, FOLLOW("{\"fleets\":[\"web\"]}"));
        expect_fleet(&reply, 0, "aborted", false);
}

TEST(the_status_shows_the_return_and_the_template_that_is_kept)
{
        keep_template();
        clock_usec += 4 * USEC_PER_MIN;
        struct varlink_reply reply = client_call(event, &client, CONTROL("GetStatus", "{}"));
        json_t *template = fleet_field(&reply, 0, "template");

        ck_assert_int_eq(json_integer_value(json_object_get(template, "kept_generation")), 1);
        ck_assert_int_eq(json_integer_value(json_object_get(template, "kept_memory_bytes")), 212 << 20);
        ck_assert_double_eq(json_number_value(json_object_get(template, "kept_seconds")), 360);
        varlink_reply_free(&reply);
        json_t *left = rollout_field("rolled_back");
        ck_assert(json_is_null(left));
        json_decref(left);
        client_expect(event, &client, CONTROL("Rollback", "{}"), NULL);
        left = rollout_field("rolled_back");
        ck_assert_int_eq(json_integer_value(left), 2);
        json_decref(left);
        reply = client_call(event, &client, CONTROL("GetStatus", "{}"));
        json_t *problem = json_array_get(json_object_get(reply.parameters, "problems"), 0);
        ck_assert_str_eq(json_string_value(json_object_get(problem, "code")), "rolled-back");
        ck_assert_str_eq(json_string_value(json_object_get(problem, "severity")), "error");
        ck_assert_str_eq(
                json_string_value(json_object_get(problem, "summary")),
                "fleet 'web': rolled back from generation 2 to 1; runs from the template in memory (212M) "
                "until the next restart");
        varlink_reply_free(&reply);
}

TEST_MAIN("rollback", .each = {setup, teardown})
