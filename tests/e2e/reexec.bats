#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Re-exec: the installed sqmgr replaces the running one in the same process, with the same workers
# and socket.
# seconds: 60
# promises: P4 P8 P10
# shellcheck disable=SC2030,SC2031
load helpers

# The test's own program, which it can replace.
three_stubs() {
        mkdir "$folder/bin"
        copy_programs "$folder/bin"
        start_redis
        configure <<END
command = $(stub_command)
active_process_count = 3
ready_after = 500ms
END
        launch sqmgr "$folder/bin/sqmgr" -c "$folder/sqmgr.ini"
        sqmgr_pid=$!
        wait_until 10 sqmgrctl ping
        wait_until 20 ready 3
}

# Replaces the program by another file, as an upgrade of a package does.
replace_program() { # COMMAND...
        "$@" >"$folder/bin/sqmgr.new"
        chmod 755 "$folder/bin/sqmgr.new"
        mv "$folder/bin/sqmgr.new" "$folder/bin/sqmgr"
}
new_sqmgr() { cat "$SQMGR_BUILD/sqmgr"; }

runs_the_new_file() { [ "$(stat -Lc %i "/proc/$sqmgr_pid/exe")" = "$(stat -c %i "$folder/bin/sqmgr")" ]; }

@test "reexec: the new file runs under the same pid, with the same workers and their exit statuses" {
        three_stubs
        before=$(worker_pids)
        nofile=$(awk '/Max open files/ { print $4 }' "/proc/${before%% *}/limits")
        replace_program new_sqmgr
        not runs_the_new_file

        run sqmgrctl reexec
        [ "$status" = 0 ]
        [[ $output == "sqmgr $version has taken over (pid $sqmgr_pid)" ]]
        runs_the_new_file
        [ "$(worker_pids)" = "$before" ]
        wait_until 20 ready 3
        [ "$(worker_pids)" = "$before" ]

        # They are still its children: the exit of each is noticed.
        victim=${before%% *}
        kill -KILL "$victim"
        wait_until 20 grep -q "(pid $victim) .*SIGKILL" "$folder/sqmgr.log"
        wait_until 20 ready 3
        fresh=$(fleet ".workers[] | select(.pid as \$pid | \"$before\" | contains(\$pid | tostring) | not) | .pid")
        [ "$(awk '/Max open files/ { print $4 }' "/proc/$fresh/limits")" = "$nofile" ]
        not grep -qz SQMGR_REEXEC "/proc/$fresh/environ"
        # No descriptor was opened twice.
        [ "$(sqmgrctl status --json | jq .pid)" = "$sqmgr_pid" ]
        count=$(find "/proc/$sqmgr_pid/fd" -type l | wc -l)
        reexec_ready 3
        [ "$(find "/proc/$sqmgr_pid/fd" -type l | wc -l)" -le $((count + 2)) ]
}

@test "reexec: a restart in progress continues, orders and generations stay" {
        three_stubs
        sqmgrctl scale default 4
        wait_until 20 ready 4
        before=$(worker_pids)
        sqmgrctl restart
        sqmgrctl reexec
        wait_until 40 fleet_is '.rollout.state == "done" and .generation == 2 and .target == 4'
        wait_until 40 fleet_is '(.workers | length) == 4 and all(.workers[]; .state == "active" and .generation == 2)'
        gone "$before"
}

@test "reexec: repeated re-execs refuse no connection and lose no call" {
        three_stubs
        touch "$folder/go"
        asking() {
                local asked=0 failed=0
                while [ -e "$folder/go" ]; do
                        asked=$((asked + 1))
                        sqmgrctl ping >/dev/null || failed=$((failed + 1))
                done
                echo "$asked $failed" >"$folder/asked.$1"
        }
        asking 1 2>>"$folder/asking.log" 3>&- 9>&- &
        first=$!
        asking 2 2>>"$folder/asking.log" 3>&- 9>&- &
        second=$!
        for round in 1 2 3 4 5 6 7 8 9 10; do
                replace_program new_sqmgr
                wait_until 20 sqmgrctl reexec
                runs_the_new_file || { echo "round $round" && false; }
        done
        rm "$folder/go"
        wait $first $second
        cat "$folder"/asked.* "$folder/asking.log"
        awk '{ asked += $1; failed += $2 } END { exit !(asked > 20 && failed == 0) }' "$folder"/asked.*
}

@test "reexec: SIGUSR2 does the same" {
        three_stubs
        before=$(worker_pids)
        replace_program new_sqmgr
        kill -USR2 "$sqmgr_pid"
        wait_until 20 runs_the_new_file
        wait_until 20 sqmgrctl ping
        [ "$(worker_pids)" = "$before" ]
}

