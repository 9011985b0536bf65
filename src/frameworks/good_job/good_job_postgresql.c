/* SPDX-License-Identifier: MIT */
/* The statements for GoodJob. They follow GoodJob 4.19: the files that are named are of its source, the
 * tables those of lib/generators/good_job/templates/install/migrations/create_good_jobs.rb.erb. */
#include "frameworks/database_format.h"
#include "frameworks/database_view.h"
#include "frameworks/good_job/good_job.h"

/* app/models/good_job/process.rb:57, 67, 111: without its advisory lock, a process that takes one is dead,
 * and its row is left out. The key is that of app/models/concerns/good_job/advisory_lockable.rb:578, 755;
 * hash functions that need an extension are not known. lib/good_job/scheduler.rb:209: queues and threads. */
static const char processes[] =
        "WITH held AS MATERIALIZED ("
        "  SELECT (CAST(l.classid AS bigint) << 32) | CAST(l.objid AS bigint) AS key FROM pg_locks l"
        "  WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND l.database ="
        "   (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())"
        " )"
        " SELECT substr(p.state->>'hostname', 1, 255), substr(p.state->>'pid', 1, 20), p.id, "
        "date_part('epoch', p.updated_at), "
        "date_part('epoch', p.created_at),"
        " substr(CAST(jsonb_path_query_array(p.state, '$.schedulers[*].queues') AS text), 1,"
        "  " DATABASE_DOCUMENT_MAX_TEXT "),"
        " substr(CAST(jsonb_path_query_array(p.state, '$.schedulers[*].max_threads') AS text), 1,"
        "  " DATABASE_DOCUMENT_MAX_TEXT "),"
        " (SELECT count(*) FROM (SELECT 1 FROM good_jobs j WHERE j.locked_by_id = p.id"
        "  AND j.finished_at IS NULL LIMIT 10000) x)"
        " FROM good_job_processes p"
        " WHERE (CAST($1 AS text) IS NULL OR p.state->>'hostname' IN"
        "  (SELECT json_array_elements_text(CAST(CAST($1 AS text) AS json))))"
        " AND (p.lock_type IS NULL OR"
        "  CAST(CAST('x' || substr(md5('good_job_processes-' || CAST(p.id AS text)), 1, 16) AS bit(64))"
        "   AS bigint) IN (SELECT h.key FROM held h) OR"
        "  CAST(hashtext('good_job_processes-' || CAST(p.id AS text)) AS bigint)"
        "   IN (SELECT h.key FROM held h))" DATABASE_LIMIT;

/* app/models/good_job/job.rb, perform(): a running job names its process. */
static const char jobs[] =
        "SELECT substr(p.state->>'hostname', 1, 255), substr(p.state->>'pid', 1, 20), p.id, p.id, "
        "coalesce(j.active_job_id, j.id),"
        " j.job_class, j.queue_name,"
        " date_part('epoch', coalesce(j.performed_at, j.locked_at))"
        " FROM good_job_processes p"
        " CROSS JOIN LATERAL (SELECT l.id, l.active_job_id, substr(l.job_class, 1, 255) AS job_class,"
        "  substr(l.queue_name, 1, 255) AS queue_name, l.performed_at, l.locked_at FROM good_jobs l"
        "  WHERE l.locked_by_id = p.id AND l.finished_at IS NULL LIMIT 10000) j"
        " WHERE (CAST($1 AS text) IS NULL OR CAST(p.id AS text) IN"
        "  (SELECT json_array_elements_text(CAST(CAST($1 AS text) AS json))))" DATABASE_LIMIT;

/* app/models/good_job/job.rb:87, 123: jobs that are due and run nowhere; setting.rb:7: paused queues. Other
 * names than those asked for are found by one step in an index each. Of a queue, the jobs that wait longest
 * are read: of all queues about 2,000, so that the cost is bounded. Where these are not all, a sample of the
 * table's pages estimates the number. */
#define WAITS "j.finished_at IS NULL AND j.locked_by_id IS NULL AND j.scheduled_at <= now()"
#define PART  "least(1.0, 250.0 * 8192 / greatest(1, pg_relation_size('good_jobs')))"

