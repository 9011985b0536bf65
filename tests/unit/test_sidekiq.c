/* SPDX-License-Identifier: MIT */
/* Are Sidekiq's forms, 5 to 8, read right, and is garbage never taken for one? */
/* promises: P5 */
#include "base/argv.h"
#include "frameworks/sidekiq/format.h"
#include "frameworks/table.h"
#include "unit.h"
#include <signal.h>

static const struct {
        const char *identity, *host;
        pid_t pid;
} identities[] = {
        {"vm:15756:baa7ee0dd3ef", "vm", 15756},
        {"web-1.example.org:1:000000000000", "web-1.example.org", 1},
        {"fe80::1:42:0123456789ab", "fe80::1", 42},
        {"a:2147483647:ffffffffffff", "a", 2147483647},
        {"", NULL, 0},
        {"vm", NULL, 0},
        {"vm:15756", NULL, 0},
        {":15756:baa7ee0dd3ef", NULL, 0},
        {"15756:baa7ee0dd3ef", NULL, 0},
        {"baa7ee0dd3ef", NULL, 0},
        {":baa7ee0dd3ef", NULL, 0},
        {"vm::baa7ee0dd3ef", NULL, 0},
        {"vm:0:baa7ee0dd3ef", NULL, 0},
        {"vm:01:baa7ee0dd3ef", NULL, 0},
        {"vm:-1:baa7ee0dd3ef", NULL, 0},
        {"vm: 1:baa7ee0dd3ef", NULL, 0},
        {"vm:2147483648:baa7ee0dd3ef", NULL, 0},
        {"vm:99999999999999999999:baa7ee0dd3ef", NULL, 0},
        {"vm:15756:baa7ee0dd3e", NULL, 0},
        {"vm:15756:baa7ee0dd3eff", NULL, 0},
        {"vm:15756:BAA7EE0DD3EF", NULL, 0},
        {"vm:15756:baa7ee0dd3eg", NULL, 0},
};

TEST_LOOP(takes_identities_apart_from_the_right, ELEMENTSOF(identities))
{
        const char *text = identities[_i].identity;
        size_t len = 99;
        pid_t pid = 99;

        bool ok = sidekiq_identity_parse(text, strlen(text), &len, &pid);
        ck_assert_int_eq(ok, !!identities[_i].host);
        if (!ok) {
                ck_assert_uint_eq(len, 99);
                ck_assert_int_eq(pid, 99);
                return;
        }
        ck_assert_uint_eq(len, strlen(identities[_i].host));
        ck_assert_mem_eq(text, identities[_i].host, len);
        ck_assert_int_eq(pid, identities[_i].pid);
}

TEST(refuses_an_identity_with_a_nul_in_it)
{
        static const char text[] = "v\0m:15756:baa7ee0dd3ef";
        size_t len;
        pid_t pid;

        ck_assert(!sidekiq_identity_parse(text, sizeof(text) - 1, &len, &pid));
}

TEST(names_keys)
{
        static const struct {
                const char *namespace, *name, *suffix, *key;
        } cases[] = {
                {NULL, "processes", NULL, "processes"},
                {"", "processes", NULL, "processes"},
                {"app", "processes", NULL, "app:processes"},
                {NULL, "vm:1:baa7ee0dd3ef", "work", "vm:1:baa7ee0dd3ef:work"},
                {"app", "vm:1:baa7ee0dd3ef", "workers", "app:vm:1:baa7ee0dd3ef:workers"},
        };
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *key = decode_key(cases[i].namespace, cases[i].name, cases[i].suffix);
                ck_assert_str_eq(key, cases[i].key);
        }
}

TEST(escapes_the_host_in_patterns)
{
        _cleanup_free_ char *plain = decode_host_pattern("vm");
        _cleanup_free_ char *odd = decode_host_pattern("w*b?[1]\\");

        ck_assert_str_eq(plain, "vm:*");
        ck_assert_str_eq(odd, "w\\*b\\?\\[1\\]\\\\:*");
}

