#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Framework good_job with PostgreSQL, and a stand-in for GoodJob (database/good_job_standin.rb). With SQMGR_LONG=1:
# preloading, autoscaling, and 200 jobs of 1 to 30 s through restarts, kills and a restart of the database.
# seconds: 60
# promises: P1 P2 P5
# shellcheck disable=SC1091,SC2030,SC2031,SC2034,SC2046,SC2086
load helpers
. "$BATS_TEST_DIRNAME/postgresql.bash"
. "$BATS_TEST_DIRNAME/database/fleet.bash"

framework=good_job
program=$good_job

worker_environment='STALE_INTERVAL=1 GOOD_JOB_POLL_INTERVAL=1 GOOD_JOB_MAX_THREADS=3'
job_fleet() { # COUNT LINE...
        start_postgresql
        make_tables "$top/tests/frameworks/good_job/postgresql.sql"
        database_fleet "$@"
}

@test "good_job: workers are found, jobs and queues are shown" {
        job_fleet 2
        fleet_is '.framework == "good_job" and all(.workers[]; .state == "active" and .busy == 0 and .concurrency == 3)'
        send 4 Hold "$folder/release"
        wait_until 20 fleet_is '[.workers[].busy] | add == 4'
        wait_until 20 running_jobs_are 'length == 4 and all(.[]; .class == "Hold" and .queue == "default" and .started_at > 1e9)'
        send 6 Hold "$folder/release"
        wait_until 20 fleet_is '[.workers[].busy] | add == 6'
        wait_until 20 queue_is default '.size == 4 and .latency_seconds > 0'
        # Arguments are not shown.
        sqmgrctl jobs --json | not grep -F "$folder/release"
        run -0 sqmgrctl why default/1
        [[ $output == *active* ]]
        sqmgrctl metrics | grep -q '^sqmgr_queue_jobs{.*queue="default"'
        sqmgrctl status --json | not grep -F "$PGHOST?"
        touch "$folder/release"
        wait_until 20 recorded "done" 10
        wait_until 20 fleet_is 'all(.workers[]; .busy == 0)'
        nothing_lost 10
}

@test "good_job: a restart with running jobs, with an advisory lock on the rows of processes: nothing is lost" {
        worker_environment+=' GOOD_JOB_ADVISORY_LOCK_HEARTBEAT=true'
        job_fleet 2
        [ "$(sql 'select count(*) from good_job_processes where lock_type = 0')" = 2 ]
        old=$(worker_pids)
        send 6 Hold "$folder/release"
        wait_until 20 fleet_is 'all(.workers[]; .busy == 3)'
        run -0 sqmgrctl restart --wait --timeout 120s
        alive "$old"
        fleet_is '.quiet == 2 and .active == 2'
        # The quieted workers take nothing new.
        send 4 Nap 0.1
        wait_until 30 recorded "done" 4
        # They are quieted still after kill -9 of sqmgr.
        all=$(worker_pids)
        record "$all"
        replace_sqmgr 2
        [ "$(worker_pids)" = "$all" ]
        fleet_is '.quiet == 2 and .generation == 2'
        touch "$folder/release"
        wait_until 60 gone "$old"
        nothing_lost 10
        fleet_is '.crash.count == 0'
        not grep -qE 'SIGKILL|exited with status [1-9]' "$folder/sqmgr.log"
}

@test "good_job: a worker whose job exceeds the memory threshold is replaced, and its job ends" {
        job_fleet 1 'memory_threshold = 200M'
        send 1 Leak 220 "$folder/release"
        wait_until 60 fleet_is 'any(.workers[]; .state == "quiet" and .reason == "memory" and .busy == 1) and .active == 1'
        touch "$folder/release"
        wait_until 60 fleet_is '.active == 1 and (.workers | length) == 1'
        nothing_lost 1
}

# GoodJob itself runs them again: the lock of a job falls with the connection.
@test "good_job: the jobs of a killed worker run again, and the row that it leaves is no worker" {
        job_fleet 1
        send 1 Hold "$folder/release"
        wait_until 30 running_jobs_are 'length == 1'
        wait_until 30 recorded started 1
        worker=$(worker_pids)
        kill -KILL "$worker"
        wait_until 60 recorded started 2
        wait_until 30 fleet_is ".active == 1 and all(.workers[]; .pid != $worker)"
        touch "$folder/release"
        wait_until 30 recorded "done" 1
        nothing_lost 1 "$(records sent)"
        event_count_is crashed 1
}

