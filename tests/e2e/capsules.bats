#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A worker that names its queues only in the weights of its capsules, as is announced for Sidekiq 9.0: the count follows
# its queues, and doctor knows which queues are served.
# seconds: 10
# promises: none
load helpers

has_finding() { sqmgrctl doctor --json | jq -e "any(.findings[]; $1)"; }
has_problem() { sqmgrctl status --json | jq -e "any(.problems[]; $1)"; }

@test "capsules: the count follows queues of capsules, and 'why' and doctor name them" {
        echo '"capsules":{"default":{"weights":{"low":1}},"post":{"concurrency":2,"weights":{"mailers":0,"low":0}}},"version":"9.0.0"' \
                >"$folder/steer/info"
        start_fleet 1 'active_process_max = 3' 'latency_target = 1min mailers=20s misspelt=1min'
        echo 5 >"$folder/steer/busy"
        # Both wait for longer than their target, and no job is done.
        redis sadd queues mailers others
        for queue in mailers others; do
                redis lpush "queue:$queue" "{\"class\":\"Mail\",\"enqueued_at\":$(($(date +%s) - 120))}"
        done
        wait_until 30 any_event '.event == "scaled" and (.text | contains("of its target 20s"))'
        wait_until 30 fleet_is '.target >= 2'
        run -0 sqmgrctl why default
        [[ $output == *"queue 'mailers'"* ]]
        has_problem '.code == "queue-name-unknown" and (.summary | contains("misspelt"))'
        not has_problem '.code == "queue-name-unknown" and (.summary | contains("mailers"))'
        wait_until 30 has_finding '.text | contains("no worker serves the queue") and contains("others")'
        not has_finding '.text | contains("no worker serves the queue") and contains("mailers")'
        run -0 sqmgrctl queues
        [[ $output == *mailers* ]]
}
