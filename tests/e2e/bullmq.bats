#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Framework bullmq with real workers of BullMQ 5 and 6. The application knows nothing of sqmgr: no names, no handlers of
# signals. SQMGR_LONG=1 runs 100 jobs of 2 to 20 seconds besides.
# seconds: 85
# promises: P1 P4 P5
# shellcheck disable=SC1091,SC2034,SC2154
load helpers
. "$BATS_TEST_DIRNAME/native/modules.bash"

# Sets `packages`: where `bullmq` is of that version.
use_bullmq() { # VERSION
        needs_modules
        packages=$(modules_folder)/node_modules
        [ "$1" = 5 ] || return 0
        mkdir "$folder/five"
        ln -s "$packages/bullmq5" "$folder/five/bullmq"
        packages=$folder/five:$packages
}
bullmq_fleet() { # COUNT PROGRAM [LINE...]
        start_workers "$1" < <(printf '%s\n' 'framework = bullmq' "active_process_count = $1" "command = node $2 work" \
                "environment = NODE_PATH=$packages LOCK_DURATION=${lock_duration-6000}" "${@:3}")
}
add() { NODE_PATH=$packages node "$native_tests/bullmq_plain.js" add "$@"; } # QUEUE COUNT DATA
busy_is() { fleet_is "([.workers[].busy] | add) == $1"; } # COUNT
shows_jobs() {
        sqmgrctl jobs --json | jq -e '.errors == [] and (.jobs | length >= 4) and
                all(.jobs[]; .class == "deliver" and (.jid | test("^[0-9]+$")))'
}
all_done() { # COUNT
        wait_until 90 has_done "$1"
        [ "$(redis zcard bull:mails:failed)" = 0 ]
        wait_until 20 busy_is 0
        [ "$(redis llen bull:mails:active)$(redis llen bull:reports:active)" = 00 ]
        [ "$(jobs_started)" = "$1" ]
        not grep sqmgr-bullmq "$folder/workers.log"
}

# Only the four jobs of the killed replacement may run twice: BullMQ gives them to another worker.
rolls() { # PROGRAM
        bullmq_fleet 2 "$1"
        fleet_is '.framework == "bullmq" and all(.workers[]; .concurrency == 4 and .evidence == "file")'
        add mails 20 '{"ms":1000,"most":5000}' &
        add reports 10 '{"ms":1000,"most":5000}'
        wait_until 20 busy_is 8
        wait_until 10 shows_jobs
        sqmgrctl queues --json | jq -e '[.redis[0].queues[].name] == ["mails", "reports"]'

        old=$(worker_pids)
        sqmgrctl restart
        wait_until 20 fleet_is 'any(.workers[]; .state == "quiet" and .busy > 0)'
        record "$(worker_pids)"
        kill_sqmgr
        start_sqmgr
        wait_until 30 gone "$old"
        [ "$(jobs_run_twice)" = 0 ]
        wait_until 30 ready 2

        add mails 10 "{\"hold\":\"$folder/release\"}"
        old=$(worker_pids)
        sqmgrctl restart
        wait_until 30 fleet_is 'any(.workers[]; .generation == 3 and .busy > 0)'
        kill -KILL "$(fleet '[.workers[] | select(.generation == 3 and .busy > 0).pid][0]')"
        touch "$folder/release"
        wait_until 30 gone "$old"
        wait_until 30 fleet_is '.active == 2 and all(.workers[]; .generation == 3)'
        all_done 40
        [ "$(jobs_run_twice)" -le 4 ]
}

@test "bullmq 5: two restarts, a kill -9 of sqmgr and of a replacement cut off no other job" {
        use_bullmq 5
        rolls "$native_tests/bullmq_plain.js"
}

@test "bullmq 6, a minified bundle: two restarts, a kill -9 of sqmgr and of a replacement cut off no other job" {
        use_bullmq 6
        bundle_app bullmq_plain "$folder/bundle.cjs"
        rolls "$folder/bundle.cjs"
}

letters_by() { # PID: true if that process has done a letter
        NODE_PATH=$packages node -e 'const queue = new (require("bull"))("letters", { redis: { path: process.argv[1] } });
                queue.addBulk(Array(20).fill({ data: {} })).then(() => queue.close())' "$folder/redis.sock"
        [ "$(redis sismember ledger:letters "$1")" = 1 ]
}

@test "bullmq: a queue of Bull 4 in the same process is not paused" {
        use_bullmq 6
        cat >"$folder/both.js" <<END
const path = "$folder/redis.sock";
const redis = new (require("ioredis"))({ path });
new (require("bull"))("letters", { redis: { path } }).process(() => redis.sadd("ledger:letters", process.pid));
require("$native_tests/bullmq_plain.js");
END
        bullmq_fleet 1 "$folder/both.js"
        old=$(worker_pids)
        add mails 1 "{\"hold\":\"$folder/release\"}"
        wait_until 20 busy_is 1
        sqmgrctl restart
        wait_until 30 fleet_is '.quiet == 1 and .active == 1'
        redis del ledger:letters
        wait_until 20 letters_by "$old"
        [ "$(redis exists bull:letters:meta-paused)" = 0 ]
        touch "$folder/release"
        wait_until 30 gone "$old"
        all_done 1
}

@test "bullmq: workers start without a shim that is not there" {
        mkdir -p "$folder/src/shims/node"
        copy_programs "$folder"
        echo 'setInterval(() => {}, 1000);' >"$folder/app.js"
        start_redis
        configure <<END
framework = bullmq
active_process_count = 1
command = node $folder/app.js
environment = NODE_OPTIONS=--no-warnings
END
        run -0 "$folder/sqmgr" --check-config -c "$folder/sqmgr.ini"
        [[ "$output" == *"workers start without sqmgr's shim"*'No such file or directory'* ]]
        PATH=$folder:$PATH start_sqmgr
        wait_until 20 fleet_is '(.workers | length) == 1'
        worker=$(worker_pids)
        wait_until 10 grep -qz '^NODE_OPTIONS=--no-warnings$' "/proc/$worker/environ"
        wait_ticks 4
        alive "$worker"
}

# Through two restarts, a replacement for memory, scaling and a restart of Redis.
runs_long() { # PROGRAM
        lock_duration=30000
        bullmq_fleet 3 "$1" 'memory_threshold = 400M' 'max_processes = 12'
        add mails 99 '{"ms":2000,"most":20000}' &
        add reports 1 '{"ms":15000,"leak":500}'
        wait_until 30 fleet_is 'any(.workers[]; .state == "quiet" and .reason == "memory")'
        run -0 sqmgrctl restart --wait=drained --timeout 240s
        sqmgrctl scale default 5
        wait_until 60 busy_is 10
        old=$(worker_pids)
        sqmgrctl restart
        wait_until 60 fleet_is '.quiet == 5 and .active == 5'
        kill -KILL "$redis_pid"
        wait_until 20 redis_state_is down
        start_redis
        wait_until 20 redis_state_is connected
        wait_until 120 gone "$old"
        sqmgrctl scale default 1
        wait_until 120 fleet_is '(.workers | length) == 1'
        wait_until 300 has_done 100
        all_done 100
        [ "$(jobs_run_twice)" = 0 ]
}

@test "bullmq 5: 100 jobs of 2 to 20 seconds" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes four minutes'
        use_bullmq 5
        runs_long "$native_tests/bullmq_plain.js"
}

@test "bullmq 6, a minified bundle: 100 jobs of 2 to 20 seconds" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes four minutes'
        use_bullmq 6
        bundle_app bullmq_plain "$folder/bundle.cjs"
        runs_long "$folder/bundle.cjs"
}
