/* SPDX-License-Identifier: MIT */
/* Are RQ's forms, 1.0 to 2, read right, and is garbage never taken for one? */
/* promises: P5 */
#include "frameworks/redis_format.h"
#include "frameworks/rq/rq.h"
#include "frameworks/table.h"
#include "redis/redis_command.h"
#include "settings/operations.h"
#include "unit.h"
#include <signal.h>

static struct field field(const char *text)
{
        return (struct field){.text = text, .len = text ? strlen(text) : 0};
}

static const struct {
        const char *host, *pid, *key;
        const char *identity; /* NULL: that is no worker */
} workers[] = {
        {"vm", "42", "rq:worker:6f0f", "vm:42:rq:worker:6f0f"},
        {"vm", "42", "rq:worker:a:b c", "vm:42:rq:worker:a:b c"},
        {"web-1.example.org", "2147483647", "rq:worker:x", "web-1.example.org:2147483647:rq:worker:x"},
        {NULL, "42", "rq:worker:6f0f", NULL},
        {"vm", NULL, "rq:worker:6f0f", NULL},
        {"vm", "42", NULL, NULL},
        {"", "42", "rq:worker:6f0f", NULL},
        {"fe80::1", "42", "rq:worker:6f0f", NULL},
        {"vm", "", "rq:worker:6f0f", NULL},
        {"vm", "0", "rq:worker:6f0f", NULL},
        {"vm", "-1", "rq:worker:6f0f", NULL},
        {"vm", "042", "rq:worker:6f0f", NULL},
        {"vm", "42 ", "rq:worker:6f0f", NULL},
        {"vm", "2147483648", "rq:worker:6f0f", NULL},
        {"vm", "99999999999999999999", "rq:worker:6f0f", NULL},
        {"vm", "42", "", NULL},
        {"vm", "42", "rq:worker:", NULL},
        {"vm", "42", "rq:workers", NULL},
        {"vm", "42", "RQ:worker:x", NULL},
};

TEST_LOOP(makes_identities, ELEMENTSOF(workers))
{
        const struct rq_worker worker = {
                .host = field(workers[_i].host),
                .pid = field(workers[_i].pid),
                .key = field(workers[_i].key),
        };
        size_t host_len = 99;
        int error;
        pid_t pid = 99;

        _cleanup_free_ char *identity = rq_identity_make(&worker, &error);
        if (!workers[_i].identity) {
                ck_assert_ptr_null(identity);
                ck_assert_int_eq(error, -EINVAL);
                return;
        }
        ck_assert_str_eq(identity, workers[_i].identity);
        ck_assert(rq_identity_parse(identity, strlen(identity), &host_len, &pid));
        ck_assert_uint_eq(host_len, strlen(workers[_i].host));
        ck_assert_int_eq(pid, atoi(workers[_i].pid));
        ck_assert_str_eq(rq_identity_key(identity), workers[_i].key);
}

TEST(refuses_what_holds_a_nul_or_is_too_long)
{
        static char host[257], key[2000] = "rq:worker:";
        int error;

        memset(host, 'h', sizeof(host) - 1);
        memset(key + strlen(key), 'k', sizeof(key) - strlen(key) - 1);
        const struct field pid = field("42"), good_host = field("vm"), good_key = field("rq:worker:x");
        const struct rq_worker bad[] = {
                {.host = {"v\0m", 3}, .pid = pid, .key = good_key},
                {.host = good_host, .pid = {"4\0", 2}, .key = good_key},
                {.host = good_host, .pid = pid, .key = {"rq:worker:\0x", 12}},
                {.host = field(host), .pid = pid, .key = good_key},
                {.host = good_host, .pid = pid, .key = field(key)},
        };
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                ck_assert_ptr_null(rq_identity_make(&bad[i], &error));
                ck_assert_int_eq(error, -EINVAL);
        }
}

TEST(takes_nothing_else_for_an_identity)
{
        static const char *const others[] = {"",
                                             ":",
                                             "::",
                                             "vm",
                                             "vm:42",
                                             "vm:42:",
                                             "vm:42:x",
                                             ":42:rq:worker:x",
                                             "vm::rq:worker:x",
                                             "vm:0:rq:worker:x",
                                             "vm:042:rq:worker:x",
                                             "vm:x:rq:worker:x",
                                             "vm:42:rq:worker:",
                                             "vm:15756:baa7ee0dd3ef",
                                             "rq:worker:x",
                                             "vm:2147483648:rq:worker:x"};
        size_t len = 99;
        pid_t pid;

        for (size_t i = 0; i < ELEMENTSOF(others); i++) {
                ck_assert(!rq_identity_parse(others[i], strlen(others[i]), &len, &pid));
                ck_assert_ptr_null(rq_identity_key(others[i]));
        }
        ck_assert_uint_eq(len, 99);
}

