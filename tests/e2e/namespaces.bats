#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Workers in PID and UTS namespaces with one host name and with equal pids: each is matched with its own heartbeats.
# seconds: 110
# promises: P1 P2 P4
load helpers
load namespaces

# Prints the processes of Sidekiq in both namespaces, as sqmgr prints pids.
sidekiqs() {
        local holder
        for holder in $holders; do
                pgrep --ns "$holder" --nslist pid -f '^sidekiq '
        done | sort -n | paste -sd ' '
}
same_as_sidekiqs() { [ "$(worker_pids)" = "$(sidekiqs)" ]; }

@test "8 Sidekiqs in two namespaces: a stream of jobs through memory, a restart, kill -9 of a worker and of sqmgr" {
        make_namespaces twin twin
        write_sharing_worker
        fleet_lines='memory_threshold = 200M
restart_surge = 4' start_placed 8
        same_as_sidekiqs
        fleet_is 'all(.workers[]; .evidence == "redis" and .memory_bytes > 20 * 1048576)'
        # Equal pids in both.
        for pid in $(worker_pids); do place_of "$pid"; done | awk '{ print $2 }' | sort | uniq -d | grep -q .
        start_feeding
        wait_until 20 has_done 20

        # Each of its jobs runs in the worker that sqmgr names.
        enqueue 1 Leak 250 "$folder/release"
        leaked() { fleet_is '[.workers[] | select(.state == "quiet" and .reason == "memory")] | length == 1'; }
        wait_until 60 leaked
        fleet_is '.active == 8'
        leaker=$(fleet '.workers[] | select(.reason == "memory") | .pid')
        job_is_of() { sqmgrctl jobs --json | jq -e "any(.jobs[]; .class == \"$1\" and .pid == $2)"; }
        wait_until 20 job_is_of Leak "$leaker"
        [ "$(redis get leak:pid)" = "$(place_of "$leaker" | cut -d' ' -f2)" ]
        stopped=$(fleet '[.workers[] | select(.state == "active")][0] | .pid')
        run -0 sqmgrctl stop "default/$(fleet ".workers[] | select(.pid == $stopped) | .index")"
        touch release
        wait_until 60 gone "$leaker" "$stopped"

        before=$(worker_pids)
        run -0 sqmgrctl restart --wait=drained --timeout 300s
        gone "$before"
        same_as_sidekiqs

        before=$(worker_pids)
        kill_sqmgr
        wait_until 10 has_done $(($(jobs_done) + 20))
        start_ready 8
        [ "$(worker_pids)" = "$before" ]
        same_as_sidekiqs
        fleet_is '.crash.count == 0'

        stop_feeding
        wait_until 30 stream_is_done
        enqueue 16 Hold "$folder/hold"
        wait_until 60 attributed 16
        killed=$(fleet '.workers[3].pid')
        kill -KILL "$killed"
        wait_until 30 fleet_is '.active == 8 and all(.workers[]; .pid != '"$killed"')'
        wait_until 60 attributed 16
        touch hold
        wait_until 30 fleet_is 'all(.workers[]; .busy == 0)'
        stream_is_done
        [ "$(redis hvals ledger:done | sort | uniq -c | awk '{ print $2 }')" = 1 ]
        [ "$(jobs_started)" = "$(jobs_done)" ]
        [ "$(redis hvals ledger:started | grep -c 2)" = 2 ]
}

@test "bubblewrap: workers with one host name and one pid, each in namespaces of its own" {
        bwrap --dev-bind / / --unshare-pid --unshare-uts --hostname twin true 2>/dev/null ||
                skip 'this machine lets nobody have a PID namespace'
        write_worker "bwrap --dev-bind / / --proc /proc --unshare-pid --unshare-uts --hostname twin"
        passes_through
}
