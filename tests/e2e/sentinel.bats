#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Redis fails over, and sqmgr follows the master that the Sentinels name: with a real master, a replica and three
# Sentinels. No fleet is below its count, no job is cut off, and no worker is stopped because of a replica's data.
# seconds: 60
# promises: P1 P2 P5
# shellcheck disable=SC2034
load helpers
load sentinel

# True if sqmgr has subscribed to it.
listened_to() { sentinel "$1" client list type pubsub | grep -q 'sub=1 psub=0'; } # NUMBER

stub_command() { echo "$stub -u $folder/a.sock -u $folder/b.sock -b 200 -d $folder/steer"; }
server_is() { [ "$(sqmgrctl status --json | jq -r '.redis[0].server')" = "$1" ]; } # HOST:PORT

start_fleet() {
        configure <<END
command = $(stub_command)
active_process_count = 3
ready_after = 500ms
max_processes = 9
END
        start_ready 3
        server_is "$a"
}

started_and_handed_on() { [ "$(node b hlen ledger:started)" = "$1" ]; } # COUNT

signal_master() { kill "-$1" "$a_pid"; }

# Checks until COMMAND succeeds that this many workers are active, and that the busy one lives.
while_kept_until() { # COMMAND...
        local deadline=$((SECONDS + 180))
        until "$@" >/dev/null 2>&1; do
                [ $SECONDS -lt $deadline ] || return 1
                fleet_is '.active >= 3' || return 1
                alive "$busy_pid" || return 1
                sleep 0.1
        done
}

# A rollout is in progress, an old worker has a job, and COMMAND removes the master.
fails_over_by() { # COMMAND...
        start_cluster
        start_fleet
        workers=$(worker_pids)
        busy_pid=${workers##* }
        echo 1 >"$folder/steer/busy.$busy_pid"
        wait_until 10 fleet_is ".workers[] | select(.pid == $busy_pid) | .busy == 1"
        sqmgrctl restart
        "$@"
        while_kept_until server_is "$b"
        while_kept_until fleet_is '.rollout.state == "done"'
        while_kept_until ready 3
        alive "$busy_pid"
        fleet_is ".workers[] | select(.pid == $busy_pid) | .state == \"quiet\" and .busy == 1"
        rm "$folder/steer/busy.$busy_pid"
        wait_until 60 gone "$workers"
        wait_until 30 fleet_is '.active == 3 and (.workers | length) == 3'
        [ "$(sqmgrctl events --json | jq -s '[.[].events[]? // .[] | select(.event == "redis-failover")] | length')" = 1 ]
        sqmgrctl events | grep -F "Redis failed over from $a to $b"
        sqmgrctl status | grep -F "redis redis://mymaster/0 connected to $b"
        grep -F "Redis redis://mymaster/0: connected to the master, $b" "$folder/sqmgr.log"
}

@test "SENTINEL FAILOVER during a rollout: sqmgr follows the master there and back, the rollout completes" {
        fails_over_by wait_until 30 sentinel_fails_over
        wait_until 30 node_is a slave
        wait_until 30 in_sync a
        wait_until 30 sentinel_fails_over
        wait_until 30 server_is "$a"
        wait_until 30 ready 3
        run -0 sqmgrctl restart --wait=drained --timeout 300s
}

@test "the master is killed during a rollout: sqmgr follows, and the rollout completes" {
        fails_over_by signal_master KILL
}

@test "the master hangs during a rollout: sqmgr follows the new one, and stays there when the old one wakes up" {
        fails_over_by signal_master STOP
        kill -CONT "$a_pid"
        wait_until 30 node_is a slave
        server_is "$b"
        run -0 sqmgrctl restart --wait=drained --timeout 300s
        server_is "$b"
}

@test "real Sidekiq: the master is killed during a rollout, no job is cut off or run twice" {
        start_cluster
        app=$e2e/sentinel-app.rb
        export SENTINELS="$net.11 $net.12 $net.13"
        configure <<END
command = $(sidekiq_command 2)
active_process_count = 2
ready_after = 1s
END
        start_ready 2
        enqueue_with_client 4 Hold "$folder/release"
        wait_until 20 started_and_handed_on 4
        workers=$(worker_pids)
        sqmgrctl restart
        signal_master KILL
        wait_until 30 server_is "$b"
        wait_until 120 fleet_is '.rollout.state == "done"'
        alive "$workers"
        touch "$folder/release"
        wait_until 60 gone "$workers"
        wait_until 60 ready 2
        [ "$(node b hlen ledger:done)" = 4 ]
        [ "$({ node b hvals ledger:started && node b hvals ledger:done; } | sort -u)" = 1 ]
}

@test "the subscribed Sentinel dies, then the master: the other Sentinels are queried, and sqmgr follows" {
        start_cluster
        start_fleet
        kill -KILL "$s1_pid"
        wait_until 30 listened_to 2
        kill -KILL "$a_pid"
        wait_until 60 server_is "$b"
        wait_until 30 ready 3
        not grep -E '\(pid [0-9]+\) active' <(sed '1,/failed over/d' "$folder/sqmgr.log")
}

@test "a Sentinel that names a replica, and a frozen one, are not believed" {
        start_cluster
        start_sentinel 4 "$net.2"
        start_sentinel 5 "$net.1"
        wait_until 20 sentinel 4 ping
        wait_until 20 sentinel 5 ping
        kill -STOP "$s5_pid"
        redis_lines="sentinels = $net.14, $net.15, $net.11
master_name = mymaster"
        start_fleet
        grep -F "$b is not a master" "$folder/sqmgr.log"
}

@test "no Sentinel knows the master: reported, no worker ends, and recovery is automatic" {
        start_cluster
        redis_lines="sentinels = $net.11, $net.19, $net.13
master_name = other"
        configure <<END
command = $(stub_command)
ready_after = 500ms
END
        start_sqmgr
        wait_until 20 redis_state_is down
        wait_until 20 grep -F "master is unknown there. Check master_name" "$folder/sqmgr.log"
        sentinel 3 sentinel monitor other "$net.1" 6379 2
        wait_until 30 ready 1
        server_is "$a"
}

@test "master, replica and Sentinels require passwords: they are sent, and shown nowhere" {
        password=swordfish sentinel_password=opensesame
        node_options=(--requirepass "$password" --masterauth "$password")
        sentinel_lines=("sentinel auth-pass mymaster $password" "requirepass $sentinel_password")
        redis_lines="password = $password
sentinel_password = $sentinel_password"
        start_cluster
        configure <<END
command = $stub -b 200
END
        start_sqmgr
        wait_until 20 redis_state_is connected
        wait_until 30 sentinel_fails_over
        wait_until 30 server_is "$b"
        run -0 sqmgrctl status
        [[ $output != *"$password"* && $output != *"$sentinel_password"* ]]
        not grep -E "$password|$sentinel_password" "$folder/sqmgr.log" "$folder/state" "/proc/$sqmgr_pid/cmdline"
        not grep -E "$password|$sentinel_password" <(sqmgrctl status --json; sqmgrctl events --json)

        # A wrong password is reported, without its value.
        kill_sqmgr
        sed -i "s/^sentinel_password = .*/sentinel_password = wrongsesame/" "$folder/sqmgr.ini"
        start_sqmgr
        wait_until 20 grep -F 'sentinel_password refused' "$folder/sqmgr.log"
        not grep -F wrongsesame "$folder/sqmgr.log"
}
