#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Upgrades from the earlier build to this one under load: by re-exec, and after its death. The workers stay the same, no
# job is lost or run twice, and all orders and rollouts continue. With SQMGR_LONG=1 each is repeated many times.
# seconds: 215
# long: the next release no longer reads states of 0.1.0; package.bats upgrades from it
# promises: P1 P4
# shellcheck disable=SC2030,SC2031,SC2034
load helpers

before=$SQMGR_BUILD/../before

setup_file() {
        "$BATS_TEST_DIRNAME/build-before" "$SQMGR_BUILD/../before" 3>&-
}

install_program() { # SQMGR: its files replace the existing ones, as those of a package do
        local file
        mkdir -p "$folder/bin"
        for file in "$1"-reader "$1"-proc-reader "$1"; do
                [ -e "$file" ] || continue # the earlier build may have none
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
        install_program "$before/main/sqmgr"
        start_installed
}

needs_the_build_before() {
        [ ! -e "$before/none" ] || skip "$(cat "$before/none")"
}

# Each kind of upgrade ends with the new program running, possibly before it has a heartbeat of every worker.
upgrade_by_reexec() {
        local pid=$sqmgr_pid
        install_program "$SQMGR_BUILD/sqmgr"
        run -0 sqmgrctl reexec
        [[ $output == "sqmgr "*" has taken over (pid $pid)" ]]
        runs_the_installed
}
upgrade_by_signal() {
        install_program "$SQMGR_BUILD/sqmgr"
        kill -USR2 "$sqmgr_pid"
        wait_until 20 runs_the_installed
        wait_until 20 sqmgrctl ping
}
upgrade_by_death() {
        local pid
        record "$(all_pids)"
        kill_sqmgr
        install_program "$SQMGR_BUILD/sqmgr"
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
        sqmgrctl status --json | jq -S '[.fleets[] | {name, state, target, generation, rollout: .rollout.state,
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

        # The old sqmgrctl may still be used for a while.
        [ "$("$before/main/sqmgrctl" status --json | jq .pid)" = "$sqmgr_pid" ]
        sqmgrctl restart --wait=drained --timeout 300s
        rollout_is default "done" 2
        rollout_is scaled "done" 2
        rollout_is rolling "done" 3
        ready_count_is scaled 3
}

