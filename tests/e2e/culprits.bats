#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Culprits: the job classes that ran while the memory of a worker exceeded a limit, or when the OOM killer ended it.
# seconds: 150
# promises: none
# shellcheck disable=SC2030,SC2031
load helpers

configure_fleet() { # LINE...
        configure <<END
command = ${command-$(sidekiq_command 5)}
ready_after = 1s
$(printf '%s\n' "$@")
END
}

text_of() { sqmgrctl events --json | jq -r "select(.event == \"$1\") | .text"; } # EVENT
shown() { # COUNT: each has sent a heartbeat since its jobs began
        local jobs_json
        jobs_json=$(sqmgrctl jobs --json) && [ "$(jq '.jobs | length' <<<"$jobs_json")" = "$1" ]
}
classes_are() { fleet_is ".culprits[0].classes == $1"; }

@test "culprits: above the threshold each class is named and counted with the growth, without rescue_jobs" {
        start_workers 1 configure_fleet 'memory_threshold = 200M' 'rescue_jobs = off'
        fleet_is '.culprits == []'
        pid=$(worker_pids)
        enqueue 2 Hold "$folder/release"
        enqueue 1 Leak 250 "$folder/release"
        wait_until 60 event_count_is culprits 1
        [[ "$(text_of culprits)" =~ ^(former\ )?default/1\ \(pid\ $pid\)\ grew\ by\ 2[0-9]{2}M\ to\ [23][0-9]{2}M\ within\ [0-9].*,\ running\ Hold\ \(2\),\ Leak$ ]]
        event_count_is memory-over 1
        sqmgrctl events --json | jq -es 'any(.[]; .event == "culprits" and .level == "info" and .worker == "default/1")'
        classes_are '[{"class": "Hold", "jobs": 2}, {"class": "Leak", "jobs": 1}]'
        fleet_is ".culprits[0] | .worker == \"default/1\" and .pid == $pid and .cause == \"memory\" and .more_classes == 0"
        fleet_is '.culprits[0] | .memory_bytes > 200 * 1048576 and .growth_bytes > 200 * 1048576'
        fleet_is '.culprits[0] | .growth_bytes < .memory_bytes and .growth_seconds > 0 and .age_seconds >= 0'

        # Nothing more is reported for this worker while its jobs run; a reload forgets nothing.
        sqmgrctl reload
        beat=$(last_heartbeat "$pid")
        wait_until 20 sent_heartbeat_after "$pid" "$beat"
        wait_ticks 4
        event_count_is culprits 1
        fleet_is '.culprits | length == 1'
        run -0 sqmgrctl status
        [[ "${lines[-1]}" =~ ^\ \ [0-9].*\ ago:\ default/1\ \(pid\ $pid\)\ grew\ by.*running\ Hold\ \(2\),\ Leak$ ]]
        # A narrow terminal continues the line, indented.
        narrow=$(TERM=dumb script -qec 'stty cols 72 && sqmgrctl status' /dev/null </dev/null | tr -d '\r')
        tail -n 2 <<<"$narrow" | head -n 1 | grep -q "^  [0-9].* ago: default/1 (pid $pid) grew by"
        tail -n 1 <<<"$narrow" | grep -q '^      .*Leak$'
        [ "$(tail -n 2 <<<"$narrow" | awk '{ if (length > n) n = length } END { print n }')" -le 72 ]

        touch "$folder/release"
        wait_until 60 gone "$pid"
        [ "$(jobs_done)" = 3 ]
        fleet_is '.culprits | length == 1'
}

# The next heartbeat is as far away as it can be.
leak_after_a_heartbeat() {
        ruby -r "$app" -e 'Leak.set(queue: "later").perform_async(250, ARGV[0])' "$folder/release"
        wait_until 40 fleet_is '.workers[0].beat_age_seconds < 4'
        redis rpoplpush queue:later queue:default
}

