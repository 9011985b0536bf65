/* SPDX-License-Identifier: MIT */
/* How GoodJob keeps its data in PostgreSQL, the only database that it supports. The statements follow GoodJob 4.19:
 * the files that are named are of its source, the tables those of
 * lib/generators/good_job/templates/install/migrations/create_good_jobs.rb.erb. */
#include "frameworks/database_format.h"
#include "frameworks/database_view.h"
#include "frameworks/decode.h"
#include "frameworks/good_job/good_job.h"
#include "wire/json.h"
#include <limits.h>
#include <string.h>

#define USEC(time) "CAST(extract(epoch FROM " time ") * 1000000 AS bigint)"

/* The key of the advisory lock of a process: app/models/concerns/good_job/advisory_lockable.rb:570, 740. A hash
 * function that needs an extension is not known. */
#define LOCK_NAME "'good_job_processes-' || CAST(p.id AS text)"

/* app/models/good_job/process.rb:53, 64: without its advisory lock, a process that takes one is dead. Such a row is
 * left out. lib/good_job/scheduler.rb:210: threads and queues.
 * app/models/good_job/job.rb: running jobs name their process in locked_by_id. */
static const char processes[] =
        "WITH held AS MATERIALIZED (SELECT (CAST(l.classid AS bigint) << 32) | CAST(l.objid AS bigint) AS key"
        "  FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND l.database ="
        "   (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))"
        " SELECT p.state->>'hostname', p.state->>'pid', p.id, " USEC("p.updated_at") ", " USEC("p.created_at") ","
        " substr(CAST(jsonb_path_query_array(p.state, '$.schedulers[*].queues') AS text), 1,"
        "  " DATABASE_DOCUMENT_MAX_TEXT "),"
        " substr(CAST(jsonb_path_query_array(p.state, '$.schedulers[*].max_threads') AS text), 1,"
        "  " DATABASE_DOCUMENT_MAX_TEXT "),"
        " (SELECT count(*) FROM (SELECT 1 FROM good_jobs j WHERE j.locked_by_id = p.id AND j.finished_at IS NULL"
        "  LIMIT 10000) x)"
        " FROM good_job_processes p"
        " WHERE (CAST($1 AS text) IS NULL OR p.state->>'hostname' IN"
        "  (SELECT json_array_elements_text(CAST(CAST($1 AS text) AS json))))"
        " AND (p.lock_type IS NULL"
        "  OR CAST(CAST('x' || substr(md5(" LOCK_NAME "), 1, 16) AS bit(64)) AS bigint) IN (SELECT key FROM held)"
        "  OR CAST(hashtext(" LOCK_NAME ") AS bigint) IN (SELECT key FROM held))"
        " LIMIT 65536";

static const char jobs[] =
        "SELECT p.state->>'hostname', p.state->>'pid', p.id, p.id,"
        " coalesce(j.active_job_id, j.id), substr(j.job_class, 1, 255), substr(j.queue_name, 1, 255),"
        " " USEC("coalesce(j.performed_at, j.locked_at)") ", NULL"
        " FROM good_job_processes p JOIN good_jobs j ON j.locked_by_id = p.id AND j.finished_at IS NULL"
        " WHERE CAST(p.id AS text) IN (SELECT json_array_elements_text(CAST($1 AS json)))"
        " LIMIT 65536";

/* app/models/good_job/job.rb:93, 123: jobs that are due and run nowhere; setting.rb:9: paused queues. Names are found
 * by one step in an index each. Of a queue, the jobs that wait longest are read: of all queues about 4,000, so that
 * the cost is bounded. Where these are not all, a sample of the table's pages estimates the number. */
#define WAITS(job)                                                                                           \
        job ".finished_at IS NULL AND " job ".locked_by_id IS NULL AND " job ".scheduled_at <= now()"
