#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# `sqmgrctl why`: the history of one worker, in order, from recorded events and the
# current state.
# seconds: 20
# promises: none
load helpers

# True if the output has these patterns, each in a line after that of the previous one.
why_has_lines() { # PATTERN...
        local pattern line
        while read -r line; do
                pattern=$1
                # shellcheck disable=SC2053
                [[ $line != $pattern ]] || shift
                [ $# -gt 0 ] || return 0
        done <<<"$output"
        echo "not told: $1"
        return 1
}

@test "why: a healthy worker, a worker that waits for its jobs, and one that is gone" {
        start_fleet 1 'memory_threshold = 1G'
        run -0 sqmgrctl why default/1
        why_has_lines '* default/1 (pid *) started' '* default/1 (pid *) active' 'Now: active for *s, healthy' \
                'process *, generation 1, started *s ago' '0 jobs running at the last heartbeat *s ago' \
                'memory *M, 0% of memory_threshold 1G'
        [[ $output != *journalctl* ]]

        echo 1 >"$folder/steer/busy"
        wait_until 10 fleet_is '.workers[0].busy == 1'
        sqmgrctl restart --wait --timeout 300s
        run -0 sqmgrctl why default/1
        why_has_lines '* started' "* fleet 'default': restart to generation 2 started by $(id -un) (uid $(id -u)); 1 worker to replace" \
                '* default/1 (pid *) quieted (reason: restart), 1 job running' \
                'Now: quiet for *s: a restart deploys new code; waits for 1 running job to finish' \
                'process *, generation 1 (outdated), *' '1 job running at the last heartbeat *'
        [[ $output != *default/2* ]]
        run -0 sqmgrctl why default/1 --json
        jq -e '.worker.id == "default/1" and .worker.reason == "restart" and (.events[0].event == "started") and
                any(.events[]; .event == "rollout-started") and all(.events[]; .worker == null or .worker == "default/1")' <<<"$output"

        rm "$folder/steer/busy"
        wait_until 20 fleet_is '(.workers | length) == 1'
        run -0 sqmgrctl why default/1
        why_has_lines '* started' '* asked to exit (reason: restart)' '* exited cleanly (status 0, reason: restart)' 'Now: gone'
        run -0 sqmgrctl why default/1 --json
        jq -e '.worker == null and .events[-1].event == "gone"' <<<"$output"
}

@test "why: a reused id, and events that only the journal has" {
        start_fleet 1
        killed=$(worker_pids)
        kill -KILL "$killed"
        wait_until 20 fleet_is ".workers[0].pid != $killed and .workers[0].state == \"active\""
        run -0 sqmgrctl why default/1
        [[ ${lines[0]} == "Earlier workers had the same id: run 'sqmgrctl events default/1'" ]]
        [[ $output != *SIGKILL* ]]
        record "$(worker_pids)"
        replace_sqmgr 1
        run -0 sqmgrctl why default/1
        [[ ${lines[0]} == "Older events are not kept. To look for them in the journal, run 'journalctl SQMGR_WORKER=default/1'" ]]
        why_has_lines 'Now: active for *' 'process *, generation 1, *'
        record "$(worker_pids)"
}