static const struct {
        const char *text;
        uint64_t usec; /* 0: it is no time */
} times[] = {
        {"2026-11-22T10:45:09.123456Z", 1795344309123456},
        {"2026-11-22T10:45:09Z", 1795344309000000},
        {"2026-11-22T10:45:09", 1795344309000000},
        {"2026-11-22T10:45:09.5", 1795344309500000},
        {"2026-11-22T10:45:09.123456+00:00", 1795344309123456},
        {"2026-11-22T10:45:09.123456789Z", 1795344309123456},
        {"2026-11-22T11:45:09.123456+01:00", 1795344309123456},
        {"2026-11-22T16:30:09+05:45", 1795344309000000},
        {"2026-11-22T01:15:09-09:30", 1795344309000000},
        {"2026-11-23T00:45:09+14:00", 1795344309000000},
        {"1970-01-01T00:00:01Z", 1000000},
        {"2000-02-29T00:00:00Z", 951782400000000},
        {"2100-03-01T00:00:00Z", 4107542400000000},
        {"9999-12-31T23:59:60Z", 253402300800000000},
        {NULL, 0},
        {"", 0},
        {"now", 0},
        {"1795344309", 0},
        {"2026-11-22", 0},
        {"2026-11-22 10:45:09", 0},
        {"2026-11-22T10:45", 0},
        {"2026-11-22T10:45:09+0100", 0},
        {"2026-11-22T10:45:09+01", 0},
        {"2026-11-22T10:45:09+24:00", 0},
        {"2026-11-22T10:45:09+01:60", 0},
        {"2026-11-22T10:45:09+01:00Z", 0},
        {"2026-11-22T10:45:09 01:00", 0},
        {"1970-01-01T00:59:00+01:00", 0},
        {"2026-11-22T10:45:09.1x", 0},
        {"2026-11-22T10:45:09Z ", 0},
        {"2026-13-22T10:45:09Z", 0},
        {"2026-00-22T10:45:09Z", 0},
        {"2026-11-00T10:45:09Z", 0},
        {"2026-11-32T10:45:09Z", 0},
        {"2026-11-22T24:45:09Z", 0},
        {"2026-11-22T10:60:09Z", 0},
        {"2026-11-22T10:45:61Z", 0},
        {"1969-12-31T23:59:59Z", 0},
        {"-026-11-22T10:45:09Z", 0},
        {"2026-11-22T10:45:09.123456123456123456123456Z", 0},
};

TEST_LOOP(reads_times, ELEMENTSOF(times))
{
        const struct field text = field(times[_i].text);
        uint64_t usec = 7;

        ck_assert_int_eq(decode_iso8601(&text, &usec), times[_i].usec != 0);
        ck_assert_uint_eq(usec, times[_i].usec ?: 7);
}

TEST(refuses_a_time_with_a_nul_in_it)
{
        uint64_t usec;

        ck_assert(!decode_iso8601(&(struct field){"2026-11-22T10:45:09\0Z", 21}, &usec));
}

#define AT "2026-11-22T10:45:09.000000Z"

static const struct {
        const char *state, *last_heartbeat, *shutdown, *death;
        bool taken;
        unsigned busy;
        bool quiet;
} records[] = {
        {"idle", AT, NULL, NULL, true, 0, false},
        {"started", AT, NULL, NULL, true, 0, false},
        {"suspended", AT, NULL, NULL, true, 0, false},
        {"busy", AT, NULL, NULL, true, 1, false},
        {"busy", AT, AT, NULL, true, 1, true},
        {"busy", AT, "soon", NULL, true, 1, true},
        /* Of a Redis that lost its data. */
        {NULL, AT, NULL, NULL, true, 0, false},
        {"", AT, NULL, NULL, true, 0, false},
        {"BUSY", AT, NULL, NULL, true, 0, false},
        {"busyness", AT, NULL, NULL, true, 0, false},
        {NULL, NULL, NULL, NULL, false, 0, false},
        {"busy", NULL, NULL, NULL, false, 0, false},
        {"busy", "lately", NULL, NULL, false, 0, false},
        {"idle", AT, NULL, AT, false, 0, false},
        {"idle", AT, NULL, "", false, 0, false},
};

