/* SPDX-License-Identifier: MIT */
/* Restart with `release`, over a real socket, on worlds made by hand: nothing is restarted before each fleet
 * was checked. What the check itself finds is tested in test_launch.c. */
/* promises: P7 */
#include "daemon/workers/side_start.h"
#include "operate.h"

/* The check that waits for its result; NULL: none. */
static struct side_start {
        const struct fleet *fleet;
        char release[64];
        release_fn fn;
        void *userdata;
} * pending;
static unsigned n_begun;
static int begin_error;

int __wrap_release_check_begin(struct runtime *of, const struct fleet *fleet, const char *release,
                               release_fn fn, void *userdata, struct side_start **ret);
int __wrap_release_check_begin(struct runtime *of, const struct fleet *fleet, const char *release,
                               release_fn fn, void *userdata, struct side_start **ret)
{
        static struct side_start check;

        ck_assert_ptr_eq(of, &runtime);
        ck_assert_ptr_null(pending);
        if (begin_error < 0)
                return begin_error;
        n_begun++;
        check = (struct side_start){.fleet = fleet, .fn = fn, .userdata = userdata};
        snprintf(check.release, sizeof(check.release), "%s", release);
        *ret = pending = &check;
        return 0;
}

struct side_start *__wrap_release_check_cancel(struct side_start *check);
struct side_start *__wrap_release_check_cancel(struct side_start *check)
{
        ck_assert(!check || check == pending);
        if (check)
                pending = NULL;
        return NULL;
}

static void setup_release(void)
{
        setup();
        pending = NULL;
        n_begun = 0;
        begin_error = 0;
}

static void run_until(const struct fleet *checked)
{
        for (unsigned i = 0; i < 100 && !(pending && pending->fleet == checked); i++)
                ck_assert_int_ge(sd_event_run(event, 10000), 0);
        ck_assert(pending && pending->fleet == checked);
        ck_assert_str_eq(pending->release, "releases/7");
        ck_assert_uint_eq(web->generation, 1);
        ck_assert_uint_eq(mail->generation, 1);
}

/* error: NULL: the release is there. */
static void end_check(const char *error, const char *quoted)
{
        const struct side_start check = *pending;
        struct error_report report;

        pending = NULL;
        if (error)
                error_report_quote(&report, quoted, "%s", error);
        check.fn(error ? &report : NULL, check.userdata);
}

static struct varlink_reply take_reply(void)
{
        struct varlink_reply reply;

        ck_assert_int_eq(client_wait(event, &client, &reply), 1);
        return reply;
}

static void expect_refused(const char *reason, const char *quoted)
{
        struct varlink_reply reply = take_reply();

        ck_assert_pstr_eq(reply.error, CONTROL_REFUSED);
        ck_assert_str_eq(json_string_value(json_object_get(reply.parameters, "reason")), reason);
        ck_assert_pstr_eq(json_string_value(json_object_get(reply.parameters, "quoted")), quoted);
        varlink_reply_free(&reply);
        ck_assert_uint_eq(web->generation, 1);
        ck_assert_uint_eq(mail->generation, 1);
        ck_assert_ptr_null(pending);
}

TEST(the_fleets_are_restarted_once_each_has_the_release)
{
        client_send(&client, CONTROL("Restart", "{\"release\":\"releases/7\"}"));
        run_until(web);
        end_check(NULL, NULL);
        run_until(mail);
        end_check(NULL, NULL);
        struct varlink_reply reply = take_reply();
        ck_assert_pstr_eq(reply.error, NULL);
        ck_assert_int_eq(json_integer_value(fleet_field(&reply, 1, "generation")), 2);
        varlink_reply_free(&reply);
        ck_assert_uint_eq(web->generation, 2);
        ck_assert_uint_eq(mail->generation, 2);
}

