/* SPDX-License-Identifier: MIT */
/* The statements for Solid Queue on PostgreSQL. They follow Solid Queue 1.5: the files that are named are of
 * its source, the tables those of lib/generators/solid_queue/install/templates/db/queue_schema.rb. */
#include "frameworks/database_format.h"
#include "frameworks/database_view.h"
#include "frameworks/solid_queue/solid_queue_database.h"

/* app/models/solid_queue/process.rb:6, lib/solid_queue/processes/registrable.rb:20: a supervisor, and the
 * workers that have its id. lib/solid_queue/supervisor.rb:52: the kind of a supervisor names its mode.
 * app/models/solid_queue/claimed_execution.rb:4: the jobs of a worker. */
static const char processes[] = "SELECT coalesce(p.supervisor_id, p.id), p.kind, p.hostname, p.pid,"
                                " date_part('epoch', p.last_heartbeat_at), date_part('epoch', p.created_at),"
                                " substr(p.metadata, 1, " DATABASE_DOCUMENT_MAX_TEXT "),"
                                " CASE p.kind WHEN 'Worker' THEN"
                                "  (SELECT count(*) FROM (SELECT c.id FROM solid_queue_claimed_executions c"
                                "   WHERE c.process_id = p.id LIMIT 10000) claims) ELSE 0 END"
                                " FROM solid_queue_processes p"
                                " WHERE p.kind IN ('Supervisor(async)', 'Worker') AND"
                                "  (CAST($1 AS text) IS NULL OR p.hostname IN (SELECT "
                                "json_array_elements_text(CAST(CAST($1 AS text) AS json))))"
                                " ORDER BY 1, p.supervisor_id IS NOT NULL, p.id" DATABASE_LIMIT;

static const char jobs[] =
        "SELECT s.hostname, s.pid, s.id, w.id, substr(j.active_job_id, 1, 255), substr(j.class_name, 1, 255),"
        " substr(j.queue_name, 1, 255), date_part('epoch', c.created_at), c.id, c.job_id,"
        " substr(j.arguments, 1, 40)"
        " FROM solid_queue_processes s"
        " JOIN solid_queue_processes w ON w.supervisor_id = s.id"
        " JOIN solid_queue_claimed_executions c ON c.process_id = w.id"
        " JOIN solid_queue_jobs j ON j.id = c.job_id"
        " WHERE s.kind = 'Supervisor(async)' AND w.kind = 'Worker'"
        "  AND (CAST($1 AS text) IS NULL OR CAST(s.id AS text) IN"
        "   (SELECT json_array_elements_text(CAST(CAST($1 AS text) AS json))))" DATABASE_LIMIT;

/* app/models/solid_queue/queue.rb:8, 37: names, sizes and latencies. Other names than those asked for are
 * found by one step in an index each. Of a queue, the first jobs in the order of their execution
 * (execution.rb:11) are read: of all queues about 2,000, so that the cost is bounded. Where these are not
 * all, a sample of the table's pages estimates the number: of all pages up to 250, so that the number is
 * exact unless much waits. The oldest job then is the oldest of those that were read, of the sample, and of
 * the first job of the last priority. */
#define PART "least(1.0, 250.0 * 8192 / greatest(1, pg_relation_size('solid_queue_ready_executions')))"

