#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Framework celery with real Celery workers over Redis, whose application knows nothing of sqmgr. With SQMGR_LONG=1:
# autoscaling, a memory replacement, a killed worker, a hostile writer, a failover by Sentinels, and 100 tasks of up to 20 s.
# seconds: 75
# promises: P1 P2 P4 P5
# shellcheck disable=SC1091,SC2030,SC2031,SC2034,SC2046,SC2086
load helpers
. "$BATS_TEST_DIRNAME/sentinel.bash"

# `concurrency`: processes of a worker; `celery_options`: further options.
celery_command() { echo "/usr/bin/python3 -B -m celery -A celery_tasks worker -c ${concurrency-2} --without-mingle ${celery_options-}"; }
celery_configure() { # COUNT LINE...: further settings
        broker=${broker-redis+socket://$folder/redis.sock}
        mkdir -p "$folder/records"
        printf '%s\n' "PYTHONPATH=$e2e/celery" C_FORCE_ROOT=1 "RECORDS=$folder/records" "BROKER_URL=$broker" \
                ${celery_environment-} >"$folder/worker.env"
        configure < <(printf '%s\n' 'framework = celery' "command = $(celery_command)" "environment_file = $folder/worker.env" \
                "active_process_count = $1" "${@:2}")
}
celery_fleet() { # COUNT LINE...
        start_workers "$1" celery_configure "$@"
}
celery_send() { # COUNT TASK ARGUMENT...
        env PYTHONPATH="$e2e/celery" RECORDS="$folder/records" BROKER_URL="$broker" ${celery_environment-} \
                /usr/bin/python3 -B "$e2e/celery/celery_tasks.py" "$@"
}

# What sqmgr.ini(5) says that sqmgr's user of Redis needs.
celery_acl() { echo '&/0.celeryev/worker.*' '&/0.celery.pidbox' '~sqmgr.*' '%R~celery*' +llen +ping +select +exists +psubscribe +publish +rpush +expire +rename +lrange +del +setrange +info '+config|get'; }

# Each worker of two runs two tasks. By one queue, one worker could take tasks that the other one has room for. Needs DIRECT.
hold_four() {
        local number
        for number in 1 2; do
                NODE=default-$number@$(hostname) celery_send 2 hold "$folder/release"
        done
        wait_until 20 fleet_is 'all(.workers[]; .busy == 2)'
}

records() { cat "$folder/records/$1" 2>/dev/null; } # sent|started|done
recorded() { [ "$(records "$1" | wc -l)" -ge "$2" ]; } # sent|started|done COUNT
same_records() { [ "$(records "$1" | sort)" = "$(records "$2" | sort)" ]; } # NAME NAME
# Each task that was sent has begun once and ended once.
nothing_lost() { # COUNT
        [ "$(records sent | wc -l)" = "$1" ]
        wait_until 60 recorded "done" "$1"
        same_records sent started
        same_records sent "done"
}
worker_is() { fleet_is "any(.workers[]; .pid == $1 and ($2))"; } # PID CONDITION
running_jobs_are() { # CONDITION
        local jobs_json
        jobs_json=$(sqmgrctl jobs --json) && jq -e ".jobs | $1" <<<"$jobs_json" >/dev/null
}
queue_is() { sqmgrctl queues --json | jq -e "any(.redis[].queues[]; .name == \"$1\" and ($2))" >/dev/null; } # NAME CONDITION
why_says() { sqmgrctl why default | grep -qE "$1"; } # PATTERN
has_finding() { sqmgrctl doctor --json | jq -e "any(.findings[]; $1)"; } # CONDITION
# Celery 5.3 to 5.6.2 list a task that ran while the connection was lost as running forever, and do not end after TERM.
lists_ended_tasks() {
        /usr/bin/python3 -c 'import celery; exit(not (5, 3) <= tuple(map(int, celery.__version__.split(".")[:3])) < (5, 6, 3))'
}
# Quieted workers that have ended their tasks, which ran while the connection was lost, exit.
exit_after_loss() { # COUNT PID...: celery_configure's COUNT
        if lists_ended_tasks; then
                wait_ticks 4
                alive "${*:2}"
                celery_configure "$1" 'drain_timeout = 1s' 'stop_timeout = 5s'
                sqmgrctl reload
        fi
        wait_until 60 gone "${*:2}"
}
no_reply_lists() { [ -z "$(redis keys '*sqmgr*')" ]; }

@test "celery: workers are found, tasks and queues are shown, and the ACL of the manual suffices" {
        start_redis
        redis acl setuser watcher reset on '>secret' $(celery_acl)
        (umask 077 && echo secret >"$folder/password")
        redis_lines="username = watcher
password_file = $folder/password"
        # Three tasks run at once, whichever worker takes them.
        concurrency=3
        celery_options=--prefetch-multiplier=1 celery_configure 2
        start_sqmgr
        wait_until 60 ready 2
        fleet_is '.framework == "celery" and all(.workers[]; .state == "active" and .busy == 0)'
        celery_send 3 hold "$folder/release"
        wait_until 20 fleet_is '[.workers[].busy] | add == 3'
        wait_until 20 running_jobs_are 'length == 3 and all(.[]; .class == "celery_tasks.hold" and .queue == "celery" and .started_at > 1e9)'
        celery_send 12 hold "$folder/release"
        # The wait is an estimate, known after 10 s.
        wait_until 30 queue_is celery '.size >= 3 and .latency_seconds > 0'
        # Arguments are not shown.
        sqmgrctl jobs --json | not grep -F "$folder/release"
        run -0 sqmgrctl why default/1
        [[ $output == *active* ]]
        sqmgrctl doctor --json | jq -e 'all(.findings[]; .text | contains("refuses") | not)'
        touch "$folder/release"
        wait_until 20 recorded "done" 15
        wait_until 20 fleet_is 'all(.workers[]; .busy == 0)'
        redis acl log | not grep -q watcher
        # Replies do not stay in Redis.
        kill "$sqmgr_pid"
        wait_until 20 gone "$sqmgr_pid"
        wait_until 20 no_reply_lists
}

# Debian's python3-setproctitle writes the title over the environment of a worker and of its pool.
@test "celery: without state and ledger, the workers are found, and no second one starts under their names" {
        # Four tasks run at once, whichever worker takes them.
        concurrency=4
        celery_fleet 2
        celery_send 4 hold "$folder/release"
        wait_until 20 fleet_is '[.workers[].busy] | add == 4'
        before=$(worker_pids)
        record "$before"
        for pid in $before; do
                grep -q '^\[celeryd: default-[12]@.*MainProcess\]' "/proc/$pid/cmdline"
                not grep -q SQMGR_WORKER "/proc/$pid/environ"
        done
        kill_sqmgr
        rm "$folder/state" "$folder/state.starts"
        start_sqmgr
        wait_until 20 grep -q 'found and adopted 2 workers' "$folder/sqmgr.log"
        [ "$(worker_pids)" = "$before" ]
        wait_until 30 ready 2
        [ "$(worker_pids)" = "$before" ]
        touch "$folder/release"
        sqmgrctl restart --wait --timeout 120s
        wait_until 30 gone "$before"
        nothing_lost 4
}

@test "celery: scale up, a restart with 30 running tasks, prefetched ones and a countdown, scale down: nothing is lost" {
        # Each worker runs 15 tasks and holds 15 more: neither can take those of the other one.
        concurrency=15
        celery_options=--prefetch-multiplier=1 celery_fleet 1 'max_processes = 4'
        sqmgrctl scale default 2
        wait_until 30 ready 2
        old=$(worker_pids)
        COUNTDOWN=10 celery_send 4 nap 0.1
        celery_send 60 hold "$folder/release"
        wait_until 20 fleet_is '[.workers[].busy] | add == 30'
        run -0 sqmgrctl restart --wait --timeout 120s
        celery_send 20 nap 0.1
        wait_until 30 recorded "done" 20
        alive "$old"
        touch "$folder/release"
        wait_until 60 gone "$old"
        fleet_is '.generation == 2 and .rollout.state == "done" and .active == 2 and .crash.count == 0'
        celery_send 6 nap 2
        sqmgrctl scale default 1
        wait_until 30 fleet_is '.active == 1 and (.workers | length) == 1'
        nothing_lost 90
        not grep -qE 'SIGKILL|exited with status [1-9]' "$folder/sqmgr.log"
        not grep -q 'Cold shutdown' "$folder/workers.log"
}

# By TERM, or by `celery control shutdown`: it says that it is offline, and then nothing.
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
        kill_sqmgr
        start_sqmgr
        wait_until 20 ready 1
        # Silence counts from the start of this sqmgr. Nothing else happens then.
        sleep 20
        worker_is "$worker" '.state == "quiet"'
        not any_event '.event == "hung" or .event == "killed"'
        touch "$folder/release"
        wait_until 30 gone "$worker"
        nothing_lost 1
        fleet_is '.crash.count == 0 and .active == 1'
}

