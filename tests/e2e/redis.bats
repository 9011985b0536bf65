#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Fail-safe: while Redis is down no worker is quieted or stopped, and all continues when it is back.
# seconds: 205
# promises: P5 P8
# shellcheck disable=SC2030,SC2031
load helpers

# For SECONDS: the workers stay the same, none is quiet or stopping, and every command is answered.
nothing_changes_for() {
        local deadline=$((SECONDS + $1))
        while [ $SECONDS -lt $deadline ]; do
                sqmgrctl ping >/dev/null
                [ "$(worker_pids)" = "$workers" ]
                fleet_is '.quiet == 0 and .stopping == 0'
                sleep 0.5
        done
}

start_fleet() {
        start_workers 2 <<END
command = $(sidekiq_command 2)
active_process_count = 2
ready_after = 1s
memory_threshold = 1G
END
        enqueue 2 Hold "$folder/release"
        wait_until 20 has_started 2
        workers=$(worker_pids)
}

fleet_recovers() {
        wait_until 30 redis_state_is connected
        wait_until 60 ready 2
        [ "$(worker_pids)" = "$workers" ]
        touch "$folder/release"
        run -0 sqmgrctl restart --wait=drained --timeout 300s
        wait_until 30 gone "$workers"
        [ "$(jobs_done)" = 2 ]
        [ "$(jobs_run_twice)" = 0 ]
}

@test "Redis hangs for 30 s: no worker is quieted or stopped, and the fleet recovers" {
        start_fleet
        kill -STOP "$redis_pid"
        wait_until 15 not redis_state_is connected
        nothing_changes_for 30
        kill -CONT "$redis_pid"
        fleet_recovers
}

has_problem() { sqmgrctl status --json | jq -e "any(.problems[]; $1)"; }

# The only error is a problem of the server, and the restart says for what it waits.
shows_outage() { # CODE
        sqmgrctl status --json | jq -e --arg code "$1" '[.problems[] | select(.severity == "error") | .code] == [$code] and
                .fleets[0].rollout.state == "running" and .fleets[0].waits_for_code == "redis"' >/dev/null
}

# CODE is the problem of the server; `ends` ends it.
restart_waits() { # CODE ENDS...
        wait_until 20 has_problem ".code == \"$1\""
        run ! sqmgrctl restart --wait --timeout 2s
        [[ $output == *"waits "*" Redis"* ]]
        wait_until 10 shows_outage "$1"
        [ "$(worker_pids)" = "$workers" ]
        sqmgrctl ping --ready
        "${@:2}"
        wait_until 90 fleet_is '.rollout.state == "done"'
        wait_until 30 gone "$workers"
        wait_until 30 ready 2
        sqmgrctl events --json | not grep -e '"crashed"' -e rollout-halted
}

start_stubs() {
        start_workers 2 <<END
command = $(stub_command)
active_process_count = 2
ready_after = 500ms
END
        workers=$(worker_pids)
}

redis_returns() {
        rm -f "$folder/redis.sock"
        start_redis
}

@test "a restart while Redis is down starts nothing, says so, and is completed once Redis is back" {
        start_stubs
        kill -KILL "$redis_pid"
        restart_waits redis-down redis_returns
}

@test "a restart while Redis has no memory starts nothing, says so, and is completed once it has" {
        start_stubs
        redis config set maxmemory 1
        restart_waits redis-refuses-writes redis config set maxmemory 0
}

@test "a restart while Redis is a replica waits, too; a slow Redis is called slow" {
        start_stubs
        redis replicaof 127.0.0.1 1
        restart_waits redis-refuses-writes redis replicaof no one
        workers=$(worker_pids)
        kill -STOP "$redis_pid"
        restart_waits redis-slow kill -CONT "$redis_pid"
}

@test "Redis dies and comes back after 30 s: no worker is quieted or stopped, and the fleet recovers" {
        start_fleet
        kill -KILL "$redis_pid"
        wait_until 15 not redis_state_is connected
        nothing_changes_for 30
        rm -f "$folder/redis.sock"
        start_redis
        fleet_recovers
}
