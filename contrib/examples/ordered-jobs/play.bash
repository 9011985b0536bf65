# SPDX-License-Identifier: MIT
# The load of the example and its failures, for contrib/examples/run and the test.
# shellcheck shell=bash disable=SC1091,SC2154

prepare() {
        . "$top/tests/e2e/native/modules.bash"
        has_modules || { echo "Bull is missing: 'contrib/setup examples' has it from npm" >&2 && return 1; }
        NODE_PATH=$(modules_folder)/node_modules
        export NODE_PATH LOCK_TIME=2000
        cp "$top/contrib/heartbeat/sqmgr-heartbeat.js" "$folder/app"
}

# Every fifth item of every fourth key takes longer than the lock's time.
add_items() { # KEYS FIRST LAST: to each key
        local n key ms
        for ((n = $2; n <= $3; n++)); do
                for ((key = 0; key < $1; key++)); do
                        ms=100
                        ((key % 4 || n % 5 != 4)) || ms=3000
                        echo "account-$key {\"n\":$n,\"ms\":$ms}"
                done
        done | node "$folder/app/enqueue.js"
}

count() { redis hget bookings:counts "$1"; } # EVENT of the ledger
all_done() { [ "$(redis exists bookings:fence)" = 0 ]; }

# Prints the state of each run: PID running, PID done, PID cut-off (another run has its key) or PID refused (its
# worker has noticed that).
runs() {
        redis lrange bookings:ledger 0 -1 | jq -r '"\(.event) \(.key) \(.token) \(.pid)"' | awk '
                $1 == "start" { has[$2] = $3; pid[$3] = $4; state[$3] = "running" }
                $1 == "done" { state[$3] = "done"; delete has[$2] }
                $1 == "revive" && $2 in has { state[has[$2]] = "cut-off"; delete has[$2] }
                $1 == "refused" && state[$3] == "cut-off" { state[$3] = "refused" }
                END { for (token in pid) print pid[token], state[token] }'
}
busy_pid() { runs | awk '$2 == "running" { pid = $1 } END { print pid; exit !pid }'; }
pid_has() { runs | grep -qx "$1 $2"; } # PID STATE
pid_has_no() { ! pid_has "$@"; }

# Its run may have ended meanwhile; once stopped, the worker ends no run.
stop_a_busy_worker() { # sets busy_pid
        busy_pid=$(busy_pid) && [[ " $(worker_pids) " == *" $busy_pid "* ]] && kill -STOP "$busy_pid" || return 1
        pid_has "$busy_pid" running || { kill -CONT "$busy_pid" && return 1; }
}
its_keys_are_taken_over() { wait_until 20 pid_has_no "$busy_pid" running && pid_has "$busy_pid" cut-off; }
kill_a_busy_worker() { stop_a_busy_worker && kill -KILL "$busy_pid" && its_keys_are_taken_over; }
freeze_a_busy_worker() {
        stop_a_busy_worker || return 1
        its_keys_are_taken_over || { kill -CONT "$busy_pid" && return 1; }
}

play() {
        wait_until 60 ready 2 || fail 'the fleet did not come up'

        title '1. 10 items for each of 20 accounts. A worker is killed' \
                '   while it works on some: they run again, in their place.'
        add_items 20 0 9
        wait_until 60 kill_a_busy_worker || fail 'no run was cut off'
        wait_until 60 ready 2
        say "$(count revive) keys were revived."

        title '2. New code, under load.'
        add_items 20 10 14
        show restart --wait || fail 'the restart failed'

        title '3. A worker freezes for longer than the lock lasts.' \
                '   Others take over its keys, and when it is back' \
                '   nothing that it writes counts.'
        add_items 20 15 19
        wait_until 60 freeze_a_busy_worker || fail 'no run was cut off'
        kill -CONT "$busy_pid"
        wait_until 20 pid_has "$busy_pid" refused || fail 'the worker did not notice that its key was lost'
        say "$(count refused) writes were refused."

        wait_until 120 all_done || fail 'items are left'
        title '4. The ledger:'
        node "$folder/app/ledger.js"
}
