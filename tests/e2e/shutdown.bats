#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# SIGTERM drains: jobs finish, then sqmgr exits with 0.
# seconds: 50
load helpers

@test "SIGTERM: running jobs finish, every worker exits, sqmgr exits with 0" {
        start_redis
        configure <<END
command = $(sidekiq_command 2)
active_process_count = 2
ready_after = 1s
END
        start_sqmgr
        wait_until 60 ready 2
        enqueue 4 Hold "$folder/release"
        wait_until 20 has_started 4
        workers=$(worker_pids)
        kill -TERM "$sqmgr_pid"
        wait_until 20 fleet_is '.quiet == 2 and all(.workers[]; .reason == "shutdown")'
        touch "$folder/release"
        wait "$sqmgr_pid"
        # shellcheck disable=SC2086
        gone $workers
        [ "$(jobs_done)" = 4 ]
        [ "$(jobs_run_twice)" = 0 ]
        [ ! -e "$folder/sqmgr.sock" ]
}

@test "SIGTERM: at shutdown_timeout the rest is told to exit" {
        start_redis
        echo 1 >"$folder/steer/busy"
        sqmgr_lines='shutdown_timeout = 2s' configure <<END
command = $(stub_command) -t 1
ready_after = 500ms
END
        start_sqmgr
        wait_until 20 ready 1
        workers=$(worker_pids)
        kill -TERM "$sqmgr_pid"
        wait_until 20 gone "$sqmgr_pid"
        # shellcheck disable=SC2086
        gone $workers
}

@test "SIGTERM twice: all are told to exit at once" {
        start_redis
        echo 1 >"$folder/steer/busy"
        sqmgr_lines='shutdown_timeout = 10min' configure <<END
command = $(stub_command) -t 1
ready_after = 500ms
END
        start_sqmgr
        wait_until 20 ready 1
        workers=$(worker_pids)
        kill -TERM "$sqmgr_pid"
        wait_until 10 fleet_is '.quiet == 1'
        kill -TERM "$sqmgr_pid"
        wait_until 20 gone "$sqmgr_pid"
        # shellcheck disable=SC2086
        gone $workers
}
