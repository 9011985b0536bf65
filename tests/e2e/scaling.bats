#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Autoscaling: the count follows the queues of a real Sidekiq, through a burst and idleness. With SQMGR_LONG=1: beside
# another fleet and an unmanaged Sidekiq, through failures of sqmgr and Redis.
# seconds: 130
# promises: P1 P2
load helpers

scaling_is() { fleet_is ".scaling | $1"; } # CONDITION of the fleet's scaling
fleets_are() { sqmgrctl status --json | jq -e ".fleets | all($1)"; } # CONDITION of each
changes() { sqmgrctl events --json | jq -s '[.[] | select(.event == "scaled")] | length'; }

# Enqueues COUNT jobs of SECONDS each in one step: workers see none before all are queued.
burst() { # COUNT SECONDS QUEUE
        ruby -r "$app" -e 'n, seconds, queue = ARGV
                n.to_i.times.each_slice(500) do |slice|
                        Sidekiq::Client.push_bulk("class" => "Sleep", "queue" => queue, "args" => [[seconds.to_f]] * slice.size)
                end' "$1" "$2" "$3.staged"
        redis srem queues "$3.staged"
        redis sadd queues "$3"
        redis rename "queue:$3.staged" "queue:$3"
}

each_job_done_once() { # COUNT of jobs
        [ "$(jobs_started)" -eq "$1" ]
        [ "$(jobs_done)" -eq "$1" ]
        [ "$(jobs_run_twice)" -eq 0 ]
        not any_event '.event == "drain-cut" or .event == "killed" or .event == "crashed" or .event == "job-lost"'
}

@test "scaling: a burst of 2,000 jobs scales a fleet from 2 to 8 workers, and idleness scales it back" {
        start_workers 2 <<END
command = $(sidekiq_command 5)
active_process_count = 2
active_process_max = 8
latency_target = 5s
scale_down_after = 6s
END
        wait_until 20 scaling_is '.automatic and .min == 2 and .max == 8 and .wanted == 2'
        [ "$(changes)" -eq 0 ]

        burst 2000 0.3 default
        # The number of steps depends on the time of the polls, and the duration of the jobs on the number of workers.
        wait_until 60 any_event '.event == "scaled" and (.text | contains("-> 8 workers"))'
        run -0 sqmgrctl why default
        [[ $output == *"queue 'default'"* ]]
        [[ $output == *': 2 -> '*' workers: '* ]]
        wait_until 60 has_done 2000
        if [ -n "${SQMGR_LONG-}" ]; then
                wait_until 180 fleet_is '.target == 2 and .active == 2 and (.workers | length) == 2'
        else
                wait_until 60 any_event '.event == "scaled" and (.text | contains("8 -> 7 workers"))'
                wait_until 60 fleet_is '.target <= 6'
        fi
        each_job_done_once 2000
        [ "$(sqmgrctl metrics | awk '/^sqmgr_fleet_max_processes/ { print $2 }')" = 24 ]
}

@test "scaling: two fleets share a queue, an unmanaged Sidekiq is counted, and an operator's count stays" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes two minutes'
        start_redis
        configure <<END
command = $(sidekiq_command 5)
active_process_max = 5
latency_target = 5s
scale_down_after = 6s

[fleet:second]
command = $(sidekiq_command 5)
log = $folder/workers.log
active_process_max = 5
latency_target = 5s
scale_down_after = 6s
END
        # It is not managed; it is counted when sqmgr starts.
        launch unmanaged sidekiq -r "$app" -c 5
        local unmanaged=$!
        wait_until 40 redis_has processes
        start_sqmgr
        wait_until 40 fleets_are '.active == 1'
        wait_until 30 fleets_are '.scaling.arithmetic | any(contains("of 2 fleets that scale by these queues; 1 other process serves these queues, too"))'

        burst 1500 0.2 default
        wait_until 60 fleets_are '.target > 1'
        most=$(sqmgrctl status --json | jq '[.fleets[].target] | add')
        [ "$most" -le 10 ]
        wait_until 120 has_done 1500
        # Jobs of the unmanaged Sidekiq count as well.
        each_job_done_once 1500
        alive "$unmanaged"

        sqmgrctl scale default 3
        wait_until 60 fleet_is '.target == 3 and (.scaling.automatic | not)'
        run -0 sqmgrctl status default
        [[ $output == *"(scaled from 1 to 5; now scaled "* ]]
        [[ $output == *"'sqmgrctl scale' keeps the count at 3"* ]]
        sqmgrctl scale default auto
        scaling_is '.automatic'
        wait_until 180 fleets_are '.target == 1 and (.workers | length) == 1'
        not any_event '.event == "drain-cut" or .event == "killed" or .event == "crashed"'
}

