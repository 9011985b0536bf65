/* SPDX-License-Identifier: MIT */
/* Tests of the script by which hosts agree whose lease it is (rollout_hosts/script_rules.h), as it is called
 * (rollout_hosts/call.h), with a real redis-server. */
/* promises: P8 */
#include "frameworks/sidekiq/format.h"
#include "golden.h"
#include "local_reader.h"
#include "quoting.h"
#include "redis/redis_command.h"
#include "redis_server.h"
#include "rollout_hosts/call.h"
#include "rollout_hosts/reply_rules.h"

#define KEY "sqmgr:rollout:g"

static struct reader *reader;
static struct rollout_reply last;     /* the last answer */
static struct rollout_host shown[16]; /* its hosts */
static size_t n_shown;
static char last_error[512]; /* "": none */
static bool answered;

static void on_answer(const struct rollout_answer *answer, void *userdata _unused_)
{
        answered = true;
        snprintf(last_error, sizeof(last_error), "%s", error_shown(answer->error));
        if (!answer->reply)
                return;
        last = *answer->reply;
        n_shown = 0;
        while (n_shown < ELEMENTSOF(shown) &&
               rollout_reply_host(answer->words, answer->n, n_shown, &shown[n_shown]) == 0)
                n_shown++;
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

/* Returns the lease of the host. */
static enum host_lease tick_as(const char *instance, const char *host, uint64_t number, const char *word)
{
        struct rollout_caller caller = caller_of(host, number, number > 0 ? "id" : "");
        const char *text = strcmp(word, "fail") == 0 ? "it does not boot" : "";

        caller.instance = instance;
        call(rollout_call(&caller, WORDS("tick", word, text), on_answer, NULL));
        ck_assert_str_eq(last_error, "");
        return last.mine;
}

/* The same in the rollout that begin() begins first. */
static enum host_lease tick(const char *host, const char *word)
{
        return tick_as(host, host, 1, word);
}

#define tick_state(host, word, state_)                                                                       \
        do {                                                                                                 \
                tick(host, word);                                                                            \
                ck_assert_int_eq(last.state, state_);                                                        \
        } while (0)
#define tick_to(host, word, mine_, state_)                                                                   \
        do {                                                                                                 \
                tick_state(host, word, state_);                                                              \
                ck_assert_int_eq(last.mine, mine_);                                                          \
        } while (0)

static void join(const char *host)
{
        tick_as(host, host, 0, "see");
}

static void show(void);

/* Further words of begin_as(); number and id: of the rollout that Redis is thought to have. */
static struct {
        const char *mac, *lost, *id;
        uint64_t number;
} order;

static void begin_seen(const char *host, uint64_t number, const char *id, const char *asked,
                       unsigned canary_seconds, unsigned failures)
{
        const struct rollout_caller caller = caller_of(host, number, id);
        char canary[16], most[16], seen[24];

        snprintf(seen, sizeof(seen), "%llu", (unsigned long long)order.number);
        snprintf(canary, sizeof(canary), "%u", canary_seconds);
        snprintf(most, sizeof(most), "%u", failures);
        call(rollout_call(
                &caller,
                WORDS("begin", asked, canary, most, "2026", order.mac, "", order.lost, seen, order.id),
                on_answer, NULL));
        ck_assert_str_eq(last_error, "");
}

static void begin_as(const char *host, uint64_t number, const char *id, const char *asked,
                     unsigned canary_seconds, unsigned failures)
{
        show();
        order.number = last_error[0] == '\0' ? last.number : 0;
        begin_seen(host, number, id, asked, canary_seconds, failures);
}

/* The hosts, of one letter each, have joined; the first rollout begins. */
static void begin(const char *hosts, const char *asked, unsigned canary_seconds, unsigned failures)
{
        for (; *hosts; hosts++)
                join((const char[]){*hosts, '\0'});
        begin_as("a", 1, "id", asked, canary_seconds, failures);
        ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_OK);
        ck_assert_int_eq(last.state, GROUP_RUNNING);
}