@test "reexec: a program that does not start, crashes or refuses is rejected with its message, and nothing changes" {
        three_stubs
        before=$(worker_pids)
        uptime() { sqmgrctl status --json | jq .uptime_seconds; }
        asked_at=$(uptime)

        replace_program echo 'no program'
        run -1 sqmgrctl reexec
        [[ $output == *"nothing has changed"* ]]
        [[ $output == *"Exec format error"* ]]

        replace_program printf '#!/bin/sh\necho "I am too new for $*" >&2\nexit 3\n'
        run -1 sqmgrctl reexec
        [[ $output == *"exit status 3"* ]]
        [[ $output == *"I am too new for -c $folder/sqmgr.ini --check-state=$folder/state"* ]]

        # shellcheck disable=SC2016
        replace_program printf '#!/bin/sh\nkill -SEGV $$\n'
        run -1 sqmgrctl reexec
        [[ $output == *"SIGSEGV"* ]]

        rm "$folder/bin/sqmgr"
        run -1 sqmgrctl reexec
        [[ $output == *"No such file"* ]]

        # A configuration with errors, or another state, is refused as well.
        replace_program new_sqmgr
        cp sqmgr.ini right.ini
        echo 'colour = red' >>sqmgr.ini
        run -1 sqmgrctl reexec
        [[ $output == *"exit status 78"* ]]
        [[ $output == *"unknown key 'colour'"* ]]
        sed "1a state_file = $folder/elsewhere" right.ini >sqmgr.ini
        run -1 sqmgrctl reexec
        [[ $output == *"state_file is '$folder/elsewhere', but '$folder/state' is in use"* ]]
        # So is a socket that it cannot listen on.
        for socket in "$folder/no/such/socket" "$folder/sqmgr.ini"; do
                sed "s|^socket =.*|socket = $socket\nstate_file = $folder/state|" right.ini >sqmgr.ini
                run -1 sqmgrctl reexec
                [[ $output == *"cannot listen on '$socket'"* ]]
        done

        cp right.ini sqmgr.ini
        [ "$(worker_pids)" = "$before" ]
        [ "$(jq -n "$(uptime) > $asked_at")" = true ]
        not runs_the_new_file
        sqmgrctl reexec
        runs_the_new_file
        [ "$(worker_pids)" = "$before" ]
}

@test "--check-state accepts the state of a running sqmgr, and no garbage" {
        three_stubs
        run -0 sqmgr -c "$folder/sqmgr.ini" --check-state
        [ "$output" = "$folder/state: ok" ]
        head -c 100 state >state.cut
        mv state.cut state
        run -1 sqmgr -c "$folder/sqmgr.ini" --check-state
        [[ $output == *"$folder/state: "* ]]
        # The state is written again before the new program is queried.
        run -0 sqmgrctl reexec
        kill -STOP "$sqmgr_pid" # which may write it once more
        rm state
        run -0 sqmgr -c "$folder/sqmgr.ini" --check-state
        [ "$output" = "$folder/sqmgr.ini: ok" ]
        run -1 sqmgr -c "$folder/sqmgr.ini" "--check-state=$folder/state"
}

@test "reexec: a signal while the maximum number of calls waits" {
        three_stubs
        # shellcheck disable=SC2016
        replace_program printf '#!/bin/sh\nwhile [ ! -e "%s/go" ]; do sleep 0.1; done\nexit 3\n' "$folder"
        for call in {1..17}; do
                sqmgrctl reexec >"answer.$call" 2>&1 3>&- 9>&- &
        done
        # One of them is refused: sqmgr waits for all others.
        one_refused() { grep -q 'too many callers' answer.*; }
        wait_until 20 one_refused
        kill -USR2 "$sqmgr_pid"
        sqmgrctl ping
        touch go
        all_answered() { [ "$(grep -l 'exit status 3' answer.* | wc -l)" = 16 ]; }
        wait_until 20 all_answered
        sqmgrctl ping
}

@test "reexec: the log tail of a worker started before is still reported" {
        three_stubs
        reexec_ready 3
        victim=$(fleet '.workers[0].pid')
        echo "pid=$victim tid=1 no memory for the cake" >>workers.log
        kill -KILL "$victim"
        wait_until 20 fleet_is '((.crash.last // "") | test("SIGKILL")) and ((.crash.quoted // "") | test("no memory for the cake"))'
}

@test "reexec: variables of a re-exec are accepted only from sqmgr's own image" {
        start_redis
        configure <<<"command = $(stub_command)"
        exec 7<>"$folder/other"
        SQMGR_REEXEC='pid:1 listen:7 idle:7 caller:7' start_sqmgr
        exec 7>&-
        not grep -q 'has taken over' sqmgr.log
        wait_until 20 fleet_is '.active == 1'
}
