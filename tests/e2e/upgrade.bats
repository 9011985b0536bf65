#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Upgrades from this build to a made-up next version (tests/next.edit) under load, by re-exec and after its death, and back.
# The workers stay the same, no job is lost or run twice, and all orders and rollouts continue. With SQMGR_LONG=1 each is
# repeated many times.
# seconds: 100
# promises: P1 P4
# shellcheck disable=SC2030,SC2031,SC2034
load helpers

next=$SQMGR_BUILD/../next

setup_file() {
        "$BATS_TEST_DIRNAME/build-next" "$next" 3>&-
}

install_program() { # SQMGR: its files replace the existing ones, as those of a package do
        local file
        mkdir -p "$folder/bin"
        for file in "$1"-{proc-reader,start,journal} "$1"; do
                cp "$file" "$folder/bin/new"
                mv "$folder/bin/new" "$folder/bin/$(basename "$file")"
        done
}
runs_the_installed() { [ "$(stat -Lc %i "/proc/$sqmgr_pid/exe")" = "$(stat -c %i "$folder/bin/sqmgr")" ]; }

start_installed() {
        launch sqmgr "$folder/bin/sqmgr" -c "$folder/sqmgr.ini"
        sqmgr_pid=$!
        wait_until 10 sqmgrctl ping
        runs_the_installed
}

start_old() {
        install_program "$SQMGR_BUILD/sqmgr"
        start_installed
}

# Each kind of upgrade ends with the new program running, possibly before it has a heartbeat of every worker.
upgrade_by_reexec() {
        local pid=$sqmgr_pid
        install_program "$next/main/sqmgr"
        run -0 sqmgrctl reexec
        [[ $output == "sqmgr "*" has taken over (pid $pid)" ]]
        runs_the_installed
}
upgrade_by_signal() {
        install_program "$next/main/sqmgr"
        kill -USR2 "$sqmgr_pid"
        wait_until 20 runs_the_installed
        wait_until 20 sqmgrctl ping
}
upgrade_by_death() {
        local pid
        record "$(all_pids)"
        kill_sqmgr
        install_program "$next/main/sqmgr"
        start_installed
}

all_pids() { sqmgrctl status --json | jq -r '.fleets[].workers[].pid'; }
# Prints pid and start time of each worker.
processes() {
        local pid stat
        for pid in $(all_pids | sort -n); do
                { read -r stat <"/proc/$pid/stat"; } 2>/dev/null || continue
                read -r -a stat <<<"${stat##*) }"
                echo "$pid ${stat[19]}"
        done
}

# Prints what an upgrade must not change while nothing else happens.
fleet_summary() {
        sqmgrctl status --json | command jq -S '[.fleets[] | {name, state, target, generation, rollout: .rollout.state,
                outdated: .rollout.outdated,
                workers: [.workers[] | {id, pid, state, reason, generation, outdated}]}]'
}
fleet_summary_is() { [ "$(fleet_summary)" = "$1" ]; }

# Adds jobs for the stubs as fast as they are done, while a file `go` exists.
refill_queue() {
        while [ -e "$folder/go" ]; do
                redis eval "local n = redis.call('llen', 'stub:jobs')
                        for i = n, 40 do
                                redis.call('lpush', 'stub:jobs', redis.call('incr', 'stub:count') .. ' 150')
                        end" 0
                sleep 0.2
        done
}
start_feeding() {
        touch "$folder/go"
        refill_queue >"$folder/feed.log" 2>&1 3>&- 9>&- &
        feeder=$!
}
ledger_has_all() { [ "$(grep -c ^done ledger)" = "$(redis get stub:count)" ]; }
# Each of them was started and done once.
balance() {
        rm "$folder/go"
        wait $feeder
        wait_until 30 ledger_has_all
        [ "$(awk '{ n[$1 " " $2]++ } END { for (job in n) bad += n[job] != 1; print bad + 0, length(n) }' ledger)" = \
                "0 $((2 * $(redis get stub:count)))" ]
}

end_all() {
        kill -TERM "$sqmgr_pid"
        wait_until 60 gone "$sqmgr_pid"
        wait "$sqmgr_pid" || true
        rm -f "$folder/state" "$folder/ledger"
        redis flushall
}

ready_count_is() { # FLEET WORKERS
        sqmgrctl status --json |
                jq -e ".fleets[] | select(.name == \"$1\") | [.workers[] | select(.ready)] | length == $2"
}
rollout_is() { # FLEET STATE GENERATION
        sqmgrctl status --json |
                jq -e ".fleets[] | select(.name == \"$1\") | .rollout.state == \"$2\" and .generation == $3"
}

