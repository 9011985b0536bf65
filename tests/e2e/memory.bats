#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A worker over its memory threshold is replaced first and leaves when its jobs are done.
# seconds: 60
# promises: P1 P2
load helpers

bloated_is() { # STATE
        fleet_is ".workers[] | select(.pid == $leaker) | .state == \"$1\" and .reason == \"memory\""
}

@test "memory: a worker that outgrows the threshold is replaced while its long job runs to the end" {
        start_redis
        configure <<END
command = $(sidekiq_command 2)
active_process_count = 2
ready_after = 2s
memory_threshold = 200M
END
        start_sqmgr
        wait_until 60 ready 2
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
