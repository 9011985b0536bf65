#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Crash-safe: workers survive the death of sqmgr, and the next sqmgr adopts exactly the living workers and continues.
# seconds: 180
# promises: P1 P3 P4
# shellcheck disable=SC2030,SC2031
load helpers

# Workers survive the sqmgr that started them: records each for the guard.
record_workers() {
        record "$(main_pids)"
        record "$(worker_pids)"
}

# Prints all processes of this test that have the environment marker of a worker.
marked_pids() {
        local environ pid
        while read -r environ; do
                pid=${environ#/proc/} pid=${pid%/environ}
                ! grep -qsz '^SQMGR_WORKER=' "$environ" || echo "$pid"
        done < <(grep -slzFx "SQMGR_MARK=$folder" /proc/[0-9]*/environ)
}
main_pids() {
        local pid parent all
        all=" $(marked_pids | tr '\n' ' ') "
        for pid in $all; do
                parent=$(awk '/^PPid:/ { print $2 }' "/proc/$pid/status" 2>/dev/null) || continue
                [[ $all == *" $parent "* ]] || echo "$pid"
        done
}
mains_are() { [ "$(main_pids | wc -l)" = "$1" ]; }

record_and_kill() {
        record_workers
        kill_sqmgr
}

adopted_all() { grep -qE "adopted $1 workers? of an earlier sqmgr, ${2:-0} (is|are) gone" "$folder/sqmgr.log"; }

# Standard input has the lines of the fleet.
configure_marked() {
        { cat && echo "environment = SQMGR_MARK=$folder"; } | configure
}

four_stubs() {
        start_workers 4 configure_marked <<END
command = $(stub_command)
active_process_count = 4
ready_after = 500ms
END
}

@test "kill -9 of sqmgr 10 times under load: the same workers, no duplicates, every job done once" {
        start_workers 3 configure_marked <<END
command = $(sidekiq_command 5)
active_process_count = 3
ready_after = 1s
END
        before=$(worker_pids)
        enqueue 150 Sleep 1
        for round in 1 2 3 4 5 6 7 8 9 10; do
                record_and_kill
                # Varies the time without an sqmgr.
                [ $((round % 3)) != 0 ] || sleep 1
                start_sqmgr
                [ "$(worker_pids)" = "$before" ]
                fleet_is '(.workers | length) == 3 and .active == 3 and .starting == 0'
                mains_are 3
        done
        adopted_all 3
        wait_until 30 ready 3
        wait_until 90 has_done 150
        [ "$(jobs_started)" = 150 ]
        [ "$(jobs_run_twice)" = 0 ]
        [ "$(worker_pids)" = "$before" ]
        echo "# 10 kills: doubled $(($(main_pids | wc -l) - 3)), lost $((150 - $(jobs_done))), run twice $(jobs_run_twice)" >&3
}

@test "logs of adopted workers are open for writing only: reported once" {
        start_redis
        { echo "command = /bin/sh -c 'exec $(stub_command) >>$folder/own.log'" && echo 'active_process_count = 3' &&
                echo 'ready_after = 500ms'; } | configure_marked
        start_ready 3
        record_and_kill
        start_sqmgr
        wait_until 20 adopted_all 3
        [ "$(grep -c 'no log tail will be available (reason: the log is open for writing only)' sqmgr.log)" = 1 ]
}

@test "kill -9 in the middle of a restart under load: the restart continues and completes" {
        start_workers 3 configure_marked <<END
command = $(sidekiq_command 5)
active_process_count = 3
ready_after = 2s
END
        old=$(worker_pids)
        enqueue 15 Sleep 15
        wait_until 20 has_started 15
        sqmgrctl restart
        for ((i = 0; i < 4; i++)); do
                record_and_kill
                start_sqmgr
                fleet_is '.generation == 2 and (.rollout.state == "running" or .rollout.state == "done")'
                wait_ticks 4
        done
        wait_until 90 fleet_is '.rollout.state == "done" and .active == 3 and .rollout.outdated == 0'
        wait_until 90 gone "$old"
        wait_until 30 has_done 15
        [ "$(jobs_started)" = 15 ]
        [ "$(jobs_run_twice)" = 0 ]
        mains_are 3
        fleet_is 'all(.workers[]; .generation == 2)'
        record_workers
}

@test "kill -9 at any moment during starts: never more workers than configured" {
        start_redis
        configure_marked <<END
command = $(stub_command)
active_process_count = 6
ready_after = 200ms
END
        for delay in 0.00 0.01 0.02 0.03 0.05 0.08 0.01 0.02 0.04 0.06; do
                launch sqmgr sqmgr -c "$folder/sqmgr.ini"
                sqmgr_pid=$!
                wait_until 10 test -S "$folder/sqmgr.sock"
                # Varies the moment; after it no start may begin.
                sleep "$delay"
                kill_sqmgr
                sleep 0.1
                record "$(main_pids)"
                [ "$(main_pids | wc -l)" -le 6 ]
                rm "$folder/sqmgr.sock"
        done
        start_ready 6
        mains_are 6
        fleet_is '(.workers | length) == 6 and .crash.count == 0'
        [ "$(main_pids | sort -n | tr '\n' ' ')" = "$(fleet '[.workers[].pid] | sort | map("\(.) ") | add')" ]
        record_workers
}

@test "state file deleted, empty, truncated, corrupt, of a later version, a link or another user's: the workers are found" {
        four_stubs
        before=$(worker_pids)
        # Tests with the ledger alone, and with state and ledger, unless the ledger must supply the workers.
        for spoil in ledger deleted emptied cut garbled later link writable owner; do
                record_and_kill
                : >"$folder/sqmgr.log"
                case $spoil in
                deleted | later) ;;
                cut) truncate -s 200 "$folder/state.starts" ;;
                garbled) head -c 5000 /dev/urandom >"$folder/state.starts" ;;
                *) rm "$folder/state.starts" ;;
                esac
                case $spoil in
                deleted) rm "$folder/state" ;;
                emptied) : >"$folder/state" ;;
                cut) truncate -s 100 "$folder/state" ;;
                garbled) head -c 5000 /dev/urandom >"$folder/state" ;;
                later) printf '\143' | dd of="$folder/state" bs=1 seek=8 conv=notrunc status=none ;;
                link)
                        mv "$folder/state" "$folder/elsewhere"
                        ln -s "$folder/elsewhere" "$folder/state"
                        ;;
                writable) chmod 666 "$folder/state" ;;
                owner) [ "$(id -u)" != 0 ] || chown 65534 "$folder/state" ;;
                esac
                start_sqmgr
                case $spoil in
                ledger) grep -q 'adopted 4 workers of an earlier sqmgr' "$folder/sqmgr.log" ;;
                owner) ;;
                *) grep -q 'found and adopted' "$folder/sqmgr.log" ;;
                esac
                [ "$(stat -c '%a %u' "$folder/state.starts")" = "600 $(id -u)" ]
                wait_until 20 ready 4
                [ "$(worker_pids)" = "$before" ]
                mains_are 4
                [ ! -L "$folder/state" ]
                [ "$(stat -c '%a %u' "$folder/state")" = "600 $(id -u)" ]
        done
        fleet_is '[.workers[].index] == [1, 2, 3, 4] and .crash.count == 0'
        # Adopted workers are complete: a restart replaces them.
        run -0 sqmgrctl restart --wait=drained --timeout 300s
        mains_are 4
        record_workers
}

