#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# contrib/examples/ordered-jobs while its workers are killed, frozen, replaced and scaled. The ledger of every run is
# checked.
# long: it plays an example; other files test what the example uses
# seconds: 60
# promises: none
# shellcheck disable=SC1091,SC2154
load helpers
. "$BATS_TEST_DIRNAME/native/modules.bash"
. "$BATS_TEST_DIRNAME/../../contrib/examples/shared.bash"

rolled_out() { fleet_is '.rollout.state == "done" and .active == .target'; }
keys_like() { redis --scan --pattern "$1" | sort | paste -sd' '; } # PATTERN
bull_is_empty() {
        [ -z "$(keys_like 'bull:bookings:*#*')" ] && [ "$(redis exists bull:bookings:{wait,active,failed})" = 0 ]
}

# Sets `judged`.
all_bookings_correct() {
        wait_until 120 all_done
        [ "$(keys_like 'bookings:*')" = 'bookings:counts bookings:ledger bookings:token' ]
        # Jobs of a killed worker come again, and are refused.
        wait_until 30 bull_is_empty || { keys_like 'bull:*' && return 1; }
        judged=$(node app/ledger.js) || { echo "$judged" && return 1; }
}

@test "ordered jobs: in order, one at a time, each once, through kills, a freeze, restarts and scaling" {
        needs_modules
        start_example ordered-jobs
        keys=20 each=5 rounds=1 most=4
        [ -z "${SQMGR_LONG-}" ] || keys=50 each=10 rounds=4 most=8
        enqueued=0
        more() { add_items $keys $enqueued $((enqueued + each - 1)) && enqueued=$((enqueued + each)); }
        # Adds more items if all were done before the kill, and strikes at once: a pause might outlast the items.
        strike() { "$@" || { more && "$@"; }; }
        for ((round = 1; round <= rounds; round++)); do
                wait_until 30 ready 2
                more
                wait_until 60 strike kill_a_busy_worker

                more
                wait_until 30 ready 2
                sqmgrctl restart
                wait_until 60 strike kill_a_busy_worker
                wait_until 60 rolled_out

                more
                sqmgrctl scale bookings $most
                wait_until 30 ready $most
                wait_until 60 strike freeze_a_busy_worker
                # Other workers do what Bull assigns to it meanwhile.
                more
                wait_until 60 all_done
                kill -CONT "$busy_pid"
                wait_until 30 pid_has "$busy_pid" refused

                more
                sqmgrctl restart
                wait_until 60 strike kill_a_busy_worker
                wait_until 60 rolled_out
                sqmgrctl scale bookings 2
                wait_until 60 fleet_is '(.workers | length) == 2'
        done
        all_bookings_correct
        head -n 3 <<<"# ${judged//$'\n'/$'\n# '}" >&3
        [[ "$judged" == "$((keys * enqueued)) items of $keys keys are done, "* ]]
        [ "$(count unwanted)" -gt 0 ]
        [ "$(count renew)" -gt 0 ]
        [[ "$judged" != *' up to 1 keys at once.'* ]]
        fleet_is ".generation == $((2 * rounds + 1))"
}

@test "ordered jobs: package.json requires the tested npm versions" {
        for name in bull ioredis; do
                [ "$(jq -r ".dependencies.$name" "$examples/ordered-jobs/package.json")" = \
                        "$(jq -r ".packages[\"node_modules/$name\"].version" "$native_tests/package-lock.json")" ]
        done
}

@test "ordered jobs: after the loss of all data of Bull, every key is revived" {
        needs_modules
        take_example ordered-jobs
        start_redis
        prepare
        add_items 3 0 4
        redis --scan --pattern 'bull:*' | xargs redis-cli -s "$folder/redis.sock" del
        start_sqmgr
        all_bookings_correct
        [ "$(count revive)" -ge 3 ]
}

has_counted() { [ "$(count "$1")" -ge "$2" ]; } # EVENT NUMBER

@test "ordered jobs: a failed item is retried in its place, and delays only its own key" {
        needs_modules
        start_example ordered-jobs
        echo 'account-0 {"n":0,"ms":1,"error":"no such account"}' | node app/enqueue.js
        for n in 1 2 3; do
                printf 'account-%d {"n":%d,"ms":1}\n' 0 "$n" 1 $((n - 1))
        done | node app/enqueue.js
        wait_until 20 has_counted revive 2
        wait_until 20 has_counted "done" 3
        [ "$(redis llen bookings:data:account-0)" = 3 ]
        redis lset bookings:processing:account-0 0 '{"n":0,"ms":1}'
        all_bookings_correct
        [[ "$judged" == '7 items of 2 keys are done, '* ]]
        grep -q 'account-0: Error: no such account' workers.log
}