@test "culprits: above the limit a job that began after the last heartbeat is named; an instantaneous one is not" {
        export BEAT_PAUSE=20
        start_workers 2 configure_fleet 'memory_limit = 200M' 'active_process_count = 2'
        enqueue 1 Leak 250 "$folder/release"
        wait_until 60 event_count_is culprits 1
        classes_are '[{"class": "Leak", "jobs": 1}]'
        touch "$folder/release"
        wait_until 60 ready 2
        # The job must end long before the next heartbeat.
        sqmgrctl scale default 1
        wait_until 60 fleet_is '.active == 1 and (.workers | length) == 1'
        leak_after_a_heartbeat
        wait_until 60 event_count_is culprits 2
        [[ "$(text_of culprits | tail -n 1)" =~ \ grew\ by\ 2[0-9]{2}M\ to\ .*,\ running\ no\ job$ ]]
        fleet_is '.culprits | length == 2 and .[0].age_seconds <= .[1].age_seconds'
        classes_are '[]'
}

@test "culprits: with Redis down no class is named, and a much later heartbeat does not count" {
        export BEAT_PAUSE=20
        start_workers 1 configure_fleet 'memory_threshold = 200M'
        leak_after_a_heartbeat
        wait_until 30 redis_has leak:pid
        kill -STOP "$redis_pid"
        wait_until 30 event_count_is memory-over 1
        # The next heartbeat must come much later: nothing else shows that enough time has passed.
        sleep 35
        kill -CONT "$redis_pid"
        # It is quieted only after a new heartbeat. Sidekiq 7 may then exit by itself, because Redis was down when it
        # started.
        wait_until 60 event_count_is quiet 1
        wait_ticks 4
        event_count_is culprits 0
        fleet_is '.culprits == []'
        touch "$folder/release"
}


# A leak that a heartbeat shows, then an allocation larger than the available memory.
run_out_of_memory() {
        enqueue 1 Hold "$folder/release"
        enqueue 1 Leak 150 "$folder/release"
        wait_until 60 shown 2
        pid=$(worker_pids)
        wait_until 20 fleet_is '.workers[0].memory_bytes > 150 * 1048576'
        before=$(lists_read)
        enqueue 1 Leak 400 "$folder/release"
}

oom_kills() { sed -n 's/^oom_kill //p' /proc/vmstat; }

@test "culprits: a worker killed by hand did not run out of memory" {
        start_redis
        configure_fleet 'rescue_jobs = report'
        kills=$(oom_kills)
        start_ready 1
        enqueue 1 Hold "$folder/release"
        wait_until 30 shown 1
        kill -KILL "$(worker_pids)"
        wait_until 20 event_count_is job-lost 1
        # If another process on this machine ran out of memory meanwhile, the worker may have, too.
        event_count_is culprits 0 || [ "$(oom_kills)" != "$kills" ]
}

# bats test_tags=root
@test "culprits: after an OOM kill the classes are named from the last reading of rescue_jobs, or not at all" {
        make_group $((400 << 20))
        command="sh -c 'echo 0 >$group/cgroup.procs && exec $(sidekiq_command 5)'"
        start_workers 1 configure_fleet 'rescue_jobs = report'
        run_out_of_memory
        wait_until 30 event_count_is culprits 1
        wait_until 20 event_count_is job-lost 2
        [ $(($(lists_read) - before)) = 2 ] # under the names of either version
        [[ "$(text_of culprits)" =~ ^(former\ )?default/1\ \(pid\ $pid\)\ died\ while\ the\ kernel\'s\ OOM\ killer\ was\ active\;\ had\ grown\ by\ [0-9]+M\ to\ [0-9]+M\ within\ .*,\ running\ Hold,\ Leak$ ]]
        classes_are '[{"class": "Hold", "jobs": 1}, {"class": "Leak", "jobs": 1}]'
        fleet_is ".culprits[0] | .cause == \"oom\" and .pid == $pid and .growth_bytes > 100 * 1048576"
        fleet_is '.crash.last | contains("killed by signal 9 (SIGKILL)")'
}

# bats test_tags=root
@test "culprits: after an OOM kill of an adopted worker, and without rescue_jobs" {
        make_group $((400 << 20))
        command="sh -c 'echo 0 >$group/cgroup.procs && exec $(sidekiq_command 5)'"
        start_workers 1 configure_fleet 'rescue_jobs = off'
        record "$(worker_pids)"
        replace_sqmgr 1
        run_out_of_memory
        wait_until 30 event_count_is culprits 1
        classes_are '[{"class": "Hold", "jobs": 1}, {"class": "Leak", "jobs": 1}]'
        fleet_is ".culprits[0] | .cause == \"oom\" and .pid == $pid and .growth_bytes > 100 * 1048576"
        event_count_is job-lost 0
        wait_until 60 ready 1
}