#define PART "least(1.0, 400.0 * 8192 / greatest(1, pg_relation_size('good_jobs')))"
static const char queues[] =
        "WITH RECURSIVE others(name, i) AS ("
        "  SELECT (SELECT j.queue_name FROM good_jobs j WHERE j.finished_at IS NULL AND j.queue_name IS NOT NULL"
        "   ORDER BY j.queue_name LIMIT 1), 1 WHERE CAST($2 AS integer) > 0"
        "  UNION ALL SELECT (SELECT j.queue_name FROM good_jobs j WHERE j.finished_at IS NULL"
        "   AND j.queue_name > o.name ORDER BY j.queue_name LIMIT 1), o.i + 1"
        "  FROM others o WHERE o.name IS NOT NULL AND o.i < CAST($2 AS integer)"
        " ), names AS MATERIALIZED ("
        "  SELECT o.name FROM others o WHERE o.name IS NOT NULL"
        "  UNION SELECT json_array_elements_text(CAST($1 AS json))"
        " ), bound AS MATERIALIZED ("
        "  SELECT least(1000, greatest(10, 4000 / greatest(1, count(*)))) AS rows, " PART " AS part FROM names"
        " ), sample AS MATERIALIZED ("
        "  SELECT j.queue_name, count(*) AS n FROM good_jobs j TABLESAMPLE SYSTEM (100 * " PART ") REPEATABLE (0)"
        "  WHERE " WAITS("j") " GROUP BY j.queue_name"
        " )"
        " SELECT n.name,"
        " CASE WHEN f.n < b.rows THEN f.n ELSE greatest(f.n,"
        "  CAST((SELECT s.n FROM sample s WHERE s.queue_name = n.name) / b.part AS bigint)) END,"
        " " USEC("f.since") ", " USEC("now()") ","
        " CASE WHEN EXISTS (SELECT 1 FROM good_job_settings s WHERE s.key = 'pauses'"
        "  AND jsonb_exists(s.value->'queues', n.name)) THEN 1 ELSE 0 END"
        " FROM bound b, names n, LATERAL ("
        "  SELECT count(*) AS n, min(g.scheduled_at) AS since FROM ("
        "   SELECT j.scheduled_at FROM good_jobs j WHERE j.queue_name = n.name AND " WAITS("j")
        "   ORDER BY j.scheduled_at LIMIT b.rows) g) f";

/* app/models/good_job/job.rb:87, 103. Numbers above 10,000 are those that PostgreSQL estimated last. Without the index
 * that GoodJob 4.14 added, discarded jobs are not counted. */
#define COUNT(index, condition)                                                                              \
        "(SELECT CASE WHEN count(*) < 10000 THEN count(*) ELSE greatest(count(*), (SELECT"                    \
        " CAST(k.reltuples AS bigint) FROM pg_class k WHERE k.oid = to_regclass('" index "'))) END"           \
        " FROM (SELECT 1 FROM good_jobs j WHERE " condition " LIMIT 10000) x)"
#define DISCARDED "index_good_jobs_on_discarded"
static const char counts[] =
        "SELECT " COUNT("", "j.finished_at IS NULL AND j.scheduled_at > now()") ","
        " CASE WHEN to_regclass('" DISCARDED "') IS NULL THEN 0 ELSE"
        "  " COUNT(DISCARDED, "j.finished_at IS NOT NULL AND j.error IS NOT NULL") " END";

static const char diagnosis[] =
        "SELECT current_setting('server_version'), CASE WHEN pg_is_in_recovery() THEN 1 ELSE 0 END, 0";

static const struct database_texts postgresql = {
        .begin = "SET LOCAL TimeZone = 'UTC'",
        .probe = "SELECT (SELECT count(*) FROM (SELECT id, lock_type FROM good_job_processes LIMIT 1) a),"
                 " (SELECT count(*) FROM (SELECT id, locked_by_id FROM good_jobs LIMIT 1) b),"
                 " (SELECT count(*) FROM (SELECT id FROM good_job_settings LIMIT 1) c)",
        .questions =
                {
                        [DATABASE_PROCESSES] = processes,
                        [DATABASE_JOBS] = jobs,
                        [DATABASE_QUEUES] = queues,
                        [DATABASE_COUNTS] = counts,
                        [DATABASE_DIAGNOSIS] = diagnosis,
                },
};

/* The columns of DATABASE_PROCESSES. */
enum column {
        COLUMN_HOST,
        COLUMN_PID,
        COLUMN_ID,
        COLUMN_UPDATED,
        COLUMN_CREATED,
        COLUMN_QUEUES,
        COLUMN_THREADS,
        COLUMN_JOBS,
};

