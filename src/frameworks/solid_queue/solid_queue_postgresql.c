/* SPDX-License-Identifier: MIT */
/* The statements for Solid Queue on PostgreSQL. They follow Solid Queue 1.5: the files that are named are of its
 * source, the tables those of lib/generators/solid_queue/install/templates/db/queue_schema.rb. */
#include "frameworks/database_format.h"
#include "frameworks/database_view.h"
#include "frameworks/solid_queue/solid_queue_database.h"

#define USEC(time) "CAST(extract(epoch FROM " time ") * 1000000 AS bigint)"

/* app/models/solid_queue/process.rb:12, lib/solid_queue/processes/registrable.rb:20: a supervisor, and the workers
 * that have its id. lib/solid_queue/supervisor.rb:58: the kind of a supervisor names its mode.
 * app/models/solid_queue/claimed_execution.rb:4: the jobs of a worker. */
static const char processes[] =
        "SELECT coalesce(p.supervisor_id, p.id), p.kind, p.hostname, p.pid,"
        " " USEC("p.last_heartbeat_at") ", " USEC("p.created_at") ","
        " substr(p.metadata, 1, " DATABASE_DOCUMENT_MAX_TEXT "),"
        " CASE p.kind WHEN 'Worker' THEN"
        "  (SELECT count(*) FROM (SELECT c.id FROM solid_queue_claimed_executions c"
        "   WHERE c.process_id = p.id LIMIT 10000) claims) ELSE 0 END"
        " FROM solid_queue_processes p"
        " WHERE p.kind IN ('Supervisor(async)', 'Worker') AND (CAST($1 AS text) IS NULL"
        "  OR p.hostname IN (SELECT json_array_elements_text(CAST(CAST($1 AS text) AS json))))"
        " ORDER BY 1, p.supervisor_id IS NOT NULL, p.id LIMIT 65536";

static const char jobs[] =
        "SELECT s.hostname, s.pid, s.id, c.process_id, coalesce(j.active_job_id, CAST(j.id AS text)),"
        " substr(j.class_name, 1, 255), substr(j.queue_name, 1, 255), " USEC("c.created_at") ","
        " c.id || ':' || j.id || ':' || substr(coalesce(j.arguments, ''), 1, 40)"
        " FROM solid_queue_processes s"
        " JOIN solid_queue_processes w ON w.supervisor_id = s.id AND w.hostname = s.hostname AND w.pid = s.pid"
        " JOIN solid_queue_claimed_executions c ON c.process_id = w.id"
        " JOIN solid_queue_jobs j ON j.id = c.job_id"
        " WHERE s.kind = 'Supervisor(async)' AND w.kind = 'Worker'"
        "  AND CAST(s.id AS text) IN (SELECT json_array_elements_text(CAST($1 AS json)))"
        " LIMIT 65536";

/* app/models/solid_queue/queue.rb:8, 46: names, sizes and latencies. Other names than those asked for are found by
 * one step in an index each. Of a queue, the first jobs in the order of their execution (execution.rb:11) are read:
 * of all queues about 4,000, so that the cost is bounded. Where these are not all, a sample of the table's pages
 * estimates the number: all of its pages up to 400, so that the number is exact unless much waits. The oldest job
 * then is the oldest of those that were read, of the sample, and of the first job of the last priority. */
static const char queues[] =
        "WITH RECURSIVE others(name, i) AS ("
        "  SELECT (SELECT j.queue_name FROM solid_queue_jobs j ORDER BY j.queue_name LIMIT 1), 1"
        "  WHERE CAST($2 AS integer) > 0"
        "  UNION ALL SELECT (SELECT j.queue_name FROM solid_queue_jobs j WHERE j.queue_name > o.name"
        "   ORDER BY j.queue_name LIMIT 1), o.i + 1"
        "  FROM others o WHERE o.name IS NOT NULL AND o.i < CAST($2 AS integer)"
        " ), names AS MATERIALIZED ("
        "  SELECT o.name FROM others o WHERE o.name IS NOT NULL"
        "  UNION SELECT json_array_elements_text(CAST($1 AS json))"
        " ), bound AS MATERIALIZED ("
        "  SELECT least(1000, greatest(10, 4000 / greatest(1, count(*)))) AS rows,"
        "   least(1.0, 400.0 * 8192 / greatest(1, pg_relation_size('solid_queue_ready_executions'))) AS part"
        "  FROM names"
        " ), sample AS MATERIALIZED ("
        "  SELECT r.queue_name, count(*) AS n, min(r.created_at) AS since"
        "  FROM solid_queue_ready_executions r TABLESAMPLE SYSTEM (100 * least(1.0,"
        "   400.0 * 8192 / greatest(1, pg_relation_size('solid_queue_ready_executions')))) REPEATABLE (0)"
        "  GROUP BY r.queue_name"
        " )"
        " SELECT n.name,"
        " CASE WHEN f.n < b.rows THEN f.n ELSE greatest(f.n,"
        "  CAST((SELECT s.n FROM sample s WHERE s.queue_name = n.name) / b.part AS bigint)) END,"
        " " USEC("CASE WHEN f.n < b.rows THEN f.since ELSE least(f.since,"
        "  (SELECT s.since FROM sample s WHERE s.queue_name = n.name),"
        "  (SELECT r.created_at FROM solid_queue_ready_executions r WHERE r.queue_name = n.name AND r.priority ="
        "    (SELECT max(l.priority) FROM solid_queue_ready_executions l WHERE l.queue_name = n.name)"
        "   ORDER BY r.job_id LIMIT 1)) END") ","
        " " USEC("now()") ","
        " CASE WHEN EXISTS (SELECT 1 FROM solid_queue_pauses p WHERE p.queue_name = n.name) THEN 1 ELSE 0 END"
        " FROM bound b, names n, LATERAL ("
        "  SELECT count(*) AS n, min(g.created_at) AS since FROM ("
        "   SELECT r.created_at FROM solid_queue_ready_executions r WHERE r.queue_name = n.name"
        "   ORDER BY r.priority, r.job_id LIMIT b.rows) g) f";

