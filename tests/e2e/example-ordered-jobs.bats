#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# contrib/examples/ordered-jobs while its workers are killed, frozen, replaced and scaled: every run in its ledger is
# judged.
# seconds: 60
# promises: none
# shellcheck disable=SC1091,SC2154
load helpers
. "$BATS_TEST_DIRNAME/native/modules.bash"
. "$BATS_TEST_DIRNAME/../../contrib/examples/shared.bash"

rolled_out() { fleet_is '.rollout.state == "done" and .active == .target'; }
left_of() { redis --scan --pattern "$1" | sort | paste -sd' '; } # PATTERN
bull_has_none() {
        [ -z "$(left_of 'bull:bookings:*#*')" ] && [ "$(redis exists bull:bookings:{wait,active,failed})" = 0 ]
}

nothing_is_left() {
        wait_until 120 all_done
        [ "$(left_of 'bookings:*')" = 'bookings:counts bookings:ledger bookings:token' ]
        # What a killed worker had comes again, and is refused.
        wait_until 30 bull_has_none
}

@test "ordered jobs: in order, one at a time and each once through kills, a freeze, restarts and scaling" {
        needs_modules
        start_example ordered-jobs
        keys=20 each=5 rounds=1 most=4
        [ -z "${SQMGR_LONG-}" ] || keys=50 each=10 rounds=4 most=8
        enqueued=0
        more() { add_items $keys $enqueued $((enqueued + each - 1)) && enqueued=$((enqueued + each)); }
        # Where all was done before it was struck there is more to do.
        strike() { "$@" || { more && return 1; }; }
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
                more
                wait_until 60 strike freeze_a_busy_worker
                kill -CONT "$busy_pid"
                wait_until 30 pid_has "$busy_pid" refused

                more
                sqmgrctl restart
                wait_until 60 strike kill_a_busy_worker
                wait_until 60 rolled_out
                sqmgrctl scale bookings 2
                wait_until 60 fleet_is '(.workers | length) == 2'
        done
        nothing_is_left
        run -0 node app/ledger.js
        echo "# ${lines[*]:0:3}" >&3
        [[ "${lines[0]}" == "$((keys * enqueued)) items of $keys keys are done, "* ]]
        [ "$(count unwanted)" -gt 0 ]
        [ "$(count renew)" -gt 0 ]
        [[ "${lines[0]}" != *' up to 1 keys at once.' ]]
        fleet_is ".generation == $((2 * rounds + 1))"
}

@test "ordered jobs: all that Bull had is lost: every key is revived" {
        needs_modules
        take_example ordered-jobs
        start_redis
        prepare
        add_items 3 0 4
        redis --scan --pattern 'bull:*' | xargs redis-cli -s "$folder/redis.sock" del
        start_sqmgr
        nothing_is_left
        run -0 node app/ledger.js
        [ "$(count revive)" = 3 ]
}
