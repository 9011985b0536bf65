#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# With `preload = yes` the application is loaded once, and real Sidekiq workers are forked from it.
# seconds: 80
# promises: P2
load preload

@test "preload: workers are forks, children of sqmgr, with their own environment markers; status shows it; kill -9" {
        start_fleet 3
        template=$(template)
        template_is 'keys == ["generation", "kept_generation", "kept_memory_bytes", "kept_seconds", "memory_bytes", "pid", "quoted", "refused", "state"] and
                .state == "ready" and .generation == 1 and .memory_bytes > 10000000 and .refused == null'
        [ "$(parent_of "$template")" = "$sqmgr_pid" ]
        fleet_is 'all(.workers[]; .forked) and (.workers | length) == 3'
        for index in 1 2 3; do
                pid=$(fleet ".workers[$index - 1].pid")
                [ "$(parent_of "$pid")" = "$sqmgr_pid" ]
                [ "$(session_of "$pid")" = "$pid" ]
                [ "$(env_of "$pid" SQMGR_WORKER)" = "default/$index" ]
                [ "$(env_of "$pid" SQMGR_INDEX)" = "$index" ]
                [ "$(env_of "$pid" SQMGR_GENERATION)" = 1 ]
                [ "$(env_of "$pid" SQMGR_FLEET)" = default ]
                [[ $(env_of "$pid" SQMGR_START) =~ ^[0-9]+$ ]]
        done
        all_are_known

        sqmgrctl status >shown
        grep -qE '^ *template: ready, generation 1, [0-9.]+ ?M' shown
        sqmgrctl why default/1 >shown
        grep -q "process $(fleet '.workers[0].pid'), generation 1, forked" shown
        sqmgrctl metrics >shown
        grep -qx 'sqmgr_template_ready{fleet="default"} 1' shown
        grep -qx 'sqmgr_template_refused{fleet="default"} 0' shown
        grep -qx 'sqmgr_template_loads_total{fleet="default"} 1' shown
        grep -qx 'sqmgr_template_failures_total{fleet="default"} 0' shown
        grep -qx 'sqmgr_template_forks_total{fleet="default"} 3' shown
        grep -qE '^sqmgr_template_memory_bytes\{fleet="default"\} [0-9.e+]{8,}$' shown
        event_count_is template-loading 1
        event_count_is template-ready 1
        run sqmgrctl doctor
        run ! grep preload <<<"$output"

        victim=$(fleet '.workers[1].pid')
        kill_worker "$victim" 3
        [ "$(template)" = "$template" ]
        [ "$(forks)" = 4 ]
        fleet_is 'all(.workers[]; .forked)'
        [ "$(env_of "$(fleet '.workers[1].pid')" SQMGR_WORKER)" = default/2 ]
        event_count_is template-loading 1
        [ "$(releases 3)" = 1:3 ]
        all_are_known
}

@test "preload: scaling up and down; doctor finds a missing worker; quiet ends the template, start loads another" {
        start_fleet 1
        run sqmgrctl doctor
        [[ $output == *'preload with one worker shares no memory'* ]]
        template=$(template)
        sqmgrctl scale default 4
        wait_until 30 ready 4
        [ "$(forks)" = 4 ]
        run sqmgrctl doctor
        [[ $output != *'preload with one worker'* ]]
        sqmgrctl scale default 2
        fleet_is '[.workers[] | select(.state == "active")] | length == 2'
        [ "$(template)" = "$template" ]
        all_are_known

        sqmgrctl quiet default
        wait_until 30 fleet_is '(.workers | length) == 0 and .template == null'
        wait_until 10 gone "$template"
        [ -z "$(marked_pids)" ]
        sqmgrctl start default
        wait_until 60 ready 2
        other_template_than "$template"
        all_are_known

        # All exit with sqmgr.
        kill -TERM "$sqmgr_pid"
        wait_until 30 gone "$sqmgr_pid"
        [ -z "$(marked_pids)" ]
}

writes_to() { [ "$(readlink "/proc/$1/fd/1")" = "$2" ]; } # PID FILE

