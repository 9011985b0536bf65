/* SPDX-License-Identifier: MIT */
/* Decodes rows of Solid Queue and GoodJob: workers, their jobs, and queues; rows that are damaged. */
/* promises: P1 P5 P10 */
#include "frameworks/database_format.h"
#include "frameworks/database_view.h"
#include "model/heartbeat_info.h"
#include "rows.h"
#include "unit.h"

#define UUID       "0f8fad5b-d9cb-469f-a165-70867728950e"
#define OTHER_UUID "7c9e6679-7425-40de-944b-e07fc1f90ae7"
/* 2026-11-27 06:00:01.5 UTC */
#define TIME UINT64_C(1795759201500000)

static struct database_view view;

static void begin_solid_queue(void)
{
        view = (struct database_view){.format = &solid_queue_database_format};
}

static void begin_good_job(void)
{
        view = (struct database_view){.format = &good_job_database_format};
}

static void end(void)
{
        database_view_clear(&view);
}

static void process(const struct database_row *row)
{
        ck_assert_int_eq(view.format->take_process(&view, row), 0);
}

static const struct database_process *find(const char *identity)
{
        database_view_sort(&view);
        return database_view_find(&view, identity);
}

/* Returns the names of the queues, separated by '|'. */
static const char *queues_of(const struct database_process *process)
{
        static char text[2 * HEARTBEAT_QUEUES_MAX];

        text[0] = '\0';
        for (const char *name = process->queues; name && *name != '\0'; name += strlen(name) + 1)
                snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", text[0] == '\0' ? "" : "|",
                         name);
        return text;
}

TEST_FIXTURE(begin_solid_queue, end)

/* A writer can repeat names in rows of 8 KiB, up to 32 MiB: each would be compared with all names before. */
TEST(repeated_queue_names_cost_bounded_time)
{
        char metadata[DATABASE_DOCUMENT_MAX], *at = metadata + sprintf(metadata, "{\"queues\":\"");

        for (unsigned i = 0; i < 1000; i++)
                at += sprintf(at, "%s%02X", i == 0 ? "" : ",", i);
        while (at < metadata + sizeof(metadata) - 8)
                at += sprintf(at, ",3E7");
        (void)sprintf(at, "\"}");
        process(row_of("7", "Supervisor(async)", "web-1", "4711", "1795759200.25", "1795755600", "{}", "0"));
        for (unsigned i = 0; i < DATABASE_BYTES_MAX / DATABASE_DOCUMENT_MAX; i++)
                process(row_of("7", "Worker", "web-1", "4711", "1795759201.5", "1795755601", metadata, "0"));
        ck_assert_ptr_nonnull(find("web-1:4711:7"));
        ck_assert_uint_lt(view.compared, DATABASE_COMPARED_MAX + HEARTBEAT_QUEUES_MAX);
}

TEST(a_supervisor_and_its_workers_are_one_worker)
{
        process(row_of("7", "Supervisor(async)", "web-1", "4711", "1795759200.25", "1795755600", "{}", "0"));
        process(row_of("7", "Worker", "web-1", "4711", "1795759201.5", "1795755601",
                       "{\"polling_interval\":0.1,\"queues\":\"mailers,rep*\",\"thread_pool_size\":3}", "2"));
        process(row_of("7", "Worker", "web-1", "4711", "1795759100", "1795755601",
                       "{\"queues\":\"low, mailers\",\"thread_pool_size\":2}", "1"));
        process(row_of("8", "Supervisor(async)", "web-1", "4712", "1795759200", "1795755600", "{}", "0"));

        const struct database_process *found = find("web-1:4711:7");
        ck_assert_ptr_nonnull(found);
        ck_assert_uint_eq(found->host_len, 5);
        ck_assert_int_eq(found->pid, 4711);
        ck_assert_uint_eq(found->heartbeat.sent_usec, TIME);
        ck_assert_uint_eq(found->heartbeat.born_usec, UINT64_C(1795755600) * USEC_PER_SEC);
        ck_assert_uint_eq(found->heartbeat.busy, 3);
        ck_assert_uint_eq(found->heartbeat.concurrency, 5);
        ck_assert(!found->heartbeat.quiet);
        ck_assert_str_eq(queues_of(found), "mailers|rep*|low");
        found = find("web-1:4712:8");
        ck_assert_ptr_nonnull(found);
        ck_assert_uint_eq(found->heartbeat.concurrency, 0);
        ck_assert_ptr_null(find("web-1:4711:8"));
}

