#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A job that runs for longer than its class may is told of once, and Sidekiq says where it is.
# seconds: 60
load helpers

told() { # COUNT
        local events
        events=$(sqmgrctl events --json) && [ "$(jq -rs '[.[] | select(.event == "job-long")] | length' <<<"$events")" = "$1" ]
}

@test "long jobs: each is told of once, by the limit of its class, and its backtrace is in the log" {
        start_redis
        configure <<END
command = $(sidekiq_command 3)
job_warn_after = 3s Sleep=1h
stuck_job_action = dump
END
        start_sqmgr
        wait_until 60 fleet_is '.active == 1'
        pid=$(fleet '.workers[0].pid')
        enqueue 1 Sleep 600
        enqueue 1 Hold "$folder/release"
        wait_until 40 told 1
        jid=$(sqmgrctl jobs --json | jq -r '.jobs[] | select(.class == "Hold") | .jid')
        sqmgrctl events | grep -q "warning: Hold $jid (queue default) has been running for [0-9]*s in default/1 (pid $pid): what its threads are at is in the worker's log"
        wait_until 10 grep -q 'in .wait_for' "$folder/workers.log"
        # Three more looks at the jobs.
        sleep 5
        told 1
        alive "$pid"
        enqueue 1 Hold "$folder/release"
        wait_until 40 told 2
        touch "$folder/release"
        wait_until 30 has_done 2
}