@test "upgrade: orders, rollouts and workers are unchanged, by re-exec, by signal and by death" {
        needs_the_build_before
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

@test "upgrade: before the re-exec the new sqmgrctl restarts fleets of the old sqmgr, with and without a terminal" {
        needs_the_build_before
        start_redis
        configure <<END
command = $(stub_command)
active_process_count = 2
ready_after = 500ms
END
        start_old
        wait_until 20 ready 2
        for ((generation = 2; generation <= 5; generation++)); do
                wait=--wait
                ((generation % 2)) || wait=--wait=drained
                if ((generation < 4)); then
                        shown=$(in_terminal 80 "sqmgrctl restart $wait; echo exit \$?")
                        [[ $shown == *'exit 0'* ]]
                else
                        shown=$(sqmgrctl restart $wait)
                fi
                grep -q "default: restart to generation $generation, 2 workers to replace" <<<"$shown"
                grep -qE '^[0-9:]{8} default/[1-4] (quiet|active|is gone)' <<<"$shown"
                grep -q "default: restart done; generation $generation is current" <<<"$shown"
                fleet_is ".generation == $generation and .rollout.state == \"done\""
        done
        # Other refusals are reported as usual.
        [[ $(in_terminal 80 "sqmgrctl restart --wait nowhere; echo exit \$?") == *"unknown fleet 'nowhere'"*'exit 2'* ]]
}

@test "upgrade: at any moment of a restart under load, which completes" {
        needs_the_build_before
        start_redis
        way=reexec
        delays='0 0.3 0.6 1 1.5 2'
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
        needs_the_build_before
        start_redis
        configure <<END
command = $(sidekiq_command 5)
active_process_count = 3
ready_after = 1s
END
        for way in reexec death; do
                for ((round = 0; round < ${SQMGR_LONG:+5}+1; round++)); do
                        start_old
                        wait_until 60 ready 3
                        were=$(processes) old=$(worker_pids)
                        enqueue 150 Sleep 1
                        wait_until 20 has_started 15
                        "upgrade_by_$way"
                        [ "$(processes)" = "$were" ]
                        not has_done 150
                        wait_until 30 ready 3
                        [ "$(processes)" = "$were" ]
                        sqmgrctl restart
                        wait_until 90 fleet_is '.rollout.state == "done" and .active == 3 and .rollout.outdated == 0'
                        wait_until 60 gone "$old"
                        wait_until 60 has_done 150
                        [ "$(jobs_started)" = 150 ]
                        [ "$(jobs_run_twice)" = 0 ]
                        end_all
                done
        done
}

@test "downgrade: the earlier build cannot read the state: re-exec is refused, and a fresh start finds the workers" {
        needs_the_build_before
        start_redis
        configure <<END
command = $(stub_command)
active_process_count = 2
END
        install_program "$SQMGR_BUILD/sqmgr"
        start_installed
        wait_until 20 ready 2
        sqmgrctl scale default 3
        wait_until 20 ready 3
        [ "$(state_version)" = 10 ]
        were=$(processes)
        install_program "$before/main/sqmgr"
        run -1 sqmgrctl reexec
        [[ $output == *"'$folder/state' was written by a later version of sqmgr"* ]]
        not runs_the_installed
        [ "$(processes)" = "$were" ]
        fleet_is '.target == 3'

        record "$(all_pids)"
        kill_sqmgr
        : >sqmgr.log
        start_installed
        grep -qF "the state is lost: '$folder/state' was written by a later version of sqmgr" sqmgr.log
        wait_until 20 grep -q 'adopted 3 workers' sqmgr.log
        fleet_is '.target == 2'
        wait_until 30 fleet_is '(.workers | length) == 2 and all(.workers[]; .ready)'
        run ! grep -qE 'default/[0-9]+ .* started' sqmgr.log
        [ "$(state_version)" = 1 ]

        were=$(processes)
        upgrade_by_reexec
        wait_until 20 ready 2
        [ "$(processes)" = "$were" ]
        wait_until 20 state_is_of_version 10
}
state_version() { head -c 9 state | tail -c 1 | od -An -tu1 | xargs; }
state_is_of_version() { [ "$(state_version)" = "$1" ]; }

wait_in_queue() { # COUNT: jobs that the stubs do not run
        redis eval "for i = 1, $1 do redis.call('lpush', 'queue:default', ARGV[1]) end" 0 \
                "{\"class\":\"Mail\",\"enqueued_at\":$(date +%s)}"
}

@test "upgrade: an autoscaled count of the new build survives re-exec and death; a downgrade is refused meanwhile" {
        needs_the_build_before
        start_redis
        configure <<END
command = $(stub_command)
active_process_count = 1
END
        start_old
        wait_until 20 ready 1
        were=$(processes)
        sed -i 's/^active_process_count = .*/&\nactive_process_max = 3\nlatency_target = 5s/' sqmgr.ini
        upgrade_by_reexec
        [ "$(processes)" = "$were" ]
        # All their threads are busy.
        echo 5 >steer/busy
        wait_until 20 fleet_is '.workers[0].busy == 5'
        wait_in_queue 500
        wait_until 60 fleet_is '.target == 3 and .active == 3'
        # From now on only the state records the count of three.
        redis del queue:default
        were=$(processes)
        for way in reexec death; do
                "upgrade_by_$way"
                fleet_is '.target == 3'
                wait_until 20 ready 3
                [ "$(processes)" = "$were" ]
        done
        fleet_is '.target == 3'

        sed -i '/^active_process_max/d; /^latency_target/d' sqmgr.ini
        install_program "$before/main/sqmgr"
        run -1 sqmgrctl reexec
        [[ $output == *"'$folder/state' was written by a later version of sqmgr"* ]]
        [ "$(processes)" = "$were" ]
        fleet_is '.target == 3'
}
