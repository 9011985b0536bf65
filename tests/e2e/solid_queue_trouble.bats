#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Framework solid_queue with PostgreSQL and what fails: the database, its helper, the settings, a
# drain that is cut off. With SQMGR_LONG=1: a helper that is killed or frozen, and a hostile server.
# seconds: 55
# promises: P1 P5
# shellcheck disable=SC1091,SC2030,SC2031,SC2034,SC2046,SC2086
load helpers
. "$BATS_TEST_DIRNAME/postgresql.bash"
. "$BATS_TEST_DIRNAME/database/fleet.bash"
. "$BATS_TEST_DIRNAME/database/solid_queue.bash"

@test "solid_queue: a database that is frozen, and one that is killed and restarted: nothing is signaled" {
        queue_fleet 2
        workers=$(worker_pids)
        send 4 Hold "$folder/release"
        wait_until 20 fleet_is '[.workers[].busy] | add == 4'
        freeze_postgresql
        wait_until 30 not redis_state_is connected
        answers_at_once
        run -0 sqmgrctl status
        [[ $output == *PostgreSQL* ]]
        wait_ticks 8
        nothing_was_signaled
        # An order that is given meanwhile waits.
        sqmgrctl restart
        wait_ticks 4
        alive "$workers"
        thaw_postgresql
        wait_until 30 redis_state_is connected
        wait_until 60 fleet_is '.generation == 2 and .active == 2 and .rollout.state == "done"'
        alive "$workers"

        kill_postgresql
        wait_until 20 not redis_state_is connected
        answers_at_once
        wait_ticks 4
        restart_postgresql
        wait_until 60 redis_state_is connected
        touch "$folder/release"
        wait_until 60 recorded "done" 4
        wait_until 60 ready 2
        wait_until 90 fleet_is '.active == 2 and (.workers | length) == 2'
        wait_until 60 claims_are 0
        nothing_lost 4
        [ "$(failed_jobs)" = 0 ]
        not any_event '.event == "killed" or .event == "hung"'
}

@test "solid_queue: a wrong password, missing tables, and forking supervisors are explained" {
        start_postgresql
        sql "create role watcher login password 'right'"
        sed -i '1i host all watcher 127.0.0.0/8 scram-sha-256\nhost all postgres 127.0.0.0/8 trust' "$folder/pg/data/pg_hba.conf"
        sql 'select pg_reload_conf()'
        (umask 077 && echo "postgresql://watcher:wrong@$postgresql_address/queue" >"$folder/url")
        url_file=$folder/url database_configure 1 'boot_timeout = 30s'
        start_sqmgr
        shows_error() { sqmgrctl status | grep -F "$1"; } # TEXT
        wait_until 20 shows_error 'password authentication failed'
        sqmgrctl status | not grep -F wrong@
        # The next helper reads the file again.
        (umask 077 && echo "postgresql://postgres@$postgresql_address/queue" >"$folder/url")
        kill_sqmgr
        start_sqmgr
        wait_until 30 shows_error 'solid_queue_processes'
        make_tables "$top/tests/frameworks/solid_queue/postgresql.sql"
        wait_until 60 ready 1

        # A supervisor that forks is not a worker, and doctor says what to do.
        start_arguments='--mode fork' database_configure 1
        sqmgrctl reload
        wait_until 30 has_finding '.level != "ok" and (.text | contains("--mode async"))'
}

# The next workers exit at once: claims are released or left. Either way their jobs were cut off.
cut_off_by_exit() {
        sed -i 's/^EXIT_DELAY=.*//' "$folder/worker.env"
        rm "$folder/second"
        run -0 sqmgrctl restart --wait --timeout 120s
        send 2 Hold "$folder/second"
        wait_until 30 fleet_is '[.workers[].busy] | add == 2'
        sqmgrctl restart
        wait_until 60 event_count_is drain-abandoned 2
        sqmgrctl events --json | jq -es '[.[] | select(.event == "drain-abandoned")][1].text | contains("2 jobs")'
        touch "$folder/second"
        wait_until 60 recorded "done" 5
        n=5
}

