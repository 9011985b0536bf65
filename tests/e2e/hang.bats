#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A living worker without heartbeats is replaced and kept, or ended if configured so.
# seconds: 150
# promises: P5
load helpers

worker_is() { fleet_is ".workers[] | select(.pid == $hung) | $1"; } # CONDITION
is_removed() { fleet_is "[.workers[] | select(.pid == $hung)] == []"; }

@test "hung: a worker without heartbeats is replaced and kept, and counts again once heartbeats return" {
        start_workers 2 <<END
command = $(stub_command)
active_process_count = 2
max_processes = 3
ready_after = 1s
hang_after = 1s
END
        hung=$(fleet '.workers[0].pid')
        touch "$folder/steer/mute.$hung"

        wait_until 60 worker_is '.hung and .state == "active" and (.waits_for | startswith("is hung: "))'
        wait_until 20 fleet_is '.active == 2 and .hung == 1 and (.workers | length) == 3'
        wait_until 20 ready 2
        alive "$hung"
        sqmgrctl status | grep -q " $hung  hung "
        run -0 sqmgrctl events --json
        jq -es 'any(.[]; .event == "hung" and .pid == '"$hung)" <<<"$output"

        # sqmgr remembers that after a kill.
        kill_sqmgr
        start_sqmgr
        worker_is '.hung'
        fleet_is '.active == 2 and (.workers | length) == 3'

        rm "$folder/steer/mute.$hung"
        wait_until 20 fleet_is '.active == 2 and .hung == 0 and (.workers | length) == 2'
        fleet_is '.crash.count == 0'
}

@test "hung: with hang_action = kill a frozen Sidekiq gets TERM, requeues its job, and another worker runs it" {
        start_workers 2 <<END
command = $(sidekiq_command 1)
active_process_count = 2
ready_after = 1s
hang_after = 1s
hang_action = kill
END
        enqueue 1 Hold "$folder/release"
        wait_until 20 has_started 1
        wait_until 20 fleet_is '[.workers[] | select(.busy == 1)] | length == 1'
        hung=$(fleet '.workers[] | select(.busy == 1) | .pid')
        kill -STOP "$hung"

        wait_until 120 gone "$hung"
        run -0 sqmgrctl events --json
        jq -es 'any(.[]; .event == "stopping" and .reason == "hung" and .pid == '"$hung)" <<<"$output"
        wait_until 20 is_removed
        wait_until 60 ready 2
        touch "$folder/release"
        wait_until 30 has_done 1
        [ "$(redis llen queue:default)" = 0 ]
}
