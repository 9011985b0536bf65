#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A client that waits for a restart continues to wait when sqmgr itself dies.
# seconds: 30
# promises: P4 P8
load helpers

# Starts a restart of three stubs with --wait, which cannot complete before `release`: jobs keep the old workers alive.
start_restart() { # OPTION...
        local pid
        sqmgr_lines=${lines-} start_fleet 3
        old=$(worker_pids)
        for pid in $old; do
                echo 1 >"$folder/steer/busy.$pid"
        done
        launch restart sqmgrctl restart --wait=drained "$@"
        waiting=$!
        # The first reply names the restart to follow.
        wait_until 10 grep -q 'restart to generation 2' "$folder/restart.log"
}

release() { rm "$folder"/steer/busy.*; }

record_workers() { record "$(worker_pids)"; }

kill_sqmgr() { # SIGNAL
        record_workers
        kill "-$1" "$sqmgr_pid"
        wait "$sqmgr_pid" 2>/dev/null || true
        wait_until 10 grep -q 'connection to sqmgr lost' "$folder/restart.log"
}

start_again() {
        start_sqmgr
        wait_until 10 grep -q 'reconnected' "$folder/restart.log"
}

ends_with() { # STATUS
        local status=0
        wait "$waiting" || status=$?
        cat "$folder/restart.log"
        record_workers
        [ "$status" = "$1" ]
}

@test "restart --wait=drained continues to its end while sqmgr is killed twice and replaced once" {
        start_restart
        kill_sqmgr KILL
        start_again
        wait_until 20 fleet_is '.quiet == 3 and .active == 3'
        wait_until 10 grep -q '3 of 3 workers replaced, 3 draining' "$folder/restart.log"
        : >restart.log
        kill_sqmgr KILL
        # The client must not give up.
        sleep 1
        alive "$waiting"
        start_again
        : >restart.log
        sqmgrctl reexec
        wait_until 10 grep -q 'reconnected' restart.log
        alive "$old"
        release
        ends_with 0
        grep -q 'restart done; generation 2 is current, 3 workers replaced and gone' restart.log
        gone "$old"
        fleet_is '.generation == 2 and .rollout.state == "done" and .active == 3'
}

@test "restart --wait: sqmgr leaves its workers and comes back, and a later abort is reported" {
        lines='on_stop = leave' start_restart
        kill_sqmgr TERM
        start_again
        # Or the restart might have replaced all workers before the abort.
        touch steer/hang
        run -0 sqmgrctl restart
        wait_until 10 grep -q 'restart to generation 3' restart.log
        run -0 sqmgrctl abort
        rm steer/hang
        release
        ends_with 1
        grep -q "restart aborted.*requested by $(id -un) (uid $(id -u))" restart.log
}

@test "restart --wait reports an sqmgr that comes back without its state" {
        start_restart
        kill_sqmgr KILL
        rm state
        start_again
        ends_with 1
        grep -q 'sqmgr lost its state, and with it the restart to generation 2' restart.log
}

@test "restart --wait exits 3 if sqmgr does not come back in time; the restart continues once it does" {
        start_restart --timeout 20s
        kill_sqmgr KILL
        status=0
        wait "$waiting" || status=$?
        [ "$status" = 3 ]
        tail -n 1 restart.log | grep -q 'the restart continues when sqmgr runs again'
        start_sqmgr
        release
        wait_until 30 fleet_is '.rollout.state == "done" and .generation == 2 and (.workers | length) == 3'
        record_workers
}

@test "events --follow continues with the next sqmgr after a kill and a replacement, each event once" {
        start_fleet 1
        sqmgrctl events --follow --json >followed 2>restart.log 3>&- 9>&- &
        following=$!
        wait_until 10 grep -q '"active"' followed
        kill_sqmgr KILL
        start_again
        sqmgrctl scale default 2
        wait_until 20 grep -q '"worker":"default/2"' followed
        sqmgrctl reexec
        wait_until 10 sqmgrctl scale default 3
        wait_until 20 grep -q '"worker":"default/3"' followed
        kill "$following"
        wait "$following" || true
        [ -z "$(sort followed | uniq -d)" ]
        [ "$(grep -c 'scaled to' followed)" = 2 ]
        record_workers
        cat restart.log
        grep -q 'connection to sqmgr lost; reconnecting' restart.log
}
