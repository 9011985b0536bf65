#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The service is upgraded, restarted and stopped, and its machine shuts down: under load, with the real systemd.
# seconds: 140
# promises: P1 P4
# bats file_tags=root
# shellcheck disable=SC2030,SC2031,SC2034
load machine

# Installs the programs over the first ones again, with another version in them, which is as long.
install_version() { # VERSION
        local version
        version=$(sed -n 's/^VERSION = //p' "$SQMGR_BUILD/Makefile")
        [ ${#version} = ${#1} ]
        cp -a "$BATS_FILE_TMPDIR/installed" "$folder/newer"
        grep -rlZF "$version" "$folder/newer" | xargs -0 sed -i "s/${version//./\\.}/$1/g"
        tar -C "$folder/newer" --exclude=./etc/sqmgr -c . | in_machine tar -C / -x
}

# Adds jobs that keep the threads busy, until `stop_load`.
start_load() {
        touch "$folder/load"
        (
                while [ -e "$folder/load" ]; do
                        enqueue 15 Sleep 1 >/dev/null
                        echo 15
                        sleep 2
                done >"$folder/enqueued"
        ) 3>&- 9>&- &
        load=$!
}
stop_load() {
        local enqueued
        rm "$folder/load"
        wait "$load"
        enqueued=$(awk '{ n += $1 } END { print n }' "$folder/enqueued")
        wait_until 60 has_done "$enqueued"
        [ "$(jobs_started)" = "$enqueued" ]
        [ "$(jobs_run_twice)" = 0 ]
        echo "# $1: $enqueued jobs, $((enqueued - $(jobs_done))) lost, $(jobs_run_twice) run twice" >&3
}

@test "reexec to a newer version under load: same process, same workers, no job lost" {
        configure <<<'active_process_count = 3'
        start_service 3
        before=$(worker_pids)
        pid=$(main_pid)
        start_load
        install_version 0.9.9
        [ "$(sqmgrctl status --json | jq -r .version)" != 0.9.9 ]
        for round in 1 2 3 4 5; do
                wait_until 20 sqmgrctl reexec
        done
        [ "$(sqmgrctl status --json | jq -r .version)" = 0.9.9 ]
        [ "$(main_pid)" = "$pid" ]
        unit_is sqmgr@app ActiveState active
        unit_is sqmgr@app NRestarts 0
        same_workers "$before"
        stop_load '5 re-execs under load'
        same_workers "$before"
        wait_until 30 ready 3
        # Its watchdog still works, and it still asks systemd for the reason of a stop.
        unit restart sqmgr@app
        wait_until 20 sqmgrctl ping
        same_workers "$before"
}

@test "systemctl restart under load: the next sqmgr adopts the workers" {
        configure <<<'active_process_count = 3'
        start_service 3
        before=$(worker_pids)
        start_load
        for round in 1 2 3 4 5; do
                pid=$(main_pid)
                unit restart sqmgr@app
                [ "$(main_pid)" != "$pid" ]
                wait_until 20 sqmgrctl ping
                same_workers "$before"
                fleet_is '.active == 3 and .starting == 0 and .generation == 1'
        done
        logged 'adopted 3 workers of an earlier sqmgr, 0 are gone'
        stop_load '5 restarts under load'
        same_workers "$before"
}

@test "a stop that drains longer than TimeoutStopSec counts down and is not cut short" {
        sqmgr_lines='shutdown_timeout = 10min' configure <<<'active_process_count = 2'
        printf '[Service]\nTimeoutStopSec=4s\n' | put /etc/systemd/system/sqmgr@app.service.d/short.conf
        start_service 2
        enqueue 5 Hold /srv/app/first
        enqueue 5 Hold /srv/app/second
        wait_until 30 has_started 10
        unit stop --no-block sqmgr@app
        counts() { unit show -p StatusText --value sqmgr@app | grep -qE "^$1"; }
        wait_until 20 counts 'Stopping: 2 workers left, 10 running jobs; all asked to exit in 9min( [0-9]+s)?'
        # More than 10 s of the 10 min have passed.
        wait_until 20 counts 'Stopping: 2 workers left, 10 running jobs; all asked to exit in 9min [1-4]?[0-9]s'
        in_machine touch /srv/app/first
        wait_until 40 counts 'Stopping: [12] workers? left, 5 running jobs; '
        in_machine touch /srv/app/second
        wait_until 60 unit_is sqmgr@app ActiveState inactive
        unit_is sqmgr@app Result success
        app_count_is 0
        [ "$(jobs_done)" = 10 ]
        [ "$(jobs_run_twice)" = 0 ]
        not logged 'stop-sigterm. timed out'
}

@test "shutdown of the machine: jobs finish first, whatever on_stop is, and Redis runs until then" {
        sqmgr_lines='on_stop = leave' configure <<<$'active_process_count = 2\nlog = journal'
        # Delays the shutdown of the machine, so that the test can check it.
        put /etc/systemd/system/hold.service <<END
[Unit]
DefaultDependencies=no
Conflicts=shutdown.target
Before=shutdown.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/true
ExecStop=/bin/sleep infinity
TimeoutStopSec=infinity
END
        unit start hold
        start_service 2
        enqueue 10 Sleep 8
        wait_until 30 has_started 10
        unit poweroff --no-block
        wait_until 60 unit_is redis-server ActiveState inactive
        unit_is sqmgr@app ActiveState inactive
        unit_is sqmgr@app Result success
        app_count_is 0
        in_machine journalctl -o cat >"$folder/journal"
        [ "$(grep -c 'class=Sleep .* INFO: done' "$folder/journal")" = 10 ]
        [ "$(grep -c 'default/[12] .* exited cleanly (status 0, reason: shutdown)' "$folder/journal")" = 2 ]
        not grep 'Pushed .* jobs back to Redis' "$folder/journal"
}
