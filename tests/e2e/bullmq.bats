#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Framework bullmq with real workers of BullMQ: nothing in the application but the name of its workers and a handler for
# each of two signals. SQMGR_LONG=1 runs 100 jobs of 2 to 20 seconds with BullMQ's own intervals besides, and a failover by
# Sentinels.
# seconds: 60
# promises: P1 P4 P5
# shellcheck disable=SC1091,SC2034,SC2154
load helpers
. "$BATS_TEST_DIRNAME/native/modules.bash"
. "$BATS_TEST_DIRNAME/sentinel.bash"

# `node` is a function of sentinel.bash, too.
bullmq() { NODE_PATH=$(modules_folder)/node_modules command node "$native_tests/bullmq_app.js" "$@"; }
bullmq_fleet() { # OPTIONS LINE...: options of the application, further settings
        needs_modules
        start_workers 2 < <(printf '%s\n' 'framework = bullmq' 'active_process_count = 2' \
                "command = node $native_tests/bullmq_app.js work $1" \
                "environment = NODE_PATH=$(modules_folder)/node_modules DRAIN_DELAY=${drain_delay-1} LOCK_DURATION=${lock_duration-30000}" \
                "${@:2}")
}
nothing_lost() { # COUNT: all are done, and each was started once
        wait_until "${2-30}" has_done "$1"
        [ "$(jobs_started)" = "$1" ]
        [ "$(jobs_run_twice)" = 0 ]
        [ "$(redis llen bull:mails:active)" = 0 ]
}
busy_is() { fleet_is "([.workers[].busy] | add) == $1"; } # COUNT
# Connects to Redis under this name.
forge() { launch forged bash -c "{ echo 'client setname $1'; sleep 600; } | redis-cli -s '$folder/redis.sock'"; } # NAME
forged() { [ "$(redis client list | grep -c 'name=bull.*cmd=client')" = "$1" ]; } # COUNT
calls() { redis info commandstats | sed -n "s/^cmdstat_$1:calls=\([0-9]*\),.*/\1/p"; } # COMMAND

@test "bullmq: jobs and queues are shown; a restart, a replacement for its memory and scaling cut off no job" {
        bullmq_fleet '' 'memory_threshold = 400M'
        fleet_is '.framework == "bullmq" and all(.workers[]; .busy == 0)'
        bullmq add mails 6 "{\"hold\":\"$folder/release\"}"
        wait_until 20 busy_is 4
        run -0 sqmgrctl jobs --json
        jq -e '.jobs | length == 4 and all(.[]; .class == "deliver" and .queue == "mails" and .jid != "")' <<<"$output"
        not grep -q hold <<<"$output"
        run -0 sqmgrctl queues --json
        jq -e '[.redis[0].queues[] | {name, size}] == [{name: "mails", size: 2}, {name: "reports", size: 0}] and
                (.redis[0].queues[0].latency_seconds < 60)' <<<"$output"

        # Both old workers finish their jobs, and take none of those that wait.
        old=$(worker_pids)
        sqmgrctl restart
        wait_until 30 fleet_is '.quiet == 2 and .active == 2 and .generation == 2'
        wait_until 30 busy_is 6
        [ "$(jobs_done)" = 0 ]
        alive "$old"
        touch "$folder/release"
        wait_until 30 gone "$old"
        nothing_lost 6

        rm "$folder/release"
        bullmq add reports 1 "{\"leak\":500,\"hold\":\"$folder/release\"}"
        wait_until 30 fleet_is 'any(.workers[]; .state == "quiet" and .reason == "memory" and .busy == 1) and .active == 2'
        large=$(fleet '.workers[] | select(.state == "quiet").pid')
        sqmgrctl scale default 3
        wait_until 20 fleet_is '.active == 3'
        [ "$(jobs_done)" = 6 ]
        touch "$folder/release"
        wait_until 30 gone "$large"
        sqmgrctl scale default 1
        wait_until 30 fleet_is '(.workers | length) == 1 and .active == 1 and .crash.count == 0'
        nothing_lost 7
        run -0 sqmgrctl doctor
}