TEST_LOOP(reads_records, ELEMENTSOF(records))
{
        const struct rq_record record = {
                .state = field(records[_i].state),
                .last_heartbeat = field(records[_i].last_heartbeat),
                .shutdown_requested_date = field(records[_i].shutdown),
                .death = field(records[_i].death),
        };
        struct heartbeat heartbeat = {.busy = 99};

        ck_assert_int_eq(rq_heartbeat_decode(&record, &heartbeat), records[_i].taken);
        if (!records[_i].taken) {
                ck_assert_uint_eq(heartbeat.busy, 99);
                return;
        }
        ck_assert_uint_eq(heartbeat.sent_usec, 1795344309000000);
        ck_assert_uint_eq(heartbeat.busy, records[_i].busy);
        ck_assert_uint_eq(heartbeat.concurrency, 1);
        ck_assert_int_eq(heartbeat.quiet, records[_i].quiet);
        ck_assert(!heartbeat.work_list_known);
}

TEST(reads_counts_of_jobs)
{
        static const struct {
                const char *successful, *failed;
                bool known;
                uint64_t n_processed, n_failed;
        } counts[] = {
                {NULL, NULL, true, 0, 0}, /* no job yet */
                {"13", NULL, true, 13, 0},
                {NULL, "7", true, 7, 7},
                {"13", "7", true, 20, 7},
                {"562949953421312", "562949953421312", true, UINT64_C(1) << 50, UINT64_C(1) << 49},
                {"562949953421313", "7", false, 0, 0},
                {"13", "99999999999999999999", false, 0, 0},
                {"-1", "0", false, 0, 0},
                {"13", "", false, 0, 0},
                {"1e3", "0", false, 0, 0},
        };

        for (size_t i = 0; i < ELEMENTSOF(counts); i++) {
                const struct rq_record record = {.last_heartbeat = field(AT),
                                                 .successful = field(counts[i].successful),
                                                 .failed = field(counts[i].failed)};
                struct heartbeat heartbeat;

                ck_assert(rq_heartbeat_decode(&record, &heartbeat));
                ck_assert_int_eq(heartbeat.outcomes.known, counts[i].known);
                ck_assert_uint_eq(heartbeat.outcomes.processed, counts[i].n_processed);
                ck_assert_uint_eq(heartbeat.outcomes.failed, counts[i].n_failed);
        }
}

TEST(reads_when_a_worker_registered)
{
        static const struct {
                const char *birth;
                uint64_t usec;
        } births[] = {{AT, 1795344309000000}, {"2026-11-22T10:45:09Z", 1795344309000000}, {NULL, 0}, {"", 0}};

        for (size_t i = 0; i < ELEMENTSOF(births); i++) {
                const struct rq_record record = {.last_heartbeat = field(AT),
                                                 .birth = field(births[i].birth)};
                struct heartbeat heartbeat;

                ck_assert(rq_heartbeat_decode(&record, &heartbeat));
                ck_assert_uint_eq(heartbeat.born_usec, births[i].usec);
        }
}

TEST(knows_a_worker_by_its_title)
{
        static const struct {
                const char *title;
                bool taken;
                unsigned busy;
        } titles[] = {
                {"rq: Listening on high,default", true, 0},
                {"rq: Forked 4711 at 1795344309.1", true, 1},
                /* The process of a job, which may outlive its worker. */
                {"rq: Processing app.send from default since 1795344309.1", false, 0},
                {"rq:worker:412d49cc: Listening on work", true, 0},
                {"rq:worker:412d49cc: Forked 119535 at 1795675820.1", true, 1},
                {"rq:worker:web:1: Listening on work", true, 0},
                {"rq:worker:412d49cc: Processing app.send from work since 1795344309.1", false, 0},
                {"rq:worker:412d49cc", false, 0},
                {"rqx: Listening on work", false, 0},
                {"rq: Listening", false, 0},
                {"rq:", false, 0},
                {"", false, 0},
                {"/usr/bin/python3 /usr/bin/rq worker", false, 0},
                {"vi rq: Listening on x", false, 0},
        };
        struct title title;

        for (size_t i = 0; i < ELEMENTSOF(titles); i++) {
                ck_assert_int_eq(rq_title_parse(titles[i].title, &title), titles[i].taken);
                if (titles[i].taken)
                        ck_assert_uint_eq(title.busy, titles[i].busy);
        }
}