@test "state unreadable, and a ledger that is older than a worker: that one is found, too" {
        four_stubs
        cp "$folder/state.starts" "$folder/starts.before"
        sqmgrctl scale default 5
        wait_until 20 ready 5
        record_and_kill
        cp "$folder/starts.before" "$folder/state.starts"
        head -c 5000 /dev/urandom >"$folder/state"
        : >"$folder/sqmgr.log"
        start_sqmgr
        # The count was an order, which is kept in a file of its own.
        wait_until 30 ready 5
        wait_until 30 mains_are 5
        not grep -q ' started$' "$folder/sqmgr.log"
}

@test "state lost: generations are read from the workers" {
        four_stubs
        run -0 sqmgrctl restart --wait=drained --timeout 300s
        fleet_is '.generation == 2'
        record_and_kill
        rm "$folder/state" "$folder/state.starts" "$folder/state.orders"
        start_ready 4
        fleet_is '.generation == 2 and all(.workers[]; .generation == 2 and (.outdated | not))'
        record_workers
}

log_has() { grep -qF "$1" "$folder/sqmgr.log"; }

# Starts a second sqmgr after socket, lock and state of the first were deleted. The first is stopped meanwhile, so it
# cannot make its socket again.
second_is_refused() { # FILE...: also deleted
        kill -STOP "$sqmgr_pid"
        rm -f "$folder"/state{,.lock,.new} "$folder"/sqmgr.sock* "$@"
        run timeout -k 5 60 sqmgr -c "$folder/sqmgr.ini" </dev/null 3>&- 9>&-
        kill -CONT "$sqmgr_pid"
        [ "$status" = 1 ]
        [[ $output == *"another sqmgr (pid $sqmgr_pid) manages the workers of '$folder/state'"* ]]
        alive "$sqmgr_pid" "$before"
}