static void show(void)
{
        const struct rollout_caller caller = caller_of("a", 1, "id");

        call(rollout_call(&caller, WORDS("show"), on_answer, NULL));
}

/* Simulates that time passes: moves all times in these keys into the past. */
static void pass_seconds(unsigned seconds)
{
        server_do("EVAL %s 3 " KEY " " KEY ":seen " KEY ":turns %u",
                  "for i = 2, 3 do local all = redis.call('ZRANGE', KEYS[i], 0, -1, 'WITHSCORES') "
                  "for j = 1, #all, 2 do redis.call('ZADD', KEYS[i], all[j + 1] - ARGV[1], all[j]) end end "
                  "for _, f in ipairs({'taken', 'first_at', 'from'}) do local v = redis.call('HGET', "
                  "KEYS[1], f) "
                  "if v then redis.call('HSET', KEYS[1], f, string.format('%.6f', v - ARGV[1])) end end",
                  seconds);
}

static enum host_lease lease_of(const char *host)
{
        show();
        for (size_t i = 0; i < n_shown; i++)
                if (strcmp(shown[i].name, host) == 0)
                        return shown[i].lease;
        return HOST_LEASE_NONE;
}

static void setup(void)
{
        order.mac = order.id = "";
        order.lost = "0";
        loop_start();
        server_start(0, NULL, NULL);
        server_wait();
        const struct redis_settings settings = {
                .url = server_url, .connect_timeout = SERVER_PATIENCE, .command_timeout = SERVER_PATIENCE};
        reader = local_reader_up(&settings, sidekiq_traits.id);
}

static void teardown(void)
{
        reader = reader_free(reader);
        loop_end();
}

TEST(hosts_take_leases_until_all_are_done)
{
        const char *const hosts[] = {"a", "b", "c"};

        begin("abc", "1", 0, 0);
        for (size_t i = 0; i < 3; i++) {
                pass_seconds(1);
                ck_assert_int_eq(tick(hosts[i], "want"), HOST_LEASE_ROLLING);
                ck_assert_str_eq(last.release, "2026");
                pass_seconds(1);
                tick(hosts[(i + 1) % 3], "want");
                ck_assert_int_ne(last.mine, HOST_LEASE_ROLLING);
                tick_to(hosts[i], "done", HOST_LEASE_DONE, i < 2 ? GROUP_RUNNING : GROUP_DONE);
        }
}

TEST(a_share_of_the_hosts_is_rounded_up)
{
        char name[8];

        for (unsigned i = 0; i < 11; i++) {
                snprintf(name, sizeof(name), "h%u", i);
                join(name);
        }
        begin("", "10%", 0, 0);
        for (unsigned i = 0; i < 3; i++) {
                pass_seconds(1);
                snprintf(name, sizeof(name), "h%u", i);
                ck_assert_int_eq(tick(name, "want"), i < 2 ? HOST_LEASE_ROLLING : HOST_LEASE_WAITING);
        }
}

TEST(no_two_leases_are_taken_within_a_second)
{
        begin("ab", "2", 0, 0);
        tick("a", "want");
        ck_assert_int_eq(tick("b", "want"), HOST_LEASE_WAITING);
        pass_seconds(1);
        ck_assert_int_eq(tick("b", "want"), HOST_LEASE_ROLLING);
}

TEST(a_lease_that_is_not_renewed_is_lost_and_handed_on_to_nobody)
{
        begin("ab", "1", 0, 0);
        tick("a", "want");
        pass_seconds(31);
        tick_to("b", "want", HOST_LEASE_WAITING, GROUP_HALTED);
        golden_expect("rollout-hosts", "a lost lease", last.error);
        ck_assert_int_eq(lease_of("a"), HOST_LEASE_LOST);
}

