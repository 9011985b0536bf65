#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What the orders of sqmgrctl do, on workers that send five heartbeats a second, and who may give them. commands.bats
# has the exit codes.
# seconds: 55
# promises: P1 P3 P10
load helpers

@test "ping, version and status answer" {
        start_fleet 2
        run -0 sqmgrctl ping
        run -0 sqmgrctl version
        [ "$output" = "sqmgr $version" ]
        run -0 sqmgrctl status
        [[ $output == *default/1* && $output == *default/2* && $output == *active* ]]
        run -0 sqmgrctl -s "$SQMGR_SOCKET" --json status default
        jq -e --argjson pid "$sqmgr_pid" --arg version "$version" '.version == $version and .pid == $pid and .uptime_seconds > 0 and
                .redis[0].state == "connected" and (.fleets[0] | .name == "default" and .active == 2 and (.workers | length) == 2) and
                (.fleets[0].workers[0] | .id == "default/1" and .pid > 1 and .state == "active" and .memory_bytes > 0)' <<<"$output"
}

@test "restart replaces every worker, generation by generation" {
        start_fleet 3
        old=$(worker_pids)
        run -0 sqmgrctl restart --wait=drained --timeout 300s
        gone "$old"
        fleet_is '.generation == 2 and all(.workers[]; .generation == 2 and (.outdated | not))'
        run -0 sqmgrctl restart default --wait --timeout 300s
        fleet_is '.generation == 3 and .rollout.state == "done"'
}

@test "restart --wait exits 5 at its timeout, the rollout continues, abort ends it, and the next one works" {
        start_fleet 2
        old=$(worker_pids)
        touch "$folder/steer/hang"
        run -5 sqmgrctl restart --wait --timeout 1s
        fleet_is '.rollout.state == "running"'
        run -0 sqmgrctl abort
        fleet_is '.rollout.state == "aborted"'
        alive "$old"
        rm "$folder/steer/hang"
        run -0 sqmgrctl restart --wait=drained --timeout 300s
        gone "$old"
        fleet_is '.rollout.state == "done" and .active == 2'
}

restart_log_has() { grep -qE -- "$1" restart.log; }

@test "restart --wait without a terminal reports why workers die, and a death does not count as a replacement" {
        start_fleet 2
        old=$(worker_pids)
        echo 'pid=% tid=1 no such table' >steer/fail
        # shellcheck disable=SC2086
        kill -KILL $old
        run -1 --separate-stderr sqmgrctl restart --wait --timeout 300s
        echo "$output"
        [[ $output == *' error: default/'*' (pid '*') exited with status 1 after '*', before its first heartbeat:'*'no such table'* ]]
        [[ $output != *': '[12]' of 2 workers replaced'* && $output != *'is gone'* ]]
        fleet_is '.rollout.replaced == 0'
}

@test "restart --wait without a terminal while Redis is down reports the wait and the return of Redis" {
        start_fleet 1
        kill -STOP "$redis_pid"
        wait_until 15 not redis_state_is connected
        launch restart sqmgrctl restart --wait --timeout 300s
        restart_pid=$!
        wait_until 10 restart_log_has 'waits for Redis'
        kill -CONT "$redis_pid"
        wait_until 30 restart_log_has 'restart done'
        wait "$restart_pid"
}

@test "a busy worker is quieted, and stopped only once idle" {
        start_fleet 1
        worker=$(worker_pids)
        echo 1 >"$folder/steer/busy.$worker"
        run -0 sqmgrctl restart --wait --timeout 300s
        fleet_is ".workers[] | select(.pid == $worker) | .state == \"quiet\" and .reason == \"restart\""
        wait_until 20 fleet_is ".workers[] | select(.pid == $worker) | .busy == 1 and .state_seconds > 3"
        alive "$worker"
        echo 0 >"$folder/steer/busy.$worker"
        wait_until 20 gone "$worker"
}

