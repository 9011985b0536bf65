#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# `sqmgrctl rollback`: real Sidekiq workers return to the previous release within seconds, from its template in memory.
# seconds: 70
# promises: P1 P2
load preload

# Restarts to release 2, with the template of release 1 kept.
start_release_2() { # COUNT [LINE...]
        start_fleet "$@"
        old_template=$(template)
        make_release 2
        sqmgrctl restart --wait --timeout 120s
        [ "$(releases "$1")" = "2:$1" ]
        alive "$old_template"
        template_is '.generation == 2 and .kept_generation == 1 and .kept_memory_bytes > 10000000 and
                .kept_seconds > 500 and .kept_seconds <= 600'
        sqmgrctl status | grep -qE "template of generation 1 kept, [0-9.]+M, for [0-9]+(m|min|s)[^:]*: 'sqmgrctl rollback' returns to it"
}

# Enqueues jobs until the file named stop exists, and writes a line for each.
load_jobs() {
        (until [ -e stop ]; do
                enqueue 4 Tell /dev/null >/dev/null
                printf '%s\n' 1 2 3 4 >>enqueued
        done) 3>&- 9>&- &
        loader=$!
}

@test "rollback: over in 2 s under load, no job lost; kill -9 is replaced from the old template; restart ends it" {
        start_release_2 3
        before=$(jobs_done)
        load_jobs
        wait_until 30 has_done "$((before + 4))"
        begun=$(date +%s%N)
        run -0 sqmgrctl rollback --wait --timeout 60s
        took=$((($(date +%s%N) - begun) / 1000000))
        echo "took $took ms" >&2
        [ "$took" -lt 20000 ] # 2 s on an idle machine
        [[ $output == *'rolled back from generation 2 to 1, 3 workers replaced'* ]]
        fleet_is '.rollout.rolled_back == 2 and .rollout.generation == 1 and .rollout.state == "aborted"'
        [[ $(fleet .rollout.error) == 'rolled back to generation 1 by '* ]]
        fleet_is '[.workers[] | select(.state == "active" and .generation == 1 and .forked)] | length == 3'
        touch stop
        wait "$loader"
        wait_until 60 has_done "$((before + $(wc -l <enqueued)))"
        [ "$(jobs_run_twice)" = 0 ]
        [ "$(template)" = "$old_template" ]
        [ "$(releases 3)" = 1:3 ]

        # The directory leads to release 2 all the time.
        [ "$(readlink current)" = 2 ]
        kill_worker "$(fleet '[.workers[] | select(.state == "active")][0].pid')" 3
        [ "$(releases 3)" = 1:3 ]
        sqmgrctl status >shown
        grep -q 'rolled back from generation 2 to 1; runs from the template in memory' shown
        grep -q "restart the fleet: sqmgrctl -s .* restart default" shown
        sqmgrctl metrics >shown
        grep -qx 'sqmgr_fleet_rolled_back{fleet="default"} 1' shown
        run -1 sqmgrctl doctor
        [[ $output == *'rolled back from generation 2 to 1'* ]]

        # It can be ordered twice.
        run -0 sqmgrctl rollback default --wait
        [[ $output == *'rolled back from generation 2 to 1'* ]]

        make_release 3
        run -0 sqmgrctl restart --wait --timeout 120s
        [ "$(releases 3)" = 3:3 ]
        fleet_is '.rollout.rolled_back == null and .template.kept_generation == 1'
}

@test "rollback: ends a running restart, whose --wait exits with 1; the return outlives a re-exec and a kill -9 of sqmgr" {
        start_fleet 2
        make_release 2 "sleep 0.05 until File.exist?('$folder/load')"
        sqmgrctl restart --wait --timeout 120s >waited 2>&1 3>&- &
        waiter=$!
        wait_until 30 template_is '.state == "loading" and .kept_generation == 1'
        sqmgrctl rollback --wait --timeout 60s
        status=0
        wait "$waiter" || status=$?
        [ "$status" = 1 ]
        grep -q 'restart aborted: rolled back to generation 1 by' waited
        touch load
        [ "$(releases 2)" = 1:2 ]

        sqmgrctl reexec
        fleet_is '.rollout.rolled_back == 2'
        kill_worker "$(fleet '.workers[0].pid')" 2
        [ "$(releases 2)" = 1:2 ]

        # The template dies with sqmgr, and the command would start release 2.
        replace_sqmgr 2
        fleet_is '.rollout.rolled_back == 2'
        kill -KILL "$(fleet '.workers[0].pid')"
        wait_until 30 fleet_is '.waits_for_code == "rolled-back" and .active == 1'
        [ "$(ask_releases 1 | cut -d' ' -f1)" = 1 ]
        sqmgrctl status | grep -q 'rolled back from generation 2 to 1; no worker is started until the next restart'
        ln -sfn 1 current
        run -0 sqmgrctl restart --wait --timeout 120s
        [ "$(releases 2)" = 1:2 ]
}

