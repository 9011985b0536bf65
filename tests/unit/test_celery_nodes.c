/* SPDX-License-Identifier: MIT */
/* Is the table of Celery workers bounded, does it show a worker as quiet only by replies, and does it keep
 * workers of one name apart? */
/* promises: P1 P5 */
#include "frameworks/celery/celery.h"
#include "frameworks/celery/nodes.h"
#include "frameworks/framework.h"
#include "frameworks/table.h"
#include "unit.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define SEC USEC_PER_SEC

static struct celery_nodes nodes;
static usec_t now;

static void setup(void)
{
        now = 100 * SEC;
}

static void teardown(void)
{
        celery_nodes_clear(&nodes);
        ck_assert_uint_eq(nodes.n, 0);
}

static int hear(const char *name, pid_t pid, enum celery_event_type type, unsigned active)
{
        struct celery_event event = {
                .type = type, .pid = pid, .has_counts = true, .active = active, .sent_usec = now};

        snprintf(event.node, sizeof(event.node), "%s", name);
        now += SEC / 10;
        return celery_nodes_hear(&nodes, &event, now);
}

static struct celery_node *one(void)
{
        return celery_nodes_find(&nodes, "vm:7:one@vm");
}

/* A reply to a request sent at asked_at. */
static struct celery_node *reply(enum celery_method method, size_t n, usec_t asked_at, bool readable)
{
        char *queues[] = {(char *)"celery", (char *)"low"};
        struct celery_task tasks[2] = {0};
        struct celery_reply said = {.method = method, .node = "one@vm"};

        if (method == CELERY_ACTIVE_QUEUES) {
                said.queues = queues;
                said.n_queues = n;
        } else {
                said.tasks = tasks;
                said.n_tasks = n;
        }
        now += SEC / 10;
        return celery_nodes_reply(&nodes, &said, readable, asked_at, now);
}

static const struct {
        const char *node;
        const char *identity; /* NULL: none */
} identities[] = {
        {"one@vm", "vm:7:one@vm"},
        {"work-2@web-1.example.org", "web-1.example.org:7:work-2@web-1.example.org"},
        {"a@b@c", "b@c:7:a@b@c"},
        {"one@", NULL},
        {"@vm", NULL},
        {"one", NULL},
        {"one@fe80::1", NULL},
        {"", NULL},
};

TEST_LOOP(makes_identities, ELEMENTSOF(identities))
{
        size_t host_len;
        pid_t pid;
        int error;
        char *identity = celery_identity_make(identities[_i].node, 7, &error);

        if (!identities[_i].identity) {
                ck_assert_ptr_null(identity);
                ck_assert_int_eq(error, -EINVAL);
                return;
        }
        ck_assert_str_eq(identity, identities[_i].identity);
        ck_assert(celery_identity_parse(identity, strlen(identity), &host_len, &pid));
        ck_assert_int_eq(pid, 7);
        ck_assert_str_eq(identity + strlen(identity) - host_len, strchr(identities[_i].node, '@') + 1);
        ck_assert_str_eq(celery_identity_node(identity), identities[_i].node);
        free(identity);
}

static const char *const no_identities[] = {
        "vm:7:one@other", "vm:7:one", "vm:0:one@vm", "vm:07:one@vm", "vm:7:",
        "vm:7",           "",         ":7:one@",     "vm:7:\x01@vm",
};

TEST_LOOP(refuses_what_is_no_identity, ELEMENTSOF(no_identities))
{
        size_t host_len;
        pid_t pid;

        ck_assert(!celery_identity_parse(no_identities[_i], strlen(no_identities[_i]), &host_len, &pid));
        ck_assert_ptr_null(celery_nodes_find(&nodes, no_identities[_i]));
}

TEST(a_worker_is_heard_of_by_its_events)
{
        ck_assert_int_eq(hear("one@vm", 7, CELERY_ONLINE, 0), 0);
        ck_assert_uint_eq(one()->counted_at, 0);
        ck_assert_int_eq(hear("one@vm", 7, CELERY_HEARTBEAT, 3), 0);
        ck_assert_uint_eq(one()->active, 3);
        ck_assert_uint_eq(one()->counted_at, now);
        ck_assert_uint_eq(nodes.n, 1);
        ck_assert_int_eq(hear("no node", 7, CELERY_HEARTBEAT, 0), -EINVAL);
        ck_assert_uint_eq(nodes.n, 1);
}