static const char queues[] =
        "WITH RECURSIVE others(name, i) AS ("
        "  SELECT (SELECT j.queue_name FROM solid_queue_jobs j ORDER BY j.queue_name LIMIT 1), 1"
        "  WHERE CAST($2 AS integer) > 0"
        "  UNION ALL SELECT (SELECT j.queue_name FROM solid_queue_jobs j"
        "   WHERE j.queue_name > o.name ORDER BY j.queue_name LIMIT 1), o.i + 1"
        "  FROM others o WHERE o.name IS NOT NULL AND o.i < CAST($2 AS integer)"
        " ), names AS MATERIALIZED ("
        "  SELECT o.name FROM others o WHERE o.name IS NOT NULL"
        "  UNION SELECT json_array_elements_text(CAST($1 AS json))"
        " ), bound AS MATERIALIZED ("
        "  SELECT least(1000, greatest(10, 2000 / greatest(1, count(*)))) AS rows, " PART " AS part"
        "  FROM names"
        " ), sample AS MATERIALIZED ("
        "  SELECT r.queue_name, count(*) AS n, min(r.created_at) AS since"
        "  FROM solid_queue_ready_executions r"
        "  TABLESAMPLE SYSTEM (100 * " PART ") REPEATABLE (0)"
        "  GROUP BY r.queue_name"
        " )"
        " SELECT n.name,"
        " CASE WHEN f.n < b.rows THEN f.n ELSE greatest(f.n,"
        "  CAST((SELECT s.n FROM sample s WHERE s.queue_name = n.name) / b.part AS bigint)) END,"
        " date_part('epoch', CASE WHEN f.n < b.rows THEN f.since ELSE least(f.since,"
        "  (SELECT s.since FROM sample s WHERE s.queue_name = n.name),"
        "  (SELECT r.created_at FROM solid_queue_ready_executions r"
        "   WHERE r.queue_name = n.name AND r.priority = (SELECT max(l.priority)"
        "    FROM solid_queue_ready_executions l WHERE l.queue_name = n.name)"
        "   ORDER BY r.job_id LIMIT 1)) END),"
        " date_part('epoch', now()),"
        " CASE WHEN EXISTS (SELECT 1 FROM solid_queue_pauses p WHERE p.queue_name = n.name)"
        "  THEN 1 ELSE 0 END"
        " FROM bound b, names n, LATERAL ("
        "  SELECT count(*) AS n, min(g.created_at) AS since FROM ("
        "   SELECT r.created_at FROM solid_queue_ready_executions r WHERE r.queue_name = n.name"
        "   ORDER BY r.priority, r.job_id LIMIT b.rows) g) f";

/* Numbers from 10,000 on are those that PostgreSQL estimated last. */
static const char counts[] =
        "SELECT (SELECT CASE WHEN count(*) < 10000 THEN count(*) ELSE greatest(count(*), (SELECT"
        "  CAST(k.reltuples AS bigint) FROM pg_class k"
        "  WHERE k.oid = to_regclass('solid_queue_scheduled_executions'))) END"
        " FROM (SELECT 1 FROM solid_queue_scheduled_executions LIMIT 10000) x),"
        " (SELECT CASE WHEN count(*) < 10000 THEN count(*) ELSE greatest(count(*), (SELECT"
        "  CAST(k.reltuples AS bigint) FROM pg_class k"
        "  WHERE k.oid = to_regclass('solid_queue_failed_executions'))) END"
        " FROM (SELECT 1 FROM solid_queue_failed_executions LIMIT 10000) x)";

/* lib/solid_queue/configuration.rb: dispatchers and schedulers. lib/solid_queue.rb:31: how old a heartbeat
 * may be. app/models/solid_queue/process/prunable.rb: the errors of jobs whose process died; only the latest
 * failures are read, since created_at has no index. */