mail_is() { sqmgrctl status --json mail | jq -e ".fleets[0] | $1" >/dev/null; }
mail_is_ready() { mail_is '.active == 1 and .starting == 0'; }

@test "rollback: without names each fleet is reported, also one that cannot return; a reload ends the rollback with a warning" {
        start_redis
        make_jobs
        make_release 1
        configure_preload 'active_process_count = 1'
        for name in mail plain; do
                sed -n '/fleet:default/,$p' "$folder/sqmgr.ini" | sed "/^\[fleet:/!b;s/default/$name/" | sed -n '1,/^active/p' >"$name"
        done
        sed -i 's/^preload = yes/preload = no/' plain
        cat mail plain >>"$folder/sqmgr.ini"
        start_ready 1
        wait_until 60 mail_is_ready
        make_release 2
        sqmgrctl restart --wait --timeout 120s default mail
        run -0 sqmgrctl rollback
        grep -qx 'default: returns from generation 2 to 1, 1 worker to replace' <<<"$output"
        grep -qx 'mail: returns from generation 2 to 1, 1 worker to replace' <<<"$output"
        [[ $output == *'plain: not rolled back: no previous release is known'* ]]
        run -0 sqmgrctl rollback --wait --timeout 60s
        [[ $output == *'default: rolled back from generation 2 to 1'*'mail: rolled back from generation 2 to 1'* ]]
        [[ $output == *'plain: not rolled back: '* ]]
        sqmgrctl rollback --json 2>/dev/null >shown
        jq -e '[.fleets[] | [.name, .state, .not_in_memory.reason]] ==
                [["default", "done", null], ["mail", "done", null], ["plain", "not_in_memory", "no_restart"]]' shown

        # The environment of all three changes.
        sed -i 's/^environment = .*/& FLAVOUR=new/' "$folder/sqmgr.ini"
        run -0 sqmgrctl reload
        [[ $output == *"fleet 'default': the rollback to generation 1 ended"*'(reason: the settings that workers are started with have changed)'* ]]
        sqmgrctl events default | grep -q 'the rollback to generation 1 ended'
        run -1 sqmgrctl doctor
        [[ $output == *'the rollback to generation 1 ended: the settings that workers are started with have changed'* ]]
        fleet_is '.rollout.state == "halted" and .rollout.rolled_back == null'
        sqmgrctl abort
        fleet_is '.rollout.state == "aborted"'
}

@test "rollback: what is not in memory is answered with what to do; exit codes" {
        start_fleet 1
        run -1 sqmgrctl rollback default
        [[ $output == *'default: no previous release is known'*"Let $folder/current (the fleet's working directory) point to the previous release"* ]]
        old_template=$(template)
        make_release 2
        sqmgrctl restart --wait --timeout 120s
        kill -KILL "$old_template"
        wait_until 20 template_is '.kept_generation == null'
        run -1 sqmgrctl rollback
        [[ $output == *"default: generation 1 is not in memory (its template has ended, as 10 minutes after a restart). Let $folder/current (the fleet's working directory) point to the previous release, then run 'sqmgrctl restart default'"* ]]
        fleet_is '.rollout.state == "done" and .rollout.rolled_back == null'
        run -1 sqmgrctl rollback --json
        [[ $output == *'not-in-memory'* ]]
        run -2 sqmgrctl rollback nosuch

        set_line preload no
        sqmgrctl reload
        sqmgrctl restart --wait=drained --timeout 120s
        run -1 sqmgrctl rollback default
        [[ $output == *'is not in memory (its workers are not forked from a template: preload = no)'* ]]
}