TEST(a_renewed_lease_is_not_lost)
{
        begin("a", "1", 0, 0);
        tick("a", "want");
        for (unsigned i = 0; i < 4; i++) {
                pass_seconds(12);
                tick_to("a", "roll", HOST_LEASE_ROLLING, GROUP_RUNNING);
        }
}

static void tick_with(const char *host, const char *word, const char *text)
{
        const struct rollout_caller caller = caller_of(host, 1, "id");

        call(rollout_call(&caller, WORDS("tick", word, text), on_answer, NULL));
        ck_assert_str_eq(last_error, "");
}

TEST(who_rolls_reports_how_far_it_is_at_each_renewal)
{
        begin("a", "1", 0, 0);
        tick("a", "want");
        pass_seconds(12);
        tick_with("a", "roll", "1 of 8 replaced");
        show();
        ck_assert_str_eq(shown[0].text, "1 of 8 replaced");
        usec_t since = shown[0].state_usec;
        pass_seconds(12);
        tick_with("a", "roll", "2 of 8 replaced");
        show();
        ck_assert_str_eq(shown[0].text, "2 of 8 replaced");
        ck_assert_uint_ge(shown[0].state_usec, since);
        ck_assert_str_eq(last.by, "a");
}

TEST(who_is_done_reports_when_it_has_drained)
{
        begin("ab", "2", 0, 0);
        tick("a", "want");
        tick_with("a", "done", "draining");
        show();
        ck_assert_int_eq(shown[0].lease, HOST_LEASE_DONE);
        ck_assert_str_eq(shown[0].text, "draining");
        ck_assert(!shown[0].counts_known);
        tick_with("a", "done", "");
        show();
        ck_assert_int_eq(shown[0].lease, HOST_LEASE_DONE);
        ck_assert_str_eq(shown[0].text, "");
        ck_assert_int_eq(lease_of("b"), HOST_LEASE_WAITING);
}

static void tick_counted(const char *host, const char *word, const char *counts)
{
        const struct rollout_caller caller = caller_of(host, 1, "id");

        call(rollout_call(&caller, WORDS("tick", word, "3 of 8 replaced", counts), on_answer, NULL));
        ck_assert_str_eq(last_error, "");
}

/* Hosts up to 0.2 call the script without numbers: their rows have none, and they read the text alone. */
TEST(progress_is_numbers_beside_the_text)
{
        begin("ab", "2", 0, 0);
        tick("a", "want");
        tick_counted("a", "roll", "");
        show();
        ck_assert(!shown[0].counts_known);
        tick_counted("a", "done", "8 7 2 1");
        show();
        ck_assert_str_eq(shown[0].text, "3 of 8 replaced");
        ck_assert(shown[0].counts_known);
        ck_assert_uint_eq(shown[0].counts.total, 8);
        ck_assert_uint_eq(shown[0].counts.replaced, 7);
        ck_assert_uint_eq(shown[0].counts.draining, 2);
        ck_assert_uint_eq(shown[0].counts.failed, 1);
        ck_assert(!shown[1].counts_known);
        tick_counted("a", "done", "8 x 0 0");
        show();
        ck_assert(!shown[0].counts_known);
        begin_as("a", 2, "id", "2", 0, 0);
        show();
        ck_assert(!shown[0].counts_known);
}

TEST(a_lost_lease_keeps_its_place_though_a_failure_is_allowed)
{
        begin("ab", "1", 0, 1);
        tick("a", "want");
        pass_seconds(31);
        tick_to("b", "want", HOST_LEASE_WAITING, GROUP_HALTED);
}

TEST(the_return_of_a_lost_host_heals_the_halt)
{
        begin("ab", "1", 0, 0);
        tick("a", "want");
        pass_seconds(31);
        tick_state("b", "want", GROUP_HALTED);
        tick_state("a", "roll", GROUP_RUNNING);
        ck_assert_str_eq(last.error, "");
        tick("a", "done");
        ck_assert_int_eq(tick("b", "want"), HOST_LEASE_ROLLING);
}