TEST(names_queues)
{
        static const struct {
                const char *key, *name;
        } queues[] = {
                {"rq:queue:default", "default"},
                {"rq:queue:a:b", "a:b"},
                {"rq:queue:", NULL},
                {"default", NULL},
                {"", NULL},
                {NULL, NULL},
        };
        const char *name;

        for (size_t i = 0; i < ELEMENTSOF(queues); i++) {
                const struct field key = field(queues[i].key);
                size_t len = rq_queue_name(&key, &name);

                ck_assert_uint_eq(len, queues[i].name ? strlen(queues[i].name) : 0);
                if (len > 0)
                        ck_assert_mem_eq(name, queues[i].name, len);
        }
        ck_assert_uint_eq(rq_queue_name(&(struct field){"rq:queue:\0x", 11}, &name), 0);
}

/* A reply of texts, of which NULL is nil, as hiredis would make it. */
struct reply {
        redisReply all, each[32];
        redisReply *list[32];
};

static const redisReply *reply_of(struct reply *reply, const char *const texts[], size_t n)
{
        *reply = (struct reply){.all = {.type = REDIS_REPLY_ARRAY, .elements = n}};
        for (size_t i = 0; i < n; i++) {
                reply->each[i] = (redisReply){.type = REDIS_REPLY_NIL};
                if (texts[i])
                        reply->each[i] = (redisReply){
                                .type = REDIS_REPLY_STRING, .str = (char *)texts[i], .len = strlen(texts[i])};
                reply->list[i] = &reply->each[i];
        }
        reply->all.element = reply->list;
        return &reply->all;
}

static char found_all[256];
static int found_result;

static int found(const struct match_found *one, void *userdata)
{
        ck_assert_ptr_eq(userdata, found_all);
        strncat(found_all, one->identity, one->len);
        strcat(found_all, " ");
        return found_result;
}

TEST(takes_the_list_apart)
{
        static const char *const list[] = {
                "rq:worker:a", "vm",  "1", "rq:worker:expired", NULL, NULL, "garbage", "vm", "2",
                "rq:worker:b", "vm2", "x", "rq:worker:c",       "vm", "3",
        };
        struct reply reply;

        found_all[0] = '\0';
        found_result = 0;
        ck_assert_int_eq(rq_redis_format.heartbeats->take_list(reply_of(&reply, list, ELEMENTSOF(list)),
                                                               found, found_all),
                         0);
        ck_assert_str_eq(found_all, "vm:1:rq:worker:a vm:3:rq:worker:c ");

        found_all[0] = '\0';
        found_result = -ENOMEM;
        ck_assert_int_eq(rq_redis_format.heartbeats->take_list(&reply.all, found, found_all), -ENOMEM);
        ck_assert_str_eq(found_all, "vm:1:rq:worker:a ");
        ck_assert_int_eq(rq_redis_format.heartbeats->take_list(reply_of(&reply, list, 0), found, found_all),
                         0);
        ck_assert_int_eq(rq_redis_format.heartbeats->take_list(reply_of(&reply, list, 4), found, found_all),
                         -EBADMSG);
        ck_assert_int_eq(rq_redis_format.heartbeats->take_list(&(redisReply){.type = REDIS_REPLY_INTEGER},
                                                               found, found_all),
                         -EBADMSG);
}

static void expect_words(const struct redis_command *command, const char *words)
{
        char all[256] = "";

        for (int i = 0; i < command->argc; i++) {
                strcat(all, command->argv[i]);
                strcat(all, " ");
        }
        ck_assert_str_eq(all, words);
}

TEST(asks_for_the_list_and_for_a_record)
{
        _cleanup_free_ char *key =
                rq_redis_format.heartbeats->key("app", rq_redis_format.heartbeats->set, NULL);
        struct redis_command command;

        /* A namespace is redis-namespace's, which RQ does not know. */
        ck_assert_str_eq(key, "rq:workers");
        rq_redis_format.heartbeats->ask_list(key, &command);
        expect_words(&command, "SORT rq:workers BY nosort GET # GET *->hostname GET *->pid ");
        ck_assert_int_eq(
                rq_redis_format.heartbeats->ask_heartbeat("app", "vm:42:rq:worker:a:b", true, &command), 0);
        expect_words(&command, "HMGET rq:worker:a:b state last_heartbeat shutdown_requested_date death birth "
                               "successful_job_count failed_job_count ");
        free(command.keys[0]);
        ck_assert_int_eq(rq_redis_format.heartbeats->ask_heartbeat(NULL, "garbage", false, &command), 0);
        expect_words(&command, "HMGET garbage state last_heartbeat shutdown_requested_date death birth "
                               "successful_job_count failed_job_count ");
        free(command.keys[0]);
}

