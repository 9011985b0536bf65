#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Framework solid_queue with PostgreSQL, and a stand-in for Solid Queue (database/solid_queue_standin.rb). With SQMGR_LONG=1:
# autoscaling, a hostile server and reader, and 200 jobs of 1 to 30 s through restarts, kills and a restart of the database.
# seconds: 150
# promises: P1 P2 P5
# shellcheck disable=SC1091,SC2030,SC2031,SC2034,SC2046,SC2086
load helpers
. "$BATS_TEST_DIRNAME/postgresql.bash"
. "$BATS_TEST_DIRNAME/database/fleet.bash"

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

# What docs/solid_queue.md says that sqmgr needs: to read, and to put jobs back.
read_grants='grant select on solid_queue_processes, solid_queue_claimed_executions, solid_queue_jobs,
        solid_queue_ready_executions, solid_queue_scheduled_executions, solid_queue_failed_executions,
        solid_queue_pauses to watcher'
rescue_grants='grant insert on solid_queue_ready_executions to watcher;
        grant usage on sequence solid_queue_ready_executions_id_seq to watcher;
        grant update, delete on solid_queue_claimed_executions to watcher;
        grant update (arguments) on solid_queue_jobs to watcher'

@test "solid_queue: workers are found, jobs and queues are shown, and a role that may only read suffices" {
        start_database
        # A password counts for this role alone.
        sql "create role watcher login password 'hidden-password'"
        sql "$read_grants"
        sed -i '1i local all watcher scram-sha-256\nhost all watcher 127.0.0.0/8 scram-sha-256\nhost all postgres 127.0.0.0/8 trust' "$folder/pg/data/pg_hba.conf"
        sql 'select pg_reload_conf()'
        (umask 077 && echo "postgresql://watcher:hidden-password@$postgresql_address/queue?application_name=hidden-name" >"$folder/url")
        url_file=$folder/url database_fleet 2
        fleet_is '.framework == "solid_queue" and all(.workers[]; .state == "active" and .busy == 0 and .concurrency == 3)'
        send 4 Hold "$folder/release"
        wait_until 20 fleet_is '[.workers[].busy] | add == 4'
        wait_until 20 running_jobs_are 'length == 4 and all(.[]; .class == "Hold" and .queue == "default" and .started_at > 1e9)'
        send 6 Hold "$folder/release"
        QUEUE=paused send 2 Nap 0.1
        sql "insert into solid_queue_pauses (queue_name, created_at) values ('other', now() at time zone 'utc')"
        wait_until 20 fleet_is '[.workers[].busy] | add == 6'
        # Arguments are not shown.
        sqmgrctl jobs --json | not grep -F "$folder/release"
        wait_until 20 queue_is default '.size == 4 and .latency_seconds > 0'
        run -0 sqmgrctl why default/1
        [[ $output == *active* ]]
        sqmgrctl metrics | grep -q '^sqmgr_queue_jobs{.*queue="default"'
        # The database is named without user, password and parameters.
        sqmgrctl status --json | jq -e --arg url "postgresql://$postgresql_address/queue" 'any(.redis[]; .url == $url)'
        sqmgrctl status --json | not grep -F hidden
        sqmgrctl doctor | not grep -F hidden
        not grep -F hidden "$folder/sqmgr.log"
        for pid in "$sqmgr_pid" $(pgrep -P "$sqmgr_pid"); do
                tr '\0' '\n' <"/proc/$pid/cmdline" | not grep -F hidden
                tr '\0' '\n' <"/proc/$pid/environ" | not grep -F hidden
        done
        touch "$folder/release"
        wait_until 20 recorded "done" 12
        wait_until 20 fleet_is 'all(.workers[]; .busy == 0)'
        nothing_lost 12
}

