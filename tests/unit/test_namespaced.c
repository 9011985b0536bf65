/* SPDX-License-Identifier: MIT */
/* Are the heartbeats of workers in namespaces of their own found, under any host name and pid? Run against a
 * real redis-server. */
/* promises: P1 P5 */
#include "heartbeats_bench.h"

static usec_t skipped; /* of the time that passes */

usec_t __real_clock_now(clockid_t clock);
usec_t __wrap_clock_now(clockid_t clock);
usec_t __wrap_clock_now(clockid_t clock)
{
        return __real_clock_now(clock) + skipped;
}

#define MAIN(i) (5000000 + (pid_t)(i))

static const struct fleet_settings namespaced_settings = {.traits = &sidekiq_traits, .namespaced = 1};
static struct fleet namespaced = {.world = &world, .settings = &namespaced_settings};

static void setup_namespaced(void)
{
        setup();
        memset(insides, 0, sizeof(insides));
        inside_error = 0;
        n_inside_read = 0;
}

/* A worker, of which all processes are known. */
static void spawn_inside(unsigned i, const char *unique)
{
        workers[i] = (struct worker){
                .fleet = &namespaced, .process.pid = MAIN(i), .spawned_at = clock_now(CLOCK_MONOTONIC)};
        insides[i].complete = true;
        snprintf(insides[i].unique, sizeof(insides[i].unique), "%s", unique);
        ck_assert_int_eq(heartbeats_add(heartbeats, &workers[i], &slots[i]), 0);
}

static void add_process(unsigned i, pid_t pid, pid_t own_pid, const char *name)
{
        struct inside_process *process = &insides[i].list[insides[i].n++];

        *process = (struct inside_process){.pid = pid, .own_pid = own_pid};
        snprintf(process->host, sizeof(process->host), "%s", name);
}

static void heartbeat_of(const char *name, pid_t pid, unsigned nonce, unsigned second)
{
        server_do("SADD processes %s:%d:%012x", name, pid, nonce);
        server_do("HSET %s:%d:%012x info %s busy 1 beat 1795238%03u.5 quiet false", name, pid, nonce,
                  "{\"concurrency\":5}", second);
}

/* Scans until the processes of workers were read `times` more times, and the scan has ended. */
static void scan_times(unsigned n_workers, unsigned times)
{
        for (unsigned until = n_inside_read + times; n_inside_read < until;)
                (void)look(n_workers, POLL_HEARTBEAT);
}

TEST(finds_a_unique_name_at_the_first_heartbeat)
{
        spawn_inside(0, HOST ":mail.0.x");
        add_process(0, MAIN(0), MAIN(0), HOST);
        add_process(0, descendant = 5000100, 7, "box");
        heartbeat_of(HOST ":mail.0.x", 7, 1, 1);
        poll_until_found(1);
        ck_assert_int_eq(reported[0].heartbeat_pid, 5000100);
        ck_assert(!reported[0].remote);
        ck_assert_uint_eq(reported[0].heartbeats, 1);
        ck_assert_str_eq(slots[0]->identity, HOST ":mail.0.x:7:000000000001");
        /* Known identities cost nothing more. */
        unsigned before = n_inside_read;
        for (unsigned i = 0; i < 5; i++)
                (void)look(1, POLL_HEARTBEAT);
        ck_assert_uint_eq(n_inside_read, before);
}

TEST(a_process_that_is_not_visible_is_remote_until_it_is)
{
        spawn_inside(0, HOST ":mail.0.x");
        add_process(0, MAIN(0), MAIN(0), HOST);
        boots = 0; /* which is not asked of a process that is not visible */
        heartbeat_of(HOST ":mail.0.x", 7, 1, 1);
        poll_until_found(1);
        ck_assert_int_eq(reported[0].heartbeat_pid, MAIN(0));
        ck_assert(reported[0].remote);
        boots = 1;
        add_process(0, 5000100, 7, "box");
        ck_assert_uint_eq(reported[0].identities, 1);
        for (unsigned second = 2; second < 4; second++) {
                skipped += 16 * USEC_PER_SEC;
                heartbeat_of(HOST ":mail.0.x", 7, 1, second);
                (void)look(1, POLL_HEARTBEAT);
        }
        while (reported[0].remote)
                (void)look(1, POLL_HEARTBEAT);
        ck_assert_int_eq(reported[0].heartbeat_pid, 5000100);
        ck_assert_uint_eq(reported[0].identities, 2);
        ck_assert_str_eq(slots[0]->identity, HOST ":mail.0.x:7:000000000001");
}

