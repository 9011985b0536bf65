#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Without descriptors, or with a full disk, no worker is lost, duplicated or ended, and all continues afterwards.
# seconds: 72
# promises: P4
# shellcheck disable=SC2030,SC2031
load helpers

# Prints the living stubs.
workers() {
        local pid
        for pid in $(pgrep -f "^$stub .*-d $folder/steer"); do
                ! alive "$pid" || echo "$pid"
        done | sort -n | xargs
}
agree() { [ -n "$(workers)" ] && [ "$(worker_pids)" = "$(workers)" ]; }
log_has() { grep -qF "$1" "$folder/sqmgr.log"; }

# Allows sqmgr no further descriptor.
take_descriptors() {
        local fd=0
        while [ -e "/proc/$sqmgr_pid/fd/$fd" ]; do
                fd=$((fd + 1))
        done
        prlimit --pid "$sqmgr_pid" --nofile="$fd:"
}
give_descriptors() { prlimit --pid "$sqmgr_pid" --nofile=1024:; }

# Once it connects to Redis, it has adopted the workers.
ended_or_up() { gone "$sqmgr_pid" || log_has 'Redis unix'; }

stubs() { # COUNT
        configure <<END
command = $(stub_command)
active_process_count = $1
ready_after = 500ms
END
}

@test "shortage: without descriptors sqmgr reports it, waits, and continues once some are free" {
        start_redis
        stubs 2
        start_ready 2
        victim=$(fleet '.workers[0].pid')
        take_descriptors
        touch "$folder/steer/fail"
        sqmgrctl ping 3>&- &
        ping_pid=$!
        wait_until 10 log_has "cannot accept a connection on the control socket: Too many open files"
        kill -KILL "$victim"
        kill -KILL "$redis_pid"
        wait_until 10 gone "$victim" "$redis_pid"
        start_redis
        rm "$folder/steer/fail"
        alive "$sqmgr_pid"
        give_descriptors
        wait $ping_pid
        wait_until 20 redis_state_is connected
        wait_until 30 ready 2
        agree
        sqmgrctl restart --wait=drained --timeout 60s
        agree
}

@test "shortage: with too few descriptors a start exits, or knows all workers, with or without a state" {
        start_redis
        stubs 2
        start_ready 2
        before=$(workers)
        failed=0
        for limit in $(seq 8 3 40); do
                kill -KILL "$sqmgr_pid" || true
                wait_until 10 gone "$sqmgr_pid"
                : >"$folder/sqmgr.log"
                [ $((limit % 2)) = 0 ] || rm -f "$folder/state"
                launch sqmgr prlimit --nofile="$limit:$limit" sqmgr -c "$folder/sqmgr.ini"
                sqmgr_pid=$!
                wait_until 20 ended_or_up
                alive "$sqmgr_pid" || failed=$((failed + 1))
        done
        echo "$failed starts failed"
        [ "$failed" -gt 0 ]
        kill -KILL "$sqmgr_pid" || true
        wait_until 10 gone "$sqmgr_pid"
        start_ready 2
        [ "$(workers)" = "$before" ]
        agree
}

@test "shortage: a truncated ledger, or a low limit of file sizes, does not end sqmgr, and the ledger is recreated" {
        ledger=$folder/state.starts
        start_redis
        stubs 2
        start_ready 2
        truncate -s 0 "$ledger"
        sqmgrctl restart --wait=drained --timeout 60s
        log_has "cannot write the ledger '$ledger': disk full"
        wait_until 20 log_has "ledger '$ledger' created"
        prlimit --pid "$sqmgr_pid" --fsize=8192:
        rm "$ledger"
        wait_until 20 log_has "cannot create the ledger '$ledger': File too large"
        prlimit --pid "$sqmgr_pid" --fsize=unlimited:
        wait_until 20 test -s "$ledger"
        agree
        # The next sqmgr finds all workers by the ledger.
        before=$(workers)
        kill -KILL "$sqmgr_pid"
        wait_until 10 gone "$sqmgr_pid"
        rm "$folder/state"
        start_ready 2
        [ "$(workers)" = "$before" ]
        agree
}

@test "shortage: without a writable state, an order that needs it is refused, and quiet is carried out unrecorded" {
        start_fleet 1
        wait_until 10 block state.new
        run -1 sqmgrctl restart
        [[ $output == *"order refused, nothing has changed: the state file '$folder/state' cannot be written"* ]]
        run -1 sqmgrctl restart --wait
        run -1 sqmgrctl scale default 2
        fleet_is '.generation == 1 and .target == 1'
        run -1 sqmgrctl quiet default
        [[ $output == *'order carried out but not recorded'* ]]
        fleet_is '.state == "quiet"'
        rmdir state.new
        sqmgrctl restart --resume --wait --timeout 60s
        fleet_is '.generation == 2'
}

# The state is on a small disk that only sqmgr and its workers see.
@test "shortage: a full disk prevents no replacement of a worker, and the next sqmgr knows all workers" {
        needs_namespace --mount
        start_redis
        mkdir "$folder/state"
        # shellcheck disable=SC2034
        sqmgr_lines="state_file = $folder/state/state"
        stubs 2
        launch sqmgr "${unshare[@]}" --mount sh -c "mount -t tmpfs -o size=80k,mode=755 none $folder/state && exec ${plain[*]} sqmgr -c $folder/sqmgr.ini"
        sqmgr_pid=$!
        wait_until 20 ready 2
        disk=/proc/$sqmgr_pid/root$folder/state
        ! dd if=/dev/zero of="$disk/fill" bs=4096 2>/dev/null || false
        sqmgrctl restart --wait=drained --timeout 60s
        kill -KILL "$(fleet '.workers[0].pid')"
        wait_until 20 agree
        wait_until 20 ready 2
        reexec_ready 2
        before=$(workers)
        kill -KILL "$sqmgr_pid"
        wait_until 10 gone "$sqmgr_pid"
        launch sqmgr "${enter[@]}" -t "${before%% *}" -m sqmgr -c "$folder/sqmgr.ini"
        sqmgr_pid=$!
        wait_until 20 ready 2
        [ "$(workers)" = "$before" ]
        agree
        fleet_is '.generation == 2'
        not log_has "cannot write the state file"
}