@test "bullmq: kill -9 of a worker and of sqmgr, and a restart of Redis" {
        lock_duration=8000
        bullmq_fleet ''
        # BullMQ itself gives the jobs of a killed worker to another one, once their locks have expired.
        bullmq add mails 4 "{\"hold\":\"$folder/release\"}"
        wait_until 20 fleet_is 'all(.workers[]; .busy == 2)'
        killed=$(fleet '.workers[0].pid')
        kill -KILL "$killed"
        wait_until 60 fleet_is "all(.workers[]; .pid != $killed) and ([.workers[].busy] | add) == 4"
        touch "$folder/release"
        wait_until 30 has_done 4
        [ "$(jobs_run_twice)" = 2 ]

        rm "$folder/release"
        bullmq add mails 4 "{\"hold\":\"$folder/release\"}"
        wait_until 20 busy_is 4
        sqmgrctl restart
        wait_until 30 fleet_is '.quiet == 2 and .active == 2'
        all=$(worker_pids)
        record "$all"
        kill_sqmgr
        start_sqmgr
        wait_until 20 ready 2
        [ "$(worker_pids)" = "$all" ]
        wait_until 20 fleet_is '.quiet == 2 and .active == 2 and ([.workers[].busy] | add) == 4'

        # Redis keeps its data. No worker is signaled before it has shown itself anew.
        redis save
        kill -KILL "$redis_pid"
        wait_until 20 redis_state_is down
        start_redis
        wait_until 20 redis_state_is connected
        wait_until 30 fleet_is '.quiet == 2 and .active == 2 and ([.workers[].busy] | add) == 4'
        touch "$folder/release"
        wait_until 30 fleet_is '.quiet == 0 and .active == 2 and (.workers | length) == 2'
        wait_until 30 has_done 8
        [ "$(jobs_run_twice)" = 2 ]
}

@test "bullmq: forged names of connections hide no job, and have no worker signaled" {
        bullmq_fleet ''
        worker=$(fleet '.workers[0].pid') host=$(hostname)
        # Names that no worker has, those of other processes, and that of a worker.
        for name in bull: bull:x bull:bWFpbHM=:w: "bull:bWFpbHM=:w:$host:"{0,1,4194304} "bull:bWFpbHM=:w:$host:$worker" \
                "bull:$(printf 'A%.0s' {1..4000}):w:$host:$worker"; do
                forge "$name"
        done
        wait_until 10 forged 8
        # A job of the worker still counts, and a forged name adds none.
        bullmq add mails 2 "{\"hold\":\"$folder/release\"}"
        wait_until 20 busy_is 2
        wait_ticks 4
        fleet_is '.active == 2 and (.workers | length) == 2'
        old=$(worker_pids)
        sqmgrctl restart
        wait_until 30 fleet_is '.quiet >= 1 and .active == 2'
        wait_ticks 6
        [ "$(jobs_done)" = 0 ]
        touch "$folder/release"
        wait_until 30 gone "$old"
        nothing_lost 2
}

doctor_finds() { sqmgrctl doctor --json | jq -e "any(.findings[]; $1)"; } # CONDITION

@test "bullmq: an application without a handler for TSTP gets TERM at once and ends its jobs; doctor names what is missing" {
        bullmq_fleet without-quiet
        forge bull:bWFpbHM=
        wait_until 10 forged 1
        wait_until 10 doctor_finds '.level == "warning" and (.text | test("SIGTSTP"))'
        wait_until 10 doctor_finds '.level == "warning" and (.text | test("does not show host and pid: 1"))'
        bullmq add mails 2 "{\"hold\":\"$folder/release\"}"
        wait_until 20 busy_is 2
        old=$(worker_pids)
        sqmgrctl restart
        wait_until 30 event_count_is quiet-uncaught 1
        wait_until 30 fleet_is '.active == 2 and .generation == 2'
        [ "$(jobs_done)" = 0 ]
        touch "$folder/release"
        wait_until 30 gone "$old"
        nothing_lost 2
        fleet_is '.crash.count == 0'
}