TEST(takes_a_record)
{
        static const char *const record[] = {"busy", AT, NULL, NULL, AT, "13", "7", "more"};
        struct heartbeat last_heartbeat;
        struct heartbeat_info *info = NULL;
        struct reply reply;

        ck_assert(rq_redis_format.heartbeats->take_heartbeat(reply_of(&reply, record, 7), &last_heartbeat,
                                                             &info));
        ck_assert_uint_eq(last_heartbeat.busy, 1);
        ck_assert_uint_eq(last_heartbeat.born_usec, 1795344309000000);
        ck_assert(last_heartbeat.outcomes.known);
        ck_assert_uint_eq(last_heartbeat.outcomes.processed, 20);
        ck_assert_uint_eq(last_heartbeat.outcomes.failed, 7);
        ck_assert_ptr_null(info);
        ck_assert(!rq_redis_format.heartbeats->take_heartbeat(reply_of(&reply, record, 6), &last_heartbeat,
                                                              &info));
        ck_assert(!rq_redis_format.heartbeats->take_heartbeat(reply_of(&reply, record, 8), &last_heartbeat,
                                                              &info));
        reply_of(&reply, record, 7);
        reply.each[1].type = REDIS_REPLY_INTEGER;
        ck_assert(!rq_redis_format.heartbeats->take_heartbeat(&reply.all, &last_heartbeat, &info));
        ck_assert(!rq_redis_format.heartbeats->take_heartbeat(&(redisReply){.type = REDIS_REPLY_NIL},
                                                              &last_heartbeat, &info));
}

TEST(has_a_row_of_its_own)
{
        const struct framework *row = framework_of(framework_traits_find(3));

        ck_assert_str_eq(row->traits->name, "rq");
        ck_assert(row->traits->quiet_is_stop && row->traits->process_is_heartbeat &&
                  row->traits->memory_of_tree);
        ck_assert_int_eq(row->quiet_signal, 0);
        ck_assert_int_eq(row->stop_signal, SIGTERM);
        ck_assert_int_eq(row->wake_signal, 0);
}

static const struct {
        const char *command;
        const char *option; /* of the flaw; NULL: there is none */
} flaws[] = {
        {"rq worker default", NULL},
        {"/usr/bin/rq worker -n w1 --url redis://h/0 default", "-n"},
        {"rq worker -nw1", "-n"},
        {"rq worker default --name w1", "--name"},
        {"/srv/venv/bin/rq worker --name=w1", "--name"},
        {"python -m rq.cli worker --name w1", "--name"},
        {"rqworker -n w1 default", "-n"},
        {"python manage.py rqworker default --name=w1", "--name"},
        {"sh -c 'exec rq worker -n w1 default'", "-n"},
        {"sh -c 'rq worker -n w1 $QUEUES'", "-n"},
        {"sh -c 'exec rq worker -n \"w-$SQMGR_INDEX-$SQMGR_START\"'", NULL},
        {"sh -c 'exec rq worker --name=w-${SQMGR_WORKER}'", NULL},
        {"nice -n 10 rq worker default", NULL},
        {"flock -n /run/lock rq worker default", NULL},
        {"sudo -n -u worker -b rq worker default", NULL},
        {"sudo -u worker -n rq worker default", NULL},
        {"sh -c 'rq worker default | grep -n x'", NULL},
        {"sh -c 'rq worker default && nice -n 5 date'", NULL},
        {"rq worker --burst", "--burst"},
        {"sh -c 'rq worker --burst $QUEUES'", "--burst"},
        {"rq worker -b", "-b"},
        {"python manage.py rqworker --burst high", "--burst"},
        {"rq worker --max-jobs 100", "--max-jobs"},
        {"rq worker --max-jobs=100", "--max-jobs"},
        {"rq worker-pool default -n 3", "worker-pool"},
        {"rq worker --bursts --names --max-jobs-of", NULL},
        {"rq worker -q -s b n", NULL},
};

TEST_LOOP(finds_flaws_of_a_command, ELEMENTSOF(flaws))
{
        struct fleet_settings *fleet = fleet_settings_new("a");
        const char *found = NULL;
        unsigned n = 0;

        fleet->traits = &rq_traits;
        fleet->command = strdup(flaws[_i].command);
        ck_assert_int_eq(fleet_settings_derive(fleet), 0);
        for (const struct command_flaw *flaw = rq_traits.command_flaws; flaw->text; flaw++)
                if (command_has_flaw(fleet, flaw)) {
                        found = flaw->options[0];
                        n++;
                }
        ck_assert_uint_eq(n, flaws[_i].option ? 1 : 0);
        ck_assert_pstr_eq(found, flaws[_i].option);
        fleet_settings_free(fleet);
}

TEST_MAIN("rq")
