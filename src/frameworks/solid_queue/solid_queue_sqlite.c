/* SPDX-License-Identifier: MIT */
/* The statements for Solid Queue on SQLite; solid_queue_postgresql.c names the source that they follow. Times
 * are texts in UTC, as Rails writes them. A batch that writes has locked the database before it begins. */
#include "frameworks/database_format.h"
#include "frameworks/database_view.h"
#include "frameworks/solid_queue/solid_queue_database.h"

static const char processes[] = "SELECT coalesce(p.supervisor_id, p.id), p.kind, p.hostname, p.pid,"
                                " p.last_heartbeat_at, p.created_at,"
                                " substr(p.metadata, 1, " DATABASE_DOCUMENT_MAX_TEXT "),"
                                " CASE p.kind WHEN 'Worker' THEN"
                                "  (SELECT count(*) FROM (SELECT c.id FROM solid_queue_claimed_executions c"
                                "   WHERE c.process_id = p.id LIMIT 10000) claims) ELSE 0 END"
                                " FROM solid_queue_processes p"
                                " WHERE p.kind IN ('Supervisor(async)', 'Worker') AND"
                                "  ($1 IS NULL OR p.hostname IN (SELECT value FROM json_each($1)))"
                                " ORDER BY 1, p.supervisor_id IS NOT NULL, p.id" DATABASE_LIMIT;

static const char jobs[] =
        "SELECT s.hostname, s.pid, s.id, w.id, substr(j.active_job_id, 1, 255), substr(j.class_name, 1, 255),"
        " substr(j.queue_name, 1, 255), c.created_at, c.id, c.job_id, substr(j.arguments, 1, 40)"
        " FROM solid_queue_processes s"
        " CROSS JOIN solid_queue_processes w ON w.supervisor_id = s.id"
        " CROSS JOIN solid_queue_claimed_executions c ON c.process_id = w.id"
        " CROSS JOIN solid_queue_jobs j ON j.id = c.job_id"
        " WHERE s.kind = 'Supervisor(async)' AND w.kind = 'Worker'"
        "  AND CAST(s.id AS text) IN (SELECT value FROM json_each($1))" DATABASE_LIMIT;

/* SQLite counts from an index alone, in this process. The oldest job is one of the first jobs in the order of
 * their execution, or the first one of the last priority. */
static const char queues[] =
        "WITH RECURSIVE others(name, i) AS ("
        "  SELECT (SELECT min(j.queue_name) FROM solid_queue_jobs j), 1 WHERE CAST($2 AS integer) > 0"
        "  UNION ALL SELECT (SELECT min(j.queue_name) FROM solid_queue_jobs j"
        "   WHERE j.queue_name > o.name), o.i + 1"
        "  FROM others o WHERE o.name IS NOT NULL AND o.i < CAST($2 AS integer)"
        " ), names(name) AS ("
        "  SELECT o.name FROM others o WHERE o.name IS NOT NULL UNION SELECT value FROM json_each($1)"
        " )"
        " SELECT n.name,"
        " (SELECT count(*) FROM (SELECT 1 FROM solid_queue_ready_executions r"
        "  WHERE r.queue_name = n.name LIMIT 200000)),"
        " (SELECT min(created_at) FROM (SELECT created_at FROM ("
        "   SELECT r.created_at FROM solid_queue_ready_executions r WHERE r.queue_name = n.name"
        "   ORDER BY r.priority, r.job_id LIMIT 1000)"
        "  UNION ALL SELECT created_at FROM (SELECT r.created_at FROM solid_queue_ready_executions r"
        "   WHERE r.queue_name = n.name AND r.priority = (SELECT max(l.priority)"
        "    FROM solid_queue_ready_executions l WHERE l.queue_name = n.name)"
        "   ORDER BY r.job_id LIMIT 1))),"
        " strftime('%Y-%m-%d %H:%M:%f000', 'now'),"
        " EXISTS (SELECT 1 FROM solid_queue_pauses p WHERE p.queue_name = n.name)"
        " FROM names n";

static const char counts[] =
        "SELECT (SELECT count(*) FROM (SELECT 1 FROM solid_queue_scheduled_executions LIMIT 100000)),"
        " (SELECT count(*) FROM (SELECT 1 FROM solid_queue_failed_executions LIMIT 100000))";

static const char diagnosis[] =
        "SELECT sqlite_version(), 0,"
        " (SELECT count(*) FROM (SELECT 1 FROM solid_queue_processes p WHERE p.kind = 'Supervisor(fork)'"
        "  AND p.hostname IN (SELECT value FROM json_each($1)) LIMIT 10000) x),"
        " (SELECT count(*) FROM (SELECT 1 FROM solid_queue_processes p WHERE p.kind = 'Dispatcher'"
        "  AND p.last_heartbeat_at > strftime('%Y-%m-%d %H:%M:%f', 'now', '-5 minutes') LIMIT 10000) x),"
        " (SELECT count(*) FROM (SELECT 1 FROM solid_queue_processes p WHERE p.kind = 'Scheduler'"
        "  AND p.last_heartbeat_at > strftime('%Y-%m-%d %H:%M:%f', 'now', '-5 minutes') LIMIT 10000) x),"
        " (SELECT count(*) FROM (SELECT 1 FROM solid_queue_recurring_tasks LIMIT 10000) x),"
        " (SELECT count(*) FROM (SELECT 1 FROM solid_queue_pauses LIMIT 10000) x),"
        " (SELECT count(*) FROM (SELECT f.created_at, f.error FROM solid_queue_failed_executions f"
        "  ORDER BY f.id DESC LIMIT 1000) x WHERE x.created_at > strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 "
        "hour')"
        "  AND substr(x.error, 1, 50) = '{\"exception_class\":\"SolidQueue::Processes::Process')";

#define AS_IT_WAS " AND substr(j.arguments, 1, length($7)) = $7"

static const char released[] = "SELECT count(*) FROM json_each($1) ran"
                               " WHERE EXISTS (SELECT 1 FROM solid_queue_ready_executions r"
                               "  WHERE r.job_id = CAST(json_extract(ran.value, '$[1]') AS integer))"
                               " OR EXISTS (SELECT 1 FROM solid_queue_claimed_executions c"
                               "  WHERE c.job_id = CAST(json_extract(ran.value, '$[1]') AS integer)"
                               "  AND c.id <> CAST(json_extract(ran.value, '$[0]') AS integer))";

static const char make_ready[] =
        "INSERT INTO solid_queue_ready_executions (job_id, queue_name, priority, created_at)"
        " SELECT j.id, j.queue_name, j.priority, strftime('%Y-%m-%d %H:%M:%f000', 'now')" SOLID_QUEUE_CLAIM
                AS_IT_WAS " ON CONFLICT DO NOTHING";

static const char count_rescue[] =
        "UPDATE solid_queue_jobs SET arguments = $8 || substr(arguments, length($7) + 1)"
        " WHERE id IN (SELECT j.id" SOLID_QUEUE_CLAIM AS_IT_WAS ")";

/* The arguments have changed by now. */
static const char release[] =
        "DELETE FROM solid_queue_claimed_executions WHERE id IN (SELECT c.id" SOLID_QUEUE_CLAIM
        " AND substr(j.arguments, 1, length($8)) = $8 AND $7 <> $8)"
        " AND job_id IN (SELECT r.job_id FROM solid_queue_ready_executions r"
        "  WHERE r.job_id = CAST($6 AS integer))";

const struct database_texts solid_queue_sqlite = {
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
        .rescue = {SOLID_QUEUE_CHECK, make_ready, count_rescue, release},
};
