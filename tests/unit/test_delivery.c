/* SPDX-License-Identifier: MIT */
/* Signals through a real redis-server: which way a signal goes, what is written, and what becomes of a worker
 * that outlives the process that sqmgr started. The workers are stand-ins: `sleep` as the client, and the
 * test itself as the Sidekiq process that writes heartbeats and reads its list of signals. */
/* promises: P1 P4 P5 */
#include "daemon/workers/execute.h"
#include "model/world.h"
#include "observe/observe.h"
#include "redis_runtime.h"
#include <linux/capability.h>
#include <sys/syscall.h>

#define IDENTITY "host:1:abc"
#define SIGNALS  IDENTITY "-signals"

/* A worker that is active under IDENTITY, and out of reach if remote. */
static struct worker *start_command(const char *command, const char *lines, bool remote)
{
        web_start_command(command, lines);
        struct worker *worker = runtime_start_worker();
        usec_t now = clock_now(CLOCK_MONOTONIC);

        ck_assert(worker && worker->handle);
        run_until(web_is_up());
        ck_assert_int_eq(heartbeats_know(worker->handle->slot, IDENTITY), 0);
        observe_heartbeat_process(worker, worker->process.pid, worker->process.start, now);
        if (remote)
                observe_remote(worker);
        observe_heartbeat(worker, &(struct heartbeat){.sent_usec = 1, .busy = 1}, now);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        return worker;
}

static struct worker *start(bool remote)
{
        return start_command("/bin/sleep 1000", "", remote);
}

static long long length(void)
{
        redisReply *reply = server_ask("LLEN " SIGNALS);
        long long n = reply ? reply->integer : -1;

        freeReplyObject(reply);
        return n;
}

/* Takes the signal that a Sidekiq process would take with its next heartbeat. */
static void expect_signal(const char *name)
{
        run_until(length() > 0);
        redisReply *ttl = server_ask("TTL " SIGNALS), *reply = server_ask("RPOP " SIGNALS);

        ck_assert(ttl->integer > 0 && ttl->integer <= 60);
        ck_assert_str_eq(reply->str, name);
        freeReplyObject(ttl);
        freeReplyObject(reply);
}

static bool act(struct worker *worker, enum action_kind kind)
{
        const struct action action = {
                .kind = kind, .fleet = web(), .worker = worker, .index = 1, .reason = REASON_OPERATOR};

        return execute_action(&runtime, &action, clock_now(CLOCK_MONOTONIC));
}

TEST(a_worker_out_of_reach_is_quieted_and_stopped_through_its_server)
{
        struct worker *worker = start(true);

        ck_assert(act(worker, ACTION_QUIET));
        ck_assert_int_eq(worker->state, WORKER_QUIET);
        ck_assert(act(worker, ACTION_STOP));
        ck_assert_int_eq(worker->state, WORKER_STOPPING);
        expect_signal("TSTP");
        expect_signal("TERM");
        /* The client got neither. */
        ck_assert(proc_is_alive(worker->process.pid, worker->process.start));
        ck_assert(act(worker, ACTION_STOP));
        expect_signal("TERM");
}

TEST(only_the_client_of_a_worker_out_of_reach_is_killed)
{
        struct worker *worker = start(true);

        ck_assert(act(worker, ACTION_STOP));
        expect_signal("TERM");
        ck_assert(act(worker, ACTION_KILL));
        run_until(!proc_is_alive(worker->process.pid, worker->process.start));
        ck_assert_int_eq(length(), 0);
}

TEST(a_worker_in_reach_gets_its_signals_from_the_kernel)
{
        struct worker *worker = start(false);

        ck_assert(act(worker, ACTION_STOP));
        run_until(!proc_is_alive(worker->process.pid, worker->process.start));
        ck_assert_int_eq(length(), 0);
}

static void set_capability(unsigned capability, bool effective)
{
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[2];

        ck_assert_int_eq(syscall(SYS_capget, &header, data), 0);
        data[0].effective = (data[0].effective & ~(1U << capability)) | ((uint32_t)effective << capability);
        ck_assert_int_eq(syscall(SYS_capset, &header, data), 0);
}