# In Celery 5.2 a worker can connect again and consume nothing. Here its queue is taken from it by hand.
@test "celery: autoscaling: workers are added while 200 tasks wait, and removed after scale_down_after" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes two minutes'
        celery_options=--prefetch-multiplier=1 celery_fleet 1 'active_process_max = 2' 'latency_target = 10s' \
                'scale_down_after = 20s'
        wait_until 20 why_says 'no worker has reported its threads yet'
        celery_send 200 nap 0.5
        wait_until 60 queue_is celery '.size > 0 and .latency_seconds > 10'
        wait_until 20 why_says "queue 'celery': [0-9]+ jobs waiting, oldest about "
        wait_until 60 fleet_is '.target == 2 and .active == 2'
        nothing_lost 200
        wait_until 90 fleet_is '.target == 1 and .active == 1 and (.workers | length) == 1'
        queue_is celery '.size == 0 and .latency_seconds == 0'
        not grep -qE 'SIGKILL|exited with status [1-9]' "$folder/sqmgr.log"
}

@test "celery: a worker that consumes nothing while another one runs tasks is deaf" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes a minute'
        celery_options='--prefetch-multiplier=1 -Q celery,low' celery_fleet 2 'hang_after = 10s'
        deaf=$(fleet '.workers[0].pid')
        celery_send 2 nap 0.1
        wait_until 20 queue_is celery '.size == 0'
        env PYTHONPATH="$e2e/celery" RECORDS="$folder/records" BROKER_URL="$broker" /usr/bin/python3 -B -m celery \
                -A celery_tasks control -d "default-1@$(hostname)" cancel_consumer celery
        celery_send 120 nap 1
        wait_until 90 any_event '.event == "deaf" and .pid == '"$deaf"
        alive "$deaf"
        not any_event '.event == "deaf" and .pid != '"$deaf"
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