@test "solid_queue: a restart with running jobs, and a memory replacement: nothing is lost" {
        worker_environment+=' THREADS=2'
        queue_fleet 2 'memory_threshold = 200M'
        old=$(worker_pids)
        send 4 Hold "$folder/release"
        wait_until 20 fleet_is 'all(.workers[]; .busy == 2)'
        run -0 sqmgrctl restart --wait --timeout 120s
        alive "$old"
        fleet_is '.quiet == 2 and .active == 2'
        # The quieted workers take nothing new.
        send 4 Nap 0.1
        wait_until 30 recorded "done" 4
        # After kill -9 of sqmgr, and a re-exec, they are quieted still.
        all=$(worker_pids)
        record "$all"
        kill_sqmgr
        start_sqmgr
        wait_until 20 ready 2
        sqmgrctl reexec
        wait_until 20 ready 2
        [ "$(worker_pids)" = "$all" ]
        fleet_is '.quiet == 2 and .generation == 2'
        [ "$(claims)" = 4 ]
        touch "$folder/release"
        wait_until 60 gone "$old"
        nothing_lost 8
        rm "$folder/release"

        send 1 Leak 220 "$folder/release"
        wait_until 60 fleet_is 'any(.workers[]; .state == "quiet" and .reason == "memory" and .busy == 1) and .active == 2'
        touch "$folder/release"
        wait_until 60 fleet_is '.active == 2 and (.workers | length) == 2'
        nothing_lost 9
        [ "$(failed_jobs)" = 0 ]
        fleet_is '.crash.count == 0'
        not grep -qE 'SIGKILL|exited with status [1-9]' "$folder/sqmgr.log"
}

# Solid Queue itself would fail it, once the row of the dead process is older than process_alive_threshold.
@test "solid_queue: rescue: the job of a killed worker runs again, until it has killed rescue_limit workers" {
        start_database
        sql "create role watcher login"
        sql "$read_grants; $rescue_grants"
        echo "postgresql:///queue?host=$PGHOST&user=watcher" >"$folder/url"
        url_file=$folder/url database_fleet 1 'rescue_jobs = requeue' 'rescue_limit = 1' 'backoff_max = 1s'
        rows() { sql "select count(*) from solid_queue_processes where pid = $1"; } # PID
        send 1 Hold "$folder/release"
        wait_until 30 running_jobs_are 'length == 1'
        worker=$(worker_pids)
        kill -KILL "$worker"
        wait_until 20 event_count_is job-rescued 1
        [ "$(rows "$worker")" = 2 ]
        wait_until 60 recorded started 2
        wait_until 30 running_jobs_are 'length == 1'
        is_true "(select arguments like '{\"sqmgr_rescues\":1,%' from solid_queue_jobs)"
        [ "$(sql "select p.pid from solid_queue_claimed_executions c join solid_queue_processes p on p.id = c.process_id")" = "$(worker_pids)" ]

        # The second time it is left to Solid Queue.
        worker=$(worker_pids)
        kill -KILL "$worker"
        wait_until 20 event_count_is job-parked 1
        wait_until 60 ready 1
        claims_are 1
        [ "$(waiting)" = 0 ]
        event_count_is job-rescued 1
        [ "$(rows "$worker")" = 2 ]

        # A job that ends is not affected.
        touch "$folder/release"
        send 1 Nap 0.1
        wait_until 30 recorded "done" 1
        [ "$(failed_jobs)" = 0 ]
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
        # The next workers exit at once: claims are released or left. Either way these jobs were cut off.
        sed -i 's/^EXIT_DELAY=.*//' "$folder/worker.env"
        touch "$folder/second"
        wait_until 60 recorded "done" 3
        rm "$folder/second"
        run -0 sqmgrctl restart --wait --timeout 120s
        send 2 Hold "$folder/second"
        wait_until 30 fleet_is '[.workers[].busy] | add == 2'
        sqmgrctl restart
        wait_until 60 event_count_is drain-abandoned 2
        sqmgrctl events --json | jq -es '[.[] | select(.event == "drain-abandoned")][1].text | contains("2 jobs")'
        touch "$folder/second"
        wait_until 60 recorded "done" 5
        wait_until 60 claims_are 0
        nothing_lost 5 "$(begun_twice)"
        [ "$(begun_twice | wc -l)" = 4 ]
}