static const struct {
        const char *text;
        uint64_t usec; /* 0: garbage */
} times[] = {
        {"1795238801.0820885", 1795238801082088},
        {"1795238801.5", 1795238801500000},
        {"1795238801", 1795238801000000},
        {"1.000001", 1000001},
        {"1.0000019999999999999999999", 1000001},
        {"99999999999.999999", 99999999999999999},
        {"", 0},
        {"0", 0},
        {"0.5", 0},
        {"-1", 0},
        {"+1", 0},
        {" 1", 0},
        {"1 ", 0},
        {"1.", 0},
        {".5", 0},
        {"1,5", 0},
        {"1.5.5", 0},
        {"1e9", 0},
        {"1.7e9", 0},
        {"01", 0},
        {"nan", 0},
        {"inf", 0},
        {"0x10", 0},
        {"100000000000", 0},
        {"99999999999999999999999", 0},
};

TEST_LOOP(reads_heartbeats_to_the_microsecond, ELEMENTSOF(times))
{
        uint64_t usec = 0;

        bool ok = decode_seconds(times[_i].text, strlen(times[_i].text), &usec);
        ck_assert_int_eq(ok, times[_i].usec != 0);
        ck_assert_uint_eq(usec, times[_i].usec);
}

static const struct {
        const char *busy, *heartbeat, *quiet, *concurrency;
        bool decoded;
        struct heartbeat expect;
} heartbeats[] = {
        {"0", "1795238801.5", "false", NULL, true, {.sent_usec = 1795238801500000}},
        {"3", "1795238801.5", "true", NULL, true, {.sent_usec = 1795238801500000, .busy = 3, .quiet = true}},
        {"3",
         "1795238801.5",
         "true",
         "10",
         true,
         {.sent_usec = 1795238801500000, .busy = 3, .quiet = true, .concurrency = 10}},
        {NULL, NULL, NULL, NULL, false, {0}},
        {NULL, "1795238801.5", "true", NULL, false, {0}},
        {"0", NULL, "true", NULL, false, {0}},
        {"0", "1795238801.5", NULL, NULL, false, {0}},
        {NULL, NULL, NULL, "10", false, {0}},
        {"", "1795238801.5", "true", NULL, false, {0}},
        {"-1", "1795238801.5", "true", NULL, false, {0}},
        {"none", "1795238801.5", "true", NULL, false, {0}},
        {"0x", "1795238801.5", "true", NULL, false, {0}},
        {"1000001", "1795238801.5", "true", NULL, false, {0}},
        {"0", "yesterday", "true", NULL, false, {0}},
        {"0", "1795238801.5", "", NULL, false, {0}},
        {"0", "1795238801.5", "True", NULL, false, {0}},
        {"0", "1795238801.5", "truex", NULL, false, {0}},
        {"0", "1795238801.5", "1", NULL, false, {0}},
        {"0", "1795238801.5", "true", "", false, {0}},
        {"0", "1795238801.5", "true", "ten", false, {0}},
};

static struct field field(const char *text)
{
        return (struct field){.text = text, .len = text ? strlen(text) : 0};
}

TEST_LOOP(decodes_heartbeats_and_never_guesses, ELEMENTSOF(heartbeats))
{
        struct heartbeat heartbeat = {.sent_usec = 42};
        const struct field fields[_SIDEKIQ_FIELD_MAX] = {
                [SIDEKIQ_BUSY] = field(heartbeats[_i].busy),
                [SIDEKIQ_HEARTBEAT] = field(heartbeats[_i].heartbeat),
                [SIDEKIQ_QUIET] = field(heartbeats[_i].quiet),
                [SIDEKIQ_CONCURRENCY] = field(heartbeats[_i].concurrency),
        };

        ck_assert_int_eq(sidekiq_heartbeat_decode(fields, &heartbeat), heartbeats[_i].decoded);
        if (!heartbeats[_i].decoded) {
                ck_assert_uint_eq(heartbeat.sent_usec, 42);
                return;
        }
        ck_assert_uint_eq(heartbeat.sent_usec, heartbeats[_i].expect.sent_usec);
        ck_assert_uint_eq(heartbeat.busy, heartbeats[_i].expect.busy);
        ck_assert_uint_eq(heartbeat.concurrency, heartbeats[_i].expect.concurrency);
        ck_assert_int_eq(heartbeat.quiet, heartbeats[_i].expect.quiet);
        ck_assert(!heartbeat.work_list_known);
        ck_assert_uint_eq(heartbeat.rss_bytes, 0);
}