@test "preload: a log rotated by renaming: the next fork writes to the new file" {
        start_fleet 2
        old=$(worker_pids)
        mv workers.log workers.log.1
        kill_worker "${old%% *}" 2
        new=$(fleet ".workers[] | select(.pid != ${old##* }) | .pid")
        writes_to "$new" "$folder/workers.log"
        writes_to "${old##* }" "$folder/workers.log.1"
        grep -q "pid=$new " workers.log
        run ! grep -q "pid=$new " workers.log.1
        # The log tail is read from there.
        redis lpush queue:default '{"class":"Tell","args":[],"jid":"1","queue":"default","retry":false}'
        kill -ABRT "$new"
        wait_until 30 sh -c "grep -A1 '(pid $new) was killed by signal 6 ' sqmgr.log | grep -q '^    | '"
}

# Runs sqmgr as an unprivileged user without a passwd entry.
start_as_other() { # COUNT COMMAND [LINE...]
        [ "$(id -u)" = 0 ] || skip 'not root'
        user=$((2000000 + $$))
        start_redis
        make_jobs
        make_release 1
        configure_preload "active_process_count = $1" "${@:3}"
        set_line command "$2"
        chmod 777 redis.sock
        chown "$user" "$folder"
        rm -f workers.log
        # A template also loads the file from where this user can read it.
        mkdir -p bin/src/preload
        copy_programs bin
        cp "$top/src/preload/sqmgr-preload.rb" bin/src/preload/
        launch sqmgr setpriv --reuid "$user" --clear-groups "$folder/bin/sqmgr" -c "$folder/sqmgr.ini"
        sqmgr_pid=$!
        wait_until 10 sqmgrctl ping
        wait_until 60 ready "$1"
}

# bats test_tags=root
@test "preload: without root, through bundle exec below a shell, and through a binstub" {
        echo 'gem "sidekiq"' >Gemfile
        printf '%s\n' '#!/usr/bin/env ruby' 'load Gem.bin_path("sidekiq", "sidekiq")' >binstub
        chmod 755 binstub
        start_as_other 2 "sh -c 'BUNDLE_GEMFILE=$folder/Gemfile bundle exec sidekiq -r ./app.rb -c 1; exit \$?'"
        fleet_is 'all(.workers[]; .forked) and .template.refused == null'
        for pid in $(worker_pids); do
                [ "$(parent_of "$pid")" = "$sqmgr_pid" ]
                [ "$(env_of "$pid" SQMGR_WORKER | cut -d/ -f1)" = default ]
                [ "$(stat -c %u "/proc/$pid")" = "$user" ]
        done
        [ "$(releases 2)" = 1:2 ]
        kill_worker "$(fleet '.workers[0].pid')" 2
        # Its shell exits with it.
        shell=$(parent_of "$(template)")
        kill -KILL "$(template)"
        wait_until 20 gone "$shell"
        wait_until 60 template_ready
        other_template_than 0
        shell=$(parent_of "$(template)")
        set_line command "$folder/binstub -r ./app.rb -c 1"
        sqmgrctl reload
        wait_until 20 gone "$shell"
        run -0 sqmgrctl restart --wait=drained --timeout 120s
        fleet_is 'all(.workers[]; .forked) and .template.refused == null'
        [ "$(releases 2)" = 1:2 ]
        wait_until 20 all_are_known
}

# bats test_tags=root
@test "preload: at the process limit a fork waits, is reported, and counts as no failure" {
        start_as_other 2 'sidekiq -r ./app.rb -c 1'
        template=$(template)
        setpriv --reuid "$user" --clear-groups prlimit --pid "$template" --nproc=70:
        for ((i = 0; i < 70; i++)); do
                launch other setpriv --reuid "$user" --clear-groups sleep 1000
                others+=($!)
        done
        others_run() { [ "$(pgrep -c -u "$user" -x sleep)" = 70 ]; }
        wait_until 20 others_run
        kill -KILL "$(fleet '.workers[0].pid')"
        wait_until 30 fleet_is '.waits_for_code == "fork"'
        sqmgrctl status | grep -q 'waits for memory or processes to fork a worker. Check LimitNPROC='
        fleet_is '(.workers | length) == 1 and .template.state == "ready" and .template.refused == null'
        # Tried more than three times by now, without a failure.
        enqueue 1 Sleep 6
        wait_until 60 has_done 1
        fleet_is '.waits_for_code == "fork" and .template.refused == null'
        event_count_is template-failed 0
        kill "${others[@]}"
        wait_until 60 ready 2
        [ "$(template)" = "$template" ]
        event_count_is preload-refused 0
        all_are_known
}