TEST(times_of_sqlite_are_texts)
{
        process(row_of("7", "Supervisor(async)", "web-1", "4711", "2026-11-27 06:00:01.500000",
                       "2026-11-27 05:00:00.000000", NULL, "0"));
        const struct database_process *found = find("web-1:4711:7");
        ck_assert_uint_eq(found->heartbeat.sent_usec, TIME);
        ck_assert_uint_eq(found->heartbeat.born_usec, UINT64_C(1795755600) * USEC_PER_SEC);
}

/* Rows that are no worker of sqmgr: another mode, another process, another host, no time, no host. */
TEST(other_rows_are_no_workers)
{
        process(row_of("5", "Supervisor(fork)", "web-1", "4710", "1795759200", "1795755600", "{}", "0"));
        process(row_of("5", "Worker", "web-1", "4709", "1795759200", "1795755600", "{}", "1"));
        process(row_of("6", "Supervisor(async)", NULL, "4710", "1795759200", "1795755600", "{}", "0"));
        process(row_of("6", "Supervisor(async)", "web-1", "0", "1795759200", "1795755600", "{}", "0"));
        process(row_of("6", "Supervisor(async)", "web-1:1", "4710", "1795759200", "1795755600", "{}", "0"));
        process(row_of("6", "Supervisor(async)", "web-1", "4710", NULL, "1795755600", "{}", "0"));
        process(row_of("6", "Supervisor(async)", "web-1", "4710", "-1795759200", "1795755600", "{}", "0"));
        process(row_of("6"));
        ck_assert_uint_eq(view.n_processes, 0);
        process(row_of("7", "Supervisor(async)", "web-1", "4711", "1795759200", "1795755600", "{}", "0"));
        process(row_of("7", "Worker", "web-1", "4712", "1795759201", "1795755600", "{}", "1"));
        process(row_of("7", "Worker", "web-2", "4711", "1795759201", "1795755600", "{}", "1"));
        process(row_of("70", "Worker", "web-1", "4711", "1795759201", "1795755600", "{}", "1"));
        process(row_of("7", "Dispatcher", "web-1", "4711", "1795759201", "1795755600", "{}", "1"));
        ck_assert_uint_eq(view.n_processes, 1);
        ck_assert_uint_eq(find("web-1:4711:7")->heartbeat.busy, 0);
        ck_assert_uint_eq(find("web-1:4711:7")->heartbeat.sent_usec, UINT64_C(1795759200) * USEC_PER_SEC);
}

static const char *const damaged[] = {
        NULL,
        "",
        "{",
        "[]",
        "\"a\"",
        "{\"queues\":7,\"thread_pool_size\":\"3\"}",
        "{\"queues\":null,\"thread_pool_size\":-3}",
        "{\"queues\":\",, ,\",\"thread_pool_size\":1e9}",
        "{\"queues\":\"a\",\"thread_pool_size\":3",
        "{\"thread_pool_size\":9223372036854775807}",
        "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]",
};

TEST_LOOP(a_worker_with_damaged_metadata_serves_no_queue, ELEMENTSOF(damaged))
{
        process(row_of("7", "Supervisor(async)", "web-1", "4711", "1795759200", "1795755600", "{}", "0"));
        process(row_of("7", "Worker", "web-1", "4711", "1795759201", "1795755600", damaged[_i], "2"));
        const struct database_process *found = find("web-1:4711:7");
        ck_assert_uint_eq(found->heartbeat.busy, 2);
        ck_assert_uint_eq(found->heartbeat.sent_usec, UINT64_C(1795759201) * USEC_PER_SEC);
        ck_assert_uint_eq(found->heartbeat.concurrency, 0);
        ck_assert_str_eq(queues_of(found), "");
}