@test "bullmq: 100 jobs of 2 to 20 seconds through restarts, a replacement for memory, scaling and a restart of Redis" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes seven minutes'
        drain_delay=5
        bullmq_fleet '' 'memory_threshold = 400M' 'max_processes = 12'
        sqmgrctl scale default 3
        bullmq add mails 99 '{"ms":2000,"most":20000}'
        bullmq add reports 1 "{\"ms\":15000,\"leak\":500}"
        wait_until 30 busy_is 7
        wait_until 30 fleet_is 'any(.workers[]; .state == "quiet" and .reason == "memory")'
        run -0 sqmgrctl restart --wait=drained --timeout 240s
        sqmgrctl scale default 5
        wait_until 60 busy_is 10
        old=$(worker_pids)
        sqmgrctl restart
        wait_until 60 fleet_is '.quiet == 5 and .active == 5'
        redis save
        kill -KILL "$redis_pid"
        wait_until 20 redis_state_is down
        start_redis
        wait_until 20 redis_state_is connected
        wait_until 120 gone "$old"
        sqmgrctl scale default 1
        wait_until 120 fleet_is '(.workers | length) == 1'
        wait_until 300 has_done 100
        nothing_lost 100
        fleet_is '.crash.count == 0 and .generation == 3'
}

# The ledger is in a Redis of its own: it shows what has run, whatever becomes of the master.
sentinel_fleet() {
        start_cluster
        export SENTINELS=$net.11:26379,$net.12:26379,$net.13:26379
        printf '%s\n' "SENTINELS=$SENTINELS" "LEDGER=$folder/redis.sock" >"$folder/worker.env"
        bullmq_fleet '' "environment_file = $folder/worker.env"
        bullmq add mails 4 "{\"hold\":\"$folder/release\"}"
        wait_until 20 busy_is 4
        old=$(worker_pids)
        sqmgrctl restart
        wait_until 30 fleet_is '.quiet == 2 and .active == 2'
}
completed_on() { [ "$(node "$1" zcard bull:mails:completed)" = "$2" ]; } # NODE COUNT

@test "bullmq: the master is killed during a restart: Sentinels fail over, and jobs that end meanwhile run once" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes a minute'
        sentinel_fleet
        bullmq add mails 8 '{"ms":1000,"most":8000}'
        wait_until 20 busy_is 8
        kill -KILL "$a_pid"
        wait_until 30 node_is b master
        wait_until 60 has_done 8
        wait_until 60 ready 2
        alive "$old"
        fleet_is '.quiet == 2 and .active == 2'
        touch "$folder/release"
        wait_until 60 gone "$old"
        wait_until 60 completed_on b 12
        [ "$(jobs_started)" = 12 ]
        [ "$(jobs_run_twice)" = 0 ]
        [ "$(node b llen bull:mails:active)" = 0 ]
        fleet_is '.crash.count == 0'
}

# The old master serves its clients for some ten seconds more. BullMQ runs again what has ended there.
@test "bullmq: a failover by order of an operator during a restart: no job is lost, and those that run through it run once" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes two minutes'
        sentinel_fleet
        bullmq add mails 4 "{\"hold\":\"$folder/early\"}"
        wait_until 20 busy_is 8
        wait_until 30 sentinel_fails_over
        wait_until 30 node_is b master
        touch "$folder/early"
        wait_until 60 node_is a slave
        wait_until 60 ready 2
        alive "$old"
        fleet_is '.quiet == 2 and .active == 2'
        touch "$folder/release"
        wait_until 60 gone "$old"
        bullmq add mails 2 '{"ms":100}'
        wait_until 120 completed_on b 10
        [ "$(jobs_started)" = 10 ]
        [ "$(jobs_done)" = 10 ]
        [ "$(redis hmget ledger:started mails:{1..4} | paste -sd ' ')" = '1 1 1 1' ]
        [ "$(node b llen bull:mails:active)" = 0 ]
        fleet_is '.crash.count == 0'
}
