# SPDX-License-Identifier: MIT
# Fleets of Solid Queue with PostgreSQL, for solid_queue.bats and solid_queue_trouble.bats, which load helpers, postgresql.bash and
# database/fleet.bash first.
# shellcheck shell=bash disable=SC2034,SC2154

framework=solid_queue
program=$solid_queue
start_arguments='--mode async'

start_database() {
        start_postgresql
        make_tables "$top/tests/frameworks/solid_queue/postgresql.sql"
}
# Heartbeats each second, and a drain without end.
worker_environment='PROCESS_HEARTBEAT_INTERVAL=1 SHUTDOWN_TIMEOUT=3600'
queue_fleet() { # COUNT LINE...
        start_database
        database_fleet "$@"
}

claims() { sql 'select count(*) from solid_queue_claimed_executions'; }
claims_are() { [ "$(claims)" = "$1" ]; }
waiting() { sql 'select count(*) from solid_queue_ready_executions'; }
failed_jobs() { sql 'select count(*) from solid_queue_failed_executions'; }
