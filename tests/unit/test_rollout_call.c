/* SPDX-License-Identifier: MIT */
/* Tests of the calls of the script by which hosts agree (rollout_hosts/call.h), with a real redis-server:
 * what goes wrong between here and there, and the glance without the script. */
/* promises: P5 */
#include "frameworks/sidekiq/format.h"
#include "golden.h"
#include "local_reader.h"
#include "quoting.h"
#include "redis/redis_command.h"
#include "redis_server.h"
#include "rollout_hosts/call.h"
#include "rollout_hosts/reply_rules.h"

#define KEY "sqmgr:rollout:g"

static struct redis_settings settings;
static struct reader *reader;
static struct rollout_reply last; /* the last answer */
static char last_error[512];      /* "": none */
static bool answered;

static void on_answer(const struct rollout_answer *answer, void *userdata _unused_)
{
        answered = true;
        snprintf(last_error, sizeof(last_error), "%s", error_shown(answer->error));
        if (answer->reply)
                last = *answer->reply;
}

static struct rollout_caller caller_of(const char *host, uint64_t number, const char *id)
{
        return (struct rollout_caller){
                .reader = reader, .group = "g", .host = host, .instance = host, .number = number, .id = id};
}

#define call(...)                                                                                            \
        do {                                                                                                 \
                answered = false;                                                                            \
                ck_assert_int_eq(__VA_ARGS__, 0);                                                            \
                run_until(answered);                                                                         \
        } while (0)

static void setup(void)
{
        loop_start();
        server_start(0, NULL, NULL);
        server_wait();
        settings = (struct redis_settings){
                .url = server_url,
                .connect_timeout = SERVER_PATIENCE,
                .command_timeout = SERVER_PATIENCE,
        };
        reader = local_reader_up(&settings, sidekiq_traits.id);
}

static void teardown(void)
{
        reader = reader_free(reader);
        loop_end();
}

static void glance(void)
{
        const struct rollout_caller caller = caller_of("a", 0, "");

        call(rollout_call_glance(&caller, on_answer, NULL));
}

TEST(a_glance_reports_of_the_rollout_and_writes_nothing)
{
        const struct rollout_caller caller = caller_of("a", 7, "id");

        glance();
        ck_assert_str_eq(last_error, "");
        ck_assert_uint_eq(last.number, 0);
        ck_assert_int_eq(last.state, GROUP_NONE);
        redisReply *reply = server_ask("DBSIZE");
        ck_assert_int_eq(reply->integer, 0);
        freeReplyObject(reply);
        call(rollout_call(&caller, WORDS("tick", "see", ""), on_answer, NULL));
        const struct rollout_caller later = caller_of("a", 8, "id");
        call(rollout_call(&later, WORDS("begin", "1", "0", "0", "", "", "", "0", "0", ""), on_answer, NULL));
        glance();
        ck_assert_uint_eq(last.number, 8);
        ck_assert_str_eq(last.id, "id");
        ck_assert_int_eq(last.state, GROUP_RUNNING);
}

TEST(a_glance_at_what_was_forged_is_nothing_or_an_error)
{
        server_do("HSET " KEY " number x id a%sb state nonsense", "\\n");
        glance();
        ck_assert_str_eq(last_error, "");
        ck_assert_uint_eq(last.number, 0);
        ck_assert_int_eq(last.state, GROUP_NONE);
        server_do("DEL " KEY);
        server_do("SET " KEY " x");
        glance();
        ck_assert_ptr_nonnull(strstr(last_error, "WRONGTYPE"));
}

TEST(who_may_not_write_there_is_reported_what_is_needed)
{
        struct rollout_caller caller = caller_of("a", 0, "");

        server_do("ACL SETUSER worker on nopass ~queue:* ~processes +@all");
        redisReply *reply =
                server_ask("ACL SETUSER worker2 on nopass ~processes ~sqmgr:rollout:* +@read +@write +eval "
                           "+evalsha +time +ping +role +select +info +client");
        freeReplyObject(reply);
        char url[128];
        for (unsigned i = 1; i <= 2; i++) {
                snprintf(url, sizeof(url), "unix://%s:x@%s", i == 1 ? "worker" : "worker2", server_socket);
                settings.url = url;
                caller.reader = local_reader_up(&settings, sidekiq_traits.id);
                call(rollout_call(&caller, WORDS("tick", "see", ""), on_answer, NULL));
                if (i == 1)
                        ck_assert_ptr_nonnull(
                                strstr(last_error, "~sqmgr:rollout:* +@read +@write +eval +evalsha"));
                else
                        ck_assert_str_eq(last_error, "");
                reader_free(caller.reader);
        }
}

TEST(a_lost_connection_is_an_error)
{
        struct rollout_caller caller = caller_of("a", 0, "");

        server_kill();
        answered = false;
        ck_assert_int_eq(rollout_call(&caller, WORDS("tick", "see", ""), on_answer, NULL), 0);
        run_until(answered);
        golden_expect("rollout-hosts", "a lost connection", last_error);
}

TEST(a_namespace_stands_in_front)
{
        static char namespace[] = "app";
        struct rollout_caller caller = caller_of("a", 0, "");

        settings.namespace = namespace;
        caller.reader = local_reader_up(&settings, sidekiq_traits.id);
        call(rollout_call(&caller, WORDS("tick", "see", ""), on_answer, NULL));
        redisReply *reply = server_ask("EXISTS app:" KEY ":seen");
        ck_assert_ptr_nonnull(reply);
        ck_assert_int_eq(reply->integer, 1);
        freeReplyObject(reply);
        reader_free(caller.reader);
}

/* Calls of a command that have come through; 0: none. */
static unsigned calls_of(const char *command)
{
        char name[64];
        unsigned n = 0;
        redisReply *reply = server_ask("INFO commandstats");

        ck_assert_ptr_nonnull(reply);
        snprintf(name, sizeof(name), "cmdstat_%s:calls=", command);
        const char *at = strstr(reply->str, name);
        if (at)
                ck_assert_int_eq(sscanf(at + strlen(name), "%u", &n), 1);
        freeReplyObject(reply);
        return n;
}

/* As a server that was failed over to or started anew: each has no script. */
TEST(the_script_itself_is_sent_only_where_redis_has_it_not)
{
        struct rollout_caller caller = caller_of("a", 0, "");

        for (unsigned i = 0; i < 3; i++)
                call(rollout_call(&caller, WORDS("tick", "see", ""), on_answer, NULL));
        ck_assert_uint_eq(calls_of("eval"), 1);
        ck_assert_uint_eq(calls_of("evalsha"), 3);
        server_do("SCRIPT FLUSH");
        call(rollout_call(&caller, WORDS("show"), on_answer, NULL));
        ck_assert_str_eq(last_error, "");
        server_kill();
        run_until(reader_state(reader) != READER_STATE_CONNECTED);
        server_start(0, NULL, NULL);
        run_until(reader_state(reader) == READER_STATE_CONNECTED);
        const struct rollout_caller later = caller_of("a", 1, "id");
        call(rollout_call(&later, WORDS("begin", "1", "0", "0", "", "", "", "0", "0", ""), on_answer, NULL));
        ck_assert_str_eq(last_error, "");
        ck_assert_uint_eq(last.number, 1);
        ck_assert_uint_eq(calls_of("eval"), 1);
}

TEST_MAIN("rollout_call", .each = {setup, teardown}, .once = {server_directory_make, server_directory_remove},
          .is_missing = server_is_missing)