/* Numbers above 10,000 are those that PostgreSQL estimated last. */
#define COUNT(table)                                                                                         \
        "(SELECT CASE WHEN count(*) < 10000 THEN count(*) ELSE greatest(count(*), (SELECT"                    \
        " CAST(k.reltuples AS bigint) FROM pg_class k WHERE k.oid = to_regclass('" table "'))) END"           \
        " FROM (SELECT 1 FROM " table " LIMIT 10000) x)"
static const char counts[] =
        "SELECT " COUNT("solid_queue_scheduled_executions") ", " COUNT("solid_queue_failed_executions");

static const char diagnosis[] =
        "SELECT current_setting('server_version'), CASE WHEN pg_is_in_recovery() THEN 1 ELSE 0 END,"
        " (SELECT count(*) FROM (SELECT 1 FROM solid_queue_processes p WHERE p.kind = 'Supervisor(fork)'"
        "  LIMIT 10000) x)";

/* app/models/solid_queue/claimed_execution.rb:60, release(), and 97, unless_already_finalized(): the claim is
 * locked, the job becomes ready (job/executable.rb:74) and the claim is deleted in one transaction. */
#define CLAIM(prefix)                                                                                        \
        " FROM solid_queue_claimed_executions c"                                                             \
        " JOIN solid_queue_processes w ON w.id = c.process_id"                                               \
        " JOIN solid_queue_processes s ON s.id = w.supervisor_id"                                            \
        " JOIN solid_queue_jobs j ON j.id = c.job_id"                                                        \
        " WHERE w.hostname = $1 AND CAST(w.pid AS text) = $2 AND CAST(s.id AS text) = $3"                    \
        " AND s.hostname = w.hostname AND s.pid = w.pid AND CAST(w.id AS text) = $4"                         \
        " AND c.id = CAST($5 AS bigint) AND c.job_id = CAST($6 AS bigint)" prefix
#define AS_IT_WAS " AND substr(j.arguments, 1, length($7)) = $7"
#define CHECK     "SELECT CASE WHEN substr(j.arguments, 1, length($7)) = $7 THEN 1 ELSE 0 END" CLAIM("")

const struct database_texts solid_queue_postgresql = {
        .begin = "SET LOCAL TimeZone = 'UTC'",
        .probe = "SELECT (SELECT count(*) FROM (SELECT id FROM solid_queue_processes LIMIT 1) a),"
                 " (SELECT count(*) FROM (SELECT id FROM solid_queue_claimed_executions LIMIT 1) b),"
                 " (SELECT count(*) FROM (SELECT id FROM solid_queue_ready_executions LIMIT 1) c),"
                 " (SELECT count(*) FROM (SELECT id FROM solid_queue_jobs LIMIT 1) d)",
        .questions =
                {
                        [DATABASE_PROCESSES] = processes,
                        [DATABASE_JOBS] = jobs,
                        [DATABASE_QUEUES] = queues,
                        [DATABASE_COUNTS] = counts,
                        [DATABASE_DIAGNOSIS] = diagnosis,
                },
        .look = CHECK,
        .rescue =
                {
                        [DATABASE_RESCUE_CHECK] = CHECK " FOR UPDATE OF c",
                        [DATABASE_RESCUE_READY] =
                                "INSERT INTO solid_queue_ready_executions (job_id, queue_name, priority, created_at)"
                                " SELECT j.id, j.queue_name, j.priority, now()" CLAIM(
                                        AS_IT_WAS) " ON CONFLICT DO NOTHING",
                        [DATABASE_RESCUE_COUNT] =
                                "UPDATE solid_queue_jobs SET arguments = $8 || substr(arguments, length($7) + 1)"
                                " WHERE id IN (SELECT j.id" CLAIM(AS_IT_WAS) ")",
                        /* The arguments are new by now. */
                        [DATABASE_RESCUE_RELEASE] =
                                "DELETE FROM solid_queue_claimed_executions WHERE id IN (SELECT c.id" CLAIM(
                                        " AND substr(j.arguments, 1, length($8)) = $8 AND $7 <> $8") ")"
                                " AND job_id IN (SELECT r.job_id FROM solid_queue_ready_executions r"
                                "  WHERE r.job_id = CAST($6 AS bigint))",
                },
};