@test "a second sqmgr is refused while the first runs, even if socket, lock and state were deleted" {
        start_fleet 2
        before=$(worker_pids)
        ledger=$(stat -c %i state.starts && cksum <state.starts)
        second_is_refused
        # The ledger of the first is unchanged.
        [ "$(stat -c %i state.starts && cksum <state.starts)" = "$ledger" ]
        wait_until 20 test -s "$folder/state"
        sed "s|^socket = .*|socket = $folder/other.sock|" sqmgr.ini >other.ini
        run timeout -k 5 60 sqmgr -c "$folder/other.ini" </dev/null 3>&- 9>&-
        [ "$status" = 1 ]
        [[ $output == *"another sqmgr (pid $sqmgr_pid) manages the workers of '$folder/state'"* ]]
        # The first makes its socket again, and reports that.
        log_has "the control socket '$folder/sqmgr.sock' was deleted while sqmgr runs and has been created again"
        sqmgrctl ping
        run timeout -k 5 60 sqmgr -c "$folder/sqmgr.ini" </dev/null 3>&- 9>&-
        [ "$status" = 1 ]
        [[ $output == *"another program listens on '$folder/sqmgr.sock'"* ]]
        sqmgrctl ping

        # Adopted workers are not children of the first, whose program file has another name now.
        kill_sqmgr
        copy_programs "$folder"
        cp "$SQMGR_BUILD/sqmgr" "$folder/supervisor"
        launch sqmgr "$folder/supervisor" -c "$folder/sqmgr.ini"
        sqmgr_pid=$!
        wait_until 20 ready 2
        [ "$(worker_pids)" = "$before" ]
        ledger=$(cksum <state.starts)
        second_is_refused "$folder/state.starts"
        wait_until 20 test -s "$folder/state"
        # The same with the ledger and all of its contents.
        wait_until 20 log_has "the ledger '$folder/state.starts' was deleted while sqmgr runs and has been created again"
        [ "$(cksum <state.starts)" = "$ledger" ]

        replace_sqmgr 2
        [ "$(worker_pids)" = "$before" ]
}

@test "a process with the marker of another sqmgr, or a descendant of a worker, is not adopted" {
        four_stubs
        before=$(worker_pids)
        instance=$(tr '\0' '\n' <"/proc/${before%% *}/environ" | sed -n 's/^SQMGR_INSTANCE=//p')
        record_and_kill
        rm "$folder/state" "$folder/state.starts"
        # An orphan of a job of default/1, and a worker of another sqmgr's fleet of the same name.
        env SQMGR_INSTANCE="$instance" SQMGR_WORKER=default/1 setsid sleep 1000 3>&- 9>&- &
        left=$!
        env SQMGR_INSTANCE=0123456789abcdef SQMGR_WORKER=default/7 setsid sleep 1000 3>&- 9>&- &
        other=$!
        record $left $other
        start_ready 4
        [ "$(worker_pids)" = "$before" ]
        kill $left $other
        record_workers
}

@test "state lost: an orphan of a job that is older than the worker at its index is left alone" {
        four_stubs
        read -ra pids <<<"$(worker_pids)"
        instance=$(tr '\0' '\n' <"/proc/${pids[0]}/environ" | sed -n 's/^SQMGR_INSTANCE=//p')
        env SQMGR_INSTANCE="$instance" SQMGR_WORKER=default/1 SQMGR_START=1 setsid sleep 1000 3>&- 9>&- &
        left=$!
        record "$left"
        kill -KILL "$(fleet '.workers[] | select(.index == 1) | .pid')"
        wait_until 10 not fleet_is ".workers[0].pid == ${pids[0]}"
        wait_until 20 ready 4
        before=$(worker_pids)
        record_and_kill
        rm "$folder/state" "$folder/state.starts"
        start_ready 4
        [ "$(worker_pids)" = "$before" ]
        alive "$left"
        kill "$left"
        record_workers
}