static const struct {
        const char *processed, *failed, *class, *class_count;
        struct worker_outcomes expect;
} outcomes[] = {
        {NULL, NULL, NULL, NULL, {0}},
        {"0", "0", "", "0", {.known = true}},
        {"20", "7", "FailJob", "6", {true, 20, 7, "FailJob", 6}},
        {"20", "7", NULL, NULL, {true, 20, 7, "", 0}},
        {"20", "7", "\033[31mFail\n", "6", {true, 20, 7, "?[31mFail?", 6}},
        /* A name that is too long is cut. */
        {"20",
         "7",
         "012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678"
         "9x",
         "6",
         {true, 20, 7,
          "01234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
          "89",
          6}},
        {"20", "7", "FailJob", "8", {true, 20, 7, "", 0}},
        {"20", "7", "FailJob", "-1", {true, 20, 7, "", 0}},
        {"20", "7", "FailJob", "many", {true, 20, 7, "", 0}},
        {"20", "21", "FailJob", "1", {0}},
        {"-1", "0", "FailJob", "1", {0}},
        {"20", "-7", NULL, NULL, {0}},
        {"20", NULL, NULL, NULL, {0}},
        {NULL, "7", NULL, NULL, {0}},
        {"", "7", NULL, NULL, {0}},
        {"1e3", "7", NULL, NULL, {0}},
        {"1125899906842625", "7", NULL, NULL, {0}},
        {"99999999999999999999", "7", NULL, NULL, {0}},
};

TEST_LOOP(outcomes_are_read_or_unknown, ELEMENTSOF(outcomes))
{
        struct heartbeat heartbeat;
        const struct field fields[_SIDEKIQ_FIELD_MAX] = {
                [SIDEKIQ_BUSY] = field("1"),
                [SIDEKIQ_HEARTBEAT] = field("1795238801.5"),
                [SIDEKIQ_QUIET] = field("true"),
                [SIDEKIQ_PROCESSED] = field(outcomes[_i].processed),
                [SIDEKIQ_FAILED] = field(outcomes[_i].failed),
                [SIDEKIQ_FAILED_CLASS] = field(outcomes[_i].class),
                [SIDEKIQ_FAILED_CLASS_COUNT] = field(outcomes[_i].class_count),
        };

        ck_assert(sidekiq_heartbeat_decode(fields, &heartbeat));
        ck_assert_int_eq(heartbeat.outcomes.known, outcomes[_i].expect.known);
        ck_assert_uint_eq(heartbeat.outcomes.processed, outcomes[_i].expect.processed);
        ck_assert_uint_eq(heartbeat.outcomes.failed, outcomes[_i].expect.failed);
        ck_assert_str_eq(heartbeat.outcomes.class, outcomes[_i].expect.class);
        ck_assert_uint_eq(heartbeat.outcomes.class_failed, outcomes[_i].expect.class_failed);
}

static const struct {
        const char *text;
        uint64_t bytes;
} sizes[] = {
        {NULL, 0}, {"0", 0},        {"29604", (uint64_t)29604 * 1024}, {"", 0},
        {"-1", 0}, {"29604 kB", 0}, {"99999999999999999", 0},
};