@test "celery: Redis restarts, sqmgr is killed and re-executed during a restart: quieted workers stay quieted, nothing is lost" {
        celery_environment=DIRECT=1 celery_fleet 2
        hold_four
        old=$(worker_pids)
        sqmgrctl restart
        wait_until 30 fleet_is '.quiet == 2 and .active == 2'
        all=$(worker_pids)
        record "$all"
        # The pools of workers that outlive sqmgr end with the test, too.
        for pid in $all; do record "$(pgrep -P "$pid" | tr '\n' ' ')"; done
        kill -KILL "$redis_pid"
        start_redis
        wait_until 30 ready 2
        [ "$(worker_pids)" = "$all" ]
        celery_send 6 nap 0.1
        wait_until 30 recorded "done" 6
        fleet_is '.quiet == 2 and .active == 2'

        kill_sqmgr
        start_sqmgr
        wait_until 20 ready 2
        [ "$(worker_pids)" = "$all" ]
        sqmgrctl reexec
        wait_until 20 ready 2
        [ "$(worker_pids)" = "$all" ]
        fleet_is '.quiet == 2 and .generation == 2'
        [ "$(records "done" | wc -l)" = 6 ]
        touch "$folder/release"
        wait_until 30 recorded "done" 10
        exit_after_loss 2 $old
        wait_until 30 fleet_is '.active == 2 and (.workers | length) == 2'
        nothing_lost 10
        fleet_is '.crash.count == 0'
}

@test "celery: events and replies of a hostile writer change nothing, and without heartbeats doctor says why" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes 40 s'
        # Some of these events end a Celery worker that listens to them.
        celery_options=--without-gossip celery_fleet 1
        old=$(worker_pids)
        celery_send 2 hold "$folder/release"
        RECORDS=$folder/records launch hostile /usr/bin/python3 -B "$e2e/celery/hostile.py"
        hostile=$!
        # An active worker is asked every 30 s; the restart below asks more often.
        wait_until 60 recorded forged 1
        wait_ticks 4
        fleet_is '.active == 1 and (.workers | length) == 1 and .crash.count == 0'
        sqmgrctl status --json | not grep -q 'forged@'
        sqmgrctl restart
        wait_until 60 fleet_is '.active == 1 and .generation == 2'
        alive "$old"
        touch "$folder/release"
        wait_until 60 gone "$old"
        kill "$hostile"
        nothing_lost 2
        not grep -qE 'secret|SIGKILL' "$folder/sqmgr.log"

        # The next worker sends no heartbeat.
        celery_options='--without-heartbeat --without-gossip' celery_configure 1 'boot_timeout = 4s'
        sqmgrctl reload
        sqmgrctl restart
        wait_until 30 has_finding '.text | contains("--without-heartbeat")'
}

@test "celery: a failover by Sentinels during a restart" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes a minute'
        start_cluster
        broker="sentinel://$net.11:26379;sentinel://$net.12:26379;sentinel://$net.13:26379"
        celery_environment='MASTER=mymaster DIRECT=1'
        celery_configure 2
        start_sqmgr
        wait_until 60 ready 2
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
        exit_after_loss 2 $old
        nothing_lost 10
}

@test "celery: 100 tasks of 2 to 20 seconds through two restarts, a memory replacement and a changed count" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes two minutes'
        redis_lines='namespace = shop:'
        celery_environment=KEY_PREFIX=shop:
        concurrency=4 celery_fleet 3 'memory_threshold = 400M'
        celery_send 60 nap 2-20
        for _ in 1 2; do
                wait_until 20 fleet_is '[.workers[].busy] | add > 6'
                sqmgrctl restart --wait --timeout 120s
        done
        # No worker that is being replaced takes it.
        celery_send 1 leak 450 "$folder/release"
        replaced() { any_event '.event == "quiet" and .reason == "memory"'; }
        wait_until 120 replaced
        celery_send 39 nap 2-20
        sqmgrctl scale default 5
        wait_until 60 fleet_is '.active == 5'
        sqmgrctl scale default 2
        touch "$folder/release"
        wait_until 240 recorded "done" 100
        wait_until 60 fleet_is '.active == 2 and (.workers | length) == 2'
        nothing_lost 100
        not grep -qE 'SIGKILL|exited with status [1-9]' "$folder/sqmgr.log"
}