shares_half() { fleet_is '.scaling.arithmetic | any(contains("1 other process serves these queues, too; this host takes 50 % of the waiting jobs"))'; }
second() { SQMGR_SOCKET=$folder/second.sock "$@"; }
# Writes job times as the metrics of Sidekiq 7.0 and later: so they are known at once with any version.
set_service_times() { # SECONDS
        local minute
        for minute in {-1..9}; do
                redis hset "$(date -u -d "$minute minutes" '+j|%Y%m%d|%-H:%-M')" 'Sleep|ms' "$(($1 * 100000))" 'Sleep|p' 100
        done
}
takes_its_share() { any_event '.event == "scaled" and (.text | test("threads start this host.s share of them"))'; }

@test "scaling: two sqmgr see each other's workers by their heartbeats, and each takes its share of a burst" {
        start_redis
        set_service_times 1
        configure <<END
command = $(sidekiq_command 5)
active_process_max = 6
latency_target = 20s
END
        sed -e "s|^socket = .*|socket = $folder/second.sock\nstate_file = $folder/second.state|" sqmgr.ini >second.ini
        start_sqmgr
        wait_until 40 fleet_is '.active == 1'
        # Each counts the workers of the other when it starts.
        launch second sqmgr -c "$folder/second.ini"
        wait_until 40 second fleet_is '.active == 1'
        wait_until 20 second shares_half
        kill_sqmgr
        start_sqmgr
        wait_until 20 shares_half

        burst 500 1 default
        wait_until 60 takes_its_share
        wait_until 60 second takes_its_share
        wait_until 120 has_done 500
        each_job_done_once 500
}

@test "scaling: the count survives the death of sqmgr, an outage of Redis, and a restart" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes a minute'
        start_workers 1 <<END
command = $(sidekiq_command 5)
active_process_max = 3
latency_target = 5s
scale_down_after = 20s
END
        wait_until 20 scaling_is '.wanted == 1'
        burst 400 1 default
        wait_until 60 fleet_is '.target == 3 and .active == 3'
        pids=$(worker_pids)
        kill -KILL "$sqmgr_pid"
        start_sqmgr
        fleet_is '.target == 3'
        [ "$(worker_pids)" = "$pids" ]
        kill -STOP "$redis_pid"
        wait_until 30 scaling_is '.because | contains("count kept (reason: queues cannot be read)")'
        fleet_is '.target == 3'
        kill -CONT "$redis_pid"
        wait_until 30 redis_state_is connected
        sqmgrctl restart default
        wait_until 30 scaling_is '.because | contains("count kept (reason: restart in progress)")'
        wait_until 120 fleet_is '.rollout.state == "done" and .target == 3'
        wait_until 120 has_done 400
        each_job_done_once 400
}

queue_is() { sqmgrctl queues --json | jq -e "any(.redis[].queues[]; .name == \"celery\" and ($1))"; } # CONDITION

# The heartbeats of Celery and BullMQ are in files.
@test "scaling: queues of a broker are read from its Redis alone, and only the count waits for it" {
        start_workers 1 <<END
framework = celery
command = $e2e/queue-worker $folder/redis.sock celery
active_process_max = 3
latency_target = 3s
scale_down_after = 6s

[fleet:other]
framework = celery
environment = CELERY_BROKER_URL=amqp://localhost
command = $e2e/queue-worker $folder/redis.sock other
END
        wait_until 20 queue_is '.size == 0 and .latency_seconds == 0'
        run -1 sqmgrctl queues
        [[ $output == *"fleet 'other': cannot read queues: "*redis_url* ]]

        # shellcheck disable=SC2046
        redis rpush celery $(seq 1000)
        wait_until 40 fleet_is '.target == 3 and .active == 3'
        queue_is '.size > 0 and .latency_seconds > 0'
        run -0 sqmgrctl why default
        [[ $output == *"queue 'celery'"*'oldest about'* ]]

        kill -KILL "$redis_pid"
        wait_until 20 scaling_is '.because | contains("count kept (reason: queues cannot be read)")'
        sqmgrctl restart default --wait
        fleet_is '.target == 3 and .active == 3 and .rollout.state == "done"'
        not any_event '.event == "redis-down" or .event == "killed" or .event == "crashed"'
}
