#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Templates and sqmgr die, freeze and run short of resources: no worker is signaled or unknown, and the count is kept.
# seconds: 90
# promises: P1 P3 P4 P8
# shellcheck disable=SC2030,SC2031
load preload

@test "preload: a killed template is replaced, its workers keep running, and another fork is made" {
        start_fleet 3
        old=$(worker_pids) template=$(template)
        enqueue 1 Hold "$folder/release"
        wait_until 20 has_started 1
        kill -KILL "$template"
        wait_until 60 other_template_than "$template"
        [ "$(worker_pids)" = "$old" ]
        event_count_is template-failed 1
        sqmgrctl events | grep -q "template of fleet 'default' (pid $template) was killed by signal 9"
        sqmgrctl metrics | grep -qx 'sqmgr_template_failures_total{fleet="default"} 1'
        touch release
        wait_until 20 has_done 1
        kill_worker "${old%% *}" 3
        fleet_is 'all(.workers[]; .forked) and .template.refused == null'
        all_are_known
}

@test "preload: a template that never finishes loading is given up after three tries, and reported" {
        make_jobs
        make_release 1
        start_fleet 2 'boot_timeout = 6s'
        old=$(worker_pids)
        make_release 2 'sleep'
        run -1 sqmgrctl restart --wait --timeout 120s
        [[ $output == *'did not load the application within boot_timeout'* ]]
        [ "$(worker_pids)" = "$old" ]
        fleet_is '.rollout.state == "halted" and .template.kept_generation == 1'
        wait_until 20 all_are_known
}

@test "preload: the ledger records a fork while the state cannot be written" {
        start_fleet 2
        wait_until 10 block "$folder/state.new"
        victim=$(fleet '.workers[0].pid')
        kill -KILL "$victim"
        wait_until 20 fleet_is ".active == 2 and all(.workers[]; .forked and .pid != $victim)"
        grep -q 'cannot write the state file' sqmgr.log
        old=$(worker_pids)
        record_and_kill
        rmdir "$folder/state.new"
        start_sqmgr
        [ "$(worker_pids)" = "$old" ]
}

@test "preload: if neither ledger nor state can be written for boot_timeout, a dead worker boots separately" {
        mkdir -p "$folder/state.starts/taken"
        start_fleet 2 'boot_timeout = 8s'
        grep -q "cannot create the ledger '$folder/state.starts'" sqmgr.log
        template=$(template)
        wait_until 10 block "$folder/state.new"
        kill -KILL "$(fleet '.workers[0].pid')"
        wait_until 40 fleet_is '.active == 2 and ([.workers[] | select(.forked | not)] | length) == 1'
        fleet_is '.template.refused | startswith("the state file cannot be written")'
        event_count_is preload-refused 1
        rmdir "$folder/state.new"
        wait_until 20 fleet_is '.template.refused == null'
        kill -KILL "$(fleet '.workers[] | select(.forked | not) | .pid')"
        wait_until 40 fleet_is '.active == 2 and all(.workers[]; .forked)'
        [ "$(template)" = "$template" ]
}

@test "preload: after a kill -9 of sqmgr a frozen template is found and ended; other templates exit by themselves" {
        start_fleet 3
        old=$(worker_pids) template=$(template)
        enqueue 3 Hold "$folder/release"
        wait_until 20 has_started 3
        record_and_kill
        wait_until 10 gone "$template"
        start_sqmgr
        wait_until 60 other_template_than "$template"
        [ "$(worker_pids)" = "$old" ]
        frozen=$(template)
        kill -STOP "$frozen"
        record_and_kill
        alive "$frozen"
        start_sqmgr
        wait_until 20 gone "$frozen"
        wait_until 60 template_ready
        [ "$(worker_pids)" = "$old" ]
        fleet_is 'all(.workers[]; .forked)'
        kill_worker "${old%% *}" 3
        touch release
        wait_until 20 has_done 2
        [ "$(jobs_started)" = 3 ]
        [ "$(jobs_run_twice)" = 0 ]
        all_are_known
}

loads_begun() { [ "$(wc -l <loading)" = "$1" ]; }

@test "preload: kill -9 of sqmgr while the template of a restart loads: the next sqmgr loads another and completes the restart" {
        start_fleet 2
        old=$(worker_pids)
        make_release 2 "File.write('$folder/loading', \"#{Process.pid}\\n\", mode: 'a')
                sleep 0.05 until File.exist?('$folder/load')"
        sqmgrctl restart
        wait_until 30 loads_begun 1
        record_and_kill
        start_sqmgr
        wait_until 30 loads_begun 2
        [ "$(worker_pids)" = "$old" ]
        template_is '.state == "loading" and .generation == 2'
        touch load
        wait_until 60 fleet_is '.rollout.state == "done" and .active == 2'
        [ "$(releases 2)" = 2:2 ]
        wait_until 20 gone "$(head -n 1 loading)"
        event_count_is template-failed 0
        wait_until 60 gone "$old"
        wait_until 20 all_are_known
}

# Each worker records its start.
noting='Sidekiq.configure_server { |config| config.on(:startup) { File.write("../began", "#{Process.pid}\n", mode: "a") } }'
began() { sort -un began | xargs; }
was_known() { grep -qx "$1" known || grep -qE "default/[0-9]+ \(pid $1\) " sqmgr.log; } # PID
queue_is_empty() { [ "$(redis llen queue:default)" = 0 ]; }