@test "good_job: preload: workers are forked from a template, run jobs, and are replaced" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes half a minute'
        job_fleet 2 'preload = yes'
        sqmgrctl status --json | jq -e '.fleets[0].template.pid > 0'
        old=$(worker_pids)
        send 4 Hold "$folder/release"
        wait_until 20 fleet_is '[.workers[].busy] | add == 4'
        run -0 sqmgrctl restart --wait --timeout 120s
        alive "$old"
        send 4 Nap 0.1
        wait_until 30 recorded "done" 4
        touch "$folder/release"
        wait_until 60 gone "$old"
        nothing_lost 8
        not any_event '.event == "preload-refused"'
}

@test "good_job: autoscaling: a worker is added while jobs wait, and removed after scale_down_after" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes a minute'
        job_fleet 1 'active_process_max = 2' 'latency_target = 5s' 'scale_down_after = 20s'
        send 150 Nap 0.5
        wait_until 60 fleet_is '.target == 2 and .active == 2'
        wait_until 60 recorded "done" 150
        wait_until 90 fleet_is '.target == 1 and .active == 1 and (.workers | length) == 1'
        nothing_lost 150
        not grep -qE 'SIGKILL|exited with status [1-9]' "$folder/sqmgr.log"
}

# A restart of the database releases the locks of all running jobs: GoodJob itself runs them again.
running_jobs() { sql 'select id from good_jobs where locked_by_id is not null and finished_at is null'; }
kill_busy_worker() { # its jobs are added to `cut`
        local victim
        victim=$(fleet '[.workers[] | select(.state == "active" and .busy > 1)][0].pid')
        [ "$victim" != null ] || return 1
        kill -STOP "$victim"
        cut+=$(sql "select j.id from good_jobs j join good_job_processes p on p.id = j.locked_by_id
                where p.state->>'pid' = '$victim' and j.finished_at is null")$'\n'
        kill -KILL "$victim"
}

@test "good_job: 200 jobs of 1 to 30 s: two restarts, a memory replacement, two kills, a restart of the database" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes five minutes'
        worker_environment='STALE_INTERVAL=1 GOOD_JOB_POLL_INTERVAL=1 GOOD_JOB_MAX_THREADS=5'
        job_fleet 4 'memory_threshold = 300M'
        cut=
        send 100 Nap 1-30
        wait_until 20 fleet_is '[.workers[].busy] | add > 15'
        run -0 sqmgrctl restart --wait --timeout 180s
        wait_until 60 kill_busy_worker
        send 1 Leak 320 "$folder/release"
        replaced() { any_event '.event == "quiet" and .reason == "memory"'; }
        wait_until 180 replaced
        touch "$folder/release"
        send 99 Nap 1-30
        wait_until 60 fleet_is '.active == 4 and ([.workers[].busy] | add > 15)'
        unlocked=$(running_jobs)
        kill_postgresql
        restart_postgresql
        wait_until 60 redis_state_is connected
        # Jobs that began just before the database ended may run twice.
        unlocked+=$'\n'$(running_jobs)
        wait_until 60 fleet_is '.active == 4'
        run -0 sqmgrctl restart --wait --timeout 180s
        wait_until 120 kill_busy_worker
        all_done() { [ "$(records "done" | sort -u | wc -l)" = 200 ] && [ "$(sql 'select count(*) from good_jobs where finished_at is not null')" = 200 ]; }
        wait_until 400 all_done
        wait_until 60 fleet_is '.active == 4 and all(.workers[]; .busy == 0)'
        twice=$(begun_twice)
        for job in $twice; do
                echo "# begun twice: $job ($(grep -qx "$job" <<<"$cut" && echo 'its worker was killed' ||
                        echo 'it lost its lock with the database'))" >&3
        done
        nothing_lost 200 "$cut"$'\n'"$unlocked"
        [ -z "$(comm -13 <(sort -u <<<"$cut"$'\n'"$unlocked") <(sort -u <<<"$twice"))" ]
        not any_event '.event == "killed" or .event == "hung"'
}
