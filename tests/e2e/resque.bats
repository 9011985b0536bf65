#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Workers of a stand-in for Resque (resque_worker.rb), because Debian does not package Resque: only the title shows
# whether a worker is paused, a foreign pause of all workers is not our order, and a job's child survives its killed
# worker.
# seconds: 80
# promises: P1 P4
load helpers

resque_fleet() { # LINE...: further settings
        start_workers 2 < <(printf '%s\n' 'framework = resque' "command = ruby $e2e/resque_worker.rb work ${room-}" \
                "environment = INTERVAL=${interval-0.3} HEARTBEAT=${heartbeat-60} TZ=XXX-5:45" \
                'active_process_count = 2' "$@")
}

resque_enqueue() { ruby "$e2e/resque_worker.rb" --enqueue "$@"; } # COUNT JOB ARGUMENT...
title_is() { tr '\0' ' ' <"/proc/$1/cmdline" | grep -q "$2"; } # PID PATTERN
worker_is() { fleet_is "any(.workers[]; .pid == $1 and ($2))"; } # PID CONDITION
holding() { redis_has hold:worker; }
heartbeats() { redis hvals resque:workers:heartbeat; }
running_jobs_are() { # CONDITION
        local jobs_json
        jobs_json=$(sqmgrctl jobs --json) && jq -e ".jobs | $1" <<<"$jobs_json" >/dev/null
}
nothing_lost() { # COUNT
        wait_until 60 has_done "$1"
        [ "$(jobs_started)" = "$1" ]
        [ "$(jobs_run_twice)" = 0 ]
        [ "$(redis llen resque:failed)" = 0 ]
}

@test "resque: workers are found, an idle one stays active, and its running job is shown" {
        resque_fleet
        fleet_is '.framework == "resque" and all(.workers[]; .concurrency == 1 and .busy == 0)'
        [ "$(redis scard resque:workers)" = 2 ]
        written=$(heartbeats)
        [[ $written == *+05:45* ]]
        wait_until 20 fleet_is 'all(.workers[]; .uptime_seconds > 8)'
        [ "$(heartbeats)" = "$written" ]
        wait_until 20 fleet_is 'all(.workers[]; .ready and .state == "active" and .beat_age_seconds < 5)'

        resque_enqueue 2 hold "$folder/release"
        wait_until 20 fleet_is 'all(.workers[]; .busy == 1)'
        resque_enqueue 3 nap 0.1
        sqmgrctl queues --json | jq -e '.redis[0].queues[0] | .name == "work" and .size == 3 and (.paused | not)'
        running_jobs_are 'length == 2 and all(.[]; .class == "Hold" and .queue == "work" and .started_at > 1e9)'
        [ "$(sqmgrctl metrics | grep -c '^sqmgr_worker_busy_threads{.*} 1$')" = 2 ]
        run -0 sqmgrctl why default/1
        [[ $output == *active* ]]
        run sqmgrctl doctor
        [[ $output == *"framework 'resque' is tested with a stand-in; Resque itself was run by hand only"* ]]
        touch "$folder/release"
        nothing_lost 5
        wait_until 20 running_jobs_are 'length == 0'
}

@test "resque: a restart under load loses no job" {
        resque_fleet
        old=$(worker_pids)
        resque_enqueue 2 nap 4
        resque_enqueue 80 nap 0.1
        wait_until 20 has_started 2
        run -0 sqmgrctl restart --wait=drained --timeout 120s
        gone "$old"
        nothing_lost 82
        fleet_is '.generation == 2 and .rollout.state == "done" and .active == 2 and .crash.count == 0'
        [ "$(grep -c ' paused$' "$folder/workers.log")" -ge 2 ]
}

@test "resque: memory counts the process tree: a worker whose job exceeds the threshold is replaced, and its job ends" {
        resque_fleet 'memory_threshold = 200M'
        resque_enqueue 1 leak 250 "$folder/release"
        wait_until 30 holding
        worker=$(redis get hold:worker)
        wait_until 60 worker_is "$worker" '.state == "quiet" and .reason == "memory" and .busy == 1'
        wait_until 30 ready 2
        [ "$(jobs_done)" = 0 ]
        touch "$folder/release"
        wait_until 60 gone "$worker"
        nothing_lost 1
}

@test "resque: a pause of all workers by others quiets none, and a restart completes" {
        resque_fleet
        old=$(worker_pids)
        redis set resque:pause-all-workers true
        for pid in $old; do
                wait_until 20 title_is "$pid" Paused
        done
        before=$(fleet '[.workers[].uptime_seconds] | min')
        wait_until 20 fleet_is "[.workers[].uptime_seconds] | min > $before + 3"
        [ "$(worker_pids)" = "$old" ]
        fleet_is 'all(.workers[]; .state == "active" and .ready)'
        run -0 sqmgrctl restart --wait=drained --timeout 120s
        fleet_is '.generation == 2 and .active == 2 and .crash.count == 0'
        redis del resque:pause-all-workers
        resque_enqueue 4 nap 0.1
        nothing_lost 4
}