static const char queues[] =
        "WITH RECURSIVE others(name, i) AS ("
        "  SELECT (SELECT j.queue_name FROM good_jobs j"
        "   WHERE j.finished_at IS NULL ORDER BY j.queue_name, j.scheduled_at LIMIT 1), 1"
        "  WHERE CAST($2 AS integer) > 0"
        "  UNION ALL SELECT (SELECT j.queue_name FROM good_jobs j"
        "   WHERE j.finished_at IS NULL AND j.queue_name > o.name"
        "   ORDER BY j.queue_name, j.scheduled_at LIMIT 1), o.i + 1"
        "  FROM others o WHERE o.name IS NOT NULL AND o.i < CAST($2 AS integer)"
        " ), names AS MATERIALIZED ("
        "  SELECT o.name FROM others o WHERE o.name IS NOT NULL"
        "  UNION SELECT json_array_elements_text(CAST($1 AS json))"
        " ), bound AS MATERIALIZED ("
        "  SELECT least(1000, greatest(10, 2000 / greatest(1, count(*)))) AS rows, " PART " AS part"
        "  FROM names"
        " ), sample AS MATERIALIZED ("
        "  SELECT j.queue_name, count(*) AS n FROM good_jobs j"
        "  TABLESAMPLE SYSTEM (100 * " PART ") REPEATABLE (0)"
        "  WHERE " WAITS ""
        "  GROUP BY j.queue_name"
        " )"
        " SELECT n.name,"
        " CASE WHEN f.n < b.rows THEN f.n ELSE greatest(f.n,"
        "  CAST((SELECT s.n FROM sample s WHERE s.queue_name = n.name) / b.part AS bigint)) END,"
        " date_part('epoch', f.since), date_part('epoch', now()),"
        " CASE WHEN EXISTS (SELECT 1 FROM good_job_settings s WHERE s.key = 'pauses'"
        "  AND jsonb_exists(s.value->'queues', n.name)) THEN 1 ELSE 0 END"
        " FROM bound b, names n, LATERAL ("
        "  SELECT count(*) AS n, min(g.scheduled_at) AS since FROM ("
        "   SELECT j.scheduled_at FROM good_jobs j WHERE j.queue_name = n.name AND " WAITS ""
        "   ORDER BY j.scheduled_at LIMIT b.rows) g) f";

/* app/models/good_job/job.rb:83, 95. Of jobs that wait for their time, at most 10,000 are counted; the number
 * of discarded ones from 10,000 on is what PostgreSQL estimated last. Without the index that later releases
 * of GoodJob 4 have, discarded jobs are not counted. */
static const char counts[] =
        "SELECT (SELECT count(*) FROM (SELECT 1 FROM good_jobs j"
        "  WHERE j.finished_at IS NULL AND j.scheduled_at > now() LIMIT 10000) x),"
        " CASE WHEN to_regclass('index_good_jobs_on_discarded') IS NULL THEN 0 ELSE"
        " (SELECT CASE WHEN count(*) < 10000 THEN count(*) ELSE greatest(count(*), (SELECT"
        "  CAST(k.reltuples AS bigint) FROM pg_class k WHERE k.oid = "
        "to_regclass('index_good_jobs_on_discarded'))) END"
        " FROM (SELECT 1 FROM good_jobs j WHERE j.finished_at IS NOT NULL AND j.error IS NOT NULL LIMIT "
        "10000) x) END";

static const char diagnosis[] =
        "SELECT current_setting('server_version'), CASE WHEN pg_is_in_recovery() THEN 1 ELSE 0 END,"
        " 0 * json_array_length(CAST($1 AS json)), 0, 0, 0,"
        " (SELECT coalesce(sum(CASE jsonb_typeof(s.value->'queues') WHEN 'array'"
        "  THEN jsonb_array_length(s.value->'queues') ELSE 0 END), 0)"
        "  FROM good_job_settings s WHERE s.key = 'pauses'), 0";

static const char probe[] =
        "SELECT (SELECT count(*) FROM (SELECT id, lock_type FROM good_job_processes LIMIT 1) a),"
        " (SELECT count(*) FROM (SELECT id, locked_by_id FROM good_jobs LIMIT 1) b),"
        " (SELECT count(*) FROM (SELECT id FROM good_job_settings LIMIT 1) c)";

const struct database_texts good_job_postgresql = {
        .begin = "SELECT set_config('TimeZone', 'UTC', true), set_config('jit', 'off', true)",
        .probe = probe,
        .questions =
                {
                        [DATABASE_PROCESSES] = processes,
                        [DATABASE_JOBS] = jobs,
                        [DATABASE_QUEUES] = queues,
                        [DATABASE_COUNTS] = counts,
                        [DATABASE_DIAGNOSIS] = diagnosis,
                },
};
