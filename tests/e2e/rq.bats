#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Real RQ workers: an idle worker writes to Redis every 405 s, a job runs in a child that survives its killed worker,
# and a second TERM would end that job.
# seconds: 90
# promises: P1 P4
load helpers

rq_fleet() { # LINE...: further settings
        start_workers 2 < <(printf '%s\n' 'framework = rq' "command = /usr/bin/rq worker -u unix://$folder/redis.sock work" \
                "environment = PYTHONPATH=$e2e PYTHONDONTWRITEBYTECODE=1" 'active_process_count = 2' "$@")
}

rq_enqueue() { PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$e2e/rq_app.py" "$@"; } # COUNT JOB ARGUMENT...
records() { redis sort rq:workers by nosort get '*->last_heartbeat'; }
worker_is() { fleet_is "any(.workers[]; .pid == $1 and $2)"; } # PID CONDITION
# Each worker has then written its record for the last time.
wait_for_jobs() { redis info clients | grep -q "^blocked_clients:$1"; } # COUNT
holding() { redis_has hold:worker; }
nothing_lost() { # COUNT
        wait_until 60 has_done "$1"
        [ "$(jobs_started)" = "$1" ]
        [ "$(jobs_run_twice)" = 0 ]
}

@test "rq: workers are found, an idle one stays active, and its queues are read" {
        rq_fleet
        fleet_is '.framework == "rq" and all(.workers[]; .concurrency == 1 and .busy == 0)'
        [ "$(redis scard rq:workers)" = 2 ]
        wait_until 20 wait_for_jobs 2
        written=$(records)
        wait_until 20 fleet_is 'all(.workers[]; .uptime_seconds > 8)'
        [ "$(records)" = "$written" ]
        wait_until 20 fleet_is 'all(.workers[]; .ready and .beat_age_seconds < 5)'

        rq_enqueue 3 hold "$folder/release"
        wait_until 20 fleet_is 'all(.workers[]; .busy == 1)'
        run -0 sqmgrctl queues --json
        jq -e '.redis[0].queues[0] | .name == "work" and .size == 1 and .latency_seconds >= 0' <<<"$output"
        touch "$folder/release"
        nothing_lost 3
        wait_until 20 fleet_is 'all(.workers[]; .busy == 0)'
        run -0 sqmgrctl doctor
}

frozen() { [ "$(awk '$1 == "State:" { print $2 }' "/proc/$sqmgr_pid/status")" = T ]; }
idle_records() { [ "$(redis scard rq:workers)" = "$1" ] && wait_for_jobs "$1"; } # COUNT

@test "rq: a restart completes without jobs, even if sqmgr was frozen while each new worker registered" {
        rq_fleet 'restart_surge = 1' 'rollout_timeout = 60s' \
                "before_start = /bin/sh -c '[ ! -e $folder/freeze ] || kill -STOP \$(cat $folder/freeze)'"
        old=$(worker_pids)
        echo "$sqmgr_pid" >"$folder/freeze"
        sqmgrctl --timeout 120s restart --wait >restart.log &
        restart=$!
        for _ in 1 2; do
                wait_until 30 frozen
                # Including the worker to be replaced; earlier ones are gone.
                wait_until 30 idle_records 3
                kill -CONT "$sqmgr_pid"
        done
        wait "$restart"
        wait_until 20 gone "$old"
        fleet_is '.generation == 2 and .rollout.state == "done" and .active == 2'
}

unregistered() { [ "$(redis scard rq:workers)" = 0 ]; }

@test "rq: a restart completes though Redis loses the records of all workers, and none is left with the old release" {
        rq_fleet 'boot_timeout = 5s'
        old=$(worker_pids)
        sqmgrctl --timeout 120s restart --wait=drained >restart.log &
        restart=$!
        wait_until 30 idle_records 4
        redis flushall
        unregistered
        wait "$restart"
        gone "$old"
        fleet_is 'all(.workers[]; .generation == 2 and .state == "active")'
        run -0 sqmgrctl restart --wait=drained --timeout 60s
        [ "$(redis scard rq:workers)" = 2 ]
}

@test "rq: a restart under load loses no job, and signals no worker twice" {
        rq_fleet
        old=$(worker_pids)
        rq_enqueue 2 nap 6
        rq_enqueue 60 nap 0.2
        wait_until 20 has_started 2
        run -0 sqmgrctl restart --wait=drained --timeout 120s
        gone "$old"
        nothing_lost 62
        fleet_is '.generation == 2 and .rollout.state == "done" and .active == 2 and .crash.count == 0'
        not grep -q 'Cold shut down' "$folder/workers.log"
}

@test "rq: memory counts the process tree: a worker whose job exceeds the threshold is replaced, and its job ends" {
        rq_fleet 'memory_threshold = 200M'
        rq_enqueue 1 leak 250 "$folder/release"
        wait_until 30 holding
        worker=$(redis get hold:worker)
        wait_until 60 worker_is "$worker" '.state == "quiet" and .reason == "memory" and .busy == 1'
        fleet_is '.active == 2'
        [ "$(jobs_done)" = 0 ]
        touch "$folder/release"
        wait_until 60 gone "$worker"
        nothing_lost 1
}

@test "rq: the job of a killed worker is left alone, and is no worker" {
        rq_fleet
        rq_enqueue 1 hold "$folder/release"
        wait_until 30 holding
        worker=$(redis get hold:worker) child=$(redis get hold:child)
        record "$child"
        kill -KILL "$worker"
        wait_until 30 fleet_is ".active == 2 and (.workers | length) == 2 and all(.workers[]; .pid != $worker)"
        not worker_is "$child" true
        alive "$child"
        touch "$folder/release"
        wait_until 30 gone "$child"
        nothing_lost 1
}

@test "rq: kill -9 of sqmgr, a re-exec and a lost state under load: workers are adopted without a second signal" {
        rq_fleet
        rq_enqueue 2 hold "$folder/release"
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

        # No environment identifies them, and there is no service: the name of a descriptor does.
        for pid in $all; do not grep -qz '^SQMGR_' "/proc/$pid/environ"; done
        kill_sqmgr
        rm "$folder/state" "$folder/state.starts"
        start_ready 2
        [ "$(worker_pids)" = "$all" ]
        fleet_is '.quiet == 2'
        [ "$(grep -c 'adopted (found by its markers)' sqmgr.log)" = 4 ]
        touch "$folder/release"
        wait_until 30 fleet_is '.active == 2 and (.workers | length) == 2'
        nothing_lost 2
        not grep -q 'Cold shut down' "$folder/workers.log"
}

@test "rq: workers that end at --max-jobs are no crash loop, lose no job, and hold up no restart" {
        start_workers 2 < <(printf '%s\n' 'framework = rq' "command = /usr/bin/rq worker -u unix://$folder/redis.sock --max-jobs 3 work" \
                "environment = PYTHONPATH=$e2e PYTHONDONTWRITEBYTECODE=1" 'active_process_count = 2')
        old=$(worker_pids)
        rq_enqueue 18 nap 0.1
        nothing_lost 18
        wait_until 30 gone "$old"
        wait_until 30 fleet_is '.active == 2'
        rq_enqueue 18 nap 0.1
        run -0 sqmgrctl restart --wait=drained --timeout 120s
        nothing_lost 36
        wait_until 30 ready 2
        fleet_is '.crash.count == 0 and .rollout.state == "done"'
        any_event '.event == "gone" and .reason == "external" and (.text | contains("exited cleanly (status 0) without being asked"))'
        not any_event '.event == "crashed" or .event == "crash-loop" or .event == "rollout-halted"'
        run -0 sqmgrctl status --json
        jq -e '[.problems[] | select(.code == "crash-loop" or .code == "start-failed" or .code == "crash-recovering")] == []' <<<"$output"
}

@test "rq: a fixed name is reported by --check-config, doctor and init; a name that differs by worker is not" {
        named() { printf '%s\n' 'framework = rq' "command = $1"; }
        start_redis
        configure < <(named "/usr/bin/nice -n 10 /usr/bin/rq worker -u unix://$folder/redis.sock -n w1 work")
        run -0 sqmgr --check-config -c "$folder/sqmgr.ini"
        [[ $output == *"'command' has -n, which gives all workers one name"* ]]
        run -0 sqmgr init --command '/usr/bin/rq worker --name w1' --user nobody
        [[ $output == *"'command' has --name, which gives all workers one name"* ]]
        start_ready 1
        run -1 sqmgrctl doctor
        [[ $output == *"'command' has -n, which gives all workers one name"* ]]
        run -1 sqmgrctl restart --wait --timeout 120s
        [[ $output == *halted* ]]

        configure < <(named "/bin/sh -c 'exec /usr/bin/nice -n 10 /usr/bin/rq worker -u unix://$folder/redis.sock -n \"w-\$SQMGR_INDEX-\$SQMGR_START\" work'")
        run -0 sqmgr --check-config -c "$folder/sqmgr.ini"
        [[ $output != *"'command' has"* ]]
        run -0 sqmgrctl reload
        run -0 sqmgrctl restart --wait --timeout 120s
}