@test "solid_queue: jobs that shutdown_timeout cuts off are reported, with the remedy, and jobs that end are not" {
        worker_environment='PROCESS_HEARTBEAT_INTERVAL=1 SHUTDOWN_TIMEOUT=3600'
        queue_fleet 1 'rescue_jobs = requeue'
        send 1 Hold "$folder/first"
        wait_until 30 fleet_is '[.workers[].busy] | add == 1'
        # The next workers have the default of 5 s, and release their claims before they exit.
        sed -i 's/^SHUTDOWN_TIMEOUT=.*/EXIT_DELAY=3/' "$folder/worker.env"
        old=$(worker_pids)
        run -0 sqmgrctl restart --wait --timeout 120s
        touch "$folder/first"
        wait_until 60 gone "$old"
        has_remedy() { has_finding 'tostring | contains("config.solid_queue.shutdown_timeout")'; }
        not has_remedy

        send 2 Hold "$folder/second"
        wait_until 30 fleet_is '[.workers[].busy] | add == 2'
        sqmgrctl restart
        wait_until 60 any_event '.event == "drain-abandoned" and (.text | contains("2 jobs (2 run again)"))'
        event_count_is drain-abandoned 1
        wait_until 10 has_remedy
        touch "$folder/second"
        wait_until 60 recorded "done" 3
        n=3
        [ -z "${SQMGR_LONG-}" ] || cut_off_by_exit
        wait_until 60 claims_are 0
        nothing_lost "$n" "$(begun_twice)"
        [ "$(begun_twice | wc -l)" = $((n - 1)) ]
}

@test "solid_queue: the helper is killed, frozen, and fed by a server without end: nothing is signaled" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes half a minute'
        queue_fleet 2
        workers=$(worker_pids)
        send 4 Hold "$folder/release"
        wait_until 20 fleet_is '[.workers[].busy] | add == 4'
        for ((i = 0; i < 3; i++)); do
                victim=$(database_helper)
                kill -KILL "$victim"
                answers_at_once
                wait_until 10 another_helper_than "$victim"
                wait_until 10 redis_state_is connected
        done
        victim=$(database_helper)
        kill -STOP "$victim"
        wait_until 40 another_helper_than "$victim"
        wait_until 10 redis_state_is connected
        answers_at_once
        [ "$(worker_pids)" = "$workers" ]
        nothing_was_signaled
        touch "$folder/release"
        wait_until 30 recorded "done" 4
        nothing_lost 4
}

@test "solid_queue: a hostile server, which sends a gigabyte or garbage: sqmgr answers, and nothing is signaled" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes a minute'
        start_database
        database_fleet 1
        worker=$(worker_pids)
        kill_sqmgr
        hostile_address=127.$((RANDOM % 254 + 1)).$((RANDOM % 254 + 1)).2
        (umask 077 && echo "postgresql://postgres@$hostile_address:5433/queue?sslmode=disable" >"$folder/url")
        url_file=$folder/url database_configure 1
        record "$worker"
        start_sqmgr
        asked() { grep -qx "$1" "$folder/asked"; } # MANNER
        for manner in value rows garbage length notices silent; do
                launch hostile /usr/bin/python3 -B "$e2e/database/hostile_server.py" "$hostile_address" 5433 "$manner"
                hostile=$!
                wait_until 60 asked "$manner"
                wait_ticks 8
                answers_at_once
                not redis_state_is connected
                nothing_was_signaled
                kill -KILL "$hostile"
                wait "$hostile" 2>/dev/null || true
        done
        alive "$worker"
        [ "$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB$/\1/p' "/proc/$sqmgr_pid/status")" -lt 60000 ]
        # Values of 500 MB in the real tables. The worker reads its own rows, which stay as they are.
        huge="repeat('x', 250000000) || repeat('x', 250000000)"
        sql "insert into solid_queue_processes (kind, name, hostname, pid, supervisor_id, metadata, created_at, last_heartbeat_at)
                select kind, 'huge' || id, hostname, 1, supervisor_id, $huge, created_at, last_heartbeat_at from solid_queue_processes;
                insert into solid_queue_jobs (queue_name, class_name, arguments, created_at, updated_at)
                select 'default', 'Huge', $huge, now(), now();
                insert into solid_queue_claimed_executions (job_id, process_id, created_at)
                select j.id, p.id, now() from solid_queue_jobs j, solid_queue_processes p where p.kind = 'Worker' and p.pid <> 1"
        (umask 077 && echo "$database_url" >"$folder/url")
        kill_sqmgr
        start_sqmgr
        wait_until 60 redis_state_is connected
        wait_until 60 ready 1
        [ "$(worker_pids)" = "$worker" ]
        answers_at_once
}
