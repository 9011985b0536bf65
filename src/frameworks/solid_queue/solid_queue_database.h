/* SPDX-License-Identifier: MIT */
/* The statements with which Solid Queue's tables are read, for each engine. */
#pragma once

/* The parts of statements that are the same for both engines. */

/* Succeeds if the tables exist and can be read. */
#define SOLID_QUEUE_PROBE                                                                                    \
        "SELECT (SELECT count(*) FROM (SELECT id FROM solid_queue_processes LIMIT 1) a),"                    \
        " (SELECT count(*) FROM (SELECT id FROM solid_queue_claimed_executions LIMIT 1) b),"                 \
        " (SELECT count(*) FROM (SELECT id FROM solid_queue_ready_executions LIMIT 1) c),"                   \
        " (SELECT count(*) FROM (SELECT id FROM solid_queue_pauses LIMIT 1) d),"                             \
        " (SELECT count(*) FROM (SELECT id FROM solid_queue_jobs LIMIT 1) e)"

/* The claim of a rescue, with the rows of its process and its job. The parameters are those of enum
 * database_rescue_parameter. */
#define SOLID_QUEUE_CLAIM                                                                                    \
        " FROM solid_queue_claimed_executions c"                                                             \
        " JOIN solid_queue_processes w ON w.id = c.process_id"                                               \
        " JOIN solid_queue_processes s ON s.id = w.supervisor_id"                                            \
        " JOIN solid_queue_jobs j ON j.id = c.job_id"                                                        \
        " WHERE w.hostname = $1 AND CAST(w.pid AS text) = $2 AND CAST(s.id AS text) = $3"                    \
        " AND s.hostname = w.hostname AND s.pid = w.pid AND CAST(w.id AS text) = $4"                         \
        " AND c.id = CAST($5 AS bigint) AND c.job_id = CAST($6 AS bigint)"

#define SOLID_QUEUE_CHECK                                                                                    \
        "SELECT CASE WHEN substr(j.arguments, 1, length($7)) = $7 THEN 1 ELSE 0 END" SOLID_QUEUE_CLAIM

extern const struct database_texts solid_queue_postgresql, solid_queue_sqlite;
