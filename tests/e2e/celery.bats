#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Framework celery with real Celery workers over Redis, whose application knows nothing of sqmgr. With SQMGR_LONG=1:
# autoscaling, a memory replacement, a killed worker, a failover by Sentinels, and 140 tasks of up to 20 s.
# seconds: 60
# promises: P1 P2 P4 P5
# shellcheck disable=SC1091,SC2030,SC2031,SC2034,SC2086
load helpers
. "$BATS_TEST_DIRNAME/celery.bash"
. "$BATS_TEST_DIRNAME/sentinel.bash"

# Each worker of two runs two tasks. By one queue, one worker could take tasks that the other one has room for. Needs DIRECT.
hold_four() {
        local number
        for number in 1 2; do
                NODE=default-$number@$(hostname) celery_send 2 hold "$folder/release"
        done
        wait_until 20 fleet_is 'all(.workers[]; .busy == 2)'
}
queue_is() { sqmgrctl queues --json | jq -e "any(.redis[].queues[]; .name == \"$1\" and ($2))" >/dev/null; } # NAME CONDITION
why_says() { sqmgrctl why default | grep -qE "$1"; } # PATTERN
# Answers come for a second.
scheduled_are() { # NODE COUNT: tasks that the worker holds until it is their time
        local json
        json=$(celery_python -m celery -A celery_tasks inspect scheduled -d "$1@$(hostname)" --json) &&
                [ "$(jq '[.[][]] | length' <<<"$json")" = "$2" ]
}

# Debian's python3-setproctitle writes the title over the environment of a worker and of its pool.
@test "celery: prefork, threads, solo: tasks are shown, workers adopted without a state; a restart and scaling lose nothing" {
        celery_pools='threads:1:3 solo:1:1'
        celery_options='--prefetch-multiplier=1 --max-tasks-per-child=1' celery_fleet 1
        default=$(worker_pids)
        fleets_are '.framework == "celery" and all(.workers[]; .state == "active" and .busy == 0)'
        # Two run, and two are prefetched. Three wait behind those that the replacement takes later.
        celery_send 12 hold "$folder/release"
        # One waits for an hour for its rate.
        QUEUE=threads celery_send 2 rare
        QUEUE=threads celery_send 1 hold_late "$folder/release"
        QUEUE=threads COUNTDOWN=3600 celery_send 3 nap 0.1
        QUEUE=solo celery_send 2 hold "$folder/release"
        wait_until 20 running_jobs_are 'length == 4 and all(.[]; .started_at > 1e9) and
                ([.[].class] | unique) == ["celery_tasks.hold", "celery_tasks.hold_late"]'
        wait_until 20 scheduled_are threads-1 3
        # Of the fleet "default": one that runs, and one that is prefetched.
        revoked=("$(records sent | sed -n 1p)" "$(records sent | sed -n 4p)")
        celery_python -c 'import sys, celery_tasks
celery_tasks.app.control.revoke(sys.argv[1], terminate=True, signal="KILL")
celery_tasks.app.control.revoke(sys.argv[2])' "${revoked[@]}"
        wait_until 20 grep -qFx "$(records sent | sed -n 3p)" "$folder/records/started"
        sed -i "/${revoked[0]}/d; /${revoked[1]}/d" "$folder"/records/{sent,started}
        wait_until 20 fleet_is '.workers[0].busy == 4'
        # Arguments are not shown.
        sqmgrctl jobs --json | not grep -F "$folder/release"
        run -0 sqmgrctl why default/1
        [[ $output == *active* ]]

        old=$(all_pids)
        record_workers
        for pid in $old; do
                grep -qE '^\[celeryd: [a-z]+-1@.*MainProcess\]' "/proc/$pid/cmdline"
                not grep -q SQMGR_WORKER "/proc/$pid/environ"
        done
        kill_sqmgr
        rm "$folder/state" "$folder/state.starts"
        start_sqmgr
        wait_until 20 grep -q 'found and adopted 3 workers' "$folder/sqmgr.log"
        [ "$(all_pids)" = "$old" ]
        wait_until 30 settled

        sqmgrctl restart --wait --timeout 120s
        # A quieted worker gives back what can run elsewhere.
        wait_until 20 recorded "done" 2
        wait_until 20 scheduled_are threads-2 3
        # The wait is an estimate, known after 10 s.
        wait_until 30 queue_is celery '.size == 3 and .latency_seconds > 0'
        wait_until 20 running_jobs_are 'length == 7'
        alive "$old"
        touch "$folder/release"
        wait_until 60 gone "$old"
        wait_until 60 settled
        fleets_are '.generation == 2 and .rollout.state == "done" and .crash.count == 0'
        sqmgrctl scale default 2
        wait_until 30 ready 2
        celery_send 6 nap 2
        sqmgrctl scale default 1
        wait_until 30 settled
        nothing_lost 21
        nothing_killed
        [ -z "$(records processes | awk -v main="$default" '$3 == main { print $2 }' | sort | uniq -d)" ]
}