TEST(a_lease_that_is_given_back_is_free)
{
        begin("ab", "1", 0, 0);
        tick("a", "want");
        pass_seconds(31);
        tick_state("b", "see", GROUP_HALTED);
        tick_to("a", "wait", HOST_LEASE_WAITING, GROUP_RUNNING);
        ck_assert_int_eq(tick("b", "want"), HOST_LEASE_ROLLING);
        tick("b", "done");
        ck_assert_int_eq(tick("b", "wait"), HOST_LEASE_DONE);
}

TEST(to_forget_a_lost_host_frees_its_place)
{
        const struct rollout_caller caller = caller_of("b", 1, "id");

        begin("ab", "1", 0, 0);
        tick("a", "want");
        pass_seconds(31);
        call(rollout_call(&caller, WORDS("forget", "c"), on_answer, NULL));
        ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_UNKNOWN);
        ck_assert_int_eq(last.state, GROUP_HALTED);
        call(rollout_call(&caller, WORDS("forget", "a"), on_answer, NULL));
        ck_assert_int_eq(last.state, GROUP_RUNNING);
        ck_assert_str_eq(last.left, " a");
        ck_assert_int_eq(tick("b", "want"), HOST_LEASE_ROLLING);
        tick_state("b", "done", GROUP_DONE);
        /* It lives after all, and still rolls: the next one knows. */
        ck_assert_int_eq(tick("a", "roll"), HOST_LEASE_ROLLING);
        begin_as("b", 2, "id", "1", 0, 0);
        ck_assert_int_eq(tick_as("b", "b", 2, "want"), HOST_LEASE_WAITING);
}

TEST(who_is_forgotten_and_still_rolls_is_not_done)
{
        const struct rollout_caller caller = caller_of("b", 1, "id");

        begin("ab", "2", 0, 0);
        tick("a", "want");
        pass_seconds(1);
        tick("b", "want");
        tick("b", "done");
        call(rollout_call(&caller, WORDS("forget", "a"), on_answer, NULL));
        ck_assert_int_eq(last.state, GROUP_DONE);
        ck_assert_int_eq(tick("a", "roll"), HOST_LEASE_ROLLING);
}

TEST(more_failures_than_allowed_halt_and_say_which)
{
        begin("abc", "1", 0, 1);
        tick_state("a", "fail", GROUP_RUNNING);
        tick("b", "want");
        tick_state("b", "fail", GROUP_HALTED);
        ck_assert_str_eq(last.error, "a: it does not boot");
        pass_seconds(1);
        ck_assert_int_eq(tick("c", "want"), HOST_LEASE_WAITING);
}

TEST(a_halt_lets_those_that_roll_finish)
{
        begin("ab", "2", 0, 0);
        tick("a", "want");
        pass_seconds(1);
        tick("b", "want");
        tick("a", "fail");
        ck_assert_int_eq(tick("b", "roll"), HOST_LEASE_ROLLING);
        tick_to("b", "done", HOST_LEASE_DONE, GROUP_HALTED);
}

TEST(a_canary_goes_first_and_all_wait_for_it)
{
        begin("abc", "2", 600, 0);
        tick("a", "want");
        pass_seconds(1);
        ck_assert_int_eq(tick("b", "want"), HOST_LEASE_WAITING);
        tick("a", "done");
        ck_assert_int_eq(tick("b", "want"), HOST_LEASE_WAITING);
        pass_seconds(600);
        ck_assert_int_eq(tick("b", "want"), HOST_LEASE_ROLLING);
        pass_seconds(1);
        ck_assert_int_eq(tick("c", "want"), HOST_LEASE_ROLLING);
        ck_assert_int_eq(tick("a", "fail"), HOST_LEASE_DONE);
}

TEST(a_canary_that_fails_later_halts_what_has_not_begun)
{
        begin("ab", "1", 600, 0);
        tick("a", "want");
        tick("a", "done");
        pass_seconds(300);
        tick_to("a", "fail", HOST_LEASE_FAILED, GROUP_HALTED);
        pass_seconds(600);
        ck_assert_int_eq(tick("b", "want"), HOST_LEASE_WAITING);
}

