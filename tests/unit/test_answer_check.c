/* SPDX-License-Identifier: MIT */
/* Is an answer refused that its framework cannot give? */
/* promises: P5 P10 */
#include "base/macro.h"
#include "frameworks/answer_check.h"
#include "frameworks/table.h"
#include "unit.h"
#include <signal.h>
#include <string.h>

enum { SIDEKIQ = 0, NATIVE = 2, RQ = 3, RESQUE = 4, CELERY = 6 }; /* traits.id */

static const struct framework *framework(unsigned id)
{
        return framework_of(framework_traits_find(id));
}

static const struct {
        unsigned id;
        struct heartbeat heartbeat;
        bool info;
        bool good;
} heartbeats[] = {
        {SIDEKIQ, {.sent_usec = 1, .busy = 2}, true, true},
        {SIDEKIQ, {.start = 1}, false, false},
        {SIDEKIQ, {.born_usec = 1}, false, true},
        {SIDEKIQ, {.quiet_signal = SIGTSTP}, false, false},
        {SIDEKIQ, {.stop_signal = SIGTERM}, false, false},
        {NATIVE, {.start = 1, .quiet_signal = SIGTSTP, .stop_signal = SIGQUIT}, false, true},
        {NATIVE, {.quiet_signal = SIGUSR1, .stop_signal = SIGUSR1}, false, true},
        {NATIVE, {.stop_signal = SIGTSTP}, false, false},
        {NATIVE, {.quiet_signal = SIGKILL}, false, false},
        {NATIVE, {.stop_signal = SIGKILL}, false, false},
        {NATIVE, {.quiet_signal = SIGSTOP}, false, false},
        {NATIVE, {.stop_signal = SIGSEGV}, false, false},
        {NATIVE, {.born_usec = 1}, false, false},
        {NATIVE, {0}, true, false},
        {RQ, {.born_usec = 1}, false, true},
        {RQ, {.start = 1}, false, false},
        {RQ, {.stop_signal = SIGTERM}, false, false},
        {RESQUE, {.sent_usec = 1}, false, true},
        {RESQUE, {.born_usec = 1}, false, false},
        {RESQUE, {.sent_usec = 1, .busy = 1}, false, false},
        {RESQUE, {.sent_usec = 1, .quiet = true}, false, false},
        {SIDEKIQ, {.sent_usec = 1, .outcomes.known = true}, false, true},
};

TEST_LOOP(a_heartbeat_is_one_of_its_framework, ELEMENTSOF(heartbeats))
{
        struct heartbeat_info info = {0};
        const struct answer answer = {
                .kind = QUERY_HEARTBEAT,
                .heartbeat = {.found = true,
                              .heartbeat = heartbeats[_i].heartbeat,
                              .info = heartbeats[_i].info ? &info : NULL},
        };

        ck_assert_int_eq(answer_check(framework(heartbeats[_i].id), &answer, NULL), heartbeats[_i].good);
}

/* A framework whose processes report their queues, but not when they registered. */
TEST(no_time_of_registration_counts_that_the_framework_does_not_report)
{
        struct heartbeat_info info = {.born_usec = 1};
        const struct answer answer = {.kind = QUERY_HEARTBEAT, .heartbeat = {.found = true, .info = &info}};

        ck_assert(answer_check(framework(SIDEKIQ), &answer, NULL));
        ck_assert(!answer_check(framework(CELERY), &answer, NULL));
        info.born_usec = 0;
        ck_assert(answer_check(framework(CELERY), &answer, NULL));
}

static const struct {
        unsigned id;
        const char *host; /* NULL: all are wanted */
        const char *identity;
        size_t host_len;
        pid_t pid;
        bool good;
} identities[] = {
        {SIDEKIQ, "vm", "vm:77:0123456789ab", 2, 77, true},
        {SIDEKIQ, NULL, "vm:77:0123456789ab", 2, 77, true},
        {SIDEKIQ, "vm:1", "vm:1:77:0123456789ab", 4, 77, true},
        {SIDEKIQ, "vm", "vm:1:77:0123456789ab", 4, 77, false},
        {SIDEKIQ, "vm", "vm:1:77:0123456789ab", 2, 77, false},
        {SIDEKIQ, "vm", "vm:77:0123456789ab", 2, 78, false},
        {SIDEKIQ, "vm", "vm:77:0123456789ab", 1, 77, false},
        {SIDEKIQ, "v", "vm:77:0123456789ab", 2, 77, false},
        {SIDEKIQ, "vn", "vm:77:0123456789ab", 2, 77, false},
        {SIDEKIQ, NULL, "vm:77:0123456789aX", 2, 77, false},
        {SIDEKIQ, NULL, "", 0, 1, false},
        {NATIVE, "vm", "vm:77", 2, 77, true},
        {NATIVE, "vm", "vm:077", 2, 77, false},
        {RQ, "vm", "vm:77:rq:worker:a", 2, 77, true},
        {RQ, "vm", "vm:77:rq:job:a", 2, 77, false},
        {RESQUE, "vm", "vm:77:high,low", 2, 77, true},
};

TEST_LOOP(an_identity_is_one_of_its_framework_and_host, ELEMENTSOF(identities))
{
        const char *host = identities[_i].host;
        struct answer_identity list[] = {
                {.identity = (char *)identities[_i].identity,
                 .host_len = identities[_i].host_len,
                 .pid = identities[_i].pid},
        };
        struct answer answer = {.kind = QUERY_SCAN, .scan = {.list = list, .n = 1}};

        ck_assert_int_eq(answer_check(framework(identities[_i].id), &answer, host), identities[_i].good);
        answer.scan.n = 0;
        ck_assert(answer_check(framework(identities[_i].id), &answer, host));
}

TEST(what_is_no_answer_is_no_lie)
{
        const struct answer lost = {
                .kind = QUERY_HEARTBEAT, .status = ANSWER_LOST, .heartbeat.heartbeat.start = 1};
        const struct answer work_list = {.kind = QUERY_WORK_LIST};

        ck_assert(answer_check(framework(SIDEKIQ), &lost, NULL));
        ck_assert(answer_check(framework(SIDEKIQ), &work_list, NULL));
}

TEST_MAIN("answer_check")
