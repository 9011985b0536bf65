#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Framework solid_queue with PostgreSQL, and a stand-in for Solid Queue (database/solid_queue_standin.rb). With SQMGR_LONG=1:
# memory, preloading, dispatchers, autoscaling, and 200 jobs of 1 to 30 s through restarts, kills and a restart of the database.
# seconds: 45
# promises: P1 P2 P5
# shellcheck disable=SC1091,SC2030,SC2031,SC2034,SC2046,SC2086
load helpers
. "$BATS_TEST_DIRNAME/postgresql.bash"
. "$BATS_TEST_DIRNAME/database/fleet.bash"
. "$BATS_TEST_DIRNAME/database/solid_queue.bash"

# The grants of docs/solid-queue.md, to read and to put jobs back; for the role `watcher`.
documented_grants() { awk '/^GRANT /, /;$/' "$top/docs/solid-queue.md" | sed 's/ TO sqmgr;/ TO watcher;/'; }
read_grants() { documented_grants | sed '/;$/q'; }

@test "solid_queue: workers are found, jobs and queues are shown, and a role that may only read suffices" {
        start_database
        # A password counts for this role alone.
        sql "create role watcher login password 'hidden-password'"
        sql "$(read_grants)"
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
        has_finding '.text | contains("1 paused queue of Solid Queue")'
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
        # Nothing dispatches jobs that wait for their time, until such a process runs.
        undispatched() { has_finding '.level == "problem" and (.text | contains("dispatcher"))'; }
        wait_until 20 undispatched
        launch dispatcher env "DATABASE_URL=$database_url" "RECORDS=$folder/records" $worker_environment DISPATCHER=only \
                $program start $start_arguments
        wait_until 30 not undispatched
        touch "$folder/release"
        wait_until 20 recorded "done" 12
        wait_until 20 fleet_is 'all(.workers[]; .busy == 0)'
        nothing_lost 12
}

@test "solid_queue: a restart with running jobs: nothing is lost" {
        worker_environment+=' THREADS=2'
        queue_fleet 2
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
        replace_sqmgr 2
        reexec_ready 2
        [ "$(worker_pids)" = "$all" ]
        fleet_is '.quiet == 2 and .generation == 2'
        [ "$(claims)" = 4 ]
        touch "$folder/release"
        wait_until 60 gone "$old"
        nothing_lost 8
        [ "$(failed_jobs)" = 0 ]
        fleet_is '.crash.count == 0'
        not grep -qE 'SIGKILL|exited with status [1-9]' "$folder/sqmgr.log"
}

# Solid Queue itself would fail it, once the row of the dead process is older than process_alive_threshold.
@test "solid_queue: rescue: the job of a killed worker runs again, until it has killed four workers" {
        start_database
        sql "create role watcher login"
        sql "$(documented_grants)"
        echo "postgresql:///queue?host=$PGHOST&user=watcher" >"$folder/url"
        url_file=$folder/url database_fleet 1 'rescue_jobs = requeue'
        rows() { sql "select count(*) from solid_queue_processes where pid = $1"; } # PID
        send 1 Hold "$folder/release"
        wait_until 30 running_jobs_are 'length == 1'
        wait_until 30 recorded started 1
        worker=$(worker_pids)
        kill -KILL "$worker"
        wait_until 20 event_count_is job-rescued 1
        [ "$(rows "$worker")" = 2 ]
        wait_until 60 recorded started 2
        wait_until 30 running_jobs_are 'length == 1'
        is_true "(select arguments like '{\"sqmgr_rescues\":1,%' from solid_queue_jobs)"
        [ "$(sql "select p.pid from solid_queue_claimed_executions c join solid_queue_processes p on p.id = c.process_id")" = "$(worker_pids)" ]

        # The fourth time it is left to Solid Queue.
        sql "update solid_queue_jobs set arguments = replace(arguments, '{\"sqmgr_rescues\":1,', '{\"sqmgr_rescues\":3,')"
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

@test "solid_queue: rescue: by default a lost job is reported, and nothing is written" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes half a minute'
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

@test "solid_queue: a worker whose job exceeds the memory threshold is replaced, and its job ends" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes half a minute'
        queue_fleet 2 'memory_threshold = 200M'
        send 1 Leak 220 "$folder/release"
        wait_until 60 fleet_is 'any(.workers[]; .state == "quiet" and .reason == "memory" and .busy == 1) and .active == 2'
        touch "$folder/release"
        wait_until 60 fleet_is '.active == 2 and (.workers | length) == 2'
        nothing_lost 1
        [ "$(failed_jobs)" = 0 ]
        fleet_is '.crash.count == 0'
        not grep -qE 'SIGKILL|exited with status [1-9]' "$folder/sqmgr.log"
}

@test "solid_queue: preload: workers are forked from a template, run jobs, and are replaced" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes half a minute'
        queue_fleet 2 'preload = yes'
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

# A process of its own has the dispatcher, and no worker.
@test "solid_queue: one fleet of one process dispatches: a restart never runs two of them" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes half a minute'
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
        queue_fleet 4 'rescue_jobs = requeue' 'memory_threshold = 300M'
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