@test "resque: a worker resumed by others is paused again, and drains" {
        resque_fleet
        resque_enqueue 2 hold "$folder/release"
        wait_until 20 fleet_is 'all(.workers[]; .busy == 1)'
        old=$(worker_pids)
        sqmgrctl restart
        wait_until 30 fleet_is '.quiet == 2 and .active == 2'
        # shellcheck disable=SC2086
        kill -CONT $old
        resque_enqueue 40 nap 0.3
        touch "$folder/release"
        wait_until 60 gone "$old"
        nothing_lost 42
        fleet_is '.crash.count == 0'
}

@test "resque: the job of a killed worker keeps running, occupies its place, and is no worker" {
        resque_fleet
        resque_enqueue 1 hold "$folder/release"
        wait_until 30 holding
        worker=$(redis get hold:worker) child=$(redis get hold:child)
        record "$child"
        kill -KILL "$worker"
        wait_until 30 worker_is "$child" '.state == "quiet" and .reason == "crash"'
        wait_until 30 ready 2
        fleet_is '(.workers | length) == 3'
        sqmgrctl events | grep -q "its process $child, which finishes its job, keeps running"
        # According to the state, and to the next program.
        replace_sqmgr 2
        reexec_ready 2
        # The title of a job is its own choice.
        touch "$folder/release.title"
        wait_until 20 title_is "$child" 'a title of its own'
        seconds=$(fleet ".workers[] | select(.pid == $child) | .state_seconds")
        wait_until 20 worker_is "$child" ".state_seconds > $seconds + 2"
        worker_is "$child" '.state == "quiet" and .busy == 1 and .waits_for_code == "jobs"'
        fleet_is '(.workers | length) == 3'
        alive "$child"
        [ "$(jobs_done)" = 0 ]
        touch "$folder/release"
        wait_until 30 gone "$child"
        wait_until 30 fleet_is '(.workers | length) == 2 and .active == 2'
        nothing_lost 1
}

@test "resque: a worker that is cut off ends with its job, which Resque counts as failed" {
        resque_fleet 'drain_timeout = 2s'
        resque_enqueue 1 hold "$folder/release"
        wait_until 30 holding
        worker=$(redis get hold:worker) child=$(redis get hold:child)
        record "$child"
        sqmgrctl restart
        wait_until 30 gone "$worker" "$child"
        [ "$(redis llen resque:failed)" = 1 ]
        wait_until 30 fleet_is '.generation == 2 and .active == 2 and (.workers | length) == 2'
        [ "$(redis scard resque:workers)" = 2 ]
}

@test "resque: kill -9 of sqmgr and a re-exec under load: workers are adopted and continue to drain" {
        resque_fleet
        resque_enqueue 2 hold "$folder/release"
        wait_until 30 fleet_is 'all(.workers[]; .busy == 1)'
        sqmgrctl restart
        wait_until 30 fleet_is '.quiet == 2 and .active == 2'
        all=$(worker_pids)
        record "$all"
        replace_sqmgr 2
        [ "$(worker_pids)" = "$all" ]
        reexec_ready 2
        [ "$(worker_pids)" = "$all" ]
        fleet_is '.quiet == 2 and .generation == 2'
        touch "$folder/release"
        wait_until 30 fleet_is '.active == 2 and (.workers | length) == 2'
        nothing_lost 2
}

@test "resque: without a state, neither the job of a worker nor that of a dead worker counts as a worker" {
        # A title too long for the command line overwrites the environment, which identifies the worker.
        room='and words that leave room for what is written over them' heartbeat=1 resque_fleet
        resque_enqueue 2 hold "$folder/release"
        wait_until 30 fleet_is 'all(.workers[]; .busy == 1)'
        all=$(worker_pids)
        wait_until 30 holding
        dead=$(redis get hold:worker) child=$(redis get hold:child)
        # shellcheck disable=SC2046,SC2086
        record $all $(pgrep -P "${all/ /,}")
        kill_sqmgr
        rm "$folder/state" "$folder/state.starts"
        kill -KILL "$dead"
        start_ready 2
        wait_until 30 worker_is "$child" '.state == "quiet" and .reason == "crash"'
        fleet_is '(.workers | length) == 3'
        for pid in $all; do
                [ "$pid" = "$dead" ] || worker_is "$pid" '.state == "active"'
        done
        touch "$folder/release"
        nothing_lost 2
        wait_until 30 fleet_is '(.workers | length) == 2'
}