TEST(an_older_rollout_changes_nothing_and_learns_the_newer)
{
        begin("ab", "1", 0, 0);
        begin_as("b", 2, "id", "1", 0, 0);
        tick("a", "want");
        ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_OLD);
        ck_assert_uint_eq(last.number, 2);
        ck_assert_int_eq(lease_of("a"), HOST_LEASE_WAITING);
        const struct rollout_caller caller = caller_of("a", 1, "id"), other = caller_of("a", 2, "early");
        call(rollout_call(&caller, WORDS("abort", ""), on_answer, NULL));
        ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_OLD);
        call(rollout_call(&other, WORDS("forget", "b"), on_answer, NULL));
        ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_OLD);
        call(rollout_call(&other, WORDS("tick", "want", ""), on_answer, NULL));
        ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_OLD);
        ck_assert_int_eq(last.state, GROUP_RUNNING);
        ck_assert_int_eq(lease_of("b"), HOST_LEASE_WAITING);
}

TEST(of_two_that_begin_at_once_one_is_refused)
{
        join("a");
        order.number = 0;
        begin_seen("a", 1, "first", "1", 0, 0);
        begin_seen("b", 2, "second", "9", 0, 0);
        ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_OLD);
        ck_assert_str_eq(last.id, "first");
        ck_assert_str_eq(last.asked, "1");
        /* Of one number, too. */
        order.number = 1;
        order.id = "other";
        begin_seen("b", 2, "second", "9", 0, 0);
        ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_OLD);
        order.id = "first";
        begin_seen("b", 2, "second", "9", 0, 0);
        ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_OK);
}

TEST(begins_with_no_number_to_see_what_there_is)
{
        begin("a", "1", 0, 0);
        begin_seen("a", 0, "id", "1", 0, 0);
        ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_OLD);
        ck_assert_uint_eq(last.number, 1);
        redisReply *reply = server_ask("TIME");
        ck_assert_ptr_nonnull(reply);
        ck_assert_int_le(strtoll(reply->element[0]->str, NULL, 10) - (long long)last.now_seconds, 60);
        freeReplyObject(reply);
}

TEST(of_one_number_the_lower_id_is_lost)
{
        const struct rollout_caller lower = caller_of("a", 5, "a9"), higher = caller_of("b", 5, "b");

        begin_as("c", 5, "a99", "1", 0, 0);
        call(rollout_call(&lower, WORDS("tick", "want", ""), on_answer, NULL));
        ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_OLD);
        ck_assert_int_eq(last.state, GROUP_RUNNING);
        call(rollout_call(&higher, WORDS("tick", "see", ""), on_answer, NULL));
        ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_BEHIND);
        ck_assert_int_eq(last.state, GROUP_ABORTED);
}

TEST(who_waits_says_why)
{
        begin("ab", "1", 0, 0);
        tick_with("a", "see", "begins no lease for another 5s");
        show();
        ck_assert_str_eq(shown[0].text, "begins no lease for another 5s");
        ck_assert_int_eq(tick("a", "want"), HOST_LEASE_ROLLING);
        show();
        ck_assert_str_eq(shown[0].text, "");
        /* Also of another rollout than the one there. */
        const struct rollout_caller caller = caller_of("b", 0, "");
        call(rollout_call(&caller, WORDS("tick", "see", "it is not signed"), on_answer, NULL));
        show();
        ck_assert_str_eq(shown[1].text, "it is not signed");
        tick_with("b", "want", "");
        show();
        ck_assert_str_eq(shown[1].text, "");
}

TEST(without_a_number_nobody_takes_a_lease)
{
        static const char *const words[] = {"want", "roll"};

        join("a");
        server_do("HSET " KEY " state running hosts 9");
        for (size_t i = 0; i < ELEMENTSOF(words); i++) {
                tick_as("a", "a", 0, words[i]);
                ck_assert_int_eq(last.mine, HOST_LEASE_WAITING);
        }
}