/* A list of queues is bounded: each name, and all names together. */
TEST(queue_names_are_bounded)
{
        char metadata[8192] = "{\"queues\":\"";

        for (size_t i = 0; i < 300; i++)
                snprintf(metadata + strlen(metadata), sizeof(metadata) - strlen(metadata),
                         "queue-number-%zu,", i);
        strcat(metadata, "\"}");
        process(row_of("7", "Supervisor(async)", "web-1", "4711", "1795759200", "1795755600", "{}", "0"));
        process(row_of("7", "Worker", "web-1", "4711", "1795759201", "1795755600", metadata, "2"));
        const struct database_process *found = find("web-1:4711:7");
        ck_assert_uint_lt(found->queues_length, 4096);
        ck_assert_uint_gt(found->queues_length, 4000);
        ck_assert(queue_names_have(found->queues, "queue-number-0"));
        ck_assert(!queue_names_have(found->queues, "queue-number-299"));
}

static const struct {
        const struct database_format *format;
        const char *pattern, *queue;
        bool is_pattern, matches;
} patterns[] = {
        {&solid_queue_database_format, "*", "default", true, true},
        {&solid_queue_database_format, "rep*", "reports", true, true},
        {&solid_queue_database_format, "rep*", "rep", true, true},
        {&solid_queue_database_format, "rep*", "re", true, false},
        {&solid_queue_database_format, "r*p", "rxp", false, false},
        {&solid_queue_database_format, "-a", "b", false, false},
        {&solid_queue_database_format, "a", "a", false, true},
        {&solid_queue_database_format, "a", "ab", false, false},
        {&good_job_database_format, "*", "default", true, true},
        {&good_job_database_format, "rep*", "reports", false, false},
        {&good_job_database_format, "-a,b", "a", true, false},
        {&good_job_database_format, "-a, b ", "b", true, false},
        {&good_job_database_format, "-a,b", "c", true, true},
        {&good_job_database_format, "-a,b", "ab", true, true},
        {&good_job_database_format, "-", "a", true, true},
        {&good_job_database_format, "a", "a", false, true},
};

TEST_LOOP(a_pattern_matches_as_in_the_framework, ELEMENTSOF(patterns))
{
        ck_assert(patterns[_i].format->is_pattern(patterns[_i].pattern) == patterns[_i].is_pattern);
        ck_assert(patterns[_i].format->matches(patterns[_i].pattern, patterns[_i].queue) ==
                  patterns[_i].matches);
}

static void job(const struct database_row *row)
{
        ck_assert_int_eq(database_view_take_job(&view, row), 0);
}

TEST(jobs_belong_to_the_worker_that_was_asked_for)
{
        ck_assert_int_eq(database_view_ask_work(&view, "web-1:4711:7"), 0);
        ck_assert_int_eq(database_view_ask_work(&view, "web-1:4711:7"), -EEXIST);
        ck_assert_int_eq(database_view_ask_work(&view, "web-1:12:9"), 0);
        job(row_of("web-1", "4711", "7", "8", "a-uuid", "ReportJob", "low", "1795759201.5", "31", "41",
                   "{\"job_class\":\"ReportJob\""));
        job(row_of("web-1", "4711", "7", "8", NULL, "ReportJob", "low", NULL, "32", "42",
                   "{\"sqmgr_rescues\":2,"));
        job(row_of("web-2", "4711", "7", "8", "other", "ReportJob", "low", "1795759201.5", "33", "43", "{"));
        job(row_of("web-1", "4711", "x", "8", "other", "ReportJob", "low", "1795759201.5", "33", "43", "{"));
        job(row_of("web-1"));

        const struct job_list *list = &database_view_find_work(&view, "web-1:4711:7")->list;
        ck_assert_uint_eq(list->n_jobs, 2);
        ck_assert_str_eq(list->jobs[0].jid, "a-uuid");
        ck_assert_str_eq(list->jobs[0].class, "ReportJob");
        ck_assert_str_eq(list->jobs[0].queue, "low");
        ck_assert_str_eq(list->jobs[0].thread, "8");
        ck_assert_uint_eq(list->jobs[0].started_usec, TIME);
        ck_assert_str_eq(list->jobs[0].entry, "31:41:{\"job_class\":\"ReportJob\"");
        ck_assert_str_eq(list->jobs[1].jid, "42");
        ck_assert_uint_eq(list->jobs[1].started_usec, 0);
        ck_assert_uint_eq(database_view_find_work(&view, "web-1:12:9")->list.n_jobs, 0);
        ck_assert_ptr_null(database_view_find_work(&view, "web-1:12:8"));
}

