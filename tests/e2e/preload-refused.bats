#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# If forking is impossible, workers boot separately and the reason is reported. A hostile
# template does no harm.
# seconds: 60
# promises: P1 P4 P8
load preload

first_template() { sed -n "s/.*template of fleet 'default' (pid \([0-9]*\)) is loading the application.*/\1/p" sqmgr.log | head -n 1; }
refused_like() { fleet .template.refused | grep -q "$1"; }

@test "refused: a command that loses RUBYOPT becomes a worker, accepts jobs, and is never killed" {
        start_redis
        make_jobs
        make_release 1
        configure_preload 'active_process_count = 2' 'command = env -u RUBYOPT sidekiq -r ./app.rb -c 1'
        sed -i '/^command = sidekiq/d' sqmgr.ini
        enqueue 1 Hold "$folder/release"
        start_ready 2
        first=$(first_template)
        fleet_is "any(.workers[]; .pid == $first)"
        fleet_is 'all(.workers[]; .forked | not)'
        event_count_is preload-refused 1
        template_is '.pid == null and .state == null'
        refused_like 'the command runs jobs instead of waiting to be forked; it is now worker default/'
        sqmgrctl status | grep -q 'template: none, workers boot separately: the command runs jobs'
        run sqmgrctl doctor
        [[ $output == *'boot separately despite preload = yes: the command runs jobs'* ]]
        sqmgrctl metrics | grep -qx 'sqmgr_template_refused{fleet="default"} 1'
        touch release
        wait_until 20 has_done 1
        # From now on each worker boots separately.
        kill_worker "$first" 2
        [ "$(releases 2)" = 1:2 ]
        event_count_is preload-refused 1
        all_are_known
        # After a fix, preloading is tried again.
        set_line command 'sidekiq -r ./app.rb -c 1'
        sqmgrctl reload
        run -0 sqmgrctl restart --wait --timeout 120s
        fleet_is '.template.state == "ready" and .template.refused == null and all(.workers[] | select(.state == "active"); .forked)'
}

@test "refused: if the command cannot see the Ruby file, workers boot separately" {
        needs_namespace --mount
        unset RUBYOPT
        cat >elsewhere <<'END'
#!/bin/sh
file=${RUBYOPT#-r}
[ -z "$file" ] || mount -t tmpfs none "${file%/*}" || exit
exec sidekiq -r ./app.rb -c 1
END
        chmod 755 elsewhere
        start_redis
        make_jobs
        make_release 1
        configure_preload 'active_process_count = 2' "command = ${unshare[*]} --mount $folder/elsewhere"
        sed -i '/^command = sidekiq/d' sqmgr.ini
        start_ready 2
        event_count_is preload-refused 1
        refused_like "the command cannot find '.*sqmgr-preload.rb' where it runs"
        fleet_is '.crash.count == 0 and all(.workers[]; .forked | not)'
        [ "$(releases 2)" = 1:2 ]
}

@test "refused: a socket left open by the application is named, and the next release is forked again" {
        start_redis
        make_jobs
        make_release 1 "require 'socket'; SOCKET = UNIXSocket.new('$folder/redis.sock')"
        configure_preload 'active_process_count = 2'
        start_ready 2
        event_count_is preload-refused 1
        refused_like "the application holds open sockets, which all forked workers would share"
        fleet_is '.template.quoted | test("^socket [0-9]* to .*/redis.sock")'
        fleet_is 'all(.workers[]; .forked | not)'
        wait_until 20 all_are_known
        old=$(worker_pids)
        make_release 2
        run -0 sqmgrctl restart --wait=drained --timeout 120s
        gone "$old"
        fleet_is '.template.refused == null and all(.workers[]; .forked)'
        run sqmgrctl doctor
        [[ $output != *'boot separately'* ]]
}

fds() { find "/proc/$sqmgr_pid/fd" -type l | wc -l; }
fds_are() { [ "$(fds)" = "$1" ]; }
fleets_are() { [ "$(sqmgrctl status --json | jq '.fleets | length')" = "$1" ]; }
log_has() { grep -qE "$1" sqmgr.log; }

@test "refused: a template that violates the protocol is ended, and harms no other fleet" {
        start_fleet 2
        old=$(worker_pids) template=$(template)
        cp sqmgr.ini harmless.ini
        descriptors=$(fds)
        declare -A said=(
                [twice]='unexpected message' [garbage]='unexpected message'
                [oversized]='invalid message from the template' [fds]='invalid message from the template'
                [many-fds]='invalid message from the template' [flood]='unexpected message'
                [closes]='connection closed'
                [hello-itself]='reports as forked is not a fork'
                [older]='reports as forked is not a fork'
                [worker-garbage]='invalid message from a fork' [worker-fds]='invalid message from a fork'
                [worker-oversized]='invalid message from a fork'
                [worker-stays]='did not fork within' [mute]='did not fork within'
                [worker-error]='could not be forked: the template failed'
        )
        for how in "${!said[@]}"; do
                printf '%s\n' "[fleet:$how]" "command = /usr/bin/python3 $e2e/preload_hostile.py $how" \
                        "directory = $folder" 'preload = yes' "log = $folder/hostile.log"
        done >>sqmgr.ini
        sqmgrctl reload
        for how in "${!said[@]}"; do
                wait_until 60 log_has "($how/1|fleet '$how').*${said[$how]}"
        done
        # sqmgr still runs, and so do the workers of the other fleet.
        [ "$(worker_pids)" = "$old" ]
        kill_worker "${old##* }" 2
        [ "$(template)" = "$template" ]
        [ "$(releases 2)" = 1:2 ]
        cp harmless.ini sqmgr.ini
        sqmgrctl reload
        wait_until 60 fleets_are 1
        wait_until 20 fds_are "$descriptors"
        alive "$sqmgr_pid"
}