static const char diagnosis[] =
        "SELECT current_setting('server_version'), CASE WHEN pg_is_in_recovery() THEN 1 ELSE 0 END,"
        " (SELECT count(*) FROM (SELECT 1 FROM solid_queue_processes p WHERE p.kind = 'Supervisor(fork)'"
        "  AND p.hostname IN (SELECT json_array_elements_text(CAST($1 AS json))) LIMIT 10000) x),"
        " (SELECT count(*) FROM (SELECT 1 FROM solid_queue_processes p WHERE p.kind = 'Dispatcher'"
        "  AND p.last_heartbeat_at > now() - interval '5 minutes' LIMIT 10000) x),"
        " (SELECT count(*) FROM (SELECT 1 FROM solid_queue_processes p WHERE p.kind = 'Scheduler'"
        "  AND p.last_heartbeat_at > now() - interval '5 minutes' LIMIT 10000) x),"
        " (SELECT count(*) FROM (SELECT 1 FROM solid_queue_recurring_tasks LIMIT 10000) x),"
        " (SELECT count(*) FROM (SELECT 1 FROM solid_queue_pauses LIMIT 10000) x),"
        " (SELECT count(*) FROM (SELECT f.created_at, f.error FROM solid_queue_failed_executions f"
        "  ORDER BY f.id DESC LIMIT 1000) x WHERE x.created_at > now() - interval '1 hour'"
        "  AND substr(x.error, 1, 50) = '{\"exception_class\":\"SolidQueue::Processes::Process')";

/* app/models/solid_queue/claimed_execution.rb:75, release(), and 118, unless_already_finalized(): the claim
 * is locked, the job becomes ready (job/executable.rb:75, 104) and the claim is deleted, in one transaction.
 */

/* A job keeps its id when its claim is released (claimed_execution.rb:75), and gets another claim when it is
 * taken. A retry is another job. */
static const char released[] =
        "SELECT count(*) FROM json_array_elements(CAST($1 AS json)) ran(job)"
        " WHERE EXISTS (SELECT 1 FROM solid_queue_ready_executions r"
        "  WHERE r.job_id = CAST(ran.job->>1 AS bigint))"
        " OR EXISTS (SELECT 1 FROM solid_queue_claimed_executions c"
        "  WHERE c.job_id = CAST(ran.job->>1 AS bigint) AND c.id <> CAST(ran.job->>0 AS bigint))";

/* A single statement sees one state of the tables: a process that another host removes meanwhile cannot leave
 * a job both claimed and ready. */
static const char rescue[] =
        "WITH claim AS MATERIALIZED ("
        "  SELECT c.id, c.job_id, j.queue_name, j.priority,"
        "  substr(j.arguments, 1, length($7)) = $7 AND $7 <> $8 AS as_it_was" SOLID_QUEUE_CLAIM
        " FOR UPDATE OF c"
        " ), rescued AS MATERIALIZED (SELECT * FROM claim WHERE as_it_was"
        " ), made_ready AS ("
        "  INSERT INTO solid_queue_ready_executions (job_id, queue_name, priority, created_at)"
        "  SELECT r.job_id, r.queue_name, r.priority, now() FROM rescued r ON CONFLICT DO NOTHING"
        "  RETURNING job_id"
        " ), counted AS ("
        "  UPDATE solid_queue_jobs SET arguments = $8 || substr(arguments, length($7) + 1)"
        "  WHERE id IN (SELECT r.job_id FROM rescued r)"
        " ), released AS ("
        "  DELETE FROM solid_queue_claimed_executions WHERE id IN (SELECT r.id FROM rescued r"
        "   WHERE r.job_id IN (SELECT m.job_id FROM made_ready m) OR r.job_id IN"
        "   (SELECT e.job_id FROM solid_queue_ready_executions e WHERE e.job_id = CAST($6 AS bigint)))"
        " )"
        " SELECT CASE WHEN as_it_was THEN 1 ELSE 0 END FROM claim";

const struct database_texts solid_queue_postgresql = {
        .begin = "SELECT set_config('TimeZone', 'UTC', true), set_config('jit', 'off', true)",
        .probe = SOLID_QUEUE_PROBE,
        .questions =
                {
                        [DATABASE_PROCESSES] = processes,
                        [DATABASE_JOBS] = jobs,
                        [DATABASE_QUEUES] = queues,
                        [DATABASE_COUNTS] = counts,
                        [DATABASE_DIAGNOSIS] = diagnosis,
                        [DATABASE_RELEASED] = released,
                },
        .check = SOLID_QUEUE_CHECK,
        .rescue = {rescue},
};