static const struct {
        const char *entry, *claim, *job, *old_text, *new_text; /* claim NULL: refused */
        unsigned times;
} entries[] = {
        {"31:41:{\"job_class\":\"A\"", "31", "41", "{\"", "{\"sqmgr_rescues\":1,\"", 0},
        {"31:41:{\"sqmgr_rescues\":1,\"job_class\"", "31", "41", "{\"sqmgr_rescues\":1,",
         "{\"sqmgr_rescues\":2,", 1},
        {"31:41:{\"sqmgr_rescues\":99,\"", "31", "41", "{\"sqmgr_rescues\":99,", "{\"sqmgr_rescues\":100,",
         99},
        {"31:41:{\"sqmgr_rescues\":9999999,\"", NULL, NULL, NULL, NULL, 0},
        {"31:41:{\"sqmgr_rescues\":-1,\"", NULL, NULL, NULL, NULL, 0},
        {"31:41:{\"sqmgr_rescues\":1", NULL, NULL, NULL, NULL, 0},
        {"31:41:{}", NULL, NULL, NULL, NULL, 0},
        {"31:41:", NULL, NULL, NULL, NULL, 0},
        {"31:41", NULL, NULL, NULL, NULL, 0},
        {"31::{\"a\"", NULL, NULL, NULL, NULL, 0},
        {":41:{\"a\"", NULL, NULL, NULL, NULL, 0},
        {"31:99999999999999999999:{\"a\"", NULL, NULL, NULL, NULL, 0},
        {"31:4 1:{\"a\"", NULL, NULL, NULL, NULL, 0},
        {"", NULL, NULL, NULL, NULL, 0},
};

TEST_LOOP(an_entry_says_how_often_its_job_was_put_back, ELEMENTSOF(entries))
{
        const struct field entry = {.text = entries[_i].entry, .len = strlen(entries[_i].entry)};
        struct database_rescue rescue;
        bool taken = view.format->take_entry(&entry, &rescue);

        ck_assert(taken == !!entries[_i].claim);
        if (!taken)
                return;
        ck_assert_str_eq(rescue.claim, entries[_i].claim);
        ck_assert_str_eq(rescue.job, entries[_i].job);
        ck_assert_str_eq(rescue.old_text, entries[_i].old_text);
        ck_assert_str_eq(rescue.new_text, entries[_i].new_text);
        ck_assert_uint_eq(rescue.times, entries[_i].times);
}

static void queue(const struct database_row *row)
{
        ck_assert_int_eq(database_view_take_queue(&view, row), 0);
}

TEST(a_pattern_sums_the_queues_that_are_not_paused)
{
        struct queue sum = {0};

        queue(row_of("rep-b", "3", "1795759190", "1795759200", "0"));
        queue(row_of("rep-a", "4", "1795759170.5", "1795759200", "0"));
        queue(row_of("rep-c", "5", "1795759100", "1795759200", "1"));
        queue(row_of("other", "6", "1795750000", "1795759200", "0"));
        queue(row_of("rep-empty", "0", NULL, "1795759200", "0"));
        queue(row_of("", "6", "1795750000", "1795759200", "0"));
        queue(row_of("bad", "-1", "1795750000", "1795759200", "0"));
        queue(row_of(NULL, "1", "1795750000", "1795759200", "0"));
        database_view_sort(&view);
        ck_assert_uint_eq(view.queues.n, 5);
        ck_assert_str_eq(view.queues.list[1].name, "rep-a");
        ck_assert_uint_eq(view.queues.list[1].latency, 29500 * USEC_PER_MSEC);
        database_view_sum(&view, "rep*", &sum);
        ck_assert_uint_eq(sum.size, 7);
        ck_assert(sum.latency_known && !sum.paused);
        ck_assert_uint_eq(sum.latency, 29500 * USEC_PER_MSEC);

        sum = (struct queue){0};
        database_view_sum(&view, "rep-c*", &sum);
        ck_assert(sum.paused && sum.size == 0);
        sum = (struct queue){0};
        database_view_sum(&view, "none*", &sum);
        ck_assert(!sum.paused && sum.size == 0 && sum.latency_known);
        ck_assert_uint_eq(database_view_find_queue(&view, "other")->size, 6);
        ck_assert_ptr_null(database_view_find_queue(&view, "others"));
}