#define THREADS_MAX 1000000

/* Loads an array. Returns 0; -EINVAL if it is damaged; or -ENOMEM. */
static int load(const struct database_row *row, size_t column, json_t **ret)
{
        static const struct json_bounds bounds = {.bytes = DATABASE_DOCUMENT_MAX, .values = 1024, .depth = 4};
        const struct field text = database_row_text(row, column);
        int r = text.text ? json_load(&bounds, text.text, text.len, 0, ret) : -EINVAL;

        return r == -EMSGSIZE ? -EINVAL : r;
}

/* app/models/good_job/job.rb:235, queue_parser(): all queues; all but some; or a list, possibly in its order. */
static int add_queues(struct database_process *process, const char *text, size_t length)
{
        const char *end = text + length;
        bool all = false;

        while (text < end && *text == ' ')
                text++;
        for (const char *at = text; at < end; at++)
                all |= *at == '*';
        if (text == end || all)
                return database_process_add_queue(process, "*", 1);
        if (*text == '-')
                return database_process_add_queue(process, text, (size_t)(end - text));
        text += *text == '+';
        return database_process_add_queues(process, text, (size_t)(end - text));
}

static int take_state(const struct database_row *row, struct database_process *process)
{
        _cleanup_json_ json_t *queues = NULL, *threads = NULL;
        json_t *entry;

        int r = load(row, COLUMN_THREADS, &threads);
        json_foreach(entry, threads) {
                json_int_t n = json_integer_value(entry);

                if (n > 0 && n <= THREADS_MAX)
                        process->heartbeat.concurrency =
                                MIN(process->heartbeat.concurrency + (unsigned)n, (unsigned)THREADS_MAX);
        }
        if (r != -ENOMEM)
                r = load(row, COLUMN_QUEUES, &queues);
        json_foreach(entry, queues)
                if (r >= 0 && json_is_string(entry))
                        r = add_queues(process, json_string_value(entry), json_string_length(entry));
        return r == -ENOMEM ? r : 0;
}

static int take_process(struct database_view *view, const struct database_row *row)
{
        const struct field host = database_row_text(row, COLUMN_HOST), pid = database_row_text(row, COLUMN_PID);
        const struct field id = database_row_text(row, COLUMN_ID);
        struct database_process *process;
        uint64_t sent_usec, n_jobs;

        if (!database_row_time(row, COLUMN_UPDATED, &sent_usec))
                return 0;
        int r = database_view_add(view, &host, &pid, &id, &process);
        if (r < 0 || !process)
                return r;
        process->heartbeat.sent_usec = sent_usec;
        (void)database_row_time(row, COLUMN_CREATED, &process->heartbeat.born_usec);
        if (database_row_number(row, COLUMN_JOBS, THREADS_MAX, &n_jobs))
                process->heartbeat.busy = (unsigned)n_jobs;
        return take_state(row, process);
}

static bool is_pattern(const char *name)
{
        return name[0] == '-' || strcmp(name, "*") == 0;
}

/* Returns true if the list, separated by commas, contains the queue. */
static bool lists(const char *list, const char *queue)
{
        size_t length = strlen(queue);

        for (const char *at = list; *at != '\0';) {
                size_t n = strcspn(at, ","), last = n;

                while (last > 0 && *at == ' ')
                        at++, n--, last--;
                while (last > 0 && at[last - 1] == ' ')
                        last--;
                if (last == length && memcmp(at, queue, length) == 0)
                        return true;
                at += n + (at[n] == ',');
        }
        return false;
}

static bool matches(const char *pattern, const char *queue)
{
        if (pattern[0] == '-')
                return !lists(pattern + 1, queue);
        return strcmp(pattern, "*") == 0 || strcmp(pattern, queue) == 0;
}

const struct database_format good_job_database_format = {
        .traits = &good_job_traits,
        .engines = {[DATABASE_POSTGRESQL] = &postgresql},
        .refusal = "GoodJob works with PostgreSQL only",
        .identity_parse = good_job_identity_parse,
        .take_process = take_process,
        .is_pattern = is_pattern,
        .matches = matches,
};