@test "solid_queue: rescue: by default a lost job is reported, and nothing is written" {
        queue_fleet 1
        send 1 Hold "$folder/release"
        wait_until 30 running_jobs_are 'length == 1'
        kill -KILL "$(worker_pids)"
        wait_until 20 event_count_is job-lost 1
        wait_until 60 ready 1
        claims_are 1
        [ "$(waiting)" = 0 ]
        is_true "(select arguments not like '%sqmgr_rescues%' from solid_queue_jobs)"
}

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
        # What is ordered meanwhile waits.
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

@test "solid_queue: the reader is killed, frozen, and fed by a server without end: nothing is signaled" {
        queue_fleet 2
        workers=$(worker_pids)
        send 4 Hold "$folder/release"
        wait_until 20 fleet_is '[.workers[].busy] | add == 4'
        for ((i = 0; i < 3; i++)); do
                victim=$(database_reader)
                kill -KILL "$victim"
                answers_at_once
                wait_until 10 another_reader_than "$victim"
                wait_until 10 redis_state_is connected
        done
        victim=$(database_reader)
        kill -STOP "$victim"
        wait_until 40 another_reader_than "$victim"
        wait_until 10 redis_state_is connected
        answers_at_once
        [ "$(worker_pids)" = "$workers" ]
        nothing_was_signaled
        touch "$folder/release"
        wait_until 30 recorded "done" 4
        nothing_lost 4
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
        # The next reader reads the file again.
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

# A process of its own has the dispatcher, and no worker.
@test "solid_queue: one fleet of one process dispatches: a restart never runs two of them" {
        start_database
        worker_environment+=' DISPATCHER=only' database_configure 1 'restart_surge = 0'
        mv worker.env dispatcher.env
        sed -i 's/worker\.env/dispatcher.env/; s/fleet:default/fleet:dispatcher/' sqmgr.ini
        dispatcher=$(sed -n '/fleet:dispatcher/,$p' sqmgr.ini)
        database_configure 2
        echo "$dispatcher" >>sqmgr.ini
        start_sqmgr
        all_ready() { sqmgrctl status --json | jq -e 'all(.fleets[]; .active == .target)'; }
        wait_until 60 all_ready
        dispatchers() { sql "select count(*) from solid_queue_processes where kind = 'Dispatcher'"; }
        [ "$(dispatchers)" = 1 ]
        WAIT=1 send 2 Nap 0.1
        wait_until 30 recorded "done" 2
        sql "create table most as select 0 as n; create function note() returns trigger language plpgsql as \$\$ begin
                update most set n = greatest(n, (select count(*) from solid_queue_processes where kind = 'Dispatcher'));
                return null; end \$\$; create trigger note after insert on solid_queue_processes execute function note()"
        run -0 sqmgrctl restart dispatcher --wait=drained --timeout 120s
        [ "$(sql 'select n from most')" = 1 ]
        wait_until 30 all_ready
        [ "$(dispatchers)" = 1 ]
        WAIT=1 send 2 Nap 0.1
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

# The reader of each start lies in another manner, chosen by its pid.
@test "solid_queue: a lying reader gets no busy worker stopped, and all commands are answered" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes a minute'
        start_database
        mkdir place
        cp "$SQMGR_BUILD/sqmgr" "$SQMGR_BUILD/sqmgr-reader" place/
        cp "$SQMGR_BUILD/tests/stub/hostile-reader" place/sqmgr-reader-postgresql
        chmod 755 place place/*
        database_configure 1 'memory_threshold = 1G'
        launch sqmgr "$folder/place/sqmgr" -c "$folder/sqmgr.ini"
        sqmgr_pid=$!
        wait_until 10 sqmgrctl ping
        has_worker() { [ -n "$(worker_pids)" ] && alive "$(worker_pids)"; }
        wait_until 20 has_worker
        send 1 Hold "$folder/release"
        wait_until 20 recorded started 1
        worker=$(worker_pids)
        for ((i = 0; i < 20; i++)); do
                before=$(database_reader)
                answers_at_once
                [ -z "$before" ] || kill -KILL "$before" 2>/dev/null || true
                wait_until 5 another_reader_than "${before:-0}"
                wait_ticks 2
        done
        touch "$folder/release"
        wait_until 20 recorded "done" 1
        nothing_lost 1
        [ "$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB$/\1/p' "/proc/$sqmgr_pid/status")" -lt 60000 ]
}

@test "solid_queue: autoscaling: a worker is added while jobs wait, and removed after scale_down_after" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes a minute'
        queue_fleet 1 'active_process_max = 2' 'latency_target = 5s' 'scale_down_after = 20s'
        send 150 Nap 0.5
        wait_until 60 fleet_is '.target == 2 and .active == 2'
        wait_until 60 recorded "done" 150
        wait_until 90 fleet_is '.target == 1 and .active == 1 and (.workers | length) == 1'
        nothing_lost 150
        not grep -qE 'SIGKILL|exited with status [1-9]' "$folder/sqmgr.log"
}

# A job that ends while the database is away cannot be recorded: Solid Queue itself runs it again.
ended_between() { awk -v from="$1" -v to="$2" '$3 >= from - 1 && $3 <= to + 1 { print $1 }' "$folder/records/done"; } # FROM TO: seconds since 1970
kill_busy_worker() { # its jobs, and those that it began since, are added to `cut`
        local victim
        victim=$(fleet '[.workers[] | select(.state == "active" and .busy > 1)][0].pid')
        [ "$victim" != null ] || return 1
        # Its heartbeats and claims stand still before sqmgr and the test look.
        kill -STOP "$victim"
        cut+=$(sql "select j.active_job_id from solid_queue_claimed_executions c join solid_queue_processes p
                on p.id = c.process_id join solid_queue_jobs j on j.id = c.job_id where p.pid = $victim")$'\n'
        kill -KILL "$victim"
}

@test "solid_queue: 200 jobs of 1 to 30 s: two restarts, a memory replacement, two kills, a restart of the database" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes five minutes'
        worker_environment+=' THREADS=5'
        queue_fleet 4 'rescue_jobs = requeue' 'memory_threshold = 300M' 'backoff_max = 1s'
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
        from=$EPOCHSECONDS
        kill_postgresql
        restart_postgresql
        wait_until 60 redis_state_is connected
        to=$EPOCHSECONDS
        wait_until 60 fleet_is '.active == 4'
        run -0 sqmgrctl restart --wait --timeout 180s
        wait_until 120 kill_busy_worker
        all_done() { [ "$(records "done" | sort -u | wc -l)" = 200 ] && claims_are 0 && [ "$(waiting)" = 0 ]; }
        wait_until 400 all_done
        wait_until 60 fleet_is '.active == 4 and all(.workers[]; .busy == 0)'
        away=$(ended_between "$from" "$to")
        twice=$(begun_twice)
        for job in $twice; do
                echo "# begun twice: $job ($(grep -qx "$job" <<<"$cut" && echo 'its worker was killed' ||
                        echo 'ended while the database was away'))" >&3
        done
        echo "# $(grep -c . <<<"$cut") jobs cut off by two kills, $(grep -c . <<<"$away") ended while the database was away," \
                "$(grep -c . <<<"$twice") begun twice, $(failed_jobs) failed" >&3
        nothing_lost 200 "$cut"$'\n'"$away"
        # All that began twice are explained, and all that the kills cut off ran again.
        [ -z "$(comm -13 <(sort -u <<<"$cut"$'\n'"$away") <(sort -u <<<"$twice"))" ]
        [ "$(failed_jobs)" = 0 ]
        [ "$(sql 'select count(*) from solid_queue_jobs where finished_at is not null')" = 200 ]
        event_count_is job-rescued "$(grep -c . <<<"$cut")"
        not any_event '.event == "killed" or .event == "hung"'
}