/* The reply to the control command `heartbeat` has no counts. */
TEST(an_event_without_counts_is_no_heartbeat)
{
        struct celery_event event = {.type = CELERY_HEARTBEAT, .node = "one@vm", .pid = 7, .sent_usec = 5};

        (void)hear("one@vm", 7, CELERY_HEARTBEAT, 3);
        usec_t counted_at = one()->counted_at;
        ck_assert_int_eq(celery_nodes_hear(&nodes, &event, now + SEC), 0);
        ck_assert_uint_eq(one()->active, 3);
        ck_assert_uint_eq(one()->counted_at, counted_at);
}

TEST(a_worker_is_quiet_from_the_first_heartbeat_after_an_empty_reply)
{
        (void)hear("one@vm", 7, CELERY_HEARTBEAT, 0);
        ck_assert_ptr_eq(reply(CELERY_ACTIVE_QUEUES, 2, now, true), one());
        ck_assert_mem_eq(one()->queues, "celery\0low\0", 12);
        (void)hear("one@vm", 7, CELERY_HEARTBEAT, 0);
        ck_assert(!one()->was_quiet);

        (void)reply(CELERY_ACTIVE_QUEUES, 0, now, true);
        ck_assert(celery_node_is_quiet(one()) && !one()->was_quiet);
        (void)hear("one@vm", 7, CELERY_HEARTBEAT, 0);
        ck_assert(one()->was_quiet);
        /* Somebody adds a queue again. */
        (void)reply(CELERY_ACTIVE_QUEUES, 1, now, true);
        ck_assert(!celery_node_is_quiet(one()) && !one()->was_quiet);
}

TEST(a_late_reply_and_a_failed_one_do_not_count)
{
        usec_t early = now;

        (void)hear("one@vm", 7, CELERY_HEARTBEAT, 0);
        (void)reply(CELERY_ACTIVE_QUEUES, 2, now, true);
        (void)reply(CELERY_ACTIVE_QUEUES, 0, early, true);
        ck_assert(!celery_node_is_quiet(one()));
        (void)reply(CELERY_ACTIVE_QUEUES, 0, now, false);
        ck_assert(!celery_node_is_quiet(one()));
}

TEST_LOOP(a_worker_that_connects_again_may_consume_again, 2)
{
        (void)hear("one@vm", 7, CELERY_HEARTBEAT, 0);
        (void)reply(CELERY_ACTIVE_QUEUES, 0, now, true);
        (void)hear("one@vm", 7, CELERY_HEARTBEAT, 0);
        ck_assert(one()->was_quiet);
        one()->waits_since = 1;
        if (_i == 0)
                (void)hear("one@vm", 7, CELERY_ONLINE, 0);
        else
                celery_nodes_missed(&nodes);
        ck_assert(!celery_node_is_quiet(one()) && !one()->was_quiet);
        ck_assert_uint_eq(one()->queues_at, 0);
        /* After an outage, nobody knows yet whether it replies. */
        ck_assert_uint_eq(one()->waits_since, _i == 0);
}

TEST(a_list_that_cannot_be_read_holds_a_task)
{
        (void)hear("one@vm", 7, CELERY_HEARTBEAT, 0);
        (void)reply(CELERY_RESERVED, 0, now, false);
        ck_assert_uint_eq(one()->n_reserved, 1);
        (void)reply(CELERY_ACTIVE, 2, now, true);
        ck_assert_uint_eq(one()->n_active, 2);
        (void)reply(CELERY_RESERVED, 0, now, true);
        ck_assert_uint_eq(one()->n_reserved, 0);
}

TEST(nothing_distinguishes_two_workers_of_one_name)
{
        (void)hear("one@vm", 7, CELERY_HEARTBEAT, 0);
        (void)hear("one@vm", 8, CELERY_HEARTBEAT, 0);
        ck_assert(celery_node_is_shared(&nodes, one(), now));
        ck_assert_ptr_null(reply(CELERY_ACTIVE_QUEUES, 0, now, true));
        ck_assert(!celery_node_is_quiet(one()));
        /* The other one has ended. */
        (void)hear("one@vm", 8, CELERY_OFFLINE, 0);
        ck_assert(!celery_node_is_shared(&nodes, one(), now));
        (void)hear("one@vm", 8, CELERY_HEARTBEAT, 0);
        ck_assert(celery_node_is_shared(&nodes, one(), now));
        now += 8 * SEC;
        ck_assert(!celery_node_is_shared(&nodes, one(), now));
}

