#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A process of its own speaks to Redis. If it is killed, freezes or lies, that costs readings and no job. With
# SQMGR_LONG=1 readers are killed 200 times.
# seconds: 130
# promises: P1 P5 P8
# shellcheck disable=SC1091,SC2034
load helpers
. "$BATS_TEST_DIRNAME/tls.bash"
. "$BATS_TEST_DIRNAME/native/jobs.bash"

# Prints the running reader; nothing if there is none.
reader() { pgrep -P "$sqmgr_pid" -f '^sqmgr-reader' | tail -n 1; }
another_reader_than() { [ -n "$(reader)" ] && [ "$(reader)" != "$1" ]; } # PID
pids_of() { sqmgrctl status --json | jq -r ".fleets[] | select(.name == \"$1\") | .workers[].pid"; } # FLEET
has_worker() { [ -n "$(pids_of "$1")" ] && alive "$(pids_of "$1")"; } # FLEET

kill_reader() {
        local victim
        victim=$(reader)
        kill -KILL "$victim"
        sqmgrctl ping >/dev/null
        wait_until 2 another_reader_than "$victim"
        wait_until 2 redis_state_is connected
}

@test "sqmgr links no library that decodes replies of servers" {
        start_fleet 1
        run ! grep -E 'hiredis|libssl|libcrypto' "/proc/$sqmgr_pid/maps"
        ldd "$SQMGR_BUILD/sqmgr-reader" | grep hiredis
}

@test "readers are killed repeatedly while jobs run: no job is lost, and no worker is signaled" {
        start_workers 2 <<END
command = $(sidekiq_command 3)
active_process_count = 2
END
        enqueue 6 Hold "$folder/release"
        wait_until 20 has_started 6
        workers=$(worker_pids)
        for ((i = 0; i < 15; i++)); do
                kill_reader
        done
        [ "$(worker_pids)" = "$workers" ]
        fleet_is '.quiet == 0 and .stopping == 0'
        sqmgrctl restart
        for ((i = 0; i < 5; i++)); do
                kill_reader
        done
        alive "$workers" # their jobs run
        touch "$folder/release"
        wait_until 60 gone "$workers"
        wait_until 60 ready 2
        [ "$(jobs_done)" = 6 ]
        [ "$(jobs_run_twice)" = 0 ]
}

