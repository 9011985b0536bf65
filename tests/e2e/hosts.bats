#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Two containers with the same host name, the same pids and one Redis: each sqmgr recognizes the heartbeat of its own
# worker.
# seconds: 45
# promises: P1 P5
load helpers

# The worker boots once the file NAME.boot exists. Each container has its own queues.
container() { # NAME
        cat >"$folder/$1.ini" <<END
[sqmgr]
socket = $folder/$1.sock
state_file = $folder/$1.state
check_interval = 500ms

[redis]
url = unix://$folder/redis.sock

[fleet:default]
command = /bin/sh -c 'until [ -e $folder/$1.boot ]; do sleep 0.1; done; exec $(sidekiq_command 2) -q $1'
log = $folder/workers.log
ready_after = 1s
END
        launch "sqmgr-$1" unshare --pid --fork --mount-proc --kill-child sqmgr -c "$folder/$1.ini"
        wait_until 20 in_container "$1" sqmgrctl ping
}

in_container() { # NAME COMMAND...
        local name=$1
        shift
        SQMGR_SOCKET=$folder/$name.sock "$@"
}

identities() { redis smembers processes | sort | paste -sd ' '; }
heartbeat_of() { redis hget "$1" beat; } # IDENTITY
has_new_heartbeat() { [ "$(heartbeat_of "$1")" != "$2" ]; }
enqueue_for() { # QUEUE CLASS ARGUMENT...
        local queue=$1
        shift
        ruby -r "$app" -e 'queue, job, *arguments = ARGV
                Object.const_get(job).set(queue: queue).perform_async(*arguments)' "$queue" "$@"
}

@test "same host name, same pid: the heartbeat of another container is never attributed to our worker" {
        unshare --pid --fork --mount-proc true 2>/dev/null || skip 'this machine lets nobody have a pid namespace'
        start_redis
        touch "$folder/a.boot"
        container a
        wait_until 60 in_container a ready 1
        theirs=$(identities)
        container b
        wait_until 20 in_container b fleet_is '.workers | length == 1'
        pid=$(in_container b fleet '.workers[0].pid')
        [[ $theirs == *":$pid:"* ]]
        # The other worker sends heartbeats while ours boots.
        for _ in 1 2 3; do
                wait_until 30 has_new_heartbeat "$theirs" "$(heartbeat_of "$theirs")"
        done
        run in_container b fleet '.workers[0].state'
        [ "$output" = starting ]
        touch "$folder/b.boot"
        wait_until 60 in_container b ready 1
        ours=$(redis smembers processes | grep -vxF "$theirs")
        [[ $ours == *":$pid:"* ]]

        # One worker runs a job and the other is idle, and both are retired: the job is not cut off.
        enqueue_for b Hold "$folder/release"
        wait_until 20 has_started 1
        in_container a sqmgrctl quiet default
        in_container b sqmgrctl quiet default
        wait_until 60 in_container a fleet_is '.workers | length == 0'
        wait_until 30 in_container b fleet_is '.workers[0] | .state == "quiet" and .busy == 1'
        touch "$folder/release"
        wait_until 60 in_container b fleet_is '.workers | length == 0'
        [ "$(jobs_done)" = 1 ]
        [ "$(jobs_run_twice)" = 0 ]
}
