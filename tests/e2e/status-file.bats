#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Framework native with heartbeats in files: shell scripts that need no Redis, and sqmgr connects
# to none.
# promises: P1 P4 P5
# seconds: 100
load helpers

# Runs a job while busy/PID exists; the lines of that file are part of the record.
native_command() {
        mkdir -p "$folder/busy"
        cat >"$folder/worker.sh" <<'END'
trap quiet=1 TSTP
trap stop=1 TERM
read -r stat </proc/self/stat
# shellcheck disable=SC2086
set -- ${stat##*) }
quiet=0 stop=0 start=${20} n=1000
while [ $stop = 0 ]; do
        n=$((n + 1)) busy=0
        [ ! -e "busy/$$" ] || busy=1
        printf '%s\n' v=1 "beat=$n" "busy=$busy" "quiet=$quiet" "start=$start" >"$SQMGR_STATUS_DIR/$$.new"
        [ $busy = 0 ] || cat "busy/$$" >>"$SQMGR_STATUS_DIR/$$.new" || true
        mv "$SQMGR_STATUS_DIR/$$.new" "$SQMGR_STATUS_DIR/$$"
        sleep 0.2 &
        wait $!
done
rm "$SQMGR_STATUS_DIR/$$"
END
        echo "/bin/sh $folder/worker.sh"
}

# Records any connection to the address of the missing Redis.
watch_redis() {
        launch redis ruby --disable-gems -rsocket -e 'server = UNIXServer.new("redis.sock"); File.write("watched", "")
                loop { server.accept.close; File.write("asked", "") }'
        wait_until 10 [ -e "$folder/watched" ]
}

native_fleet() { # COUNT; standard input has more lines
        configure <<END
framework = native
heartbeat = file
command = $(native_command)
directory = $folder
active_process_count = $1
$(cat)
END
        start_ready "$1"
}

other_is() { sqmgrctl status --json | jq -e ".fleets[1] | $1"; }
status_dir() { echo "$folder/sqmgr.status/$1"; } # FLEET
busy() { # PID...
        local pid
        for pid; do
                touch "$folder/busy/$pid"
        done
}
idle() { rm "$folder"/busy/*; }
files() { (cd "$(status_dir default)" && printf '%s\n' [0-9]* | grep -v new | sort | xargs); }
files_are() { [ "$(files)" = "$(xargs -n 1 <<<"$1" | sort | xargs)" ]; }
jobs_are() { # [[CLASS, JID, QUEUE, WORKER, PID, STARTED], ...]
        sqmgrctl jobs --json |
                jq -e "[.jobs[] | [.class, .jid, .queue, .worker, .pid, .started_at]] == $1 and .errors == []"
}
is_empty() { [ -z "$(ls -A "$1")" ]; }
sqmgr_dies() {
        record "$(worker_pids)"
        kill_sqmgr
}

@test "no Redis: a worker is busy, quiet, proven idle and stopped; its file is removed" {
        watch_redis
        native_fleet 2 </dev/null
        fleet_is '[.workers[] | .evidence == "file" and .busy == 0] | all'
        [ "$(sqmgrctl status --json | jq -c .redis)" = '[]' ]
        [ "$(stat -c '%a %u' "$folder/sqmgr.status" "$(status_dir default)" | xargs)" = "700 $(id -u) 700 $(id -u)" ]
        old=$(worker_pids)
        files_are "$old"
        # shellcheck disable=SC2086
        busy $old
        wait_until 20 fleet_is '[.workers[].busy] == [1, 1]'
        sqmgrctl restart
        wait_until 20 fleet_is '.rollout.state == "done" and .quiet == 2 and .active == 2'
        wait_until 20 fleet_is '[.workers[] | select(.state == "quiet" and .waits_for_code == "jobs")] | length == 2'
        alive "$old"
        idle
        wait_until 20 gone "$old"
        wait_until 20 fleet_is '(.workers | length) == 2'
        wait_until 20 files_are "$(worker_pids)"
        run sqmgrctl doctor
        not grep -qi redis <<<"$output"
        sqmgrctl stop default
        wait_until 20 fleet_is '(.workers | length) == 0'
        wait_until 20 is_empty "$(status_dir default)"
        not grep -qE 'crash|Redis|killed' "$folder/sqmgr.log"
        [ ! -e "$folder/asked" ]
}

@test "kill -9 with and without the state, and re-exec: the status file of each worker is found again" {
        watch_redis
        native_fleet 2 </dev/null
        all=$(worker_pids)
        # shellcheck disable=SC2086
        busy $all
        wait_until 20 fleet_is '[.workers[].busy] == [1, 1]'
        sqmgr_dies
        start_sqmgr
        wait_until 20 fleet_is '.active == 2 and ([.workers[] | .evidence == "file" and .busy == 1] | all)'
        [ "$(worker_pids)" = "$all" ]
        sqmgr_dies
        rm "$folder/state" "$folder/state.starts"
        start_sqmgr
        wait_until 20 fleet_is '.active == 2 and ([.workers[] | .evidence == "file" and .busy == 1] | all)'
        [ "$(worker_pids)" = "$all" ]
        wait_until 20 sqmgrctl reexec
        wait_until 20 fleet_is '.active == 2 and ([.workers[] | .evidence == "file" and .busy == 1] | all)'
        [ "$(worker_pids)" = "$all" ]
        sqmgrctl restart
        wait_until 20 fleet_is '.quiet == 2 and .active == 2'
        alive "$all"
        idle
        wait_until 20 gone "$all"
        not grep -qE 'crash|Redis|killed' "$folder/sqmgr.log"
        [ ! -e "$folder/asked" ]
}

@test "a worker dies and a fleet is removed from the ini while sqmgr is dead: no file stays behind" {
        configure <<END
framework = native
heartbeat = file
command = $(native_command)
directory = $folder
active_process_count = 2
[fleet:other]
framework = native
heartbeat = file
command = $(native_command)
directory = $folder
END
        start_ready 2
        wait_until 20 other_is '.active == 1'
        other=$(sqmgrctl status --json | jq '.fleets[1].workers[0].pid')
        busy "$other"
        record "$other"
        dead=$(fleet '.workers[0].pid')
        sqmgr_dies
        kill -KILL "$dead"
        wait_until 20 [ ! -e "/proc/$dead" ]
        touch "$(status_dir default)/$dead"
        sed -i '/fleet:other/,$d' "$folder/sqmgr.ini"
        start_ready 2
        wait_until 20 files_are "$(worker_pids)"
        # Its job ends first, which only its file shows.
        wait_until 20 other_is '.workers[0] | .state == "quiet" and .busy == 1'
        alive "$other"
        [ -e "$(status_dir other)/$other" ]
        idle
        wait_until 20 gone "$other"
        wait_until 20 is_empty "$(status_dir other)"
}

@test "the job in a status file is listed, reported once it runs for long, named by its drain, and kept through a kill -9" {
        native_fleet 1 <<<'job_warn_after = 1min'
        pid=$(worker_pids)
        started=$(($(date +%s) - 100))
        printf '%s\n' "job=j1 $started.5 import customers" queue=default >"$folder/busy/$pid"
        wait_until 20 event_count_is job-long 1
        any_event '.event == "job-long" and (.text | startswith("import customers j1 has been running for 1min "))'
        job="\"import customers\", \"j1\", \"\", \"default/1\", $pid, $started"
        jobs_are "[[$job]]"
        run -0 sqmgrctl jobs
        [[ ${lines[1]} =~ ^'import customers  j1 '\ +'default/1  1min '[0-9]+s$ ]]
        sqmgr_dies
        start_sqmgr
        wait_until 20 jobs_are "[[$job]]"
        sqmgrctl quiet default/1
        wait_until 20 fleet_is '.workers[0] | .waits_for_code == "jobs" and .oldest_job_seconds > 100'
        run -0 sqmgrctl why default/1
        [[ $output =~ 'waits for 1 running job to finish, started '[12]'min' ]]
        idle
        wait_until 20 gone "$pid"
        jobs_are '[]'
}

@test "an invalid status file: the worker has no heartbeat, with the reason" {
        cat >"$folder/link.sh" <<'END'
ln -s /etc/passwd "$SQMGR_STATUS_DIR/$$"
exec sleep 1000
END
        configure <<END
framework = native
heartbeat = file
command = /bin/sh $folder/link.sh
END
        start_sqmgr
        wait_until 20 fleet_is '.workers[0].waits_for |
                startswith("waits for its first heartbeat: the status file is not a regular file; times out in ")'
        run sqmgrctl doctor
        grep -q 'the status file is not a regular file' <<<"$output"
        fleet_is '.starting == 1'
        pid=$(fleet '.workers[0].pid')
        kill -KILL "$pid"
        wait_until 20 fleet_is ".workers[0] | .pid != $pid and .state == \"starting\""
        [ -s /etc/passwd ]
}