@test "workers killed while sqmgr is dead are replaced, the others kept" {
        four_stubs
        read -ra pids <<<"$(worker_pids)"
        record_and_kill
        kill -KILL "${pids[0]}" "${pids[2]}"
        wait_until 5 gone "${pids[0]}" "${pids[2]}"
        start_sqmgr
        adopted_all 2 2
        wait_until 20 ready 4
        fleet_is "[.workers[].pid] | index(${pids[1]}) != null and index(${pids[3]}) != null and length == 4"
        fleet_is "[.workers[].pid] | index(${pids[0]}) == null and index(${pids[2]}) == null"
        [[ $(fleet .crash.last) == *'unknown status'* ]]
        # The death of an adopted worker is noticed, although it is no child.
        kill -KILL "${pids[1]}"
        wait_until 10 fleet_is "[.workers[].pid] | index(${pids[1]}) == null"
        wait_until 20 ready 4
        mains_are 4
        record_workers
}

# Asks sqmgr to drain, and kills it once COUNT workers are quiet.
drain_and_kill() { # COUNT
        kill -TERM "$sqmgr_pid"
        wait_until 20 fleet_is "[.workers[] | select(.state == \"quiet\" and .reason == \"shutdown\")] | length == $1"
        record_and_kill
}
active_and_quiet_are() { fleet_is "[.workers[].state] | map(select(. == \"active\")) as \$a | map(select(. == \"quiet\")) as \$q |
        (\$a | length) == $1 and (\$q | length) == $2"; }

@test "two drains, each ended by kill -9: the fleet runs at once where a place is free, else once a worker is idle" {
        echo 1 >"$folder/steer/busy"
        start_workers 2 configure_marked <<END
command = $(stub_command)
active_process_count = 2
max_processes = 6
ready_after = 500ms
END
        drain_and_kill 2
        start_sqmgr
        wait_until 20 active_and_quiet_are 2 2
        drain_and_kill 4
        start_sqmgr
        wait_until 20 active_and_quiet_are 2 4
        drain_and_kill 6

        # All places are taken. No job is cut off for a replacement.
        start_sqmgr
        wait_ticks 4
        active_and_quiet_are 0 6
        rm "$folder/steer/busy"
        wait_until 20 ready 2
        wait_until 20 active_and_quiet_are 2 0
        record_workers
}

@test "orders survive sqmgr: scale, quiet, stop, and quiet of one worker" {
        four_stubs
        sqmgrctl scale default 2
        record_and_kill
        start_sqmgr
        wait_until 20 fleet_is '.target == 2 and .active == 2 and (.workers | length) == 2'
        record_workers

        # Its job keeps it alive: it must not become active again.
        victim=$(fleet '.workers[0].pid')
        echo 1 >"$folder/steer/busy.$victim"
        wait_until 10 fleet_is ".workers[] | select(.pid == $victim) | .busy == 1"
        sqmgrctl quiet "$(fleet '.workers[0].id')"
        wait_until 10 fleet_is ".workers[] | select(.pid == $victim) | .state == \"quiet\""
        wait_until 20 fleet_is '.active == 2'
        record_and_kill
        start_sqmgr
        fleet_is ".workers[] | select(.pid == $victim) | .state == \"quiet\" and .reason == \"operator\""
        wait_until 10 fleet_is '.active == 2 and (.workers | length) == 3'
        alive "$victim"

        # The state is lost, and the job ends before any poll: only the ledger knows that the worker was quieted.
        record_and_kill
        rm "$folder/state" "$folder/steer/busy.$victim"
        processors() { [ "$(cat "/proc/$victim/task"/*/comm | grep -c processor)" = "$1" ]; }
        wait_until 20 processors 0
        start_sqmgr
        wait_until 20 gone "$victim"
        sqmgrctl scale default 2
        wait_until 20 fleet_is '.active == 2 and (.workers | length) == 2'

        for order in quiet stop; do
                sqmgrctl $order default
                record_and_kill
                start_sqmgr
                fleet_is ".state == \"$([ $order = quiet ] && echo quiet || echo stopped)\" and .target == 0"
                wait_until 20 fleet_is '(.workers | length) == 0'
                mains_are 0
                sqmgrctl start default
                wait_until 20 ready 2
        done
        record_workers
}

@test "crash loop: the backoff survives sqmgr" {
        start_redis
        # Each failed start of the eight doubles the longest delay.
        configure <<END
command = /bin/sh -c 'echo started >>$folder/starts; exit 3'
active_process_count = 8
END
        start_sqmgr
        # The delay may be up to a minute; after a short one, another follows.
        wait_until 60 fleet_is '.crash.count >= 8 and .crash.next_start_seconds > 25 and .workers == []'
        starts=$(wc -l <"$folder/starts")
        kill_sqmgr
        start_sqmgr
        wait_until 10 redis_state_is connected
        wait_ticks 4
        fleet_is '.crash.count >= 8 and .crash.next_start_seconds > 1'
        [ "$(wc -l <"$folder/starts")" = "$starts" ]
}

@test "on_stop = leave: the workers keep running, and the next sqmgr adopts them" {
        start_redis
        sqmgr_lines='on_stop = leave' configure_marked <<END
command = $(stub_command)
active_process_count = 3
ready_after = 500ms
END
        start_ready 3
        before=$(worker_pids)
        record_workers
        kill -TERM "$sqmgr_pid"
        wait "$sqmgr_pid"
        alive "$before"
        start_sqmgr
        adopted_all 3
        [ "$(worker_pids)" = "$before" ]
        wait_until 20 ready 3
        [ "$(worker_pids)" = "$before" ]
        mains_are 3
}

@test "a wrapper script: the process that sends heartbeats is recognized again, with and without the state" {
        start_redis
        printf '#!/bin/sh\n%s\nexit $?\n' "$(sidekiq_command 2)" >"$folder/wrapper.sh"
        chmod +x "$folder/wrapper.sh"
        configure_marked <<END
command = ./wrapper.sh
directory = $folder
ready_after = 1s
END
        start_ready 1
        beating=$(worker_pids)
        wrapper=$(main_pids)
        [ "$beating" != "$wrapper" ]
        record_and_kill
        start_sqmgr
        [ "$(worker_pids)" = "$beating" ]
        wait_until 20 ready 1

        record_and_kill
        rm "$folder/state" "$folder/state.starts"
        start_sqmgr
        wait_until 30 fleet_is ".workers[0].pid == $beating and .active == 1"
        mains_are 1

        # The wrapper dies together with sqmgr: its child is the worker.
        wait_until 20 ready 1
        record_and_kill
        kill -KILL "$wrapper"
        wait_until 5 gone "$wrapper"
        start_ready 1
        [ "$(worker_pids)" = "$beating" ]
        mains_are 1
        run -0 sqmgrctl restart --wait=drained --timeout 300s
        gone "$beating"
        mains_are 1
        record_workers
}

long_title() {
        start_redis
        cat >"$folder/app.rb" <<END
require "$e2e/app.rb"
Sidekiq.configure_server { |config| (config.respond_to?(:[]=) ? config : Sidekiq.options)[:tag] = "x" * 20_000 }
END
        configure_marked <<END
command = sidekiq -r $folder/app.rb -c 2
ready_after = 1s
END
}

@test "a long title overwrites the environment: the worker is recognized by the state alone" {
        long_title
        start_ready 1
        before=$(worker_pids)
        record "$before"
        kill_sqmgr
        not grep -qz '^SQMGR_' "/proc/$before/environ"
        start_sqmgr
        adopted_all 1
        [ "$(worker_pids)" = "$before" ]
}

make_group() {
        group=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
        if [ -z "$group" ] || ! mkdir "$group/sqmgr-e2e-$$.service" 2>/dev/null; then
                skip "no control group can be made here"
        fi
        group=$group/sqmgr-e2e-$$.service
        echo "rmdir '$group'" >>"$folder/at_end"
}

# As under systemd: its own control group, and a notification socket.
start_service() {
        launch sqmgr sh -c "echo 0 >'$group/cgroup.procs' && exec env NOTIFY_SOCKET=$folder/notify sqmgr -c '$folder/sqmgr.ini'"
        sqmgr_pid=$!
        wait_until 10 sqmgrctl ping
}

# bats test_tags=root
@test "a systemd service, a long title over the environment, state lost: workers are recognized by the control group" {
        make_group
        long_title
        start_service
        wait_until 60 ready 1
        before=$(worker_pids)
        record "$before"
        kill_sqmgr
        not grep -qz '^SQMGR_' "/proc/$before/environ"
        rm "$folder/state" "$folder/state.starts"
        start_service
        [ "$(worker_pids)" = "$before" ]
        fleet_is '(.workers | length) == 1'
        grep -q "default/1 (pid $before) adopted (found by its markers)" sqmgr.log
        wait_until 20 ready 1
        enqueue 1 Sleep 0
        wait_until 20 has_done 1

        # The descriptor with the markers is closed, too.
        sqmgrctl stop default
        wait_until 20 gone "$before"
        sed -i "s|^command = |&bash -c 'exec 60>\&- \&\& exec \"\$0\" \"\$@\"' |" sqmgr.ini
        sqmgrctl reload
        sqmgrctl start default
        wait_until 60 ready 1
        before=$(worker_pids)
        record "$before"
        kill_sqmgr
        rm "$folder/state" "$folder/state.starts"
        start_service
        [ "$(worker_pids)" = "$before" ]
        grep -q "default/1 (pid $before) adopted (found by its control group)" sqmgr.log

        # Another state file does not belong to the same service, and that of the last sqmgr is lost.
        kill_sqmgr
        rm "$folder/sqmgr.sock.state"
        sed -i "1a state_file = $folder/state.other" sqmgr.ini
        start_service
        [ "$(worker_pids)" = "$before" ]
        wait_until 20 ready 1
        fleet_is '(.workers | length) == 1'
}

# bats test_tags=root
@test "a systemd service: a process that belongs to no worker is shown until it exits" {
        make_group
        setsid sh -c "echo 0 >'$group/cgroup.procs' && exec sleep 1000" 3>&- 9>&- &
        left=$!
        record "$left"
        wait_until 10 grep -qx "$left" "$group/cgroup.procs"
        start_redis
        configure_marked <<<"command = $(stub_command)"
        start_service
        wait_until 20 ready 1
        before=$(worker_pids)
        unknown_are() { sqmgrctl status --json | jq -e "[.problems[] | select(.code == \"unknown-process\")] | $1" >/dev/null; }
        unknown_are "length == 1 and .[0].severity == \"warning\" and (.[0].summary | startswith(\"pid $left: \")) and .[0].command == \"ps -fp $left\""
        # Processes of sqmgr itself, and a worker of the last sqmgr, are known.
        kill_sqmgr
        start_service
        [ "$(worker_pids)" = "$before" ]
        unknown_are "length == 1 and (.[0].summary | startswith(\"pid $left: \"))"
        sqmgrctl doctor | grep -F "pid $left: left by an earlier sqmgr and belongs to no worker; it may run jobs"
        kill "$left"
        wait_until 10 gone "$left"
        wait_until 10 unknown_are 'length == 0'
}

@test "state_file changed: the state of the last sqmgr is read from its old place once" {
        four_stubs
        sqmgrctl scale default 5
        wait_until 20 ready 5
        before=$(worker_pids)
        for path in var/a var/b state; do
                mkdir -p "$folder/var"
                record_and_kill
                sed -i "/^state_file/d; 1a state_file = $folder/$path" sqmgr.ini
                start_sqmgr
                [ "$(worker_pids)" = "$before" ]
                fleet_is '.active == 5 and .target == 5'
                grep -q "the state was moved from '.*' to '$folder/$path'" sqmgr.log
                adopted_all 5
                [ "$(find "$folder" -name '*.starts')" = "$folder/$path.starts" ]
        done
        mains_are 5
        record_workers
}

@test "a start that hangs: the ledger names the process; without a ledger the process ends and is replaced" {
        start_redis
        printf '#!/bin/sh\nuntil [ -e "%s/open" ]; do sleep 0.05; done\n' "$folder" >"$folder/gate"
        chmod +x "$folder/gate"
        configure_marked <<END
command = $(stub_command)
before_start = $folder/gate
ready_after = 500ms
END
        start_sqmgr
        wait_until 10 fleet_is '(.workers | length) == 1'
        hanging=$(worker_pids)
        record "$hanging"
        kill_sqmgr
        rm "$folder/state"
        start_sqmgr
        [ "$(worker_pids)" = "$hanging" ]
        wait_ticks 4
        [ "$(worker_pids)" = "$hanging" ]
        [ "$(cat "/proc/$hanging/comm")" = sqmgr-launch ]
        kill_sqmgr
        rm "$folder/state" "$folder/state.starts"
        start_sqmgr
        wait_until 10 fleet_is '(.workers | length) == 1'
        [ "$(worker_pids)" != "$hanging" ]
        touch "$folder/open"
        wait_until 20 gone "$hanging"
        wait_until 20 ready 1
        mains_are 1
        fleet_is '.crash.count == 0'
}