TEST_LOOP(nonsense_of_its_memory_is_no_reason_to_doubt_a_heartbeat, ELEMENTSOF(sizes))
{
        struct heartbeat heartbeat = {.rss_bytes = 42};
        const struct field fields[_SIDEKIQ_FIELD_MAX] = {
                [SIDEKIQ_BUSY] = field("1"),
                [SIDEKIQ_HEARTBEAT] = field("1795238801.5"),
                [SIDEKIQ_QUIET] = field("true"),
                [SIDEKIQ_RSS] = field(sizes[_i].text),
        };

        ck_assert(sidekiq_heartbeat_decode(fields, &heartbeat));
        ck_assert_uint_eq(heartbeat.busy, 1);
        ck_assert_uint_eq(heartbeat.rss_bytes, sizes[_i].bytes);
}

static const struct {
        const char *json;
        unsigned concurrency;
        bool decoded;
        size_t n_capsules;
        const char *capsule;
} infos[] = {
        {"{\"hostname\":\"vm\",\"started_at\":1795238801.0805168,\"pid\":15756,\"tag\":\"\",\"concurrency\":"
         "3,"
         "\"queues\":[\"default\"],\"labels\":[],\"identity\":\"vm:15756:baa7ee0dd3ef\"}",
         3, true, 0, NULL},
        {"{\"concurrency\":5,\"version\":\"7.3.2\",\"weights\":[{\"default\":0}],\"embedded\":false}", 5,
         true, 0, NULL},
        {"{\"capsules\":{\"default\":{\"concurrency\":5,\"mode\":\"strict\",\"weights\":{\"default\":0}},"
         "\"a-very-long-capsule-name\":{\"concurrency\":1}},\"version\":\"8.1.7\"}",
         0, true, 2, "a-very-long-cap"},
        {"{}", 0, true, 0, NULL},
        {"{\"concurrency\":-1}", 0, true, 0, NULL},
        {"{\"concurrency\":1000001}", 0, true, 0, NULL},
        {"{\"concurrency\":\"5\",\"version\":7,\"capsules\":[\"default\"]}", 0, true, 0, NULL},
        {"{\"version\":\"0123456789012345678901234567890123456789\"}", 0, true, 0, NULL},
        {NULL, 0, false, 0, NULL},
        {"", 0, false, 0, NULL},
        {"[]", 0, false, 0, NULL},
        {"{", 0, false, 0, NULL},
        {"{\"version\":\"a\\u0000b\"}", 0, false, 0, NULL},
};

TEST_LOOP(decodes_what_a_worker_reports_of_itself, ELEMENTSOF(infos))
{
        struct field json = field(infos[_i].json);
        struct heartbeat_info *info = NULL;

        int r = sidekiq_info_decode(&json, &info);
        if (!infos[_i].decoded) {
                ck_assert_int_eq(r, -EINVAL);
                ck_assert_ptr_null(info);
                return;
        }
        ck_assert_int_eq(r, 0);
        ck_assert_uint_eq(info->concurrency, infos[_i].concurrency);
        ck_assert_uint_eq(info->n_capsules, infos[_i].n_capsules);
        if (infos[_i].capsule)
                ck_assert_str_eq(info->capsules[info->n_capsules - 1], infos[_i].capsule);
        free(info);
}

static const struct {
        const char *json;
        uint64_t born_usec;
} births[] = {
        {"{\"started_at\":1795238801.5}", 1795238801500000},
        {"{\"started_at\":1795238801080}", 1795238801080000}, /* in milliseconds */
        {"{\"started_at\":\"1795238801\"}", 0},
        {"{\"started_at\":-1}", 0},
        {"{\"started_at\":1e300}", 0},
        {"{}", 0},
};

TEST_LOOP(reads_when_a_worker_began, ELEMENTSOF(births))
{
        struct field json = field(births[_i].json);
        struct heartbeat_info *info;

        ck_assert_int_eq(sidekiq_info_decode(&json, &info), 0);
        ck_assert_uint_eq(info->born_usec, births[_i].born_usec);
        free(info);
}