/* Containers with one host name, whose processes have the same pids. */
TEST(one_name_and_pid_on_two_hosts_is_noticed_by_two_replies)
{
        (void)hear("one@vm", 7, CELERY_HEARTBEAT, 0);
        usec_t asked_at = now;
        (void)reply(CELERY_ACTIVE_QUEUES, 0, asked_at, true);
        ck_assert(!celery_node_is_shared(&nodes, one(), now));
        (void)reply(CELERY_ACTIVE_QUEUES, 0, asked_at, true);
        ck_assert(celery_node_is_shared(&nodes, one(), now));
}

TEST(a_worker_that_says_offline_and_then_nothing_is_stopping)
{
        (void)hear("one@vm", 7, CELERY_HEARTBEAT, 2);
        (void)hear("one@vm", 7, CELERY_OFFLINE, 0);
        ck_assert(!celery_node_is_stopping(one(), now + 4 * SEC));
        now += 4 * SEC;
        /* Repeated, or forged. */
        (void)hear("one@vm", 7, CELERY_OFFLINE, 0);
        ck_assert(celery_node_is_stopping(one(), now + SEC));
        (void)hear("one@vm", 7, CELERY_HEARTBEAT, 2);
        ck_assert(!celery_node_is_stopping(one(), now + 60 * SEC));
        (void)hear("one@vm", 7, CELERY_OFFLINE, 0);
        (void)hear("one@vm", 7, CELERY_ONLINE, 0);
        ck_assert(!celery_node_is_stopping(one(), now + 60 * SEC));
}

/* Whoever may publish can say so as often as they like: each heartbeat of the worker contradicts. */
TEST(a_forged_offline_event_stops_no_worker_that_sends_heartbeats)
{
        for (unsigned i = 0; i < 600; i++) {
                if (i % 20 == 0)
                        (void)hear("one@vm", 7, CELERY_HEARTBEAT, 0);
                (void)hear("one@vm", 7, CELERY_OFFLINE, 0);
                ck_assert(!celery_node_is_stopping(one(), now));
                ck_assert(!celery_node_is_quiet(one()) && !one()->was_quiet);
        }
}

TEST(a_silent_worker_is_forgotten)
{
        (void)hear("one@vm", 7, CELERY_HEARTBEAT, 0);
        (void)hear("two@vm", 9, CELERY_HEARTBEAT, 0);
        now += 50 * SEC;
        (void)hear("two@vm", 9, CELERY_HEARTBEAT, 0);
        ck_assert_ptr_nonnull(one());
        now += 20 * SEC;
        (void)hear("two@vm", 9, CELERY_HEARTBEAT, 0);
        ck_assert_ptr_null(one());
        ck_assert_uint_eq(nodes.n, 1);
}

TEST(invented_workers_are_bounded)
{
        char name[32];

        for (unsigned i = 0; i < CELERY_NODES_MAX + 10; i++) {
                struct celery_event event = {.type = CELERY_HEARTBEAT, .pid = 1, .has_counts = true};

                snprintf(name, sizeof(name), "n%u@vm", i);
                memcpy(event.node, name, sizeof(name));
                ck_assert_int_eq(celery_nodes_hear(&nodes, &event, now), i < CELERY_NODES_MAX ? 0 : -ENOBUFS);
        }
        ck_assert_uint_eq(nodes.n, CELERY_NODES_MAX);
        /* Once they are silent, there is room for others. */
        now += 61 * SEC;
        ck_assert_int_eq(hear("one@vm", 7, CELERY_HEARTBEAT, 0), 0);
        ck_assert_uint_eq(nodes.n, 1);
}

TEST(the_row_says_what_workers_do)
{
        const struct framework *row = framework_of(&celery_traits);

        ck_assert_int_eq(row->quiet_signal, 0);
        ck_assert_int_eq(row->stop_signal, SIGTERM);
        ck_assert(row->traits->quiet_by_query && !row->traits->quiet_is_stop && row->traits->has_work_list);
        ck_assert_uint_eq(row->traits->id, 6);
}

TEST_MAIN("celery_nodes", .each = {setup, teardown})