TEST(who_begins_takes_part_though_nobody_was_seen_before)
{
        begin("", "50%", 0, 0);
        ck_assert_int_eq(lease_of("a"), HOST_LEASE_WAITING);
        join("b");
        ck_assert_int_eq(lease_of("b"), HOST_LEASE_WAITING);
        ck_assert_int_eq(tick("a", "want"), HOST_LEASE_ROLLING);
        tick_state("a", "done", GROUP_RUNNING);
        pass_seconds(1);
        tick("b", "want");
        tick_state("b", "done", GROUP_DONE);
}

TEST(the_next_begins_whatever_became_of_the_one_before)
{
        const struct rollout_caller caller = caller_of("a", 1, "id");

        begin("ab", "1", 0, 0);
        tick("a", "want");
        pass_seconds(31);
        tick_state("b", "want", GROUP_HALTED);
        begin_as("b", 2, "id", "1", 0, 0);
        ck_assert_int_eq(last.state, GROUP_RUNNING);
        ck_assert_int_eq(lease_of("a"), HOST_LEASE_WAITING);
        call(rollout_call(&caller, WORDS("abort", ""), on_answer, NULL));
        ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_OLD);
}

TEST(who_rolls_goes_on_in_the_next_and_holds_a_place)
{
        begin("ab", "1", 0, 0);
        tick("a", "want");
        pass_seconds(1);
        begin_as("b", 2, "id", "1", 0, 0);
        ck_assert_int_eq(tick_as("b", "b", 2, "want"), HOST_LEASE_WAITING);
        ck_assert_int_eq(tick_as("a", "a", 2, "roll"), HOST_LEASE_ROLLING);
        tick_as("a", "a", 2, "done");
        ck_assert_int_eq(tick_as("b", "b", 2, "want"), HOST_LEASE_ROLLING);
}

TEST(aborted_nobody_begins)
{
        const struct rollout_caller caller = caller_of("b", 1, "id");

        begin("ab", "2", 0, 0);
        tick("a", "want");
        call(rollout_call(&caller, WORDS("abort", "seal"), on_answer, NULL));
        ck_assert_int_eq(last.state, GROUP_ABORTED);
        ck_assert_str_eq(last.error, "ordered on b");
        ck_assert_str_eq(last.end_mac, "seal");
        pass_seconds(1);
        ck_assert_int_eq(tick("b", "want"), HOST_LEASE_WAITING);
        tick_state("a", "done", GROUP_ABORTED);
}

TEST(what_redis_has_forgotten_is_asserted_anew)
{
        begin("ab", "1", 0, 0);
        tick("a", "want");
        /* A failover undid that. */
        server_do("ZREM " KEY ":turns a");
        server_do("ZADD " KEY ":states 0 a");
        ck_assert_int_eq(tick("a", "roll"), HOST_LEASE_ROLLING);
        pass_seconds(1);
        ck_assert_int_eq(tick("b", "want"), HOST_LEASE_WAITING);
}

TEST(a_rollout_that_redis_has_lost_ends_the_one_before)
{
        begin("ab", "1", 0, 0);
        tick_as("b", "b", 2, "want");
        ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_BEHIND);
        ck_assert_int_eq(last.state, GROUP_ABORTED);
        golden_expect("rollout-hosts", "a lost epoch", last.error);
        ck_assert_uint_eq(last.high, 2);
        ck_assert_int_eq(tick("a", "want"), HOST_LEASE_WAITING);
        begin_as("a", 2, "id", "1", 0, 0);
        ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_OLD);
        order.lost = "1";
        begin_as("a", 3, "id", "1", 0, 0);
        order.lost = "0";
        ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_OK);
        /* Who rolls for the lost one has a lease to say so. */
        ck_assert_int_eq(tick_as("a", "a", 3, "want"), HOST_LEASE_WAITING);
        /* Though somebody begins once more. */
        begin_as("a", 4, "id", "1", 0, 0);
        ck_assert_int_eq(tick_as("a", "a", 4, "want"), HOST_LEASE_WAITING);
        pass_seconds(30);
        ck_assert_int_eq(tick_as("a", "a", 4, "want"), HOST_LEASE_ROLLING);
}

