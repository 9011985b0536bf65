#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A reload applies all settings that can change, and ends no worker for that.
# seconds: 60
# promises: P4
# shellcheck disable=SC2030,SC2031
load helpers

two_stubs() {
        start_fleet 2
}

fleet_named() { sqmgrctl status --json | jq -e ".fleets[] | select(.name == \"$1\") | $2" >/dev/null; } # NAME FILTER
fleets() { sqmgrctl status --json | jq -r '[.fleets[].name] | join(" ")'; }
fleets_are() { [ "$(fleets)" = "$1" ]; }

add_fleet() { # NAME
        cat >>sqmgr.ini <<END
[fleet:$1]
command = $(stub_command)
ready_after = 500ms
END
}

@test "reload: a changed command or environment marks workers outdated; a restart applies it" {
        two_stubs
        before=$(worker_pids)
        echo 'environment = COLOUR=red PASSWORD=hunter2' >>sqmgr.ini
        run -0 sqmgrctl reload
        [[ $output == *"[fleet:default] environment: none -> *** (for new workers only; run 'sqmgrctl restart' to apply to all)"* ]]
        not grep -q hunter2 sqmgr.log
        fleet_is 'all(.workers[]; .outdated and .state == "active") and .rollout.state == "none"'
        [ "$(worker_pids)" = "$before" ]

        # A second reload changes and reports nothing.
        run -0 sqmgrctl reload
        [ "$output" = "reloaded; nothing changed" ]

        # A crashed worker restarts with the current settings; no other worker
        # exits.
        victim=${before%% *}
        kill -KILL "$victim"
        wait_until 20 fleet_is '[.workers[] | select(.state == "active" and (.outdated | not))] | length == 1'
        fresh=$(fleet '.workers[] | select(.outdated | not) | .pid')
        grep -qz '^COLOUR=red$' "/proc/$fresh/environ"
        alive "${before##* }"

        run -0 sqmgrctl restart --wait=drained --timeout 300s
        gone "$before"
        fleet_is 'all(.workers[]; .outdated | not)'
}

@test "reload: a reverted edit leaves no worker outdated, and no generation without workers is shown" {
        start_fleet 2
        edit() { # VALUE
                sed -i '/^environment = /d' sqmgr.ini
                [ -z "$1" ] || sed -i "s/^active_process_count = .*/&\nenvironment = RAILS_ENV=$1/" sqmgr.ini
                sqmgrctl reload
        }
        edit staging
        fleet_is 'all(.workers[]; .outdated) and .reload_outdated == 2 and .generation == 1'
        [[ $(sqmgrctl status) == *"generation 1, 2 with settings from before a reload. To apply the new ones, run 'sqmgrctl restart default'"* ]]
        edit ''
        fleet_is 'all(.workers[]; .outdated | not) and .reload_outdated == 0 and .generation == 1'
        # Also after a restart of sqmgr, and with a worker that was started
        # meanwhile.
        edit staging
        kill -KILL "$(fleet '.workers[0].pid')"
        wait_until 20 fleet_is '[.workers[] | select(.state == "active" and (.outdated | not))] | length == 1'
        fleet_is '.generation > 1'
        sqmgrctl reexec
        edit ''
        fleet_is '[.workers[] | select(.outdated)] | length == 1'
        fleet_is '.workers[] | select(.generation == 1) | .outdated | not'
        run -0 sqmgrctl restart --wait=drained --timeout 300s
        fleet_is 'all(.workers[]; .outdated | not) and .reload_outdated == 0'
}

@test "a command that changed while no sqmgr ran marks workers outdated" {
        two_stubs
        before=$(worker_pids)
        record "$before"
        kill_sqmgr
        echo 'before_start = true' >>sqmgr.ini
        start_sqmgr
        [ "$(worker_pids)" = "$before" ]
        fleet_is 'all(.workers[]; .outdated)'
        run -0 sqmgrctl restart --wait=drained --timeout 300s
        fleet_is 'all(.workers[]; .outdated | not) and (.workers | length) == 2'
}

