#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The worker is the process that sends heartbeats, at any depth below the started one; workers with heartbeats elsewhere
# are left alone.
# seconds: 100
# promises: P1
load helpers

@test "a wrapper script: the process that sends heartbeats is quieted and stopped, and its job is not cut off" {
        start_redis
        cat >"$folder/wrapper.sh" <<END
#!/bin/sh
$(sidekiq_command 2)
exit \$?
END
        chmod +x "$folder/wrapper.sh"
        configure <<END
command = ./wrapper.sh
directory = $folder
ready_after = 1s
END
        start_ready 1
        beating=$(fleet '.workers[0].pid')
        wrapper=$(awk '/^PPid:/ { print $2 }' "/proc/$beating/status")
        [[ $(tr '\0' ' ' <"/proc/$wrapper/cmdline") == *wrapper.sh* ]]

        enqueue 1 Hold "$folder/release"
        wait_until 20 has_started 1
        run -0 sqmgrctl restart --wait --timeout 300s
        alive "$beating" "$wrapper"
        wait_until 20 fleet_is ".workers[] | select(.pid == $beating) | .state == \"quiet\" and .busy == 1"
        touch "$folder/release"
        wait_until 60 gone "$beating" "$wrapper"
        [ "$(jobs_done)" = 1 ]
        [ "$(jobs_run_twice)" = 0 ]
        wait_until 10 fleet_is '.active == 1 and (.workers | length) == 1'
}

@test "a quiet sent by hand: the worker is replaced, and stopped when its job is done" {
        start_workers 2 <<END
command = $(sidekiq_command 2)
active_process_count = 2
ready_after = 1s
END
        enqueue 4 Hold "$folder/release"
        wait_until 20 has_started 4
        quieted=$(fleet '.workers[0].pid')
        kill -TSTP "$quieted"
        wait_until 30 fleet_is ".workers[] | select(.pid == $quieted) | .state == \"quiet\" and .reason == \"external\""
        wait_until 30 fleet_is '.active == 2'
        alive "$quieted"
        touch "$folder/release"
        wait_until 60 gone "$quieted"
        [ "$(jobs_done)" = 4 ]
        [ "$(jobs_run_twice)" = 0 ]
        fleet_is '.active == 2'
}

@test "a wrong namespace: a worker with heartbeats elsewhere is left alone, and status reports it" {
        start_redis
        redis_lines='namespace = nobody_writes_here' configure <<END
command = $(sidekiq_command 2)
boot_timeout = 20s
END
        start_sqmgr
        wait_until 60 fleet_is '.workers[0].waits_for // "" | test("has booted, but its heartbeat was not found")'
        worker=$(redis smembers processes | cut -d: -f2)
        alive "$worker"
        fleet_is '(.workers | length) == 1 and .crash.count == 0'
        enqueue 1 Sleep 0
        wait_until 20 has_done 1
        alive "$worker"
        [[ $(sqmgrctl status) == *'has booted, but its heartbeat was not found'* ]]
}

# A worker of another host with the same name and pid, which has run for an hour.
send_heartbeats() { # IDENTITY
        redis hset "$1" info "{\"concurrency\":5,\"started_at\":$(($(date +%s) - 3600))}" quiet false >/dev/null
        # shellcheck disable=SC2016
        launch namesake bash -c 'while sleep 0.5; do
                redis-cli -s "$1" hset "$2" busy 0 beat "$(date +%s.%N)" && redis-cli -s "$1" sadd processes "$2"
        done' namesake "$folder/redis.sock" "$1"
}
registered() { [ "$(redis scard processes)" = 1 ]; }

@test "another host of the same name has a worker of the same pid: ours is distinguished by its start, and restarts" {
        start_redis
        configure <<END
command = /bin/sh -c 'until [ -e $folder/boot ]; do sleep 0.1; done; exec $(sidekiq_command 2)'
ready_after = 1s
END
        start_sqmgr
        wait_until 20 fleet_is '.workers | length == 1'
        worker=$(fleet '.workers[0].pid')
        wait_ticks 2
        # Both appear between two polls.
        kill -STOP "$sqmgr_pid"
        touch "$folder/boot"
        wait_until 60 registered
        ours=$(redis smembers processes)
        [[ $ours == *":$worker:"* ]]
        send_heartbeats "${ours%:*}:0123456789ab"
        wait_until 20 not registered
        kill -CONT "$sqmgr_pid"
        wait_until 60 ready 1
        fleet_is ".workers[0].pid == $worker"
        event_count_is ambiguous 0

        enqueue 1 Hold "$folder/release"
        wait_until 20 has_started 1
        run -0 sqmgrctl restart --wait --timeout 300s
        wait_until 30 fleet_is ".workers[] | select(.pid == $worker) | .state == \"quiet\" and .busy == 1"
        touch "$folder/release"
        wait_until 60 gone "$worker"
        [ "$(jobs_done)" = 1 ]
        event_count_is ambiguous 0
}

