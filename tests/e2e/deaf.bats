#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A worker that sends heartbeats and runs no jobs, while another one works and the queue shrinks: it is reported, and
# replaced if configured so.
# seconds: 90
# promises: P1 P2
load helpers

has_problem() { sqmgrctl status --json | jq -e "any(.problems[]; $1)"; }

@test "deaf: a worker that runs no jobs is reported and kept; with hang_action = kill it is replaced, and no job is cut off" {
        fleet_lines='hang_after = 1s' start_fleet 2
        deaf=$(fleet '.workers[0].pid')
        works=$(fleet '.workers[1].pid')
        echo 2 >"$folder/steer/busy.$works"
        redis sadd queues default
        redis eval 'for i = 1, 9000 do redis.call("lpush", KEYS[1], ARGV[1]) end' 1 queue:default \
                "{\"class\":\"Job\",\"enqueued_at\":$(date +%s)}"
        launch taker redis-cli -s "$folder/redis.sock" -r -1 -i 0.2 rpop queue:default

        # Twice 31 s, which hang_after is at least: idle while the other one works, and beside a queue with jobs.
        wait_until 100 any_event '.event == "deaf" and .level == "warning" and .pid == '"$deaf"
        has_problem '.code == "worker-deaf" and .worker == "default/1" and (.unready | not)'
        fleet_is '.active == 2 and (.workers | length) == 2'
        run -0 sqmgrctl why default/1
        [[ $output == *'runs no job'* || $output == *'ran no job'* ]]
        alive "$deaf"
        not any_event '.event == "deaf" and .pid == '"$works"

        sed -i 's/^hang_after.*/&\nhang_action = kill/' sqmgr.ini
        sqmgrctl reload
        wait_until 30 gone "$deaf"
        any_event '.event == "quiet" and .pid == '"$deaf"' and .reason == "deaf"'
        not any_event '.event == "killed" or .event == "crashed" or .event == "drain-cut"'
        wait_until 30 fleet_is '.active == 2 and (.workers | length) == 2'
        alive "$works"
        # Its replacement was active first.
        sqmgrctl events --json | jq -es '(map(.event == "active" and .pid != '"$deaf"' and .pid != '"$works"') | index(true)) <
                (map(.event == "quiet" and .pid == '"$deaf"') | index(true))'
}