TEST(only_named_fleets_are_checked)
{
        client_send(&client, CONTROL("Restart", "{\"release\":\"releases/7\",\"fleets\":[\"mail\"]}"));
        run_until(mail);
        end_check(NULL, NULL);
        struct varlink_reply reply = take_reply();
        ck_assert_pstr_eq(reply.error, NULL);
        varlink_reply_free(&reply);
        ck_assert_uint_eq(web->generation, 1);
        ck_assert_uint_eq(mail->generation, 2);
        client_expect(event, &client, CONTROL("Restart", "{\"release\":\"\"}"), VARLINK_INVALID_PARAMETER);
        client_expect(event, &client, CONTROL("Restart", "{\"release\":null}"), NULL);
        ck_assert_uint_eq(web->generation, 2);
        ck_assert_uint_eq(n_begun, 1);
}

TEST(one_fleet_without_the_release_keeps_all_as_they_are)
{
        client_send(&client, RESTART("{\"release\":\"releases/7\",\"wait\":\"replaced\"}"));
        run_until(web);
        end_check(NULL, NULL);
        run_until(mail);
        end_check("release 'releases/7' was not found", "directory '/srv' resolves to '/srv/6'");
        expect_refused("order refused, nothing has changed: fleet 'mail': release 'releases/7' was not found",
                       "directory '/srv' resolves to '/srv/6'");
        ck_assert_int_eq(web->rollout.state, ROLLOUT_NONE);
}

TEST(the_restart_is_followed_after_the_check)
{
        client_send(&client,
                    RESTART("{\"release\":\"releases/7\",\"fleets\":[\"web\"],\"wait\":\"replaced\"}"));
        run_until(web);
        end_check(NULL, NULL);
        struct varlink_reply reply = take_reply();
        expect_fleet(&reply, 0, "running", true);
        rollout_abort(web, "for the test", NULL);
        expect_next(0, "aborted", false);
}

TEST(without_a_check_nothing_is_restarted)
{
        begin_error = -EAGAIN;
        client_send(&client, CONTROL("Restart", "{\"release\":\"releases/7\"}"));
        expect_refused(
                "order refused, nothing has changed: cannot check fleet 'web' for the release: Resource "
                "temporarily unavailable",
                NULL);
}

TEST(orders_and_settings_may_change_during_the_check)
{
        client_send(&client, CONTROL("Restart", "{\"release\":\"releases/7\"}"));
        run_until(web);
        save_error = -EROFS;
        end_check(NULL, NULL);
        struct varlink_reply reply = take_reply();
        ck_assert_pstr_eq(reply.error, CONTROL_REFUSED);
        varlink_reply_free(&reply);
        save_error = 0;

        client_send(&client, CONTROL("Restart", "{\"release\":\"releases/7\"}"));
        run_until(web);
        world->shutting_down = true;
        end_check(NULL, NULL);
        expect_refused("sqmgr is shutting down", NULL);
        world->shutting_down = false;

        /* A fleet that was removed meanwhile drains, and is neither checked nor restarted. */
        client_send(&client, CONTROL("Restart", "{\"release\":\"releases/7\"}"));
        run_until(web);
        fleet_settings[1].removed = true;
        end_check(NULL, NULL);
        reply = take_reply();
        ck_assert_pstr_eq(reply.error, NULL);
        varlink_reply_free(&reply);
        fleet_settings[1].removed = false;
        ck_assert_uint_eq(web->generation, 2);
        ck_assert_uint_eq(mail->generation, 1);
}

TEST(a_client_that_leaves_ends_the_check)
{
        client_send(&client, CONTROL("Restart", "{\"release\":\"releases/7\"}"));
        run_until(web);
        client_end(&client);
        for (unsigned i = 0; i < 100 && pending; i++)
                ck_assert_int_ge(sd_event_run(event, 10000), 0);
        ck_assert_ptr_null(pending);
        ck_assert_uint_eq(web->generation, 1);
        client.fd = -1;
}

TEST_MAIN("restart-release", .each = {setup_release, teardown})