TEST(emptied_it_goes_on_with_who_comes)
{
        begin("a", "1", 0, 0);
        server_do("FLUSHALL");
        tick("a", "roll");
        ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_BEHIND);
        ck_assert_int_eq(last.state, GROUP_ABORTED);
        ck_assert_uint_eq(last.number, 0);
        golden_expect("rollout-hosts", "an emptied Redis", last.error);
        begin_as("a", 2, "id", "1", 0, 0);
        ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_OK);
        ck_assert_int_eq(tick_as("a", "a", 2, "roll"), HOST_LEASE_ROLLING);
}

TEST(of_two_machines_of_one_name_one_speaks)
{
        tick_as("first", "a", 0, "see");
        begin("", "1", 0, 0);
        tick_as("second", "a", 1, "want");
        ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_TAKEN);
        ck_assert_int_eq(lease_of("a"), HOST_LEASE_WAITING);
        ck_assert_int_eq(tick_as("first", "a", 1, "want"), HOST_LEASE_ROLLING);
        /* It has booted anew, say. */
        pass_seconds(31);
        tick_as("second", "a", 1, "want");
        ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_OK);
        ck_assert_int_eq(last.mine, HOST_LEASE_LOST);
        ck_assert_int_eq(tick_as("second", "a", 1, "roll"), HOST_LEASE_ROLLING);
        tick_as("first", "a", 1, "roll");
        ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_TAKEN);
}

TEST(who_was_not_heard_of_for_a_day_is_waited_for_no_longer)
{
        begin("ab", "1", 0, 0);
        tick_state("a", "done", GROUP_RUNNING);
        pass_seconds(24 * 3600 + 1);
        tick("a", "see");
        ck_assert_str_eq(last.left, " b");
        ck_assert_int_eq(last.state, GROUP_DONE);
}

TEST(who_comes_while_it_runs_is_waited_for)
{
        begin("a", "1", 0, 0);
        tick("a", "want");
        join("b");
        tick_state("a", "done", GROUP_RUNNING);
        tick_state("b", "done", GROUP_DONE);
        join("c");
        ck_assert_int_eq(last.state, GROUP_DONE);
        ck_assert_int_eq(lease_of("c"), HOST_LEASE_DONE);
}

TEST(a_forged_type_holds_up_nobody)
{
        join("a");
        server_do("DEL " KEY ":states");
        server_do("SET " KEY ":states x");
        struct rollout_caller caller = caller_of("a", 0, "");
        call(rollout_call(&caller, WORDS("tick", "see", ""), on_answer, NULL));
        ck_assert_ptr_nonnull(strstr(last_error, "WRONGTYPE"));
        server_do("SET " KEY " x");
        begin_as("a", 1, "id", "1", 0, 0);
        ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_OK);
        ck_assert_int_eq(tick("a", "want"), HOST_LEASE_ROLLING);
}

/* Each order begins from what Redis shows, however often somebody writes there. */
TEST(forged_numbers_hold_up_nobody)
{
        static const char *const numbers[] = {"9007199254740991", "-1", "1e308", "nan", "x", "0x7fffffff0000",
                                              "4503599627370495"};

        join("a");
        for (size_t i = 0; i < ELEMENTSOF(numbers); i++) {
                server_do("HSET " KEY " number %s high %s id x state running", numbers[i], numbers[i]);
                begin_as("a", 5, "id", "1", 0, 0);
                ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_OK);
                ck_assert_uint_eq(last.number, 5);
                /* Nor does a host that takes one for a rollout end those of others. */
                tick_as("b", "b", 9007199254740991, "see");
                ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_OLD);
                ck_assert_int_eq(last.state, GROUP_RUNNING);
        }
}