# Starts a fleet with running jobs, a scaled fleet, a fleet whose workers are quiet with jobs, a stopped fleet, and a
# fleet whose rollout waits for a worker that does not boot.
configure_many() {
        local name
        {
                echo "command = $(stub_command) -j $folder/ledger"
                echo 'active_process_count = 3'
                echo 'ready_after = 500ms'
                for name in scaled held stopped rolling; do
                        mkdir -p "$folder/steer.$name"
                        echo "[fleet:$name]"
                        echo "command = $stub -u $folder/redis.sock -b 200 -d $folder/steer.$name"
                        echo "log = $folder/workers.log"
                        echo 'active_process_count = 2'
                        echo 'boot_timeout = 10min'
                        echo 'ready_after = 500ms'
                done
        } | configure
}

begin_many() {
        local name
        : >ledger
        configure_many
        start_old
        for name in scaled held stopped rolling; do
                wait_until 30 ready_count_is $name 2
        done
        wait_until 20 ready_count_is default 3
        start_feeding

        sqmgrctl scale scaled 3
        wait_until 20 ready_count_is scaled 3
        echo 2 >steer.held/busy
        wait_until 20 held_fleet_is_busy
        sqmgrctl quiet held
        sqmgrctl stop stopped
        touch steer.rolling/hang
        sqmgrctl restart rolling
        wait_until 30 all_fleets_as_expected
}
held_fleet_is_busy() {
        sqmgrctl status --json | jq -e '.fleets[] | select(.name == "held") | all(.workers[]; .busy == 2)'
}
all_fleets_as_expected() {
        sqmgrctl status --json | jq -e '[.fleets[] | {(.name): .}] | add |
                .default.active == 3 and .scaled.active == 3 and
                (.held.workers | length == 2 and all(.[]; .state == "quiet")) and
                .stopped.state == "stopped" and (.stopped.workers | length == 0) and
                .rolling.rollout.state == "running" and .rolling.starting > 0 and .rolling.active == 2'
}

finish_with_many() {
        rm steer.rolling/hang steer.held/busy
        wait_until 30 rollout_is rolling "done" 2
        wait_until 30 ready_count_is rolling 2
        sqmgrctl start held
        sqmgrctl start stopped
        wait_until 30 ready_count_is held 2
        wait_until 30 ready_count_is stopped 2
        ready_count_is scaled 3

        # The new sqmgrctl shows what the new sqmgr alone has.
        [ "$("$next/main/sqmgrctl" status --json | jq '.fleets[0].next')" = 7 ]
        sqmgrctl restart --wait=drained --timeout 300s
        rollout_is default "done" 2
        rollout_is scaled "done" 2
        rollout_is rolling "done" 3
        ready_count_is scaled 3
}

@test "upgrade: orders, rollouts and workers are unchanged, by re-exec, by signal and by death" {
        start_redis
        for way in reexec signal death; do
                for ((round = 0; round < ${SQMGR_LONG:+5}+1; round++)); do
                        begin_many
                        stood=$(fleet_summary) were=$(processes) pid=$sqmgr_pid
                        [ "$(wc -l <<<"$were")" -ge 11 ]
                        "upgrade_by_$way"
                        [ "$way" = death ] || [ "$sqmgr_pid" = "$pid" ]
                        [ "$(sqmgrctl status --json | jq .pid)" = "$sqmgr_pid" ]
                        wait_until 20 fleet_summary_is "$stood" || diff <(echo "$stood") <(fleet_summary)
                        [ "$(processes)" = "$were" ]
                        finish_with_many
                        balance
                        end_all
                done
        done
}

@test "upgrade: before the re-exec the new sqmgrctl restarts fleets of the old sqmgr" {
        start_redis
        configure <<END
command = $(stub_command)
active_process_count = 2
ready_after = 500ms
END
        start_old
        wait_until 20 ready 2
        run -0 "$next/main/sqmgrctl" restart --wait=drained
        [[ $output == *'default: restart to generation 2, 2 workers to replace'*'default: restart done; generation 2 is current'* ]]
        run -0 "$next/main/sqmgrctl" reload
        fleet_is '.generation == 2 and .rollout.state == "done" and (has("next") | not)'
}