@test "preload: repeated kill -9 of sqmgr during fork requests: every worker is known" {
        make_jobs
        make_release 1 "$noting"
        start_fleet 4
        enqueue 200 Sleep 0.3
        for round in {1..15}; do
                read -r -a pids <<<"$(worker_pids)"
                # Up to three, if as many exist.
                kill -KILL "${pids[@]:0:$((1 + round % 3))}" || true
                # Varies the moment.
                [ $((round % 4)) = 0 ] || sleep "0.$(((round * 37) % 40))"
                record_and_kill
                start_sqmgr
                worker_pids | tr ' ' '\n' >>known
                [ "$(fleet '.workers | length')" -le 4 ]
                [ "$(marked_pids | wc -w)" -le 6 ]
                [ $((round % 3)) != 0 ] || wait_until 60 ready 4
        done
        wait_until 60 ready 4
        wait_until 60 template_ready
        wait_until 20 all_are_known
        [ "$(fleet '.workers | length')" = 4 ]
        # Each worker that began was reported as a worker.
        for pid in $(began); do
                was_known "$pid" || { echo "nobody knew $pid" && false; }
        done
        wait_until 60 queue_is_empty
        [ "$(jobs_run_twice)" = 0 ]
        echo "# 15 rounds: $(began | wc -w) workers began, $(marked_pids | wc -w) processes at the end" >&3
}

@test "preload: if neither ledger nor state can be written, a fork waits idle, and continues once one can" {
        needs_namespace --mount
        mkdir "$folder/state"
        # shellcheck disable=SC2034
        sqmgr_lines="state_file = $folder/state/state"
        start_redis
        make_jobs
        make_release 1 "$noting"
        configure_preload 'active_process_count = 2'
        launch sqmgr "${unshare[@]}" --mount sh -c "mount -t tmpfs -o size=80k,mode=755 none $folder/state && mkdir -p $folder/state/state.starts/taken && exec ${plain[*]} sqmgr -c $folder/sqmgr.ini"
        sqmgr_pid=$!
        wait_until 60 ready 2
        old=$(worker_pids)
        disk=/proc/$sqmgr_pid/root$folder/state
        # A non-empty directory is at the path that it would write.
        wait_until 10 block "$disk/state.new"
        mkdir "$disk/state.new/taken"
        kill -KILL "${old%% *}"
        wait_until 20 fleet_is 'any(.workers[]; .waits_for_code == "state")'
        grep -q 'cannot write the state file' sqmgr.log
        new=$(fleet '.workers[] | select(.waits_for_code == "state") | .pid')
        sqmgrctl why "$(fleet '.workers[] | select(.waits_for_code == "state") | .id')" | grep -q 'waits for its record in the state file'
        # It does nothing while another worker takes a job and runs it.
        enqueue 1 Hold "$folder/release"
        wait_until 20 has_started 1
        [ "$(began)" = "$old" ]
        fleet_is ".workers[] | select(.pid == $new) | .waits_for_code == \"state\" and .state == \"starting\""
        rmdir "$disk/state.new/taken" "$disk/state.new"
        wait_until 30 ready 2
        [ "$(worker_pids | tr ' ' '\n' | grep -cx "$new")" = 1 ]
        grep -q 'can be written again' sqmgr.log
        touch release
        all_are_known
}

reexecs_are() { [ "$(grep -c 'has taken over' sqmgr.log)" = "$1" ]; }

@test "preload: a re-exec keeps the template, and forks keep running" {
        start_fleet 3
        old=$(worker_pids) template=$(template)
        run -0 sqmgrctl reexec
        [ "$(template)" = "$template" ]
        [ "$(worker_pids)" = "$old" ]
        kill_worker "${old%% *}" 3
        [ "$(template)" = "$template" ]
        kill -USR2 "$sqmgr_pid"
        wait_until 20 reexecs_are 2
        kill_worker "$(fleet '.workers[0].pid')" 3
        [ "$(template)" = "$template" ]
        fleet_is 'all(.workers[]; .forked)'
        alive "${old##* }"
        event_count_is template-failed 0
        count=$(find "/proc/$sqmgr_pid/fd" -type l | wc -l)
        reexec_ready 3
        [ "$(find "/proc/$sqmgr_pid/fd" -type l | wc -l)" -le $((count + 2)) ]
        [ "$(template)" = "$template" ]
        all_are_known
        # It is still a child, so its exit is noticed.
        kill -KILL "$template"
        wait_until 20 grep -q "template of fleet 'default' (pid $template) was killed by signal 9" sqmgr.log
        wait_until 60 template_ready
}

job_shown() { [ "$(sqmgrctl jobs --json | jq '.jobs | length')" = 1 ]; }

@test "preload: the job of a killed fork is requeued" {
        start_fleet 2 'rescue_jobs = requeue'
        enqueue 1 Hold "$folder/release"
        wait_until 20 has_started 1
        wait_until 30 job_shown
        pid=$(sqmgrctl jobs --json | jq '.jobs[0].pid')
        fleet_is ".workers[] | select(.pid == $pid) | .forked"
        kill_worker "$pid" 2
        wait_until 20 event_count_is job-rescued 1
        touch release
        wait_until 30 has_done 1
        [ "$(redis hvals ledger:started)" = 2 ]
}
