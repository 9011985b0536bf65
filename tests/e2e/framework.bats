#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A framework is a folder, a row and traits: with another table of frameworks the same sqmgr runs workers with a
# different heartbeat than Sidekiq's, which are stopped where Sidekiq workers would be quieted.
# promises: P1 P4
# seconds: 40
load helpers
PATH=$SQMGR_BUILD/tests/frameworks:$PATH

probe_fleet() {
        start_workers 3 <<END
framework = probe
command = ruby --disable-gems $top/tests/frameworks/probe/worker.rb $folder/redis.sock
active_process_count = 3
ready_after = 1s
END
}

push() { # SECONDS COUNT
        local i
        for ((i = 0; i < $2; i++)); do
                redis rpush probe:jobs "$((n_jobs++)) $1"
        done >/dev/null
}
n_jobs=0
jobs_of() { redis hlen "probe:$1"; } # started, or done
jobs_are() { [ "$(jobs_of "$1")" -ge "$2" ]; }
none_twice() { { redis hvals probe:started && redis hvals probe:done; } | not grep -qvx 1; }
signaled_once() { # PID...
        local pid
        for pid; do
                [ "$(redis hget probe:told "$pid")" = 1 ] || return 1
        done
}
signaled_count_is() { [ "$(redis hlen probe:told)" = "$1" ]; }

@test "a framework that stops to quiet: a restart cuts off no job, and each worker gets one signal" {
        probe_fleet
        wait_until 20 fleet_is '.framework == "probe" and ([.workers[].memory_bytes] | min) > 64 * 1024 * 1024'
        old=$(worker_pids)
        push 0.3 60
        push 4 3
        push 0.3 60
        wait_until 10 jobs_are started 6
        run -0 sqmgrctl restart --wait=drained --timeout 100s
        gone "$old"
        # shellcheck disable=SC2086
        signaled_once $old
        signaled_count_is 3
        wait_until 60 jobs_are "done" "$n_jobs"
        [ "$(jobs_of started)" = "$n_jobs" ]
        none_twice
        fleet_is '.generation == 2 and .rollout.state == "done" and .active == 3'
        not grep -qE 'crash|by itself' "$folder/sqmgr.log"
        run -0 sqmgrctl jobs
}

@test "kill -9 of sqmgr while workers drain: they are adopted without a second signal" {
        probe_fleet
        old=$(worker_pids)
        push 12 3
        wait_until 10 jobs_are started 3
        sqmgrctl restart
        wait_until 20 fleet_is '.quiet == 3 and .active == 3'
        record "$(worker_pids)"
        all=$(worker_pids)
        kill_sqmgr
        start_sqmgr
        [ "$(worker_pids)" = "$all" ]
        fleet_is '.quiet == 3 and .starting == 0'
        wait_until 30 gone "$old"
        # shellcheck disable=SC2086
        signaled_once $old
        signaled_count_is 3
        [ "$(jobs_of "done")" = 3 ]
        none_twice
        wait_until 20 ready 3
        fleet_is '.generation == 2 and .active == 3 and (.workers | length) == 3'
}

@test "drain_timeout ends a worker that drains too long, without a second stop signal" {
        probe_fleet
        sed -i 's/^active_process_count.*/&\ndrain_timeout = 2s\nstop_timeout = 5s/' "$folder/sqmgr.ini"
        sqmgrctl reload
        pid=$(fleet '.workers[0].pid')
        push 600 3
        wait_until 10 jobs_are started 3
        sqmgrctl quiet default/1
        wait_until 20 gone "$pid"
        signaled_once "$pid"
        signaled_count_is 1
        wait_until 20 fleet_is '.active == 3'
}