@test "a namespace: a worker with heartbeats below it is found" {
        redis_lines='namespace = shop' start_workers 1 <<END
command = $(stub_command) -n shop:
ready_after = 500ms
END
        fleet_is '.workers[0].evidence == "redis"'
}

@test "a command that daemonizes: its process is the worker, and processes do not accumulate" {
        start_workers 2 <<END
command = setsid -f $(stub_command)
active_process_count = 2
END
        pids=$(fleet '.workers[].pid')
        [ "$(pgrep -c -f "^$stub.*$folder")" = 2 ]
        fleet_is '.crash.count == 0'
        alive "$pids"
        sqmgrctl stop default
        wait_until 30 gone "$pids"
}

@test "nested wrappers: the outer ones die, then the worker, and sqmgr notices each" {
        printf '#!/bin/sh\n%s\nexit 0\n' "$(stub_command)" >inner.sh
        printf '#!/bin/sh\n./inner.sh\nexit 0\n' >outer.sh
        chmod +x inner.sh outer.sh
        start_workers 1 <<END
command = ./outer.sh
directory = $folder
END
        beating=$(fleet '.workers[0].pid')
        inner=$(awk '/^PPid:/ { print $2 }' "/proc/$beating/status")
        outer=$(awk '/^PPid:/ { print $2 }' "/proc/$inner/status")
        record "$beating" "$inner"
        kill -9 "$outer"
        wait_until 10 gone "$outer"
        run -0 sqmgrctl ping
        fleet_is ".active == 1 and .workers[0].pid == $beating"
        kill -9 "$beating"
        wait_until 20 fleet_is ".active == 1 and .workers[0].pid != $beating"
        run -0 sqmgrctl ping
}

# bats test_tags=root
@test "host renamed: restarts continue, and the earlier worker is recognized" {
        unshare --uts true 2>/dev/null || skip "this machine lets nobody have a uts namespace"
        start_redis
        configure <<END
command = $(stub_command)
active_process_count = 2
ready_after = 500ms
boot_timeout = 5s
END
        # shellcheck disable=SC2016
        launch sqmgr unshare --uts sh -c 'echo before >/proc/sys/kernel/hostname; exec "$@"' - \
                sqmgr -c "$folder/sqmgr.ini"
        sqmgr_pid=$!
        wait_until 20 ready 2
        before=$(worker_pids)
        nsenter --target "$sqmgr_pid" --uts sh -c 'echo after >/proc/sys/kernel/hostname'
        run -0 sqmgrctl restart --wait=drained --timeout 60s
        gone "$before"
        fleet_is '.active == 2 and (.workers | length) == 2'
        [ "$(sqmgrctl events --json | jq -s '[.[].events[]? // .[] | select(.event == "host-name")] | length')" = 1 ]
        redis smembers processes | grep -q '^after:'

        # Workers with heartbeats under the second name are recognized by an sqmgr with a third name.
        before=$(worker_pids)
        nsenter --target "$sqmgr_pid" --uts sh -c 'echo third >/proc/sys/kernel/hostname'
        reexec_ready 2
        [ "$(worker_pids)" = "$before" ]
        run -0 sqmgrctl restart --wait=drained --timeout 60s
        fleet_is '.active == 2 and (.workers | length) == 2'
}

has_identity() { redis smembers processes | grep -q "^$1:$2:"; } # HOST PID

# bats test_tags=root
@test "host renamed while no sqmgr runs: a worker that booted meanwhile is found under the old name" {
        unshare --uts true 2>/dev/null || skip "this machine lets nobody have a uts namespace"
        start_redis
        mkdir -p "$folder/steer"
        touch "$folder/steer/hang"
        configure <<END
command = $(stub_command)
ready_after = 500ms
END
        # shellcheck disable=SC2016
        launch sqmgr unshare --uts sh -c 'echo before >/proc/sys/kernel/hostname; exec "$@"' - \
                sqmgr -c "$folder/sqmgr.ini"
        sqmgr_pid=$!
        wait_until 20 fleet_is '.starting == 1'
        worker=$(worker_pids)
        record "$worker"
        kill -9 "$sqmgr_pid"
        wait_until 10 gone "$sqmgr_pid"
        rm "$folder/steer/hang"
        wait_until 20 has_identity before "$worker"
        nsenter --target "$worker" --uts sh -c 'echo after >/proc/sys/kernel/hostname'
        launch sqmgr nsenter --target "$worker" --uts sqmgr -c "$folder/sqmgr.ini"
        wait_until 20 ready 1
        [ "$(worker_pids)" = "$worker" ]
}
