#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The count of a fleet follows its queues: real Sidekiq, a burst and the calm after it.
# seconds: 75
# promises: P1 P2
load helpers

scaling_is() { fleet_is ".scaling | $1"; } # CONDITION of the fleet's scaling
told() { sqmgrctl events --json | jq -es "any(.[]; $1)"; }
changes() { sqmgrctl events --json | jq -s '[.[] | select(.event == "scaled")] | length'; }

# So many jobs of that many seconds each, put in at once.
burst() { # COUNT SECONDS QUEUE
        ruby -r "$app" -e 'n, seconds, queue = ARGV
                n.to_i.times.each_slice(500) do |slice|
                        Sidekiq::Client.push_bulk("class" => "Sleep", "queue" => queue, "args" => [[seconds.to_f]] * slice.size)
                end' "$@"
}

none_harmed() { # COUNT of jobs
        [ "$(jobs_started)" -eq "$1" ]
        [ "$(jobs_done)" -eq "$1" ]
        [ "$(jobs_run_twice)" -eq 0 ]
        not told '.event == "drain-cut" or .event == "killed" or .event == "crashed" or .event == "job-lost"'
}

@test "scaling: a burst of 2,000 jobs takes a fleet from 2 to 8 workers, and the calm after it back" {
        start_redis
        configure <<END
command = $(sidekiq_command 5)
active_process_count = 2
active_process_max = 8
latency_target = 5s
scale_down_after = 6s
END
        start_sqmgr
        wait_until 40 ready 2
        wait_until 20 scaling_is '.automatic and .min == 2 and .max == 8 and .wanted == 2'
        [ "$(changes)" -eq 0 ]

        burst 2000 0.2 default
        wait_until 60 fleet_is '.target == 8 and .active == 8'
        run -0 sqmgrctl why default
        [[ $output == *"queue 'default'"* ]]
        [[ $output == *'2 -> 4 workers: '* ]]
        wait_until 60 has_done 2000
        if [ -n "${SQMGR_LONG-}" ]; then
                wait_until 180 fleet_is '.target == 2 and .active == 2 and (.workers | length) == 2'
        else
                wait_until 60 told '.event == "scaled" and (.text | contains("8 -> 7 workers"))'
                wait_until 60 fleet_is '.target <= 6'
        fi
        none_harmed 2000
        [ "$(sqmgrctl metrics | awk '/^sqmgr_fleet_max_processes/ { print $2 }')" = 24 ]
}