@test "reload: an added fleet is started, a removed fleet is drained and forgotten" {
        two_stubs
        before=$(worker_pids)
        cp sqmgr.ini one.ini
        add_fleet second
        run -0 sqmgrctl reload
        [ "$output" = "[fleet:second]: added; its workers are being started" ]
        wait_until 20 fleet_named second '.workers[0].ready'
        second=$(sqmgrctl status --json | jq '.fleets[1].workers[0].pid')

        # With a job, it stays until the job is done.
        echo 1 >"steer/busy.$second"
        wait_until 20 fleet_named second '.workers[0].busy == 1'
        cp one.ini sqmgr.ini
        run -0 sqmgrctl reload
        [ "$output" = "[fleet:second]: removed; its workers are being drained" ]
        wait_until 20 fleet_named second '.workers[0].state == "quiet" and .state == "stopped" and .target == 0'
        wait_ticks 12
        alive "$second"
        run -1 sqmgrctl start second
        [[ $output == *"fleet 'second' is no longer configured"* ]]
        run -1 sqmgrctl scale second 2
        run -0 sqmgrctl reload
        [ "$output" = "reloaded; nothing changed" ]
        rm "steer/busy.$second"
        wait_until 30 fleets_are default
        gone "$second"
        run -2 sqmgrctl start second
        [ "$(worker_pids)" = "$before" ]

        # Back again.
        add_fleet second
        sqmgrctl reload
        wait_until 20 fleet_named second '.workers[0].ready'
}

@test "reload: a removed and drained fleet comes back as a new one, for example with another Redis" {
        two_stubs
        launch redis2 redis-server --port 0 --unixsocket "$folder/other.sock" --dir "$folder" --save ''
        cp sqmgr.ini one.ini
        add_fleet second
        sqmgrctl reload
        wait_until 20 fleet_named second '.active == 1'
        cp one.ini sqmgr.ini
        sqmgrctl reload
        wait_until 30 fleets_are default
        cat >>sqmgr.ini <<END
[fleet:second]
command = $stub -u $folder/other.sock -b 200
redis_url = unix://$folder/other.sock
END
        run -0 sqmgrctl reload
        [ "$output" = "[fleet:second]: added; its workers are being started" ]
        wait_until 20 fleet_named second '.active == 1'
}

@test "reload: a removed fleet that is configured again before it has drained comes back" {
        two_stubs
        cp sqmgr.ini one.ini
        add_fleet second
        sqmgrctl reload
        wait_until 20 fleet_named second '.workers[0].ready'
        second=$(sqmgrctl status --json | jq '.fleets[1].workers[0].pid')
        echo 1 >"steer/busy.$second"
        wait_until 20 fleet_named second '.workers[0].busy == 1'
        cp one.ini sqmgr.ini
        sqmgrctl reload
        wait_until 20 fleet_named second '.workers[0].state == "quiet"'
        add_fleet second
        sqmgrctl reload
        wait_until 20 fleet_named second '.active == 1 and .state == "running"'
        alive "$second"
        rm "steer/busy.$second"
        wait_until 30 gone "$second"
        fleet_named second '.active == 1'
}

@test "a fleet removed from the configuration while no sqmgr ran is drained by the next sqmgr" {
        start_redis
        configure <<<"command = $(stub_command)"
        cp sqmgr.ini one.ini
        add_fleet second
        start_sqmgr
        wait_until 20 fleet_named second '.active == 1'
        wait_until 20 fleet_named default '.active == 1'
        second=$(sqmgrctl status --json | jq '.fleets[1].workers[0].pid')
        record "$(sqmgrctl status --json | jq '.fleets[].workers[].pid')"
        echo 1 >"steer/busy.$second"
        wait_until 20 fleet_named second '.workers[0].busy == 1'
        kill_sqmgr
        cp one.ini sqmgr.ini
        start_sqmgr
        wait_until 10 grep -q "fleet 'second' is no longer configured; its workers (1 at the last count) are being drained" sqmgr.log
        wait_until 20 fleet_named second '.workers[0].state == "quiet"'
        wait_ticks 12
        alive "$second"
        rm "steer/busy.$second"
        wait_until 30 gone "$second"
        wait_until 20 fleets_are default
        fleet_named default '.active == 1'
}