TEST(a_process_that_the_kernel_protects_is_out_of_reach)
{
        /* The command becomes another user. */
        if (geteuid() != 0)
                return;
        struct worker *worker = start_command("setpriv --reuid nobody --clear-groups sleep 1000", "", false);

        uid_t uid = 0;
        run_until(proc_uid(worker->handle->main, &uid) == 0 && uid != 0);
        set_capability(CAP_KILL, false);
        ck_assert(act(worker, ACTION_STOP));
        ck_assert(worker->process.remote);
        set_capability(CAP_KILL, true);
        expect_signal("TERM");
        ck_assert_int_eq(worker->orders.signal_error, 0);
}

TEST(without_its_server_a_worker_gets_nothing_unless_forced)
{
        struct worker *worker = start(true);

        server_kill();
        run_until(!web_is_up());
        ck_assert(!act(worker, ACTION_QUIET));
        ck_assert(!act(worker, ACTION_STOP));
        ck_assert_int_eq(worker->orders.signal_error, ENOTCONN);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        ck_assert(proc_is_alive(worker->process.pid, worker->process.start));
        worker->orders.forced = true;
        ck_assert(act(worker, ACTION_STOP));
        run_until(!proc_is_alive(worker->process.pid, worker->process.start));
}

TEST(a_server_that_refuses_is_reported_and_asked_again)
{
        struct worker *worker = start(true);

        server_do("ACL SETUSER default -lpush");
        ck_assert(act(worker, ACTION_STOP));
        run_until(delivery_send(worker, SIGTERM, false) == EACCES);
        server_do("ACL SETUSER default +lpush");
        run_until(delivery_send(worker, SIGTERM, false) == 0 && length() > 0);
        ck_assert(web_is_up());
}

static uint64_t beat;

/* The leftover process sends its next heartbeat. */
static void send_heartbeat(unsigned busy, const char *quiet)
{
        server_do("HSET " IDENTITY " beat %llu.5 busy %u quiet %s rss 1000", (unsigned long long)++beat, busy,
                  quiet);
        if (busy > 0)
                server_do("HSET " IDENTITY ":work t1 {\"queue\":\"low\",\"payload\":{\"class\":\"C\",\"jid\":"
                          "\"8d42\"},\"run_at\":1}");
        else
                server_do("DEL " IDENTITY ":work");
}

/* Sends heartbeats until the process has a signal to read. */
static void send_heartbeats_until_signaled(unsigned busy, const char *quiet)
{
        while (length() == 0) {
                long long calls = server_calls("hmget");

                send_heartbeat(busy, quiet);
                run_until(server_calls("hmget") > calls + 1);
        }
}

TEST(a_worker_that_outlives_its_client_is_quieted_then_stopped_and_keeps_its_jobs)
{
        const struct exit_status killed = {.known = true, .by_signal = true, .status = SIGKILL};
        struct worker *worker = start_command("/bin/sleep 1000", "rescue_jobs=requeue\n", true);

        beat = 0;
        send_heartbeat(1, "false");
        rescue_begin(&runtime, web(), worker, IDENTITY, &killed, NULL);
        ck_assert_ptr_nonnull(runtime.rescues);
        send_heartbeats_until_signaled(1, "false");
        ck_assert(runtime_event(EVENT_LEFTOVER));
        expect_signal("TSTP");
        send_heartbeat(1, "true");
        ck_assert_int_eq(server_calls("eval"), 1);
        send_heartbeats_until_signaled(0, "true");
        expect_signal("TERM");
        ck_assert(!runtime_event(EVENT_JOB_RESCUED));
        ck_assert_ptr_nonnull(runtime.rescues);
}

TEST(an_exit_in_good_order_leaves_nothing_behind)
{
        const struct exit_status well = {.known = true};
        struct worker *worker = start(true);

        worker->state = WORKER_STOPPING;
        rescue_begin(&runtime, web(), worker, IDENTITY, &well, NULL);
        ck_assert_ptr_null(runtime.rescues);
        /* The client may have let go of a worker that was not asked to exit. */
        worker->state = WORKER_ACTIVE;
        rescue_begin(&runtime, web(), worker, IDENTITY, &well, NULL);
        ck_assert_ptr_nonnull(runtime.rescues);
}

REDIS_RUNTIME_MAIN("delivery", redis_runtime_setup, redis_runtime_teardown)
