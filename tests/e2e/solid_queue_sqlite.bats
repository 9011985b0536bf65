#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Framework solid_queue with SQLite, and a stand-in for Solid Queue (database/solid_queue_standin.rb). With SQMGR_LONG=1:
# 60 jobs of 1 to 15 s through restarts and a kill.
# seconds: 20
# promises: P1 P5
# shellcheck disable=SC1091,SC2030,SC2031,SC2034,SC2046,SC2086
load helpers
. "$BATS_TEST_DIRNAME/postgresql.bash"
as_postgresql=() # the tables belong to the user of the workers
. "$BATS_TEST_DIRNAME/database/fleet.bash"

framework=solid_queue
program=$solid_queue
start_arguments='--mode async'
worker_environment='PROCESS_HEARTBEAT_INTERVAL=1 SHUTDOWN_TIMEOUT=3600'

sqlite() { "${as_postgresql[@]}" sqlite3 -cmd '.timeout 5000' "$folder/storage/queue.sqlite3" "$1"; } # STATEMENT
# Workers make a folder or a file that their database lacks. They cannot where a link leads nowhere.
lead_storage_to() { ln -s "$1" "$folder/link" && mv -T "$folder/link" "$folder/storage"; } # FOLDER
start_database() {
        mkdir "$folder/files"
        lead_storage_to files
        database_url=sqlite3:$folder/storage/queue.sqlite3
        make_tables "$top/tests/frameworks/solid_queue/sqlite.sql"
}
sqlite_fleet() { # COUNT LINE...
        start_database
        database_fleet "$@"
}
send() { env DATABASE_URL="$database_url" RECORDS="$folder/records" "${as_postgresql[@]}" $program enqueue "$@" >/dev/null; }
failed_jobs() { sqlite 'select count(*) from solid_queue_failed_executions'; }

@test "solid_queue: SQLite: jobs and queues are shown, a restart with running jobs, a killed worker's job runs again" {
        sqlite_fleet 2 'rescue_jobs = requeue'
        send 6 Hold "$folder/release"
        wait_until 20 fleet_is 'all(.workers[]; .busy == 3)'
        running_jobs_are 'length == 6 and all(.[]; .class == "Hold" and .queue == "default" and .started_at > 1e9)'
        send 2 Hold "$folder/release"
        wait_until 20 queue_is default '.size == 2 and .latency_seconds > 0'
        old=$(worker_pids)
        run -0 sqmgrctl restart --wait --timeout 120s
        alive "$old"
        wait_until 20 fleet_is '.quiet == 2 and .active == 2 and ([.workers[].busy] | add) == 8'
        victim=$(fleet '[.workers[] | select(.state == "active" and .busy > 0)][0].pid')
        cut=$(fleet "[.workers[] | select(.pid == $victim)][0].busy")
        wait_ticks 2
        kill -KILL "$victim"
        wait_until 20 event_count_is job-rescued "$cut"
        wait_until 60 recorded started $((8 + cut))
        touch "$folder/release"
        wait_until 60 gone "$old"
        wait_until 60 recorded "done" 8
        nothing_lost 8 "$(begun_twice)"
        [ "$(begun_twice | wc -l)" = "$cut" ]
        [ "$(failed_jobs)" = 0 ]
        event_count_is crashed 1
}

@test "solid_queue: SQLite: a writer that locks the database, or a removed file: nothing is signaled" {
        sqlite_fleet 2
        workers=$(worker_pids)
        # A transaction that does not end. Readers do not wait for it.
        mkfifo "$folder/statements"
        "${as_postgresql[@]}" sqlite3 -cmd '.timeout 60000' "$folder/storage/queue.sqlite3" <"$folder/statements" >/dev/null 9>&- &
        exec 8>"$folder/statements"
        printf '%s\n' 'begin immediate; delete from solid_queue_pauses;' ".system touch $folder/records/locked" >&8
        wait_until 60 [ -e "$folder/records/locked" ]
        wait_ticks 4
        answers_at_once
        redis_state_is connected
        nothing_was_signaled
        exec 8>&-
        wait "$!"
        lead_storage_to nowhere
        wait_until 30 not redis_state_is connected
        answers_at_once
        wait_ticks 4
        nothing_was_signaled
        alive "$workers"
        lead_storage_to files
        wait_until 60 redis_state_is connected
        wait_until 30 ready 2
        [ "$(worker_pids)" = "$workers" ]
}

kill_busy_worker() { # its jobs are added to `cut`
        local victim
        victim=$(fleet '[.workers[] | select(.state == "active" and .busy > 1)][0].pid')
        [ "$victim" != null ] || return 1
        kill -STOP "$victim"
        cut+=$(sqlite "select j.active_job_id from solid_queue_claimed_executions c join solid_queue_processes p
                on p.id = c.process_id join solid_queue_jobs j on j.id = c.job_id where p.pid = $victim")$'\n'
        kill -KILL "$victim"
}

@test "solid_queue: SQLite: 60 jobs of 1 to 15 s: two restarts and a kill" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes a minute'
        worker_environment+=' THREADS=4' sqlite_fleet 2 'rescue_jobs = requeue'
        cut=
        send 60 Nap 1-15
        wait_until 20 fleet_is '[.workers[].busy] | add > 5'
        run -0 sqmgrctl restart --wait --timeout 180s
        wait_until 60 kill_busy_worker
        run -0 sqmgrctl restart --wait --timeout 180s
        all_done() { [ "$(sqlite 'select count(*) from solid_queue_jobs where finished_at is not null')" = 60 ]; }
        wait_until 240 all_done
        nothing_lost 60 "$cut"
        [ "$(begun_twice)" = "$(sort -u <<<"$cut" | grep .)" ]
        [ "$(failed_jobs)" = 0 ]
        event_count_is job-rescued "$(grep -c . <<<"$cut")"
}
