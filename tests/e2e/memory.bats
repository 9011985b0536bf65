#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A worker above its memory threshold is replaced first and exits after its jobs; a restart takes no memory that other
# workers need.
# seconds: 80
# promises: P1 P2
load helpers

bloated_is() { # STATE
        fleet_is ".workers[] | select(.pid == $leaker) | .state == \"$1\" and .reason == \"memory\""
}

@test "memory: a worker above the threshold is replaced while its long job runs to the end" {
        start_workers 2 <<END
command = $(sidekiq_command 2)
active_process_count = 2
ready_after = 2s
memory_threshold = 200M
END
        enqueue 1 Leak 250 "$folder/release"
        wait_until 30 redis_has leak:pid
        leaker=$(redis get leak:pid)

        wait_until 60 bloated_is quiet
        fleet_is '.active == 2'
        wait_until 20 fleet_is ".workers[] | select(.pid == $leaker) | .busy == 1 and .memory_bytes > 200 * 1024 * 1024"
        [ "$(jobs_done)" = 0 ]
        alive "$leaker"

        touch "$folder/release"
        wait_until 60 gone "$leaker"
        [ "$(jobs_done)" = 1 ]
        [ "$(jobs_run_twice)" = 0 ]
        wait_until 10 fleet_is '.active == 2 and (.workers | length) == 2'
}

# bats test_tags=root
@test "memory: a restart without memory for all new workers beside the old ones kills no worker and loses no job" {
        make_group $((850 << 20))
        start_redis
        { cat "$app" && echo "sleep 1; BALLAST = 'x' * (150 << 20)"; } >"$folder/large.rb"
        configure <<END
command = sidekiq -r $folder/large.rb -c 2
active_process_count = 3
END
        launch sqmgr sh -c "echo 0 >'$group/cgroup.procs' && exec sqmgr -c '$folder/sqmgr.ini'"
        # shellcheck disable=SC2034
        sqmgr_pid=$!
        wait_until 60 ready 3
        wait_until 20 fleet_is 'all(.workers[]; .memory_bytes > 150 * 1048576)'
        old=$(worker_pids)
        enqueue 6 Hold "$folder/release"
        wait_until 30 has_started 6
        sqmgrctl restart
        wait_until 60 fleet_is '.waits_for | startswith("waits for memory: ")'
        # As many new workers as memory allows are ready, and as many old ones finish their jobs.
        wait_until 60 fleet_is 'any(.workers[]; .state == "quiet") and .active == 3 and .starting == 0'
        alive "$old"
        fleet_is '.rollout.state == "running" and (.waits_for | startswith("waits for memory: "))'
        touch "$folder/release"
        wait_until 90 fleet_is '.rollout.state == "done" and .active == 3'
        [ "$(jobs_done)" = 6 ]
        [ "$(jobs_run_twice)" = 0 ]
        run -0 sqmgrctl events --json
        [[ $output != *'"crashed"'* ]]
}