# After an outage, Celery 5.3 to 5.6.2 does not end by TERM (its issue 8541): stop_timeout is short.
@test "celery: Redis restarts, sqmgr is killed and re-executed during a restart: quieted workers stay quieted, nothing is lost" {
        celery_environment=DIRECT=1 celery_fleet 2 'stop_timeout = 10s'
        hold_four
        old=$(worker_pids)
        sqmgrctl restart
        wait_until 30 fleet_is '.quiet == 2 and .active == 2'
        all=$(worker_pids)
        record_workers
        kill -KILL "$redis_pid"
        start_redis
        wait_until 30 ready 2
        [ "$(worker_pids)" = "$all" ]
        celery_send 6 nap 0.1
        wait_until 30 recorded "done" 6
        fleet_is '.quiet == 2 and .active == 2'

        replace_sqmgr 2
        [ "$(worker_pids)" = "$all" ]
        reexec_ready 2
        [ "$(worker_pids)" = "$all" ]
        fleet_is '.quiet == 2 and .generation == 2'
        [ "$(records "done" | wc -l)" = 6 ]
        touch "$folder/release"
        wait_until 30 recorded "done" 10
        wait_until 60 gone "$old"
        wait_until 30 fleet_is '.active == 2 and (.workers | length) == 2'
        nothing_lost 10
        fleet_is '.crash.count == 0'
}

@test "celery: a worker that others ask to exit finishes its task, is replaced, and does not hang" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes 30 s'
        celery_fleet 1 'hang_after = 10s' 'hang_action = kill' 'stop_timeout = 5s'
        worker=$(worker_pids)
        celery_send 1 hold "$folder/release"
        wait_until 20 fleet_is '.workers[0].busy == 1'
        kill -TERM "$worker"
        wait_until 30 worker_is "$worker" '.state == "quiet" and .reason == "external" and .busy == 1'
        wait_until 30 ready 1
        # Nor does it hang for an sqmgr that never heard it.
        replace_sqmgr 1
        # Silence counts from the start of this sqmgr. Nothing else happens then.
        sleep 20
        worker_is "$worker" '.state == "quiet"'
        not any_event '.event == "hung" or .event == "killed"'
        touch "$folder/release"
        wait_until 30 gone "$worker"
        nothing_lost 1
        fleet_is '.crash.count == 0 and .active == 1'
}

@test "celery: autoscaling: workers are added while 200 tasks wait, and removed after scale_down_after" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes two minutes'
        celery_options=--prefetch-multiplier=1 celery_fleet 1 'active_process_max = 2' 'latency_target = 10s' \
                'scale_down_after = 20s'
        celery_send 200 nap 0.5
        wait_until 60 queue_is celery '.size > 0 and .latency_seconds > 10'
        wait_until 20 why_says "queue 'celery': [0-9]+ jobs waiting, oldest about "
        wait_until 60 fleet_is '.target == 2 and .active == 2'
        nothing_lost 200
        wait_until 90 fleet_is '.target == 1 and .active == 1 and (.workers | length) == 1'
        queue_is celery '.size == 0 and .latency_seconds == 0'
        not grep -qE 'SIGKILL|exited with status [1-9]' "$folder/sqmgr.log"
}

@test "celery: a worker whose tasks exceed the memory threshold is replaced, and its task ends" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes 20 s'
        celery_fleet 1 'memory_threshold = 250M'
        worker=$(worker_pids)
        celery_send 1 leak 300 "$folder/release"
        wait_until 60 worker_is "$worker" '.state == "quiet" and .reason == "memory" and .busy == 1'
        wait_until 30 ready 1
        # The quieted worker runs nothing new.
        celery_send 4 nap 0.1
        wait_until 20 recorded "done" 4
        not grep " $worker\$" <(records processes | tail -n 4)
        touch "$folder/release"
        wait_until 60 gone "$worker"
        nothing_lost 5
}

# After kill -9 of the main process its pool dies. What Celery has acknowledged is lost; the rest is delivered again after
# the visibility timeout, by any worker.
@test "celery: kill -9 of a worker: a task with acks_late runs again, one without is lost, a prefetched one is run" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes two minutes'
        celery_environment=VISIBILITY=10 celery_fleet 1
        worker=$(worker_pids)
        celery_send 1 hold "$folder/never"
        celery_send 1 hold_late "$folder/release"
        wait_until 20 recorded started 2
        celery_send 1 nap 0.1
        wait_until 20 fleet_is '.workers[0].busy == 2'
        children=$(pgrep -P "$worker" | tr '\n' ' ')
        kill -KILL "$worker"
        wait_until 20 gone "$children"
        wait_until 30 fleet_is ".active == 1 and all(.workers[]; .pid != $worker)"
        event_count_is crashed 1
        touch "$folder/release"
        # Celery looks for such tasks when a worker starts, and then each 100 s.
        wait_until 60 recorded "done" 2
        [ "$(records started | sort | uniq -d | wc -l)" = 1 ]
        [ "$(comm -13 <(records "done" | sort -u) <(records sent | sort) | wc -l)" = 1 ]
}

@test "celery: a failover by Sentinels during a restart" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes a minute'
        start_cluster
        broker="sentinel://$net.11:26379;sentinel://$net.12:26379;sentinel://$net.13:26379"
        celery_environment='MASTER=mymaster DIRECT=1'
        celery_configure 2
        start_ready 2
        hold_four
        old=$(worker_pids)
        sqmgrctl restart
        wait_until 30 fleet_is '.quiet == 2 and .active == 2'
        wait_until 30 sentinel_fails_over
        wait_until 30 node_is a slave
        wait_until 60 ready 2
        alive "$old"
        celery_send 6 nap 0.1
        wait_until 60 recorded "done" 6
        touch "$folder/release"
        wait_until 60 recorded "done" 10
        wait_until 60 gone "$old"
        nothing_lost 10
}

@test "celery: 140 tasks of 2 to 20 seconds through two restarts, a memory replacement and changed counts" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes three minutes'
        redis_lines='namespace = shop:'
        celery_environment=KEY_PREFIX=shop:
        start_redis
        celery_hundred
}