TEST(a_remote_process_that_restarts_is_found_under_its_new_identity)
{
        spawn_inside(0, HOST ":mail.0.x");
        add_process(0, MAIN(0), MAIN(0), HOST);
        heartbeat_of(HOST ":mail.0.x", 1, 1, 1);
        poll_until_found(1);
        server_do("DEL %s:%d:%012x", HOST ":mail.0.x", 1, 1U);
        server_do("SREM processes %s:%d:%012x", HOST ":mail.0.x", 1, 1U);
        for (unsigned second = 2; reported[0].identities < 2; second++) {
                heartbeat_of(HOST ":mail.0.x", 1, 2, second);
                /* A lost heartbeat is looked for twice a minute. */
                skipped += 31 * USEC_PER_SEC;
                (void)look(1, POLL_HEARTBEAT);
        }
        ck_assert_str_eq(slots[0]->identity, HOST ":mail.0.x:1:000000000002");
}

TEST(host_name_and_own_pid_find_a_process_that_goes_on_to_send_heartbeats)
{
        spawn_inside(0, "");
        add_process(0, descendant = 5000100, 7, "box");
        heartbeat_of("box", 7, 1, 1);
        scan_times(1, 3);
        ck_assert_uint_eq(reported[0].identities, 0); /* it may be older than the worker */
        heartbeat_of("box", 7, 1, 2);
        poll_until_found(1);
        ck_assert_int_eq(reported[0].heartbeat_pid, 5000100);
}

TEST(two_workers_that_give_themselves_the_same_names_get_nothing)
{
        spawn_inside(0, "");
        spawn_inside(1, "");
        add_process(0, 5000100, 7, "box");
        add_process(1, 5000101, 7, "box");
        for (unsigned second = 1; second < 6; second++) {
                heartbeat_of("box", 7, 1, second);
                scan_times(2, 2);
        }
        ck_assert_uint_eq(reported[0].identities + reported[1].identities, 0);
}

TEST(what_belongs_to_a_worker_outside_stays_its_own)
{
        spawn(0);
        spawn_inside(1, "");
        add_process(1, 5000101, MAIN(0), HOST); /* the pid of the other, and its host name */
        heartbeat_at(0, 1, 1, 0);
        scan_times(2, 3);
        heartbeat_at(0, 1, 2, 0);
        while (reported[0].identities == 0)
                (void)look(2, POLL_HEARTBEAT);
        ck_assert_int_eq(reported[0].heartbeat_pid, MAIN(0));
        ck_assert_uint_eq(reported[1].identities, 0);
}

TEST(processes_that_cannot_be_read_are_read_again)
{
        spawn_inside(0, HOST ":mail.0.x");
        add_process(0, descendant = 5000100, 7, "box");
        inside_error = -EINPROGRESS;
        heartbeat_of(HOST ":mail.0.x", 7, 1, 1);
        scan_times(1, 3);
        ck_assert_uint_eq(reported[0].identities, 0);
        inside_error = 0;
        poll_until_found(1);
        ck_assert_int_eq(reported[0].heartbeat_pid, 5000100);
}

TEST(a_worker_that_goes_takes_its_names_along)
{
        spawn_inside(0, HOST ":mail.0.x");
        spawn_inside(1, HOST ":mail.1.y");
        add_process(0, 5000100, 7, "box");
        add_process(1, descendant = 5000101, 7, "box");
        heartbeat_of(HOST ":mail.0.x", 7, 1, 1);
        heartbeats_want(slots[0], POLL_HEARTBEAT);
        heartbeats_want(slots[1], POLL_HEARTBEAT);
        ck_assert_int_eq(heartbeats_poll(heartbeats), HEARTBEATS_POLLING);
        heartbeats_remove(slots[0]); /* in the middle of the scan */
        heartbeat_of(HOST ":mail.1.y", 7, 1, 1);
        while (reported[1].identities == 0) {
                heartbeats_want(slots[1], POLL_HEARTBEAT);
                unsigned before = n_done;
                if (heartbeats_poll(heartbeats) != HEARTBEATS_NOTHING)
                        run_until(n_done > before);
        }
        ck_assert_uint_eq(reported[0].identities, 0);
}

TEST_MAIN("namespaced", .each = {setup_namespaced, teardown},
          .once = {server_directory_make, server_directory_remove}, .is_missing = server_is_missing)
