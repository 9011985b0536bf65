/* SPDX-License-Identifier: MIT */
/* The statements for Solid Queue on SQLite; those for PostgreSQL (solid_queue_postgresql.c) name the source that
 * they follow. Times are read as the texts that Rails writes. */
#include "frameworks/database_format.h"
#include "frameworks/database_view.h"
#include "frameworks/solid_queue/solid_queue_database.h"

#define NOW "strftime('%Y-%m-%d %H:%M:%f000', 'now')"

static const char processes[] =
        "SELECT coalesce(p.supervisor_id, p.id), p.kind, p.hostname, p.pid, p.last_heartbeat_at, p.created_at,"
        " substr(p.metadata, 1, " DATABASE_DOCUMENT_MAX_TEXT "),"
        " CASE p.kind WHEN 'Worker' THEN"
        "  (SELECT count(*) FROM (SELECT c.id FROM solid_queue_claimed_executions c"
        "   WHERE c.process_id = p.id LIMIT 10000) claims) ELSE 0 END"
        " FROM solid_queue_processes p"
        " WHERE p.kind IN ('Supervisor(async)', 'Worker')"
        "  AND ($1 IS NULL OR p.hostname IN (SELECT value FROM json_each($1)))"
        " ORDER BY 1, p.supervisor_id IS NOT NULL, p.id LIMIT 65536";

static const char jobs[] =
        "SELECT s.hostname, s.pid, s.id, c.process_id, coalesce(j.active_job_id, CAST(j.id AS text)),"
        " substr(j.class_name, 1, 255), substr(j.queue_name, 1, 255), c.created_at,"
        " c.id || ':' || j.id || ':' || substr(coalesce(j.arguments, ''), 1, 40)"
        " FROM solid_queue_processes s"
        " JOIN solid_queue_processes w ON w.supervisor_id = s.id AND w.hostname = s.hostname AND w.pid = s.pid"
        " JOIN solid_queue_claimed_executions c ON c.process_id = w.id"
        " JOIN solid_queue_jobs j ON j.id = c.job_id"
        " WHERE s.kind = 'Supervisor(async)' AND w.kind = 'Worker'"
        "  AND CAST(s.id AS text) IN (SELECT value FROM json_each($1))"
        " LIMIT 65536";

/* SQLite counts from an index alone, in this process. The oldest job is one of the first jobs in the order of their
 * execution, or the first one of the last priority. */
static const char queues[] =
        "WITH RECURSIVE others(name, i) AS ("
        "  SELECT (SELECT min(j.queue_name) FROM solid_queue_jobs j), 1 WHERE CAST($2 AS integer) > 0"
        "  UNION ALL SELECT (SELECT min(j.queue_name) FROM solid_queue_jobs j WHERE j.queue_name > o.name), o.i + 1"
        "  FROM others o WHERE o.name IS NOT NULL AND o.i < CAST($2 AS integer)"
        " ), names(name) AS ("
        "  SELECT o.name FROM others o WHERE o.name IS NOT NULL UNION SELECT value FROM json_each($1)"
        " )"
        " SELECT n.name,"
        " (SELECT count(*) FROM (SELECT 1 FROM solid_queue_ready_executions r WHERE r.queue_name = n.name"
        "  LIMIT 200000)),"
        " (SELECT min(created_at) FROM (SELECT created_at FROM ("
        "   SELECT r.created_at FROM solid_queue_ready_executions r WHERE r.queue_name = n.name"
        "   ORDER BY r.priority, r.job_id LIMIT 1000)"
        "  UNION ALL SELECT created_at FROM (SELECT r.created_at FROM solid_queue_ready_executions r"
        "   WHERE r.queue_name = n.name AND r.priority ="
        "    (SELECT max(l.priority) FROM solid_queue_ready_executions l WHERE l.queue_name = n.name)"
        "   ORDER BY r.job_id LIMIT 1))),"
        " " NOW ", EXISTS (SELECT 1 FROM solid_queue_pauses p WHERE p.queue_name = n.name)"
        " FROM names n";

#define COUNT(table) "(SELECT count(*) FROM (SELECT 1 FROM " table " LIMIT 100000))"
static const char counts[] =
        "SELECT " COUNT("solid_queue_scheduled_executions") ", " COUNT("solid_queue_failed_executions");

static const char diagnosis[] =
        "SELECT sqlite_version(), 0,"
        " (SELECT count(*) FROM (SELECT 1 FROM solid_queue_processes p WHERE p.kind = 'Supervisor(fork)'"
        "  LIMIT 10000))";

#define CLAIM(prefix)                                                                                        \
        " FROM solid_queue_claimed_executions c"                                                             \
        " JOIN solid_queue_processes w ON w.id = c.process_id"                                               \
        " JOIN solid_queue_processes s ON s.id = w.supervisor_id"                                            \
        " JOIN solid_queue_jobs j ON j.id = c.job_id"                                                        \
        " WHERE w.hostname = $1 AND CAST(w.pid AS text) = $2 AND CAST(s.id AS text) = $3"                    \
        " AND s.hostname = w.hostname AND s.pid = w.pid AND CAST(w.id AS text) = $4"                         \
        " AND c.id = CAST($5 AS integer) AND c.job_id = CAST($6 AS integer)" prefix
#define AS_IT_WAS " AND substr(j.arguments, 1, length($7)) = $7"
#define CHECK     "SELECT CASE WHEN substr(j.arguments, 1, length($7)) = $7 THEN 1 ELSE 0 END" CLAIM("")

const struct database_texts solid_queue_sqlite = {
        .probe = "SELECT (SELECT count(*) FROM (SELECT id FROM solid_queue_processes LIMIT 1)),"
                 " (SELECT count(*) FROM (SELECT id FROM solid_queue_claimed_executions LIMIT 1)),"
                 " (SELECT count(*) FROM (SELECT id FROM solid_queue_ready_executions LIMIT 1)),"
                 " (SELECT count(*) FROM (SELECT id FROM solid_queue_jobs LIMIT 1))",
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
                        [DATABASE_RESCUE_CHECK] = CHECK,
                        [DATABASE_RESCUE_READY] =
                                "INSERT INTO solid_queue_ready_executions (job_id, queue_name, priority, created_at)"
                                " SELECT j.id, j.queue_name, j.priority, " NOW CLAIM(
                                        AS_IT_WAS) " ON CONFLICT DO NOTHING",
                        [DATABASE_RESCUE_COUNT] =
                                "UPDATE solid_queue_jobs SET arguments = $8 || substr(arguments, length($7) + 1)"
                                " WHERE id IN (SELECT j.id" CLAIM(AS_IT_WAS) ")",
                        [DATABASE_RESCUE_RELEASE] =
                                "DELETE FROM solid_queue_claimed_executions WHERE id IN (SELECT c.id" CLAIM(
                                        " AND substr(j.arguments, 1, length($8)) = $8 AND $7 <> $8") ")"
                                " AND job_id IN (SELECT r.job_id FROM solid_queue_ready_executions r"
                                "  WHERE r.job_id = CAST($6 AS integer))",
                },
};