/* Reported by two capsules: `-q critical,3 -q default,2 -q low,1`, and mailers and default. */
#define CAPSULES_OF_8                                                                                        \
        "\"capsules\":{\"default\":{\"concurrency\":3,\"mode\":\"weighted\",\"weights\":{\"critical\":3,"    \
        "\"default\":2,\"low\":1}},\"mailers\":{\"concurrency\":2,\"mode\":\"strict\",\"weights\":{"         \
        "\"mailers\":0,"                                                                                     \
        "\"default\":0}}}"
#define QUEUES_OF_8 "critical default low mailers "

/* expect: each name followed by a space. */
static const struct {
        const char *json, *expect;
} served[] = {
        /* Written by Debian's 6.4.1, 7.3.2 and 8.1.7. */
        {"{\"hostname\":\"vm\",\"started_at\":1795747803.0,\"pid\":1,\"tag\":\"\",\"concurrency\":3,"
         "\"queues\":"
         "[\"critical\",\"default\",\"low\"],\"labels\":[],\"identity\":\"vm:1:66f6f4ef71d5\"}",
         "critical default low "},
        {"{\"hostname\":\"vm\",\"started_at\":1795747856.4931169,\"pid\":26650,\"tag\":\"\",\"concurrency\":"
         "5,"
         "\"queues\":[\"critical\",\"default\",\"low\",\"mailers\"],\"weights\":[{\"critical\":3,\"default\":"
         "2,"
         "\"low\":1},{\"mailers\":0,\"default\":0}],\"labels\":[],\"identity\":\"vm:26650:81a09758a87c\","
         "\"version\":\"7.3.2\",\"embedded\":false}",
         QUEUES_OF_8},
        {"{\"hostname\":\"vm\",\"started_at\":1795747803.092788,\"pid\":14023,\"tag\":\"/\"," CAPSULES_OF_8
         ",\"queues\":[\"critical\",\"default\",\"low\",\"mailers\"],\"weights\":[{\"critical\":3,"
         "\"default\":2,"
         "\"low\":1},{\"mailers\":0,\"default\":0}],\"labels\":[],\"identity\":\"vm:14023:66f6f4ef71d5\","
         "\"version\":\"8.1.7\",\"embedded\":false}",
         QUEUES_OF_8},
        /* As 9.0 is announced. */
        {"{\"pid\":14023," CAPSULES_OF_8 ",\"version\":\"9.0.0\",\"embedded\":false}", QUEUES_OF_8},
        /* Other forms of what may be written one day, and duplicates. */
        {"{\"queues\":[\"b\",\"a\",\"b\"],\"capsules\":{\"x\":{\"weights\":{\"c\":1,\"a\":1}}}}", "b a c "},
        {"{\"capsules\":{\"x\":{\"weights\":[\"a\",\"b\",\"a\"]}}}", "a b "},
        {"{\"capsules\":{\"x\":{\"weights\":[{\"a\":1},[\"b\",2],{\"a\":[{\"c\":1}]}]}}}", "a b "},
        /* Wrong types, and names that are none. */
        {"{\"queues\":7,\"capsules\":{\"x\":{\"weights\":7},\"y\":{\"weights\":null},\"z\":[\"a\"],\"u\":"
         "\"b\"}}",
         ""},
        {"{\"capsules\":[{\"weights\":{\"a\":1}}],\"queues\":[1,null,true,\"\",\"b\"]}", "b "},
        {"{\"capsules\":{\"x\":{\"weights\":{\"\":1,\"a\":{\"b\":1}}}}}", "a "},
};

TEST_LOOP(reads_the_queues_of_a_worker_each_once, ELEMENTSOF(served))
{
        struct field json = field(served[_i].json);
        struct heartbeat_info *info;
        char names[256] = "";

        ck_assert_int_eq(sidekiq_info_decode(&json, &info), 0);
        for (const char *name = info->queues; *name != '\0'; name += strlen(name) + 1)
                sprintf(names + strlen(names), "%s ", name);
        ck_assert_str_eq(names, served[_i].expect);
        free(info);
}