@test "places occupied by jobs: status and log report the worker and since when" {
        start_fleet 2 'max_processes = 3'
        echo 2 >"$folder/steer/busy"
        wait_until 20 fleet_is 'all(.workers[]; .busy == 2)'
        run -0 sqmgrctl restart
        held="fleet 'default' waits for a process to exit: 1 of 3 (max_processes) is draining; longest: default/1 (pid $(fleet '.workers[0].pid'), 2 running jobs) for "
        wait_until 20 grep -qF "warning: $held" sqmgr.log
        # A place that a worker occupies while it boots is no problem.
        [ "$(grep -c 'waits for a process to exit' sqmgr.log)" = 1 ]
        [[ $(sqmgrctl status) == *"${held#*\' }"* ]]
        rm "$folder/steer/busy"
        wait_until 20 fleet_is '.rollout.state == "done"'
}

@test "events are listed by fleet and worker, and followed" {
        start_fleet 1
        run -0 sqmgrctl events
        [[ ${lines[0]} =~ ^[0-9]{4}-[0-9]{2}-[0-9]{2}\ [0-9:]{8}\ default/1\ \(pid\ [0-9]+\)\ started$ ]]
        sqmgrctl events --follow --json >followed 2>/dev/null 3>&- 9>&- &
        following=$!
        wait_until 10 grep -q '"started"' followed
        sqmgrctl scale default 2
        wait_until 20 ready 2
        wait_until 10 grep -q '"worker":"default/2"' followed
        kill "$following"
        wait "$following" || true
        jq -es 'all(.[]; .at > 1600000000 and (.text | length > 0)) and
                any(.[]; .event == "started" and .worker == "default/2" and .fleet == "default" and .level == "info")' followed
        run -0 sqmgrctl events default/2
        [[ $output == *"default/2"* ]]
        [[ $output != *"default/1"* ]]
        run -2 sqmgrctl events nosuch
        run -2 sqmgrctl status --follow
        run -2 sqmgrctl events nosuch/1
        [ "$output" = "sqmgrctl: unknown fleet 'nosuch'; known: 'default'" ]
        run -2 sqmgrctl events default/9 --follow
        [ "$output" = "sqmgrctl: unknown worker 'default/9'; known: 'default/1', 'default/2'" ]
        run -0 sqmgrctl stop default
        wait_until 20 fleet_is '.workers == []'
        run -0 sqmgrctl events default/2
        [[ $output == *"default/2"*'exited cleanly (status 0, reason: operator)'* ]]
}

@test "scale changes the count, within 1 and max_processes" {
        start_fleet 1
        run -0 sqmgrctl scale default 3
        wait_until 20 fleet_is '.target == 3 and .active == 3'
        run -0 sqmgrctl scale default 1
        wait_until 20 fleet_is '.target == 1 and .active == 1 and (.workers | length) == 1'
        run sqmgrctl scale default 0
        [ "$status" -ne 0 ]
        run sqmgrctl scale default 999
        [ "$status" -ne 0 ]
        fleet_is '.target == 1'
}

@test "quiet FLEET drains it and keeps it empty until start, quiet WORKER replaces the worker" {
        start_fleet 2
        worker=$(fleet '.workers[0].pid')
        run -0 sqmgrctl quiet default/1
        wait_until 20 gone "$worker"
        wait_until 20 ready 2
        run -0 sqmgrctl quiet default
        wait_until 20 fleet_is '.state == "quiet" and (.workers | length) == 0'
        run -0 sqmgrctl start default
        wait_until 20 fleet_is '.state == "running" and .active == 2'
        run -0 sqmgrctl quiet default
        wait_until 20 fleet_is '.state == "quiet" and (.workers | length) == 0'
        run -0 sqmgrctl restart --wait --timeout 300s
        [[ $output == *"'sqmgrctl restart default --resume'"* ]]
        fleet_is '.state == "quiet" and .generation == 1'
        echo 'pid=% tid=1 no such table' >"$folder/steer/fail"
        run -1 sqmgrctl restart --resume --wait --timeout 300s
        [[ $output == *'restart halted; no old workers are left. '*'no such table'* ]]
        rm "$folder/steer/fail"
        run -0 sqmgrctl restart --wait --timeout 300s
        wait_until 20 fleet_is '.state == "running" and .active == 2'
}

