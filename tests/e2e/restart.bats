#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A rolling restart cuts off no job, on real Sidekiq workers.
# seconds: 110
load helpers

# Looks at the fleet until $folder/sampled exists: the fewest active workers and the most processes seen.
sample() {
        local fewest=999 most=0 samples=0 active live
        while [ ! -e "$folder/sampled" ]; do
                read -r active live < <(fleet '"\(.active) \(.workers | length)"') || continue
                [ "$active" -ge "$fewest" ] || fewest=$active
                [ "$live" -le "$most" ] || most=$live
                samples=$((samples + 1))
                echo "$fewest $most $samples" >"$folder/samples"
                sleep 0.2
        done
}

@test "restart under load: 60 jobs of 20 s, none lost, none run twice, never fewer than 4 active" {
        start_redis
        configure <<END
command = $(sidekiq_command 5)
active_process_count = 4
ready_after = 2s
END
        start_sqmgr
        wait_until 60 ready 4
        old=$(worker_pids)

        enqueue 60 Sleep 20
        wait_until 30 has_started 20
        sample 3>&- 9>&- &
        sampler=$!
        begun=$SECONDS
        run -0 sqmgrctl restart --wait=drained --timeout 150s
        took=$((SECONDS - begun))
        wait_until 120 has_done 60
        touch "$folder/sampled"
        wait "$sampler"
        read -r fewest most samples <"$folder/samples"

        echo "# 60 enqueued, $(jobs_done) done, $(jobs_run_twice) run twice, fewest active $fewest, most processes $most," \
                "$samples samples, rollout and drain $took s" >&3
        [ "$(jobs_done)" = 60 ]
        [ "$(jobs_started)" = 60 ]
        [ "$(jobs_run_twice)" = 0 ]
        [ "$fewest" -ge 4 ]
        [ "$most" -le 12 ]
        [ "$samples" -gt 50 ]
        # shellcheck disable=SC2086
        gone $old
        fleet_is '.generation == 2 and .rollout.state == "done" and .rollout.outdated == 0'
}
