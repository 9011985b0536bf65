/* SPDX-License-Identifier: MIT */
/* Checks of heartbeats on a server: one that no process of its framework writes is refused. */
/* promises: P5 P10 */
#include "frameworks/decode.h"
#include "frameworks/heartbeat_check.h"
#include "frameworks/table.h"
#include "unit.h"
#include <signal.h>

enum { SIDEKIQ = 0, NATIVE = 2, RQ = 3, RESQUE = 4, CELERY = 6 }; /* traits.id */

#define COUNT_MAX 1000000
#define RSS_MAX   (UINT64_C(1) << 50)

static const struct framework *framework(unsigned id)
{
        return framework_of(framework_traits_find(id));
}

static const struct {
        unsigned id;
        struct heartbeat heartbeat;
        bool good;
} heartbeats[] = {
        {SIDEKIQ, {.sent_usec = 1, .busy = 2}, true},
        {SIDEKIQ, {.start = 1}, false},
        {SIDEKIQ, {.born_usec = 1}, true},
        {SIDEKIQ, {.quiet_signal = SIGTSTP}, false},
        {SIDEKIQ, {.stop_signal = SIGTERM}, false},
        {NATIVE, {.start = UINT64_MAX, .quiet_signal = SIGTSTP, .stop_signal = SIGQUIT}, true},
        {NATIVE, {.quiet_signal = SIGUSR1, .stop_signal = SIGUSR1}, true},
        {NATIVE, {.stop_signal = SIGTSTP}, false},
        {NATIVE, {.quiet_signal = SIGKILL}, false},
        {NATIVE, {.stop_signal = SIGKILL}, false},
        {NATIVE, {.quiet_signal = SIGSTOP}, false},
        {NATIVE, {.stop_signal = SIGSEGV}, false},
        {NATIVE, {.quiet_signal = 65}, false},
        {NATIVE, {.quiet_signal = -1}, false},
        {NATIVE, {.born_usec = 1}, false},
        {RQ, {.born_usec = 1}, true},
        {RQ, {.start = 1}, false},
        {RQ, {.stop_signal = SIGTERM}, false},
        {RESQUE, {.sent_usec = 1}, true},
        {RESQUE, {.born_usec = 1}, false},
        {RESQUE, {.sent_usec = 1, .busy = 1}, false},
        {RESQUE, {.sent_usec = 1, .quiet = true}, false},
        {SIDEKIQ, {.sent_usec = 1, .outcomes.known = true}, true},
        /* Numbers: the last one within bounds, and the first one beyond. */
        {SIDEKIQ, {.sent_usec = DECODE_CLOCK_MAX_USEC, .born_usec = DECODE_CLOCK_MAX_USEC}, true},
        {SIDEKIQ, {.sent_usec = DECODE_CLOCK_MAX_USEC + 1}, false},
        {SIDEKIQ, {.born_usec = DECODE_CLOCK_MAX_USEC + 1}, false},
        {SIDEKIQ, {.busy = COUNT_MAX, .concurrency = COUNT_MAX, .rss_bytes = RSS_MAX}, true},
        {SIDEKIQ, {.busy = COUNT_MAX + 1}, false},
        {SIDEKIQ, {.concurrency = COUNT_MAX + 1}, false},
        {SIDEKIQ, {.rss_bytes = RSS_MAX + 1}, false},
        {SIDEKIQ, {.outcomes = {true, WORKER_PROCESSED_MAX, WORKER_PROCESSED_MAX, "A", 7}}, true},
        {SIDEKIQ, {.outcomes = {true, WORKER_PROCESSED_MAX + 1, 0, "", 0}}, false},
        {SIDEKIQ, {.outcomes = {true, 1, 2, "", 0}}, false},
        {SIDEKIQ, {.outcomes = {true, 2, 1, "A", 2}}, false},
};

TEST_LOOP(a_heartbeat_is_one_of_its_framework_and_within_bounds, ELEMENTSOF(heartbeats))
{
        ck_assert_int_eq(heartbeat_check(framework(heartbeats[_i].id), &heartbeats[_i].heartbeat, NULL),
                         heartbeats[_i].good);
}

static const struct {
        unsigned id;
        struct heartbeat_info info;
        bool good;
} infos[] = {
        {SIDEKIQ, {.born_usec = DECODE_CLOCK_MAX_USEC, .concurrency = COUNT_MAX, .n_capsules = 16}, true},
        {SIDEKIQ, {.born_usec = DECODE_CLOCK_MAX_USEC + 1}, false},
        {SIDEKIQ, {.concurrency = COUNT_MAX + 1}, false},
        {SIDEKIQ, {.n_capsules = HEARTBEAT_CAPSULES_MAX + 1}, false},
        /* A framework whose processes report their queues, but not when they registered. */
        {CELERY, {.born_usec = 0}, true},
        {CELERY, {.born_usec = 1}, false},
        {NATIVE, {.born_usec = 0}, false},
        {RESQUE, {.born_usec = 0}, false},
};

static bool check_info(const struct framework *of, const struct heartbeat_info *head, size_t queues_length)
{
        const struct heartbeat heartbeat = {.sent_usec = 1};
        struct heartbeat_info *info = calloc(1, sizeof(*info) + queues_length + 1);

        ck_assert_ptr_nonnull(info);
        memcpy(info, head, sizeof(*head));
        memset(info->queues, 'q', queues_length > 0 ? queues_length - 1 : 0);
        bool good = heartbeat_check(of, &heartbeat, info);
        free(info);
        return good;
}

TEST_LOOP(what_a_process_reports_is_what_its_framework_knows, ELEMENTSOF(infos))
{
        ck_assert_int_eq(check_info(framework(infos[_i].id), &infos[_i].info, 0), infos[_i].good);
}

TEST(the_names_of_its_queues_have_a_bound)
{
        const struct heartbeat_info info = {0};

        ck_assert(check_info(framework(SIDEKIQ), &info, HEARTBEAT_QUEUES_MAX - 1));
        ck_assert(!check_info(framework(SIDEKIQ), &info, HEARTBEAT_QUEUES_MAX));
}

TEST_MAIN("heartbeat_check")
