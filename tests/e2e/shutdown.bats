#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# SIGTERM drains: jobs finish, then sqmgr exits with status 0.
# seconds: 50
# promises: P1
load helpers

@test "SIGTERM: running jobs finish, every worker exits, sqmgr exits with 0" {
        start_workers 2 <<END
command = $(sidekiq_command 2)
active_process_count = 2
ready_after = 1s
END
        enqueue 4 Hold "$folder/release"
        wait_until 20 has_started 4
        workers=$(worker_pids)
        kill -TERM "$sqmgr_pid"
        wait_until 20 fleet_is '.quiet == 2 and all(.workers[]; .reason == "shutdown")'
        touch "$folder/release"
        wait "$sqmgr_pid"
        gone "$workers"
        [ "$(jobs_done)" = 4 ]
        [ "$(jobs_run_twice)" = 0 ]
        [ ! -e "$folder/sqmgr.sock" ]
}

@test "SIGTERM: at shutdown_timeout the remaining workers get TERM" {
        echo 1 >"$folder/steer/busy"
        sqmgr_lines='shutdown_timeout = 2s' start_workers 1 <<END
command = $(stub_command) -t 1
ready_after = 500ms
END
        workers=$(worker_pids)
        kill -TERM "$sqmgr_pid"
        wait_until 20 gone "$sqmgr_pid"
        gone "$workers"
}

@test "SIGTERM twice: all workers get TERM at once" {
        echo 1 >"$folder/steer/busy"
        sqmgr_lines='shutdown_timeout = 10min' start_workers 1 <<END
command = $(stub_command) -t 1
ready_after = 500ms
END
        workers=$(worker_pids)
        kill -TERM "$sqmgr_pid"
        wait_until 10 fleet_is '.quiet == 1'
        kill -TERM "$sqmgr_pid"
        wait_until 20 gone "$sqmgr_pid"
        gone "$workers"
}

# The process in the namespace, as seen from here.
# Readers are not workers.
child_of() { ps -o pid=,comm= --ppid "$1" | awk '$2 !~ /^sqmgr-/ { print $1 }'; }

@test "as PID 1 of a container, sqmgr reaps orphans, and TERM drains" {
        needs_namespace --pid --mount-proc
        start_redis
        sqmgr_lines='shutdown_timeout = 2min' configure <<END
command = $(sidekiq_command 2)
active_process_count = 1
ready_after = 1s
END
        launch sqmgr "${unshare[@]}" --pid --fork --mount-proc --kill-child "${plain[@]}" sqmgr -c "$folder/sqmgr.ini"
        unshare_pid=$!
        wait_until 10 sqmgrctl ping
        wait_until 60 ready 1
        [ "$(sqmgrctl status --json | jq .pid)" = 1 ]
        init=$(child_of "$unshare_pid")

        # Orphans of a job become children of PID 1.
        enqueue 1 Orphan
        wait_until 20 has_done 1
        wait_until 20 redis_has orphan:pid
        # The earlier worker has left the list: only the worker remains.
        one_is_left() { [ "$(child_of "$init" | wc -l)" = 1 ]; }
        wait_until 20 one_is_left

        enqueue 1 Sleep 3
        wait_until 20 has_started 2
        kill -TERM "$init"
        status=0
        wait "$unshare_pid" || status=$?
        [ "$status" = 0 ]
        has_done 2
}

@test "a systemd that does not read its notifications blocks nothing" {
        start_redis
        configure <<<"command = $(stub_command)"
        launch reader ruby -rsocket -e 's = Socket.new(:UNIX, :DGRAM)
                s.bind(Addrinfo.unix(ARGV[0]))
                sleep' "$folder/notify.sock"
        wait_until 20 test -S notify.sock
        export NOTIFY_SOCKET=$folder/notify.sock WATCHDOG_USEC=400000
        start_sqmgr
        # More than its queue holds.
        full() { [ "$(sqmgrctl --timeout 5s status --json | jq '.uptime_seconds > 10')" = true ]; }
        wait_until 40 full
        kill "$sqmgr_pid"
        wait_until 40 gone "$sqmgr_pid"
}
