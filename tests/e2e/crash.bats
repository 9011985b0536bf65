#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Workers that die are replaced: at once when they had lived, later and later when they had not.
# seconds: 70
# promises: none
load helpers

workers_differ_from() { [ "$(worker_pids)" != "$1" ]; }

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

@test "crash: one who started sqmgr ignored SIGCHLD: how workers end is told, and what asks children works" {
        start_redis
        # shellcheck disable=SC2034
        sqmgr_lines="alert_command = $folder/alert
alert_user = $(id -un)"
        printf '#!/bin/sh\ncat >>%s/alerted; echo >>%s/alerted\n' "$folder" "$folder" >"$folder/alert"
        chmod +x "$folder/alert"
        configure <<END
command = $(stub_command)
active_process_count = 1
ready_after = 500ms
backoff_min = 200ms
END
        launch sqmgr env --ignore-signal=CHLD sqmgr -c "$folder/sqmgr.ini"
        # shellcheck disable=SC2034
        sqmgr_pid=$!
        wait_until 20 ready 1
        kill -KILL "$(fleet '.workers[0].pid')"
        wait_until 10 grep -q 'was killed by signal 9' sqmgr.log
        wait_until 20 ready 1
        run -0 sqmgrctl reexec
        wait_until 20 ready 1
        kill -KILL "$(fleet '.workers[0].pid')"
        wait_until 10 has_lines 2 'was killed by signal 9' sqmgr.log
        wait_until 20 ready 1
        wait_until 10 has_lines 2 '"crashed"' alerted
        not grep -q 'alert_command' sqmgr.log
}

@test "crash: a job that kills its worker leaves the fleet at its count" {
        start_redis
        configure <<END
command = $(sidekiq_command 2)
active_process_count = 2
backoff_min = 200ms
backoff_max = 1s
END
        start_sqmgr
        wait_until 60 fleet_is '.active == 2'
        before=$(worker_pids)
        enqueue 1 Crash
        wait_until 20 workers_differ_from "$before"
        wait_until 60 fleet_is '.active == 2 and (.workers | length) == 2'
        [ "$(jobs_started)" = 1 ]
}

@test "crash loop: starts back off, and status tells why" {
        start_redis
        configure <<END
command = /bin/sh -c 'echo started >>$folder/starts; echo the database is on fire >&2; exit 3'
active_process_count = 2
backoff_min = 500ms
backoff_max = 2s
END
        start_sqmgr
        wait_until 60 fleet_is '.crash.count >= 4'
        wait_until 10 fleet_is '.crash.next_start_seconds != null'
        fleet_is '.active == 0'
        [[ $(fleet .crash.last) == *3* ]]
        wait_until 20 grep -q "error: fleet 'default' is in a crash loop: .* exited with status 3 before its first beat" sqmgr.log
        [ "$(sqmgrctl events --json | grep -c '"event":"crash-loop","level":"error"')" = 1 ]
        # In this order: it goes on.
        starts=$(wc -l <"$folder/starts")
        count=$(fleet .crash.count)
        echo "$starts starts, $count short lives"
        [ "$starts" -le $((count + 4)) ]
}

@test "crash loop: restart resets the backoff, and a cured command comes up" {
        start_redis
        printf 'no luck\n' >"$folder/steer/fail"
        configure <<END
command = $(stub_command)
active_process_count = 2
backoff_min = 10min
backoff_max = 10min
ready_after = 500ms
END
        start_sqmgr
        wait_until 60 fleet_is '.crash.count >= 1 and (.workers | length) == 0'
        rm "$folder/steer/fail"
        sqmgrctl restart
        wait_until 10 fleet_is '.active == 2'
}

@test "a command that does not exist: status says so with the error's text" {
        start_redis
        configure <<END
command = /nonexistent/worker --flag
END
        start_sqmgr
        wait_until 30 fleet_is '.crash.count >= 1'
        [[ $(fleet .crash.last) == *'No such file or directory'* ]]
        wait_until 5 grep -q 'No such file or directory' "$folder/sqmgr.log"
}

@test "a directory that does not exist: status says so with the error's text" {
        start_redis
        configure <<END
command = $(stub_command)
directory = $folder/nowhere
END
        start_sqmgr
        wait_until 30 fleet_is '.crash.count >= 1'
        [[ $(fleet .crash.last) == *nowhere*'No such file or directory'* ]]
}
