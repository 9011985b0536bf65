#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Connections to Redis: over IPv6, as an ACL user, in another database, with one Redis for each fleet; their cost; and
# that no password is shown.
# seconds: 60
# promises: P5
# shellcheck disable=SC2034
load helpers

secret=sw0rdfish

# The test's own redis-cli uses its own server and user.
redis() { redis-cli -s "$folder/redis.sock" --user admin -a adm1n --no-auth-warning "$@"; }

# Checks that no readable output contains a password.
shows_no_secret() {
        not grep -rF "$secret" "$folder/sqmgr.log" "$folder/workers.log" "$folder/state" "/proc/$sqmgr_pid/cmdline" \
                <(sqmgrctl status) <(sqmgrctl status --json) <(sqmgrctl events --json) \
                <(sqmgr --print-config -c "$folder/sqmgr.ini" 2>&1)
}

# The worker has all rights; the user of sqmgr has no more than it needs.
start_guarded_redis() {
        port=$(unused_port ::1)
        printf '%s\n' 'bind ::1' "port $port" "unixsocket $folder/redis.sock" "dir $folder" 'save ""' \
                "user worker on >$secret ~* &* +@all" \
                "user watcher on >$secret ~processes ~*:* +exists +hmget +sscan +ping +select +scard +info +client|tracking +setrange" \
                'user admin on >adm1n ~* &* +@all' 'user default off' >"$folder/redis.conf"
        launch redis redis-server "$folder/redis.conf"
        redis_pid=$!
        wait_until 10 redis_answers
        echo "REDIS_URL=redis://worker:$secret@[::1]:$port/3" >"$folder/worker.env"
}

restarts_sidekiq() {
        start_ready 1
        run -0 sqmgrctl restart --wait=drained --timeout 300s
        [ "$(redis -n 3 scard processes)" = 1 ]
        [ "$(redis -n 0 dbsize)" = 0 ]
        shows_no_secret
}

@test "IPv6, a read-only ACL user, a password file, a database: workers are seen, and no password is shown" {
        start_guarded_redis
        (umask 077 && echo "$secret" >"$folder/password")
        redis_url="redis://[::1]:$port/3"
        redis_lines="username = watcher
password_file = $folder/password"
        configure <<END
command = $(sidekiq_command 2)
environment_file = $folder/worker.env
ready_after = 1s
END
        restarts_sidekiq
        redis acl log | not grep -q watcher
        # A missing permission does not close the connection.
        run -1 sqmgrctl jobs
        [[ $output == *"NOPERM"* ]]
        sqmgrctl events --json | not grep redis-down

        # A refused password is not shown either.
        echo "${secret}2" >"$folder/password"
        kill_sqmgr
        start_sqmgr
        wait_until 20 grep -F 'the server refuses user or password' "$folder/sqmgr.log"
        shows_no_secret
}

@test "user, password and database in the URL of a fleet: the same" {
        start_guarded_redis
        redis_url=redis://127.0.0.1:1
        configure <<END
command = $(sidekiq_command 2)
environment_file = $folder/worker.env
redis_url = redis://watcher:$secret@[::1]:$port/3
ready_after = 1s
END
        restarts_sidekiq
        run sqmgrctl reload
        [[ $output != *"$secret"* ]]
}

@test "the ACL user of the manual is enough to read jobs and queues and to requeue jobs" {
        start_guarded_redis
        redis acl setuser watcher reset on ">$secret" '~processes' '~*:*' '~queues' '~paused' '~retry' '~schedule' '~dead' \
                +exists +hmget +sscan +ping +select +hgetall +smembers +zcard +llen +lindex +eval +hget +get +set +del \
                +zadd +hdel +rpush +sadd +info '+config|get' +scard '+client|tracking' +setrange
        (umask 077 && echo "$secret" >"$folder/password")
        redis_url="redis://[::1]:$port/3"
        redis_lines="username = watcher
password_file = $folder/password
queue_warn_size = 5"
        configure <<END
command = $(sidekiq_command 2)
environment_file = $folder/worker.env
ready_after = 1s
rescue_jobs = requeue
job_warn_after = 1s
END
        start_ready 1
        REDIS_URL="redis://worker:$secret@[::1]:$port/3" enqueue_with_client 1 Hold "$folder/release"
        has_event() { sqmgrctl events --json | jq -es "any(.[]; .event == \"$1\")"; }
        shown() { sqmgrctl jobs --json | jq -e '.jobs | length == 1'; }
        wait_until 30 shown
        wait_until 30 has_event job-long
        kill -KILL "$(worker_pids)"
        wait_until 30 has_event job-rescued
        wait_until 60 shown
        # As if three workers had died of this job.
        redis -n 3 set "$(redis -n 3 --scan --pattern 'sqmgr:rescued:*')" 3
        kill -KILL "$(worker_pids)"
        wait_until 30 has_event job-parked
        run -0 sqmgrctl queues
        [[ $output == *', 1 dead'* ]]
        sqmgrctl doctor --json | jq -e 'all(.findings[]; .text | contains("refuses") | not)'
        redis acl log | not grep -q watcher
        shows_no_secret
}

