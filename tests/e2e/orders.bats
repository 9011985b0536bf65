#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What operators ordered survives a reboot. A slow, hung or full disk delays no start, no signal and no answer.
# seconds: 60
# promises: P4
# shellcheck disable=SC2030,SC2031
load helpers

log_has() { grep -qF "$1" "$folder/sqmgr.log"; }
of() { sqmgrctl status --json | jq -e --arg name "$1" ".fleets[] | select(.name == \$name) | $2" >/dev/null; } # FLEET CONDITION
problem_is() { [[ $(sqmgrctl status) == *"$1"* ]]; } # TEXT

# The processes that write the orders: as sqmgr starts them, and as they are named then.
writers() {
        local pid program
        for pid in $(pgrep -P "$sqmgr_pid"); do
                program=$(readlink "/proc/$pid/exe")
                case $(cat "/proc/$pid/comm" 2>/dev/null) in
                sqmgr-orders) echo "$pid" ;;
                *) [[ ${program##*/} != sqmgr && ${program##*/} != sqmgr-start ]] || echo "$pid" ;;
                esac
        done
}
are_written() { [ -z "$(writers)" ]; }

# Those of an sqmgr that has ended, too.
all_have_ended() {
        local pid
        for pid in $(pgrep -x sqmgr-orders); do
                not grep -qs "$folder" "/proc/$pid/environ" || return 1
        done
}

# Ends all processes, and deletes what a reboot deletes: everything in the runtime directory.
reboot() {
        wait_until 20 are_written
        kill_sqmgr
        pkill -KILL -f -- "-d $folder/steer" || true
        wait_until 20 not pgrep -f -- "-d $folder/steer"
        rm -rf "$folder"/state{,.*} "$folder"/sqmgr.{sock,sock.*,status}
        : >"$folder/sqmgr.log"
        start_sqmgr
}

keep_in() { export STATE_DIRECTORY=$1:/nowhere; } # FOLDER

@test "orders: a reboot keeps a quieted, a stopped and a scaled fleet, and shows a halted restart" {
        start_redis
        keep_in "$folder/kept"
        mkdir steer-halted
        configure <<END
command = $(stub_command)
active_process_count = 1
ready_after = 500ms

[fleet:quieted]
command = $(stub_command)
active_process_count = 1

[fleet:stopped]
command = $(stub_command)
active_process_count = 1

[fleet:halted]
command = $stub -u $folder/redis.sock -b 200 -d $folder/steer-halted
active_process_count = 1
ready_after = 500ms
END
        start_sqmgr
        wait_until 30 of halted '.active == 1'
        run -0 sqmgrctl scale default 2
        run -0 sqmgrctl quiet quieted
        run -0 sqmgrctl stop stopped
        echo 'pid=% tid=1 no such table' >steer-halted/fail
        run -1 sqmgrctl restart halted --wait --timeout 300s
        # The directory was made, for sqmgr alone.
        [ "$(stat -c %a kept)" = 700 ]
        [ "$(stat -c %a kept/orders)" = 600 ]
        rm steer-halted/fail

        for _ in 1 2; do
                reboot
                log_has "the orders of operators continue as '$folder/kept/orders'"
                wait_until 20 ready 2
                of quieted '.state == "quiet" and (.workers | length) == 0'
                of stopped '.state == "stopped" and (.workers | length) == 0'
                of halted '.rollout.state == "halted" and .generation == 2'
                wait_until 20 of halted '.active == 1'
                problem_is "fleet 'halted': restart halted"
        done
        run -0 sqmgrctl restart halted --wait --timeout 300s
        run -0 sqmgrctl start stopped
        wait_until 20 of stopped '.active == 1'
        reboot
        wait_until 20 of stopped '.active == 1'
        of halted '.rollout.state == "none" and .generation == 3'
        # Within one boot the state counts, which is never older.
        kill_sqmgr
        echo rubbish >kept/orders
        start_sqmgr
        of quieted '.state == "quiet"'
        wait_until 20 are_written
        # Without a state, orders that cannot be read are reported.
        echo rubbish >kept/orders
        kill_sqmgr
        rm state
        start_sqmgr
        log_has 'the orders of operators are lost (reason: '
        wait_until 20 of default '.target == 1'
}

# Sqmgr orders, replaces a worker, re-executes itself, and starts after a crash.
works() {
        local worker
        run -0 timeout 30 sqmgrctl quiet default
        wait_until 20 fleet_is '.state == "quiet" and (.workers | length) == 0'
        run -0 timeout 30 sqmgrctl start default
        wait_until 20 ready 2
        worker=$(worker_pids | cut -d ' ' -f 1)
        kill -KILL "$worker"
        wait_until 20 gone "$worker"
        wait_until 20 ready 2
        run -0 timeout 30 sqmgrctl restart --wait --timeout 300s
        run -0 timeout 30 sqmgrctl reexec
        wait_until 20 ready 2
        before=$(worker_pids)
        replace_sqmgr 2
        [ "$(worker_pids)" = "$before" ]
}

@test "orders: a disk that hangs delays nothing; once it responds, the newest orders are written" {
        mkdir kept
        keep_in "$folder/kept"
        start_fleet 2
        wait_until 20 are_written
        file=kept/orders
        # Who writes waits for this lock, as for a disk.
        exec 7>>"$file.lock"
        flock 7
        written=$(cksum <"$file")
        run -0 timeout 30 sqmgrctl quiet default
        wait_until 20 problem_is "'$folder/$file' cannot be written, so a reboot undoes the last orders: the disk does not respond"
        log_has "cannot write the orders to '$folder/$file': the disk does not respond. A reboot would undo the last orders"
        works
        run -0 timeout 30 sqmgrctl scale default 3
        [ "$(cksum <"$file")" = "$written" ]
        wait_until 20 ready 3
        flock -u 7
        exec 7>&-
        wait_until 20 are_written
        reboot
        wait_until 20 ready 3
        # The last orders are written by a process that outlives sqmgr.
        exec 7>>"$file.lock"
        flock 7
        run -0 timeout 30 sqmgrctl scale default 1
        run -0 timeout 30 sqmgrctl quiet default
        kill -TERM "$sqmgr_pid"
        wait_until 20 gone "$sqmgr_pid"
        written=$(cksum <"$file")
        flock -u 7
        exec 7>&-
        wait_until 20 all_have_ended
        [ "$(cksum <"$file")" != "$written" ]
        rm -rf state{,.*}
        start_sqmgr
        fleet_is '.state == "quiet"'
}

# bats test_tags=root
@test "orders: a file system that never answers delays nothing" {
        [ "$(id -u)" = 0 ] || skip 'not root'
        mkdir slow
        mknod -m 600 slow/fuse c 10 229 || skip 'no device of FUSE can be made here'
        launch slow "$SQMGR_BUILD/tests/stub/slow-files" dir "$folder/slow"
        wait_until 20 test -s slow/pid.dir
        start_fleet 2
        kill_sqmgr
        # The first start of a boot would wait here: it has to know the orders.
        keep_in "/proc/$(cat slow/pid.dir)/root/mnt/fuse/hang"
        start_sqmgr
        works
        [ -n "$(writers)" ]
        wait_until 20 problem_is 'the disk does not respond'
        kill -KILL "$(cat slow/server.dir)"
        wait_until 20 problem_is 'cannot be written, so a reboot undoes the last orders: '
}

@test "orders: a full disk delays nothing, and the orders are written once there is space" {
        needs_namespace --mount
        mkdir kept
        start_redis
        configure <<END
command = $(stub_command)
active_process_count = 2
ready_after = 500ms
END
        launch mount "${unshare[@]}" --mount sh -c "mount -t tmpfs -o size=16k,mode=755 none $folder/kept && touch $folder/mounted && exec sleep infinity"
        disk=/proc/$!/root$folder/kept
        wait_until 20 test -e mounted
        keep_in "$disk"
        dd if=/dev/zero of="$disk/fill" bs=4096 2>/dev/null || true
        start_sqmgr
        wait_until 20 problem_is 'cannot be written, so a reboot undoes the last orders: No space left on device'
        works
        problem_is 'No space left on device'
        run -0 timeout 30 sqmgrctl scale default 3
        rm "$disk/fill"
        wait_until 20 log_has "the orders can be written to '$disk/orders'"
        reboot
        wait_until 20 ready 3
        not problem_is 'cannot be written'
}
