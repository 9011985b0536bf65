#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Workers send heartbeats to another database than that of redis_url: sqmgr reports it within 15 s, and still replaces
# them without cutting off a job.
# seconds: 120
# promises: P1 P5
load helpers

redis3() { redis -n 3 "$@"; }
jobs_started() { redis3 hlen ledger:started; }
jobs_done() { redis3 hlen ledger:done; }
is_elsewhere() { fleet_is ".workers[] | select(.pid == $1) | .waits_for_code == \"beats-elsewhere\""; } # PID

# Uses TCP: older Redis clients of Ruby take no database from the URL of a socket.
start_wrong_database() {
        port=$(unused_port 127.0.0.1)
        printf '%s\n' 'bind 127.0.0.1' "port $port" "unixsocket $folder/redis.sock" "dir $folder" 'save ""' \
                >"$folder/redis.conf"
        launch redis redis-server "$folder/redis.conf"
        wait_until 20 redis ping
        redis_url=redis://127.0.0.1:$port/0 configure <<END
command = $(sidekiq_command 2)
environment = REDIS_URL=redis://127.0.0.1:$port/3
END
        export REDIS_URL=redis://127.0.0.1:$port/3
}

shows_peer() { [[ $(sqmgrctl doctor) == *"connected to 127.0.0.1:$port"* ]]; }
has_booted() { [ -n "$(redis3 smembers processes)" ]; }

start_elsewhere() {
        start_wrong_database
        start_sqmgr
        wait_until 60 has_booted
        worker=$(redis3 smembers processes | cut -d: -f2)
}

@test "the check of the configuration names the database" {
        start_wrong_database
        run -0 --separate-stderr sqmgr -c "$folder/sqmgr.ini" --check-config
        [[ $stderr == *"REDIS_URL in the environment selects database 3, redis_url selects database 0"* ]]
        echo "REDIS_URL=redis://127.0.0.1:$port/4" >"$folder/environment"
        echo "environment_file = $folder/environment" >>"$folder/sqmgr.ini"
        run -0 --separate-stderr sqmgr -c "$folder/sqmgr.ini" --check-config
        [[ $stderr == *"REDIS_URL in the environment selects database 4, redis_url selects database 0"* ]]
        echo "REDIS_URL=redis://localhost:$port" >"$folder/environment"
        run -0 --separate-stderr sqmgr -c "$folder/sqmgr.ini" --check-config
        [[ $stderr != *REDIS_URL* ]]
}

@test "a wrong database is diagnosed within 15 s of the boot" {
        start_elsewhere
        wait_until 15 is_elsewhere "$worker"
        any_event '.event == "beats-elsewhere" and (.text | contains("selects database 3"))'
        run -1 sqmgrctl doctor
        [[ $output == *"default/1"*"database 3"*"Set redis_url"* ]]
        [[ $(sqmgrctl why default/1) == *'has booted, but its heartbeat was not found'* ]]
}

@test "the servers that the worker is connected to are shown where its environment says nothing" {
        start_wrong_database
        sed -i '/^environment = /d' "$folder/sqmgr.ini"
        # The application names the Redis itself.
        echo "export REDIS_URL=$REDIS_URL; exec $(sidekiq_command 2)" >"$folder/worker.sh"
        sed -i "s|^command = .*|command = sh $folder/worker.sh|" "$folder/sqmgr.ini"
        unset REDIS_URL
        start_sqmgr
        wait_until 60 has_booted
        wait_until 15 is_elsewhere "$(redis3 smembers processes | cut -d: -f2)"
        wait_until 20 shows_peer
}

@test "a restart replaces workers without a visible heartbeat, and cuts off no job" {
        start_elsewhere
        wait_until 15 is_elsewhere "$worker"
        enqueue_with_client 1 Hold "$folder/release"
        wait_until 20 has_started 1
        run -0 sqmgrctl restart --wait --timeout 120s
        alive "$worker"
        wait_until 20 fleet_is ".workers[] | select(.pid == $worker) | .state == \"quiet\" and .busy == 1"
        touch "$folder/release"
        wait_until 60 gone "$worker"
        [ "$(jobs_done)" = 1 ]
        [ "$(redis3 hvals ledger:started | sort -u)" = 1 ]
        fleet_is '(.workers | length) == 1'
}

@test "stop WORKER replaces an idle worker, and --force a busy one" {
        start_elsewhere
        wait_until 15 is_elsewhere "$worker"
        run -0 sqmgrctl stop default/1
        # The job threads may not be counted yet.
        [[ $output == "default/1: stopping once its jobs are done; a new worker replaces it" || $output == "default/1: order recorded; "* ]]
        wait_until 60 gone "$worker"
        wait_until 60 fleet_is '(.workers | length) == 1 and .workers[0].waits_for_code == "beats-elsewhere"'

        worker=$(fleet '.workers[0].pid')
        enqueue_with_client 1 Hold "$folder/release"
        wait_until 60 has_started 1
        run -0 sqmgrctl stop "$(fleet '.workers[0].id')" --force
        wait_until 60 gone "$worker"
        [ "$(jobs_done)" = 0 ]
}