@test "stop drains to zero, restart does not undo it, start does" {
        start_fleet 2
        run -0 sqmgrctl stop default
        wait_until 20 fleet_is '.state == "stopped" and (.workers | length) == 0'
        run -0 --separate-stderr sqmgrctl restart --wait --timeout 300s
        by="ago by $(id -un) (uid $(id -u))"
        # shellcheck disable=SC2154
        [[ $output == '' && $stderr == "sqmgrctl: default: stopped "*"$by; not restarted. To start it, run 'sqmgrctl start default'" ]]
        [[ $(sqmgrctl doctor) == *"warning  fleet 'default': stopped "*"$by; "*" start default"* ]]
        sqmgrctl status --json | jq -e '.problems | any(.code == "fleet-stopped" and .fleet == "default" and .unready == false)'
        [[ $(sqmgrctl status) == *"default (sidekiq): stopped "*"$by, 0 of 0 active"* ]]
        fleet_is '.state == "stopped" and (.workers | length) == 0'
        run -0 sqmgrctl start default
        wait_until 20 ready 2
}

@test "stop waits for running jobs, stop --force does not" {
        start_fleet 1
        worker=$(worker_pids)
        echo 1 >"$folder/steer/busy"
        wait_until 10 fleet_is '.workers[0].busy == 1'
        run -0 sqmgrctl stop default
        wait_until 20 fleet_is '.workers[0].state == "quiet" and .workers[0].state_seconds > 3'
        alive "$worker"
        run -0 sqmgrctl stop default --force
        wait_until 20 fleet_is '.workers[0].state == "stopping"'
        echo 0 >"$folder/steer/busy"
        wait_until 20 gone "$worker"
}

# bats test_tags=root
@test "members of socket_group may operate" {
        [ "$(id -u)" = 0 ] || skip 'not root'
        cp "$(command -v sqmgrctl)" "$folder/"
        sqmgr_lines='socket_group = daemon' start_fleet 1
        run -0 setpriv --reuid nobody --regid nogroup --groups daemon "$folder/sqmgrctl" restart --wait --timeout 300s
        run -0 setpriv --reuid nobody --regid nogroup --groups daemon "$folder/sqmgrctl" reload
        run -4 setpriv --reuid nobody --regid nogroup --groups daemon "$folder/sqmgrctl" reexec
        run -0 sqmgrctl events
        by="by nobody (uid $(id -u nobody))"
        [[ $output == *"restart to generation 2 started $by; 1 worker to replace"*"configuration reloaded $by, 0 changes"* ]]
        [ "$(sqmgrctl events --json | command jq -c 'select(.event == "order") | .by')" = "{\"uid\":$(id -u nobody),\"name\":\"nobody\"}" ]
        run ! setpriv --reuid nobody --regid nogroup --clear-groups "$folder/sqmgrctl" status
}

@test "sqmgr knows its options" {
        report=$(sed -n 's/^#define REPORT_FAULTS "\(.*\)"$/\1/p' "$SQMGR_BUILD/config.h")
        [[ $report == *'Report faults to '* ]]
        for program in sqmgr sqmgrctl; do
                run -0 $program --version
                [ "${lines[0]}" = "$program $version" ]
                [ "${lines[1]}" = "$report" ]
                run -0 $program --help
                [ "${lines[-1]}" = "$report" ]
        done
        run -0 sqmgr --help
        [[ $output == *--check-config* ]]
        configure <<<'command = sidekiq'
        for option in --version --help --check-config --print-config; do
                run -1 bash -c "sqmgr -c sqmgr.ini $option >/dev/full"
                [[ $output == *'sqmgr: cannot write to standard output: No space left on device' ]]
        done
        run -0 sqmgrctl --help
        [[ $output == *restart* ]]
}
