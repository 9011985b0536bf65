#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Dead workers are replaced: at once if they had been active, with a growing delay if their
# start failed.
# seconds: 60
# promises: none
# shellcheck disable=SC2030,SC2031
load helpers

@test "crash: a worker killed by SIGKILL is replaced at once" {
        start_redis
        configure <<END
command = $(sidekiq_command 2)
active_process_count = 2
ready_after = 2s
END
        start_sqmgr
        wait_until 60 fleet_is '[.workers[] | select(.state == "active" and .state_seconds > 10)] | length == 2'
        victim=$(fleet '.workers[0].pid')
        kill -KILL "$victim"
        wait_until 5 fleet_is "(.workers | length) == 2 and all(.workers[]; .pid != $victim)"
        wait_until 30 fleet_is '.active == 2'
        fleet_is '.crash.count == 0'
}

has_lines() { [ "$(grep -c -e "$2" "$3")" -ge "$1" ]; } # COUNT PATTERN FILE

@test "crash: with SIGCHLD ignored by the parent of sqmgr, worker exits are reported and subprocesses work" {
        start_redis
        # shellcheck disable=SC2034
        sqmgr_lines="alert_command = $folder/alert"
        printf '#!/bin/sh\ncat >>%s/alerted; echo >>%s/alerted\n' "$folder" "$folder" >"$folder/alert"
        chmod +x "$folder/alert"
        configure <<END
command = $(stub_command)
active_process_count = 1
ready_after = 500ms
END
        launch sqmgr env --ignore-signal=CHLD sqmgr -c "$folder/sqmgr.ini"
        # shellcheck disable=SC2034
        sqmgr_pid=$!
        wait_until 20 ready 1
        kill -KILL "$(fleet '.workers[0].pid')"
        wait_until 10 grep -q 'was killed by signal 9' sqmgr.log
        wait_until 20 ready 1
        reexec_ready 1
        kill -KILL "$(fleet '.workers[0].pid')"
        wait_until 10 has_lines 2 'was killed by signal 9' sqmgr.log
        wait_until 20 ready 1
        wait_until 10 has_lines 2 '"crashed"' alerted
        not grep -q 'alert_command' sqmgr.log
}

@test "crash loop: starts back off, and status reports the reason" {
        start_redis
        configure <<END
command = /bin/sh -c 'echo started >>$folder/starts; echo the database is on fire >&2; exit 3'
active_process_count = 2
END
        start_sqmgr
        wait_until 60 fleet_is '.crash.count >= 4'
        wait_until 10 fleet_is '.crash.next_start_seconds != null'
        fleet_is '.active == 0'
        [[ $(fleet .crash.last) == *3* ]]
        wait_until 20 grep -q "error: fleet 'default' is in a crash loop: .* exited with status 3 after .*, before its first heartbeat" sqmgr.log
        [ "$(sqmgrctl events --json | grep -c '"event":"crash-loop","level":"error"')" = 1 ]
        # These lines, in this order.
        starts=$(wc -l <"$folder/starts")
        count=$(fleet .crash.count)
        echo "$starts starts, $count short lives"
        [ "$starts" -le $((count + 4)) ]
}

@test "crash loop: restart resets the backoff, and a fixed command starts" {
        start_redis
        printf 'no luck\n' >"$folder/steer/fail"
        # Each failed start of the eight doubles the longest delay.
        configure <<END
command = $(stub_command)
active_process_count = 8
ready_after = 500ms
END
        start_sqmgr
        wait_until 60 fleet_is '.crash.count >= 8 and .crash.next_start_seconds > 20 and (.workers | length) == 0'
        rm "$folder/steer/fail"
        sqmgrctl restart
        wait_until 10 fleet_is '.active == 8'
}

@test "a missing command: status shows the error's text" {
        start_redis
        configure <<END
command = /nonexistent/worker --flag
END
        start_sqmgr
        wait_until 30 fleet_is '.crash.count >= 1'
        [[ $(fleet .crash.quoted) == *'No such file or directory'* ]]
        wait_until 5 grep -q 'No such file or directory' "$folder/sqmgr.log"
}

@test "a command that exits with status 0 at once: the message says what that means" {
        start_redis
        configure <<END
command = /bin/true
END
        start_sqmgr
        wait_until 30 fleet_is '.crash.count >= 1'
        meaning=', before its first heartbeat: the command ended by itself or moved to the background; let it stay in the foreground'
        [[ $(fleet .crash.last) == *"exited with status 0 after "*"$meaning"* ]]
        any_event ".event == \"crashed\" and (.text | contains(\"exited with status 0\") and endswith(\"$meaning\"))"
        echo 'active_process_count = 0' >>"$folder/sqmgr.ini"
        run -0 sqmgrctl reload
        wait_until 30 fleet_is '(.workers | length) == 0'
        run sqmgrctl logs default/1
        [[ $output == *"'default/1' is not running; to see how it ended, run 'sqmgrctl why default/1'"* ]]
}

@test "after_exit runs once for each exit, with its cause; only the exit of sqmgr waits for it" {
        cat >follow-up <<'END'
#!/bin/sh
while [ -e hold ]; do sleep 0.1; done
echo "$SQMGR_WORKER $SQMGR_PID $SQMGR_EXIT_CODE $SQMGR_EXIT_STATUS" >>ended
[ ! -e fails ] || exit 4
END
        chmod +x follow-up
        start_redis
        configure <<END
command = $(stub_command)
directory = $folder
after_exit = $folder/follow-up
active_process_count = 2
END
        touch hold fails
        start_ready 2
        first=$(fleet '.workers[0].pid')
        kill -KILL "$first"
        wait_until 20 fleet_is "all(.workers[]; .pid != $first)"
        wait_until 20 ready 2
        [ ! -e ended ]
        rm hold
        wait_until 20 grep -qx "default/1 $first killed KILL" ended
        wait_until 20 grep -q "default/1 (pid $first): after_exit failed" sqmgr.log
        grep -q "^    | after_exit: '$folder/follow-up' exited with status 4" sqmgr.log
        rm fails

        # The next sqmgr runs after_exit for a worker that exited while there was no sqmgr.
        second=$(fleet '.workers[1].pid')
        kill -KILL "$sqmgr_pid"
        wait_until 10 gone "$sqmgr_pid"
        kill -KILL "$second"
        wait_until 10 gone "$second"
        start_sqmgr
        wait_until 20 grep -qx "default/2 $second unknown " ended
        wait_until 20 ready 2

        touch hold
        # shellcheck disable=SC2046
        set -- $(worker_pids)
        kill -TERM "$sqmgr_pid"
        wait_until 20 gone "$@"
        alive "$sqmgr_pid"
        sqmgrctl status >shown
        not grep -q 'switched off' shown
        rm hold
        wait_until 20 gone "$sqmgr_pid"
        for pid; do
                [ "$(grep -c " $pid " ended)" = 1 ]
        done
        [ "$(wc -l <ended)" = 4 ]
}

@test "after_exit: a user who stops the waiting process does not delay the exit of sqmgr" {
        cat >follow-up <<'END'
#!/bin/sh
kill -STOP $PPID
echo $$ >>running
exec sleep 600
END
        chmod +x follow-up
        start_fleet 1 "directory = $folder" "after_exit = $folder/follow-up"
        kill -TERM "$sqmgr_pid"
        wait_until 20 test -s running
        record "$(<running)"
        wait_until 40 gone "$sqmgr_pid"
        grep -q 'default/1 (pid [0-9]*): after_exit killed (reason: ran longer than 35s)' sqmgr.log
        wait_until 10 gone "$(<running)"
}