/* Also of capsules that have no room of their own, in few steps for many names. */
TEST(queues_have_a_bound_in_sum)
{
        _cleanup_free_ char *json = malloc(SIDEKIQ_INFO_MAX);
        struct heartbeat_info *info;
        size_t n = 0;

        ck_assert_ptr_nonnull(json);
        strcpy(json, "{\"capsules\":{");
        for (unsigned i = 0; i < 1000; i++)
                sprintf(json + strlen(json), "\"c%u\":{\"weights\":{\"same\":1,\"q%u\":1}},", i, i);
        strcat(json, "\"last\":{}}}");
        struct field text = field(json);
        ck_assert_int_eq(sidekiq_info_decode(&text, &info), 0);
        ck_assert_str_eq(info->queues, "same");
        for (const char *name = info->queues; *name != '\0'; name += strlen(name) + 1) {
                ck_assert_uint_lt((size_t)(name + strlen(name) + 1 - info->queues), HEARTBEAT_QUEUES_MAX);
                n++;
        }
        /* 4,095 bytes: "same", 10 names of 3 bytes, 90 of 4, and as many of 5 as have room. */
        ck_assert_uint_eq(n, 1 + 10 + 90 + (HEARTBEAT_QUEUES_MAX - 1 - 5 - 30 - 360) / 5);
        free(info);
}

TEST(leaves_out_capsules_beyond_its_room)
{
        char json[1024] = "{\"capsules\":{";
        struct heartbeat_info *info;

        for (unsigned i = 0; i < HEARTBEAT_CAPSULES_MAX + 3; i++)
                sprintf(json + strlen(json), "%s\"c%u\":{}", i > 0 ? "," : "", i);
        strcat(json, "}}");
        struct field text = field(json);
        ck_assert_int_eq(sidekiq_info_decode(&text, &info), 0);
        ck_assert_uint_eq(info->n_capsules, HEARTBEAT_CAPSULES_MAX);
        free(info);
}

/* Empty and not an error: it is not asked for again. */
TEST(an_info_that_is_too_long_is_as_if_not_reported)
{
        for (size_t extra = 0; extra < 2; extra++) {
                size_t size = SIDEKIQ_INFO_MAX + extra;
                _cleanup_free_ char *json = malloc(size + 1);
                struct heartbeat_info *info = NULL;

                ck_assert_ptr_nonnull(json);
                snprintf(json, size + 1, "%-*s}", (int)size - 1, "{\"concurrency\":7,\"queues\":[\"mail\"]");
                struct field text = field(json);
                ck_assert_int_eq(sidekiq_info_decode(&text, &info), 0);
                ck_assert_uint_eq(info->concurrency, extra == 0 ? 7 : 0);
                ck_assert_str_eq(info->queues, extra == 0 ? "mail" : "");
                ck_assert_uint_eq(info->n_capsules, 0);
                free(info);
        }
}

static const struct heartbeat_info mail_info = {.n_capsules = 2, .capsules = {"default", "mail"}};
static const struct heartbeat_info heartbeat_info = {.n_capsules = 1, .capsules = {"heartbeat"}};

static const struct {
        const char *comm;
        const struct heartbeat_info *info;
        bool processor;
} threads[] = {
        {"processor", NULL, true},
        {"processor", &mail_info, true},
        {"default/process", NULL, true},
        {"sidekiq.default", NULL, true},
        {"sidekiq.default", &mail_info, true},
        {"mail/processor", &mail_info, true},
        {"sidekiq.mail/pr", &mail_info, true},
        {"sidekiq.mail", &mail_info, true},
        {"sidekiq.heartbe", NULL, false},
        {"sidekiq.schedul", NULL, false},
        {"sidekiq.heartbe", &heartbeat_info, false},
        {"sidekiq.mail/pr", NULL, false},
        {"mail/processor", NULL, false},
        {"sidekiq.default", &heartbeat_info, false},
        {"heartbeat", NULL, false},
        {"scheduler", NULL, false},
        {"sidekiq", NULL, false},
        {"ruby", NULL, false},
        {"processor2", NULL, false},
        {"", NULL, false},
};