# A Redis with Sentinels; both use TLS.
start_named_redis() {
        start_tls_redis --tls-auth-clients yes --tls-replication yes
        start_tls_sentinel
        tls_lines="tls_ca_file = $folder/ca.crt
tls_cert_file = $folder/client.crt
tls_key_file = $folder/client.key"
        redis_url=${redis_url%://*}://elsewhere.invalid
        redis_lines="sentinels = $address
master_name = mymaster
${tls_lines-}"
}

fleets_are() { sqmgrctl status --json | jq -e "all(.fleets[]; $1)" >/dev/null; } # CONDITION
all_ready() { fleets_are '[.workers[] | select(.ready)] | length == 2'; }
all_connected() { sqmgrctl status --json | jq -e '[.redis[].state] == ["connected", "connected", "connected", "connected"]' >/dev/null; }
all_pids() { sqmgrctl status --json | jq -r '[.fleets[].workers[].pid] | sort | join(" ")'; }
readers() { pgrep -P "$sqmgr_pid" -f '^sqmgr-reader' | sort -n; }
milliseconds() { echo $((${EPOCHREALTIME/./} / 1000)); }
note_longest() { [ "$2" -le "${!1}" ] || printf -v "$1" %s "$2"; } # VARIABLE MILLISECONDS

# Kills the reader of one server, and waits until all servers are read again.
kill_one_reader() { # ROUND
        local began list
        mapfile -t list < <(readers)
        kill -KILL "${list[$1 % ${#list[@]}]}"
        began=$(milliseconds)
        sqmgrctl status >/dev/null
        note_longest longest_status $(($(milliseconds) - began))
        wait_until 2 another_reader_than "${list[$1 % ${#list[@]}]}"
        wait_until 2 all_connected
        local away=$(($(milliseconds) - began))
        note_longest longest_away "$away"
        [ "$away" -le 2000 ] || late=$((late + 1))
        add_jobs "$folder/native" $(($1 * 10)) 5
}

@test "readers of four servers are killed under load: Sidekiq with Sentinels and TLS, preload, RQ, native" {
        rounds=12
        [ -z "${SQMGR_LONG-}" ] || rounds=200
        longest_status=0 longest_away=0 late=0
        start_named_redis
        job_folder "$folder/native"
        configure <<END
command = $(sidekiq_command 3)
active_process_count = 2

[fleet:preload]
command = $(sidekiq_command 3)
preload = yes
active_process_count = 2
redis_url = unix://$folder/redis.sock
log = $folder/workers.log

[fleet:rq]
framework = rq
command = /usr/bin/rq worker -u unix://$folder/redis.sock work
environment = PYTHONPATH=$e2e PYTHONDONTWRITEBYTECODE=1
active_process_count = 2
redis_url = unix://$folder/redis.sock
log = $folder/workers.log

[fleet:native]
framework = native
command = $(native_command ruby-redis "$folder/native" 2)
active_process_count = 2
redis_url = unix://$folder/redis.sock
log = $folder/workers.log
END
        start_sqmgr
        wait_until 60 all_ready
        wait_until 10 all_connected
        enqueue $((rounds * 4)) Sleep 1
        enqueue 4 Hold "$folder/release"
        PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$e2e/rq_app.py" "$rounds" nap 1
        workers=$(all_pids)
        for ((i = 0; i < rounds / 2; i++)); do
                kill_one_reader "$i"
        done
        [ "$(all_pids)" = "$workers" ] || { grep -v Redis sqmgr.log && false; }
        fleets_are '.quiet == 0 and .stopping == 0'
        for name in default preload rq native; do
                sqmgrctl restart "$name"
        done
        for ((; i < rounds; i++)); do
                kill_one_reader "$i"
        done
        touch "$folder/release"
        wait_until 120 fleets_are '.rollout.state == "done"'
        wait_until 60 gone "$workers"
        wait_until 60 all_ready
        wait_until 120 has_done $((rounds * 5 + 4))
        wait_until 60 all_done "$folder/native" $((rounds * 5))
        [ "$(jobs_started)" = $((rounds * 5 + 4)) ]
        [ "$(jobs_run_twice)" = 0 ]
        # A loop that waited for a killed reader would wait for the time limits of 20 s.
        [ "$longest_status" -lt 8000 ]
        echo "# $rounds readers killed: status within $longest_status ms, all read again within $longest_away ms, $late of them after more than 2 s" >&3
}

@test "a hung reader is replaced; until then no worker is quieted or stopped" {
        start_fleet 2
        workers=$(worker_pids)
        frozen=$(reader)
        kill -STOP "$frozen"
        sqmgrctl restart
        wait_until 40 another_reader_than "$frozen"
        sqmgrctl ping
        run -0 sqmgrctl restart --wait --timeout 300s
        wait_until 20 gone "$workers"
        any_event '.event == "redis-down"' || grep -q 'the reader process did not answer' sqmgr.log
}

# The title of the fleet's worker shows a running job.
@test "a lying reader gets no busy worker stopped and nothing executed, and all commands are answered" {
        mkdir place
        copy_programs place
        cp "$SQMGR_BUILD/tests/stub/hostile-reader" place/sqmgr-reader
        chmod 755 place place/*
        cat >busy.rb <<'END'
%w[TSTP TTIN].each { |name| trap(name) { File.write("signals", "#{name}\n", mode: "a") } }
trap('TERM') { File.write("signals", "TERM\n", mode: "a") }
$0 = 'sidekiq 7.0.2 app [3 of 5 busy]'
sleep 0.1 while true
END
        configure <<END
command = ruby $folder/busy.rb
directory = $folder
active_process_count = 1
memory_threshold = 1G
[fleet:other]
framework = plain
command = sleep 10000
END
        start_redis
        launch sqmgr "$folder/place/sqmgr" -c "$folder/sqmgr.ini"
        sqmgr_pid=$!
        wait_until 10 sqmgrctl ping
        wait_until 20 has_worker default
        wait_until 20 has_worker other
        worker=$(pids_of default)
        other=$(pids_of other)
        for ((i = 0; i < 20; i++)); do
                before=$(reader)
                sqmgrctl ping
                # The next reader misbehaves in another way.
                [ -z "$before" ] || kill -KILL "$before" 2>/dev/null || true
                wait_until 5 another_reader_than "${before:-0}"
                wait_ticks 2
        done
        alive "$worker $other"
        run ! grep TERM signals
        kill -KILL "$other"
        wait_until 10 not alive "$other"
        wait_until 10 has_worker other
        [ "$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB$/\1/p' "/proc/$sqmgr_pid/status")" -lt 60000 ]
}
