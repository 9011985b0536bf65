#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A worker is one process that runs jobs. If its command starts several, or a new one after an exit, no process that was
# not asked to exit is ended with its jobs, and the sibling is reported.
# seconds: 125
# promises: P1
# shellcheck disable=SC2030,SC2031
load helpers

stubs() { pgrep -f "^$stub.*$folder" | sort -n; }
two_stubs() { [ "$(stubs | wc -l)" = 2 ]; }
warns_of_several() { [[ $(sqmgrctl events) == *'accepts jobs, although'* || $(sqmgrctl events) == *'has booted and keeps running'* ]]; }
warns_of_sibling() { [[ $(sqmgrctl events) == *'default/1 '*' sends heartbeats, too'* ]]; }
work_lists() { [ "$(redis --scan --pattern '*:work*' | wc -l)" = "$1" ]; }
# Busy for longer than stop_timeout.
busy_beyond_timeout() { # PID
        fleet_is ".workers[] | select(.pid == $1) | .state == \"quiet\" and .busy == 1 and .state_seconds > 7"
}

start_script() { # SCRIPT
        echo "$1" >command.sh
        start_workers 1 <<END
command = /bin/sh $folder/command.sh -t 1
ready_after = 300ms
stop_timeout = 6s
END
        first=$(worker_pids)
        wrapper=$(awk '/^PPid:/ { print $2 }' "/proc/$first/status")
}

start_siblings() { # SCRIPT
        start_script "$1"
        wait_until 20 two_stubs
        second=$(stubs | grep -vx "$first")
}

@test "a wrapper that restarts its worker: the next worker is not killed with the one that was asked to exit" {
        start_script "while :; do $(stub_command); sleep 0.1; done"
        echo 1 >steer/busy
        echo 0 >"steer/busy.$first"
        run -0 sqmgrctl quiet default/1
        wait_until 20 gone "$first"
        wait_until 20 warns_of_several
        wait_until 20 fleet_is '.workers[] | select(.index == 1) | .state == "quiet" and .busy == 1'
        second=$(fleet '.workers[] | select(.index == 1) | .pid')
        [ "$second" != "$first" ]
        wait_until 60 busy_beyond_timeout "$second"
        alive "$second" "$wrapper"

        echo 0 >steer/busy
        wait_until 20 gone "$second" "$wrapper"
        wait_until 20 fleet_is '.active == 1 and (.workers | length) == 1'
        [ "$(stubs)" = "$(worker_pids)" ]
}

two_at_once() { # SCRIPT
        start_siblings "$1"
        wait_until 30 warns_of_sibling
        echo 1 >"steer/busy.$second"
        run -0 sqmgrctl restart
        wait_until 20 gone "$first"
        wait_until 20 warns_of_several
        wait_until 60 busy_beyond_timeout "$second"
        alive "$second"
        # Its running jobs are not attributed to a dead process either.
        [[ $(sqmgrctl events) != *'when it died'* ]]
        event_count_is job-lost 0
        echo 0 >"steer/busy.$second"
        wait_until 20 gone "$second"
        wait_until 20 fleet_is '.active == 1 and (.workers | length) == 1'
}

@test "two siblings: the other one is not killed with the one that was asked to exit" {
        two_at_once "$(stub_command) & $(stub_command) & wait"
}

@test "two siblings without a wrapper: the remaining one is not forgotten" {
        two_at_once "$(stub_command) & exec $(stub_command)"
}

@test "two siblings: the one that outlives the other and the wrapper while no sqmgr runs is supervised" {
        start_siblings "$(stub_command) & $(stub_command) & wait"
        echo 1 >"steer/busy.$second"
        kill -KILL "$sqmgr_pid"
        wait_until 10 gone "$sqmgr_pid"
        kill -KILL "$wrapper" "$first"
        wait_until 10 gone "$wrapper" "$first"
        start_sqmgr
        wait_until 20 fleet_is ".workers | length == 1 and .[0].pid == $second"
        wait_until 20 fleet_is '.workers[0].state == "active"'
        [ "$(stubs)" = "$second" ]
}

@test "two siblings killed together: the jobs of both are reported" {
        start_script "$(sidekiq_command 1) & $(sidekiq_command 1) & wait"
        wait_until 60 warns_of_sibling
        enqueue 2 Hold "$folder/release"
        # Each reports its job with its next heartbeat.
        wait_until 30 work_lists 2
        kill -KILL -- "-$wrapper"
        wait_until 30 event_count_is job-lost 2
        touch "$folder/release"
}

@test "two siblings and stop --force: both get TERM before KILL" {
        start_siblings "$(stub_command) & $(stub_command) & wait"
        run -0 sqmgrctl stop default --force
        wait_until 20 gone "$first" "$second"
        wait_until 20 fleet_is '(.workers | length) == 0'
        [[ $(sqmgrctl events) != *"did not exit"* ]]
}