/* Without the time of the oldest job, the latency is not known; a clock that went back gives none. */
TEST(an_unknown_latency_is_unknown)
{
        queue(row_of("a", "3", NULL, "1795759200", "0"));
        queue(row_of("b", "3", "1795759300", "1795759200", "0"));
        database_view_sort(&view);
        ck_assert(!view.queues.list[0].latency_known);
        ck_assert(view.queues.list[1].latency_known && view.queues.list[1].latency == 0);
}

TEST(facts_for_doctor)
{
        ck_assert_int_eq(database_view_take_facts(&view, row_of("15.18", "1", "2", "3", "4", "5", "6", "7")),
                         0);
        ck_assert_str_eq(view.facts.version, "15.18");
        ck_assert(view.facts.read_only && view.facts.has_roles);
        ck_assert_uint_eq(view.facts.forking, 2);
        ck_assert_uint_eq(view.facts.failed, 7);
        ck_assert_int_eq(database_view_take_counts(&view, row_of("12", "13")), 0);
        ck_assert_uint_eq(view.queues.schedule, 12);
        ck_assert_uint_eq(view.queues.dead, 13);
        ck_assert_int_eq(database_view_take_facts(&view, row_of("15\0334", "2", "-1", "nan")), 0);
        ck_assert_str_eq(view.facts.version, "15?4");
        ck_assert(!view.facts.read_only && view.facts.forking == 0 && view.facts.dispatchers == 0);
}

TEST_FIXTURE(begin_good_job, end)

TEST(a_process_is_a_worker)
{
        process(row_of("web-1", "4711", UUID, "1795759201.5", "1795755600", "[\"*\", \"+b,a\", \"-low, x\"]",
                       "[5, 2, 1]", "4"));
        process(row_of("web-1", "4712", OTHER_UUID, "1795759201.5", "1795755600", "[null, 7", "{}", "0"));
        process(row_of(NULL, "4712", OTHER_UUID, "1795759201.5", "1795755600", "[]", "[]", "0"));
        process(row_of("web-1", "4712", "not-a-uuid", "1795759201.5", "1795755600", "[]", "[]", "0"));
        const struct database_process *found = find("web-1:4711:" UUID);
        ck_assert_uint_eq(found->heartbeat.sent_usec, TIME);
        ck_assert_uint_eq(found->heartbeat.busy, 4);
        ck_assert_uint_eq(found->heartbeat.concurrency, 8);
        ck_assert_str_eq(queues_of(found), "*|b|a|-low, x");
        found = find("web-1:4712:" OTHER_UUID);
        ck_assert_ptr_nonnull(found);
        ck_assert_str_eq(queues_of(found), "");
        ck_assert_uint_eq(view.n_processes, 2);
}

TEST(jobs_have_no_entry)
{
        ck_assert_int_eq(database_view_ask_work(&view, "web-1:4711:" UUID), 0);
        job(row_of("web-1", "4711", UUID, UUID, OTHER_UUID, "ReportJob", "low", "1795759201.5"));
        const struct job_list *list = &database_view_find_work(&view, "web-1:4711:" UUID)->list;
        ck_assert_uint_eq(list->n_jobs, 1);
        ck_assert_str_eq(list->jobs[0].jid, OTHER_UUID);
        ck_assert_uint_eq(list->jobs[0].entry_len, 0);
        ck_assert_ptr_null(view.format->take_entry);
}

TEST_MAIN("database_view")