@test "upgrade: at any moment of a restart under load, which completes" {
        start_redis
        way=reexec
        delays='0 0.6 1.5'
        [ -z "${SQMGR_LONG-}" ] || delays=$(seq 0 0.1 5)
        for delay in $delays; do
                : >ledger
                configure <<END
command = $(stub_command) -j $folder/ledger
active_process_count = 4
ready_after = 500ms
restart_surge = 1
END
                start_old
                wait_until 20 ready 4
                start_feeding
                sqmgrctl restart
                # Varies the moment.
                sleep "$delay"
                "upgrade_by_$way"
                # A takeover forgets a restart that is done.
                wait_until 40 fleet_is '.rollout.state != "running" and .generation == 2 and .rollout.outdated == 0'
                wait_until 40 fleet_is '(.workers | length) == 4 and all(.workers[]; .ready and .generation == 2)'
                fleet_is '.crash.count == 0'
                balance
                end_all
                way=$([ "$way" = reexec ] && echo death || echo reexec)
        done
}

@test "upgrade: real Sidekiq workers under load keep their jobs, and a later restart replaces them" {
        start_redis
        configure <<END
command = $(sidekiq_command 5)
active_process_count = 3
ready_after = 1s
END
        for way in reexec ${SQMGR_LONG:+death}; do
                for ((round = 0; round < ${SQMGR_LONG:+5}+1; round++)); do
                        start_old
                        wait_until 60 ready 3
                        were=$(processes) old=$(worker_pids)
                        rm -f release
                        enqueue 6 Hold "$folder/release"
                        enqueue 144 Sleep 1
                        wait_until 20 has_started 15
                        "upgrade_by_$way"
                        [ "$(processes)" = "$were" ]
                        wait_until 30 ready 3
                        [ "$(processes)" = "$were" ]
                        sqmgrctl restart
                        touch release
                        wait_until 90 fleet_is '.rollout.state == "done" and .active == 3 and .rollout.outdated == 0'
                        wait_until 60 gone "$old"
                        wait_until 60 has_done 150
                        [ "$(jobs_started)" = 150 ]
                        [ "$(jobs_run_twice)" = 0 ]
                        end_all
                done
        done
}

state_version() { head -c 9 state | tail -c 1 | od -An -tu1 | xargs; }
state_is_of_version() { [ "$(state_version)" = "$1" ]; }

@test "downgrade: the older version cannot read the state: re-exec is refused, and a fresh start finds the workers" {
        start_redis
        configure <<END
command = $(stub_command)
active_process_count = 2
END
        install_program "$next/main/sqmgr"
        start_installed
        wait_until 20 ready 2
        sqmgrctl scale default 3
        wait_until 20 ready 3
        state_is_of_version 2
        were=$(processes)
        install_program "$SQMGR_BUILD/sqmgr"
        run -1 sqmgrctl reexec
        [[ $output == *"'$folder/state' was written by a later version of sqmgr"* ]]
        not runs_the_installed
        [ "$(processes)" = "$were" ]
        fleet_is '.target == 3'

        record "$(all_pids)"
        kill_sqmgr
        : >sqmgr.log
        start_installed
        grep -qF "the state is lost (reason: '$folder/state' was written by a later version of sqmgr)" sqmgr.log
        grep -q 'found and adopted 3 workers' sqmgr.log
        fleet_is '.target == 2'
        wait_until 30 fleet_is '(.workers | length) == 2 and all(.workers[]; .ready)'
        run ! grep -qE 'default/[0-9]+ .* started' sqmgr.log
        state_is_of_version 1

        were=$(processes)
        upgrade_by_reexec
        wait_until 20 ready 2
        [ "$(processes)" = "$were" ]
        wait_until 20 state_is_of_version 2
}

@test "the next version keeps the interface, takes each ini of this one, and has a key that this one refuses" {
        "$next/source/tests/check-interface" "$next/source"
        # The other way round, what clients of the next version need is missing.
        mkdir -p old/src old/tests
        cp -r "$top/src/wire" old/src
        cp -r "$next/source/tests/interface" old/tests
        sed -i 's/^# Version 1\./# Version 2./' old/src/wire/org.sqmgr.Control.varlink
        run -1 "$top/tests/check-interface" old
        [[ $output == *'Fleet.next is gone'*'Reload(next) is gone'* ]]

        SQMGR=$next/main/sqmgr LIST_KEYS=$SQMGR_BUILD/tests/unit/list_keys "$top/tests/check-ini"
        configure <<<"command = $(stub_command)"$'\nnext_key = 7min'
        "$next/main/sqmgr" --check-config -c sqmgr.ini
        run -78 sqmgr --check-config -c sqmgr.ini
        [[ $output == *"unknown key 'next_key'"* ]]
}
