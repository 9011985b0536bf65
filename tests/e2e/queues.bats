#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Queues in Redis, as Sidekiq writes them, and their limits.
# seconds: 30
# promises: P8
load helpers

queue_is() { sqmgrctl queues --json | jq -e ".redis[0].queues[] | $1"; }
calls_of() { redis info commandstats | sed -n "s/^cmdstat_$1:calls=\([0-9]*\),.*/\1/p" | grep . || echo 0; } # COMMAND
has_run() { [ "$(calls_of "$1")" -ge "$2" ]; } # COMMAND TIMES

start_fleet() { # COMMAND
        start_redis
        configure <<<"command = $1"
        start_sqmgr
        wait_until 30 fleet_is '.active == 1'
}

@test "queues: shows the queues of Sidekiq, with paused ones and the timestamps of Sidekiq 8" {
        start_fleet "$(stub_command)"
        run -0 sqmgrctl queues
        [[ $output == *'no queues'* ]]
        enqueue 3 Sleep 1
        redis lpush queue:eight "{\"enqueued_at\":$(date -d '-2 hours' +%s000)}"
        redis sadd queues eight
        redis sadd paused eight
        redis zadd dead 1 x
        queue_is 'select(.name == "default") | .size == 3 and .latency_seconds >= 0 and .latency_seconds < 100 and (.paused | not)'
        queue_is 'select(.name == "eight") | .size == 1 and .latency_seconds > 7190 and .latency_seconds < 7300 and .paused'
        run -0 sqmgrctl queues
        [[ $output == *"unix://$folder/redis.sock: 0 retries, 0 scheduled, 1 dead"* ]]
        [[ ${lines[3]} =~ ^\ \ eight\ .*\ 1\ +2h\ \ paused$ ]]
}

@test "queues: beyond a thousand, queues are only counted" {
        start_fleet "$(stub_command)"
        # shellcheck disable=SC2046
        redis sadd queues $(seq 1007)
        run -0 sqmgrctl queues
        [ "${lines[-1]}" = '  7 more queues are not read' ]
        [ "$(sqmgrctl queues --json | jq '.redis[0] | .queues_left_out, (.queues | length)' | xargs)" = '7 1000' ]
}

@test "queues: a Redis that is down, hangs or refuses is reported, and sqmgr answers" {
        start_fleet "$(stub_command)"
        redis set queues x
        run -1 sqmgrctl queues
        [[ $output == *WRONGTYPE* ]]
        redis del queues
        kill -STOP "$redis_pid"
        run -1 sqmgrctl queues
        [[ $output == *'cannot read'* ]]
        kill -CONT "$redis_pid"
        wait_until 20 sqmgrctl queues
        kill -KILL "$redis_pid"
        wait_until 10 redis_state_is down
        run -1 sqmgrctl queues --json
        [[ $output == *'cannot read'* ]]
        run -0 sqmgrctl ping
}

@test "queues: a queue above its limit is reported, and its recovery; a reload changes the limits" {
        redis_lines=$'queue_warn_size = none\nqueue_warn_latency = 100d slow=1min' start_fleet "$(stub_command)"
        redis sadd queues slow
        redis lpush queue:slow "{\"enqueued_at\":$(date -d '-5 minutes' +%s).5}"
        wait_until 20 any_event '.event == "queue-over" and .level == "warning" and (.text | contains("'"queue 'slow' is 5min"'"))'
        redis del queue:slow
        wait_until 20 any_event '.event == "queue-back" and .level == "info" and (.text | contains("'"queue 'slow'"'"))'
        enqueue 3 Sleep 1
        sed -i 's/^queue_warn_size.*/queue_warn_size = 2/' sqmgr.ini
        run -0 sqmgrctl reload
        [[ $output == *'queue_warn_size: none -> 2' ]]
        wait_until 20 any_event '.text | contains("'"queue 'default' holds 3 jobs, over queue_warn_size 2"'")'
        metric='sqmgr_queue_jobs{url="unix://'$folder'/redis.sock",queue="default"} 3'
        sqmgrctl metrics | grep -qFx "$metric"
        # Reported once, however often the queue is read: each time two sets are
        # read.
        wait_until 30 has_run smembers $(($(calls_of smembers) + 6))
        [ "$(sqmgrctl events --json | grep -c '"queue-over"')" = 2 ]
}

@test "queues: limits that cannot be watched are reported once, not at each refusal of Redis" {
        start_redis
        redis acl setuser watcher on '>secret' '~*' '+@all' -smembers
        redis_lines=$'username = watcher\npassword = secret\nqueue_warn_size = 2' configure <<<"command = $(stub_command)"
        start_sqmgr
        wait_until 30 fleet_is '.active == 1'
        refusals() { redis info commandstats | sed -n 's/^cmdstat_smembers:.*rejected_calls=\([0-9]*\).*/\1/p' | grep .; }
        has_refused() { [ "$(refusals)" -ge 4 ]; }
        wait_until 30 has_refused
        wait_until 10 grep -q 'cannot read the queues: .*; queue limits are not checked' sqmgr.log
        grep -q '| NOPERM' sqmgr.log
        [ "$(grep -c 'queue limits are not checked' sqmgr.log)" = 1 ]
}

@test "queues: without a limit, queues are read only on request" {
        start_fleet "$(stub_command)"
        redis config resetstat
        # Twelve polls of its worker, two of which would also read the queues.
        wait_until 30 has_run hmget 12
        [ "$(calls_of smembers)" = 0 ]
        sqmgrctl queues
        [ "$(calls_of smembers)" = 2 ]
        enqueue 3 Sleep 1
        run -0 sqmgrctl metrics
        [[ $output == *$'\n''sqmgr_queue_jobs{url="unix://'"$folder"'/redis.sock",queue="default"} 3'$'\n'* ]]
        [[ $output =~ sqmgr_queue_latency_seconds\{url=\"unix://$folder/redis.sock\",queue=\"default\"\}\ [0-9.]+ ]]
        kill -STOP "$redis_pid"
        run -0 sqmgrctl metrics
        [[ $output != *'sqmgr_queue_jobs{'* && $output == *'sqmgr_workers{fleet="default",state="active"} 1'* ]]
        kill -CONT "$redis_pid"
}

@test "queues: if a reload replaces the queried Redis, the answer reports it" {
        start_redis
        configure <<END
command = $(stub_command)
redis_url = unix://$folder/redis.sock
END
        start_sqmgr
        wait_until 30 fleet_is '.active == 1'
        sqmgrctl stop default --force
        wait_until 20 fleet_is '.workers == []'
        kill -STOP "$redis_pid"
        sed -i "s/fleet:default/fleet:other/; s#^redis_url = .*#redis_url = unix://$folder/other.sock#" sqmgr.ini
        # Redis may be silent for a second. The pause lets sqmgr take up the first call before the second.
        launch asked ruby -rsocket -e 'calls = %w[GetQueues Reload].map do |method|
                        UNIXSocket.new(ENV["SQMGR_SOCKET"]).tap do |s|
                                s.write(%({"method":"org.sqmgr.Control.#{method}"}\0))
                                sleep 0.1
                        end
                end
                puts calls.map { |s| s.gets("\0") }'
        wait_until 20 grep -qF "cannot read the queues of Redis unix://$folder/other.sock: not read yet" asked.log
        kill -CONT "$redis_pid"
}
