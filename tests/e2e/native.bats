#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Framework native with real workers, each using a library of contrib/heartbeat: Bull, BullMQ and scripts of our own.
# seconds: 60
# promises: P1 P4 P5
# shellcheck disable=SC1091,SC2030,SC2031
load helpers
. "$BATS_TEST_DIRNAME/native/jobs.bash"

node_command() { echo "env NODE_PATH=$(modules_folder)/node_modules node $native_tests/$1.js work"; } # KIND
start_load() { # KIND
        NODE_PATH=$(modules_folder)/node_modules launch workers node "$native_tests/$1.js" load
        load_pid=$!
}
end_load() { # KIND PID
        redis set "ledger:$1:stop" 1 >/dev/null
        wait_until 20 gone "$2"
}
counts() { redis hlen "ledger:$1:$2"; } # KIND started|done|holders
has_counted() { [ "$(counts "$1" "$2")" -ge "$3" ]; } # KIND started|done NUMBER
jobs_of() { redis get "ledger:$1:jobs"; } # KIND
# A worker that is gone holds no job.
none_cut_off() { # KIND
        local holder
        for holder in $(redis hvals "ledger:$1:holders"); do
                alive "$holder" || { echo "$1: process $holder is gone and had a job" && return 1; }
        done
}
none_lost() { # KIND: once its load has ended
        wait_until 60 has_counted "$1" "done" "$(jobs_of "$1")"
        [ "$(counts "$1" "done")" = "$(jobs_of "$1")" ]
        [ "$({ redis hvals "ledger:$1:started" && redis hvals "ledger:$1:done"; } | sort -u)" = 1 ]
}
# Old and new workers overlap for at least the trial of the new ones.
has_both_generations() { fleets_are '(.workers | length) == 4'; }
list_is_empty() { [ "$(redis llen "$1")" = 0 ]; } # LIST
none_active() { # KIND: according to the queue itself
        wait_until 10 list_is_empty "$1:work:active"
        list_is_empty "$1:work:wait"
}
fleets_are() { sqmgrctl status --json | jq -e "all(.fleets[]; $1)"; }
all_ready() { fleets_are '.active == .target and .rollout.state != "running" and all(.workers[]; .ready)'; }
pids_of_all() { sqmgrctl status --json | jq -r '[.fleets[].workers[].pid] | sort | join(" ")'; }

@test "native: Bull and BullMQ under load, restarted again and again: no job is cut off, lost or run twice" {
        needs_modules
        start_redis
        configure <<END
framework = native
command = $(node_command bull)
active_process_count = 2

[fleet:bullmq]
framework = native
command = $(node_command bullmq)
log = $folder/workers.log
active_process_count = 2
END
        start_load bull
        bull_load=$load_pid
        start_load bullmq
        bullmq_load=$load_pid
        start_sqmgr
        wait_until 30 all_ready
        fleets_are '.framework == "native" and all(.workers[]; .concurrency == 5)'
        rounds=2
        [ -z "${SQMGR_LONG-}" ] || rounds=50
        for ((round = 1; round <= rounds; round++)); do
                old=$(pids_of_all)
                n_bull=$(counts bull "done") n_bullmq=$(counts bullmq "done")
                run -0 sqmgrctl restart --wait=drained --timeout 120s
                gone "$old"
                none_cut_off bull
                none_cut_off bullmq
                # The load was present all the time.
                wait_until 20 has_counted bull "done" $((n_bull + 20))
                wait_until 20 has_counted bullmq "done" $((n_bullmq + 20))
        done
        end_load bull "$bull_load"
        end_load bullmq "$bullmq_load"
        none_lost bull
        none_lost bullmq
        none_active bull
        none_active bullmq
        fleets_are ".generation == $((rounds + 1)) and .crash.count == 0"
        # Each got TERM when it was idle, and exited.
        not grep -qE 'SIGKILL|exited with status [1-9]' "$folder/sqmgr.log"
        [ "$(redis scard sqmgr:workers)" = 4 ]
}

@test "native: kill -9 of sqmgr and a re-exec during restarts under load: workers are adopted, no job is lost" {
        needs_modules
        start_redis
        configure <<END
framework = native
command = $(node_command bullmq)
active_process_count = 2
ready_after = 5s
END
        start_load bullmq
        start_sqmgr
        wait_until 30 all_ready
        for round in kill reexec; do
                old=$(worker_pids)
                sqmgrctl restart
                wait_until 30 has_both_generations
                all=$(worker_pids)
                if [ $round = kill ]; then
                        record "$all"
                        kill_sqmgr
                        start_sqmgr
                else
                        sqmgrctl reexec
                fi
                wait_until 60 fleet_is '.rollout.state == "done" and (.workers | length) == 2 and all(.workers[]; .ready)'
                gone "$old"
                for pid in $(worker_pids); do
                        [[ " $all " == *" $pid "* ]]
                done
                none_cut_off bullmq
        done
        fleet_is '.generation == 3 and .crash.count == 0'
        end_load bullmq "$load_pid"
        none_lost bullmq
        none_active bullmq
}

@test "native: scripts and C by heartbeat = file, without any Redis: restarts and kill -9 of sqmgr under load" {
        for kind in shell c; do
                job_folder "$folder/$kind"
                add_jobs "$folder/$kind" 1 150
        done
        configure <<END
framework = native
heartbeat = file
command = $(native_command shell "$folder/shell")
active_process_count = 2
ready_after = 5s

[fleet:c]
framework = native
heartbeat = file
command = $(native_command c "$folder/c")
active_process_count = 2
ready_after = 5s
log = $folder/workers.log
END
        start_sqmgr
        wait_until 30 all_ready
        sqmgrctl status --json | jq -e '.redis == [] and all(.fleets[].workers[]; .evidence == "file")'
        for round in calm kill reexec; do
                old=$(pids_of_all)
                sqmgrctl restart
                wait_until 30 has_both_generations
                if [ $round = kill ]; then
                        record "$(pids_of_all)"
                        kill_sqmgr
                        start_sqmgr
                elif [ $round = reexec ]; then
                        sqmgrctl reexec
                fi
                wait_until 60 all_ready
                wait_until 60 gone "$old"
        done
        fleets_are '.generation == 4 and .crash.count == 0'
        wait_until 60 all_done "$folder/shell" 150
        wait_until 30 all_done "$folder/c" 150
        not grep -q SIGKILL "$folder/sqmgr.log"
}