TEST_LOOP(reports_job_threads_by_their_names, ELEMENTSOF(threads))
{
        ck_assert_int_eq(sidekiq_thread_is_processor(threads[_i].comm, threads[_i].info),
                         threads[_i].processor);
}

static const struct {
        const char *title;
        bool booted;
        struct title expect;
} titles[] = {
        {"sidekiq 6.4.1 app [2 of 5 busy]", true, {.version = "6.4.1", .busy = 2, .concurrency = 5}},
        {"sidekiq 6.4.1  [0 of 3 busy]", true, {.version = "6.4.1", .concurrency = 3}},
        {"sidekiq 6.4.1  [0 of 3 busy] stopping",
         true,
         {.version = "6.4.1", .concurrency = 3, .quiet = true}},
        {"sidekiq 5.2.10 my app [1 of 10 busy] stopping",
         true,
         {.version = "5.2.10", .busy = 1, .concurrency = 10, .quiet = true}},
        {"sidekiq 8.1.7 [9 of 9 busy] [2 of 5 busy]",
         true,
         {.version = "8.1.7", .busy = 2, .concurrency = 5}},
        {"sidekiq 7.3.2 app [2 of 5 busy] leader", true, {.version = "7.3.2", .busy = 2, .concurrency = 5}},
        {"sidekiq 7.3.2 app [2 of 5 busy] stopping leader",
         true,
         {.version = "7.3.2", .busy = 2, .concurrency = 5, .quiet = true}},
        {"sidekiq 6.4.1 app [2 of 5 busy]   ", true, {.version = "6.4.1", .busy = 2, .concurrency = 5}},
        {"/usr/bin/ruby /usr/bin/sidekiq -r ./app.rb", false, {.busy = 0}},
        {"ruby /usr/bin/sidekiq 6.4.1 app [2 of 5 busy]", false, {.busy = 0}},
        {"sidekiq 6.4.1 app", false, {.busy = 0}},
        {"sidekiq", false, {.busy = 0}},
        {"sidekiq ", false, {.busy = 0}},
        {"sidekiq -r ./app.rb [0 of 3 busy]", false, {.busy = 0}},
        {"sidekiq 6.4.1[0 of 3 busy]", false, {.busy = 0}},
        {"sidekiq 6.4.1 app[0 of 3 busy]", false, {.busy = 0}},
        {"sidekiq 6.4.1 app [0 of 3", false, {.busy = 0}},
        {"sidekiq 6.4.1 app [x of 3 busy]", false, {.busy = 0}},
        {"sidekiq 6.4.1 app [0 of y busy]", false, {.busy = 0}},
        {"sidekiq 6.4.1 app [0 of 3 busy]stopping", false, {.busy = 0}},
        {"sidekiq 6.4.1 app [0 of 3 busy] stoppings", false, {.busy = 0}},
        {"sidekiq 012345678901234567890123456789012 app [0 of 3 busy]", false, {.busy = 0}},
        {"", false, {.busy = 0}},
};

TEST_LOOP(reads_titles_and_reports_booting_from_booted, ELEMENTSOF(titles))
{
        struct title title = {.busy = 42};

        ck_assert_int_eq(sidekiq_title_parse(titles[_i].title, &title), titles[_i].booted);
        if (!titles[_i].booted) {
                ck_assert_uint_eq(title.busy, 42);
                return;
        }
        ck_assert_str_eq(title.version, titles[_i].expect.version);
        ck_assert_uint_eq(title.busy, titles[_i].expect.busy);
        ck_assert_uint_eq(title.concurrency, titles[_i].expect.concurrency);
        ck_assert_int_eq(title.quiet, titles[_i].expect.quiet);
}