open_redis() { # NAME
        mkdir -p "$folder/$1"
        launch "$1" redis-server --port 0 --unixsocket "$folder/$1.sock" --dir "$folder/$1" --save ''
        declare -g "${1}_pid=$!"
}
# Counts connections with the commands of sqmgr, which the stub does not send.
count_connections() { redis-cli -s "$folder/$1.sock" client list | grep -cE 'cmd=(hmget|sscan|exists|client.tracking) '; } # NAME

@test "fleets with one Redis share a connection; a fleet with its own Redis is independent" {
        open_redis a
        open_redis b
        redis_url=unix://$folder/a.sock
        configure <<END
command = $stub -u $folder/a.sock -b 200
ready_after = 500ms
[fleet:other]
command = $stub -u $folder/a.sock -b 200
redis_url = unix://$folder/a.sock
ready_after = 500ms
[fleet:apart]
command = $stub -u $folder/b.sock -b 200
redis_url = unix://$folder/b.sock
ready_after = 500ms
END
        start_sqmgr
        all_ready() { sqmgrctl status --json | jq -e '[.fleets[].workers[] | select(.ready)] | length == 3'; }
        wait_until 20 all_ready
        [ "$(count_connections a)" = 1 ]
        [ "$(count_connections b)" = 1 ]
        [ "$(sqmgrctl status --json | jq '.redis | length')" = 2 ]
        kill -KILL "$b_pid"
        b_down() { sqmgrctl status --json | jq -e ".redis | map({(.url): .state}) | add == {\"unix://$folder/a.sock\": \"connected\", \"unix://$folder/b.sock\": \"down\"}"; }
        wait_until 20 b_down
        for command in jobs queues; do
                run -1 --separate-stderr sqmgrctl "$command" --json
                jq -e . <<<"$output"
                run -1 sqmgrctl "$command"
                [[ $output == *"$folder/b.sock: "* ]]
        done
        [[ $output == *"$folder/a.sock: 0 retries"* ]]
        run -0 sqmgrctl jobs default other
        [ "$output" = 'no running jobs known' ]
        run -0 sqmgrctl restart default other --wait=drained --timeout 300s
        rm -f "$folder/b.sock"
        open_redis b
        wait_until 20 all_ready
        run -0 sqmgrctl restart apart --wait=drained --timeout 300s
}

now_ms() { date +%s%3N; }
# Prints the calls of commands that only sqmgr sends. The stub sends the others, and PING with each heartbeat.
calls() { redis-cli -s "$folder/a.sock" info commandstats | sed -n 's/^cmdstat_\([a-z|]*\):calls=\([0-9]*\),.*/\1 \2/p' |
        awk '$1 !~ /^(multi|sadd|hmset|expire|del|hset|exec|srem|info|config|client|ping)/ { n += $2 } END { print n + 0 }'; }
heartbeats_read() { [ "$(redis-cli -s "$folder/a.sock" info commandstats | sed -n 's/^cmdstat_hmget:calls=\([0-9]*\),.*/\1/p')" -ge "$1" ]; }

# At most two commands for each worker plus three in each tick of 500 ms.
costs_little() { # WORKERS
        local begun ticks
        begun=$(now_ms)
        redis-cli -s "$folder/a.sock" config resetstat
        wait_until 60 heartbeats_read $(($1 * 10))
        local n
        n=$(calls)
        ticks=$((($(now_ms) - begun) / 500 + 1))
        echo "$n calls in $ticks ticks"
        [ "$n" -le $((ticks * (2 * $1 + 3))) ]
}

@test "six workers cost at most two commands each plus three per tick, also beside 10,000 other workers" {
        open_redis a
        redis_url=unix://$folder/a.sock
        configure <<END
command = $stub -u $folder/a.sock -b 200 -d $folder/steer
active_process_count = 6
ready_after = 500ms
END
        start_ready 6
        costs_little 6
        seq -f 'SADD processes elsewhere.example.org:%.0f:0123456789ab' 10000 |
                redis-cli -s "$folder/a.sock" --pipe >/dev/null
        [ "$(redis-cli -s "$folder/a.sock" scard processes)" -ge 10000 ]
        costs_little 6
        run -0 sqmgrctl restart --wait=drained --timeout 300s
        costs_little 6
        # Running jobs of draining workers are read, too.
        for pid in $(worker_pids); do
                echo 1 >"$folder/steer/busy.$pid"
        done
        wait_until 10 fleet_is 'all(.workers[]; .busy == 1)'
        run -0 sqmgrctl restart --wait --timeout 300s
        fleet_is '.quiet == 6 and .active == 6'
        costs_little 12
        [ "$(redis-cli -s "$folder/a.sock" info commandstats | sed -n 's/^cmdstat_hgetall:calls=\([0-9]*\),.*/\1/p')" -gt 0 ]
        rm "$folder"/steer/busy.*
}