@test "a fleet with its own Redis removed while no sqmgr ran is drained" {
        start_redis
        launch other redis-server --port 0 --unixsocket "$folder/other.sock" --dir "$folder" --save ''
        configure <<<"command = $(stub_command)"
        cp sqmgr.ini one.ini
        cat >>sqmgr.ini <<END
[fleet:second]
command = $stub -u $folder/other.sock -b 200 -d $folder/steer
redis_url = unix://$folder/other.sock
END
        start_sqmgr
        wait_until 20 fleet_named second '.active == 1'
        second=$(sqmgrctl status --json | jq '.fleets[1].workers[0].pid')
        cp one.ini sqmgr.ini
        sqmgrctl reexec
        wait_until 40 gone "$second"
        wait_until 20 fleets_are default
}

@test "reload: settings that need a restart of sqmgr are reported and not applied; re-exec applies them" {
        two_stubs
        before=$(worker_pids)
        sed -i 's/^\[redis\]$/&\nnamespace = app/' sqmgr.ini
        run -0 sqmgrctl reload
        [[ $output == "[redis] namespace: none -> app (not applied; restart sqmgr, workers keep running)" ]]
        sqmgrctl reexec
        run -0 sqmgrctl reload
        [ "$output" = "reloaded; nothing changed" ]
        [ "$(worker_pids)" = "$before" ]
}

@test "reload: a count of 0 disables a fleet, also for a waiting restart; scale overrides it" {
        two_stubs
        before=$(worker_pids)
        sed -i 's/^active_process_count = .*/active_process_count = 0/' sqmgr.ini
        run -0 sqmgrctl reload
        [[ $output == *'active_process_count: 2 -> 0'* ]]
        wait_until 20 fleet_is '.workers == [] and .state == "running" and .target == 0 and .max_processes >= 1'
        gone "$before"
        not grep -q SIGKILL sqmgr.log
        run -0 sqmgrctl status
        [[ $output == *'default (sidekiq): disabled, 0 of 0 active'* ]]
        run -0 sqmgrctl restart --wait --timeout 60s
        run -0 sqmgrctl restart --wait=drained --timeout 60s
        run -0 sqmgrctl doctor
        run -0 sqmgrctl scale default 2
        wait_until 20 ready 2
        run -0 sqmgrctl scale default 0
        wait_until 20 fleet_is '.workers == []'

        # Another sqmgr finds the same state.
        run -0 sqmgrctl scale default 1
        wait_until 20 ready 1
        by="ago by $(id -un) (uid $(id -u))"
        run -0 sqmgrctl status
        [[ $output =~ 'default (sidekiq): 1 of 1 active (file: 0; scaled '[0-9]+"s $by)" ]]
        run -0 sqmgrctl reload
        [[ $output =~ ^"fleet 'default': active_process_count is 0, but the current count is 1: scaled "[0-9]+"s $by"$ ]]
        run -0 sqmgrctl doctor
        [[ $output =~ "fleet 'default': scaled "[0-9]+"s $by to 1, but active_process_count is 0" ]]
        pid=$(worker_pids)
        run -0 sqmgrctl reexec
        [ "$(worker_pids)" = "$pid" ]
        fleet_is '.target == 1'
}

@test "reload: included files are added and removed, and errors name the file" {
        # shellcheck disable=SC2034
        sqmgr_lines="include = $folder/conf.d/*.ini"
        two_stubs
        before=$(worker_pids)
        mkdir -m 755 conf.d
        printf '[fleet:shop]\ncommand = %s\nready_after = 500ms\n' "$(stub_command)" >conf.d/shop.ini
        run -0 sqmgrctl reload
        [[ $output == *'[fleet:shop]: added'* ]]
        wait_until 20 fleet_named shop '.active == 1'
        printf '[fleet:mail]\nmemory_treshold = 1G\n' >conf.d/mail.ini
        run -1 sqmgrctl reload
        [[ $output == *"$folder/conf.d/mail.ini:1: fleet 'mail' has no command"* ]]
        [[ $output == *"$folder/conf.d/mail.ini:2: unknown key 'memory_treshold'; did you mean 'memory_threshold'?"* ]]
        [ "$(fleets)" = 'default shop' ]
        run -78 sqmgr --check-config -c sqmgr.ini
        [[ $output == *"$folder/conf.d/mail.ini:2: unknown key"* ]]
        rm conf.d/mail.ini conf.d/shop.ini
        run -0 sqmgrctl reload
        [[ $output == *'[fleet:shop]: removed'* ]]
        wait_until 20 fleets_are default
        [ "$(worker_pids)" = "$before" ]
}
