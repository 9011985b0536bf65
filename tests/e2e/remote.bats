#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Sidekiq workers out of reach of signals. A stand-in plays the container daemon and its client: container_daemon.py.
# seconds: 150
# promises: P1 P4 P5
load helpers

configure_remote() { # LINE...
        configure <<END
command = $e2e/container_daemon.py run $folder/daemon.sock $(sidekiq_command 3)
namespaced = yes
active_process_count = 2
$(printf '%s\n' "$@")
END
}

start_remote() { # LINE...
        launch daemon "$e2e/container_daemon.py" daemon "$folder/daemon.sock"
        wait_until 10 test -S daemon.sock
        start_workers 2 configure_remote "$@"
}

# The processes of Sidekiq.
sidekiqs() { pgrep -P "$(pgrep -f "container_daemon.py daemon $folder/daemon.sock" | head -1)"; }
fleet_is() { sqmgrctl status --json | jq -e ".fleets[0] | $1"; }
attributed() { [ "$(sqmgrctl jobs --json | jq '.jobs | length')" = "$1" ]; }
gone_all() { for pid in $*; do not kill -0 "$pid" 2>/dev/null || return 1; done; }

@test "remote: a restart quiets, drains and stops workers out of reach; sqmgr is killed meanwhile" {
        start_remote
        fleet_is 'all(.workers[]; .remote and .memory_bytes > 20 * 1048576)'
        event_count_is remote 2
        sqmgrctl why default/1 | grep -q 'signals go through Redis'
        before=$(sidekiqs)
        enqueue 2 Hold "$folder/hold"
        wait_until 30 attributed 2
        sqmgrctl restart
        wait_until 60 fleet_is '[.workers[] | select(.state == "quiet")] | length == 2'
        # shellcheck disable=SC2086
        record $before $(pgrep -f "container_daemon.py run $folder/daemon.sock")
        kill_sqmgr
        start_sqmgr
        wait_until 30 fleet_is '.active == 2 and all(.workers[]; .remote)'
        touch hold
        wait_until 90 gone_all "$before"
        [ "$(jobs_done)" = 2 ]
        [ "$(jobs_run_twice)" = 0 ]
        fleet_is '.crash.count == 0'
        event_count_is killed 0
}

@test "remote: a worker that outlives its killed client is replaced, quieted and stopped, and runs its job once" {
        start_remote 'rescue_jobs = requeue'
        enqueue 1 Hold "$folder/hold"
        wait_until 30 attributed 1
        left=$(sqmgrctl jobs --json | jq -r '.jobs[0].worker')
        before=$(sidekiqs)
        # The pid that sqmgr shows is the client.
        kill -KILL "$(fleet_is ".workers[] | select(.id == \"$left\") | .pid")"
        wait_until 60 event_count_is leftover 1
        wait_until 60 fleet_is '.active == 2'
        [ "$(sidekiqs | wc -l)" = 3 ]
        quieted() { [ "$(for key in $(redis smembers processes); do redis hget "$key" quiet; done | grep -c true)" = 1 ]; }
        wait_until 60 quieted
        touch hold
        stopped() { [ "$(sidekiqs | wc -l)" = 2 ]; }
        wait_until 90 stopped
        wait_until 60 event_count_is leftover 2
        [ "$(jobs_started)" = 1 ] && [ "$(jobs_done)" = 1 ]
        [ "$(jobs_run_twice)" = 0 ]
        event_count_is job-rescued 0
        fleet_is '.active == 2'
}

@test "remote: stop --force with and without Redis, and the end of sqmgr" {
        start_remote
        before=$(sidekiqs)
        enqueue 2 Hold "$folder/hold"
        wait_until 30 attributed 2
        run -0 sqmgrctl stop default/1 --force
        # The job that it ran is put back by Sidekiq itself, after its timeout.
        wait_until 90 event_count_is gone 1
        wait_until 60 fleet_is '.active == 2 and all(.workers[]; .remote)'
        wait_until 60 attributed 2
        touch hold
        wait_until 30 has_done 2

        kill -TERM "$sqmgr_pid"
        wait_until 90 gone "$sqmgr_pid"
        wait_until 30 gone_all "$(sidekiqs)" "$before"

        start_sqmgr
        wait_until 60 fleet_is '.active == 2 and all(.workers[]; .remote)'
        before=$(sidekiqs)
        redis shutdown nosave || true
        wait_until 30 redis_state_is down
        run -0 sqmgrctl stop --force
        wait_until 60 gone_all "$before"
        event_count_is killed 0
}