TEST(has_a_full_row_for_every_framework)
{
        for (size_t i = 0; framework_traits[i]; i++) {
                const struct framework *framework = framework_of(framework_traits[i]);

                ck_assert_ptr_eq(framework->traits, framework_traits[i]);
                ck_assert_ptr_eq(framework_traits_find(framework_traits[i]->id), framework_traits[i]);
                ck_assert_ptr_nonnull(framework->traits->name);
                ck_assert(framework->traits->stale_usec > 0 ||
                          framework->traits->heartbeat == HEARTBEAT_NONE);
                ck_assert(!framework->identity_parse ==
                          (framework->traits->heartbeat == HEARTBEAT_NONE || framework->traits->shim));
                ck_assert_int_gt(framework->stop_signal, 0);
        }
        ck_assert_ptr_null(framework_traits_find(UINT32_MAX));
        const struct framework *sidekiq = framework_of(&sidekiq_traits);
        ck_assert_int_eq(sidekiq->quiet_signal, SIGTSTP);
        ck_assert_int_eq(sidekiq->stop_signal, SIGTERM);
        ck_assert_int_eq(sidekiq->wake_signal, SIGCONT);
        ck_assert_uint_eq(sidekiq_traits.id, 0); /* as all state files have it */
        ck_assert_uint_eq(sidekiq_traits.shutdown_usec, 25 * USEC_PER_SEC);
        ck_assert_uint_eq(sidekiq_traits.stale_usec, 30 * USEC_PER_SEC);
}

static const struct {
        const char *command;
        unsigned seconds; /* 0: it does not tell */
        bool title;       /* the title of a process that was started so tells it, too */
} shutdowns[] = {
        {"sidekiq", 0, false},
        {"sidekiq -t 90", 90, true},
        {"bundle exec sidekiq -C config.yml -t90", 90, true},
        {"/usr/bin/ruby /opt/bin/sidekiq --timeout 8 -q low", 8, true},
        {"bin/sidekiq --timeout=120", 120, true},
        {"flock -t 5 /run/lock sidekiq -t 90", 90, true},
        {"sidekiq -t 10 -t 90", 90, true},
        {"bin/work -t 90", 90, false},
        {"/bin/sh -c 'cd /srv && exec bundle exec sidekiq -t 90'", 90, true},
        {"/bin/sh -c 'tar -t 90'", 0, false},
        {"/bin/sh -c \"sidekiq -t $TIMEOUT\"", 0, false},
        {"sidekiq -t", 0, false},
        {"sidekiq -t 0", 0, false},
        {"sidekiq -t 99999999999999", 0, false},
        {"sidekiq -tx --timeouts=3 --timeout=", 0, false},
        {"xsidekiq -C t", 0, false},
};

TEST_LOOP(knows_its_own_shutdown_time_from_a_command_and_from_a_title, ELEMENTSOF(shutdowns))
{
        _cleanup_argv_ char **argv = NULL;
        const char *error;
        char title[256] = "";

        ck_assert_int_eq(argv_split(shutdowns[_i].command, &argv, &error), 0);
        ck_assert_uint_eq(sidekiq_traits.command_shutdown_usec(argv), shutdowns[_i].seconds * USEC_PER_SEC);
        for (size_t i = 0; argv[i]; i++)
                snprintf(title + strlen(title), sizeof(title) - strlen(title), "%s%s", i > 0 ? " " : "",
                         argv[i]);
        ck_assert_uint_eq(sidekiq_traits.title_shutdown_usec(title),
                          shutdowns[_i].title ? shutdowns[_i].seconds * USEC_PER_SEC : 0);
}

TEST(a_title_of_anything_reports_no_shutdown_time)
{
        ck_assert_uint_eq(sidekiq_traits.title_shutdown_usec(""), 0);
        ck_assert_uint_eq(sidekiq_traits.title_shutdown_usec("sidekiq 7.0.0 app [0 of 5 busy]"), 0);
        ck_assert_uint_eq(sidekiq_traits.title_shutdown_usec("sh -c ' sidekiq -t 90"), 0);
}

TEST_MAIN("sidekiq")