TEST(with_a_key_numbers_that_can_be_believed_hold_up_nobody_either)
{
        join("a");
        begin_as("a", 5, "id", "1", 0, 0);
        server_do("HSET " KEY " number 1700000000 id x");
        begin_as("a", 6, "id", "1", 0, 0);
        ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_OLD);
        server_do("HSET " KEY " high 1700000000");
        order.mac = "signature";
        begin_as("a", 6, "id", "1", 0, 0);
        ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_OK);
        ck_assert_uint_eq(last.number, 6);
        ck_assert_uint_eq(last.high, 0);
}

TEST(forged_times_hold_up_nobody)
{
        static const char *const times[] = {"nan", "inf", "-inf", "9e99", "-9e99", "x"};

        join("a");
        for (size_t i = 0; i < ELEMENTSOF(times); i++) {
                uint64_t number = i + 1;

                begin_as("a", number, "id", "1", 3600, 0);
                server_do("HSET " KEY " at %s from %s taken %s first b first_at %s", times[i], times[i],
                          times[i], times[i]);
                tick_as("a", "a", number, "want");
                ck_assert_str_eq(last_error, "");
                ck_assert_int_eq(last.mine, HOST_LEASE_ROLLING);
                tick_as("a", "a", number, "done");
        }
}

TEST(a_flood_is_bounded)
{
        join("a");
        server_do("EVAL %s 3 " KEY ":seen " KEY ":states " KEY ":turns",
                  "for i = 1, 5000 do for k = 1, 3 do "
                  "redis.call('ZADD', KEYS[k], k == 2 and 1 or 99999999999, string.rep('h', 900) .. i) "
                  "end end");
        tick_as("b", "b", 0, "see");
        ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_FULL);
        show();
        ck_assert_str_eq(last_error, "");
        ck_assert_uint_eq(n_shown, ELEMENTSOF(shown));
        ck_assert_uint_eq(strlen(shown[15].name), ROLLOUT_TEXT_MAX);
        begin("", "1", 0, 0);
        tick("b", "see");
        ck_assert_int_eq(last.verdict, ROLLOUT_VERDICT_OK);
        redisReply *reply = server_ask("ZCARD " KEY ":seen");
        ck_assert_ptr_nonnull(reply);
        ck_assert_int_eq(reply->integer, 2);
        freeReplyObject(reply);
}

TEST(a_thousand_hosts_take_half_a_megabyte)
{
        static const char *const suffixes[] = {"", ":hosts", ":seen", ":states", ":turns"};
        char name[64];
        long long bytes = 0;

        for (unsigned i = 0; i <= ROLLOUT_HOSTS_MAX; i++) {
                snprintf(name, sizeof(name), "worker-%u.eu-central-1.example.com", i);
                join(name);
                ck_assert_int_eq(last.verdict,
                                 i < ROLLOUT_HOSTS_MAX ? ROLLOUT_VERDICT_OK : ROLLOUT_VERDICT_FULL);
        }
        begin("", "10%", 0, 0);
        for (size_t i = 0; i < ELEMENTSOF(suffixes); i++) {
                redisReply *reply = server_ask("MEMORY USAGE " KEY "%s SAMPLES 0", suffixes[i]);

                ck_assert_ptr_nonnull(reply);
                bytes += reply->integer;
                freeReplyObject(reply);
                reply = server_ask("TTL " KEY "%s", suffixes[i]);
                ck_assert_ptr_nonnull(reply);
                if (i > 0 && i < 3)
                        ck_assert_int_ge(reply->integer, i == 1 ? -1 : 29 * 86400);
                freeReplyObject(reply);
        }
        ck_assert_int_gt(bytes, 100 * 1024);
        ck_assert_int_lt(bytes, 512 * 1024);
}

TEST_MAIN("rollout_script", .each = {setup, teardown},
          .once = {server_directory_make, server_directory_remove}, .is_missing = server_is_missing)
