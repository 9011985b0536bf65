#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A job that exceeds the limit of its class is reported once, and Sidekiq logs its backtrace.
# seconds: 95
# promises: P1
load helpers

metric_is() { sqmgrctl metrics | grep -qFx "$1"; } # LINE

# Compares with the age of the oldest job of the draining worker in Redis, within a second.
oldest_is_of() { # JID
        local started oldest asked
        started=$(sqmgrctl jobs --json | jq ".jobs[] | select(.jid == \"$1\") | .started_at")
        asked=$(date +%s)
        oldest=$(fleet '.workers[] | select(.state == "quiet") | .oldest_job_seconds')
        jq -en "$asked - $started - 2 < $oldest and $oldest < now - $started + 2"
}

@test "status shows the age of the oldest job of a draining worker, and of the next once that job has ended" {
        start_redis
        configure <<END
command = $(sidekiq_command 3)
END
        start_sqmgr
        wait_until 60 fleet_is '.workers[0].ready'
        for name in first second; do
                enqueue 1 Hold "$folder/$name"
                wait_until 20 has_started $((++n))
                declare "$name=$(redis hkeys ledger:started | grep -vxF "${first-}")"
                # Their ages must differ.
                sleep 3
        done
        wait_until 20 fleet_is '.workers[0].busy == 2'
        # Not read for active workers.
        fleet_is '.workers[0].oldest_job_seconds == null'
        run -0 sqmgrctl restart --wait --timeout 300s
        wait_until 30 oldest_is_of "$first"
        run -0 sqmgrctl status
        [[ $output =~ 'restart; waits for 2 running jobs to finish, oldest '[0-9]+s ]]
        run -0 sqmgrctl why default/1
        [[ $output =~ 'waits for 2 running jobs to finish, oldest '[0-9]+s ]]
        touch "$folder/first"
        wait_until 20 fleet_is 'any(.workers[]; .state == "quiet" and .busy == 1)'
        wait_until 30 oldest_is_of "$second"
        run -0 sqmgrctl status
        [[ $output =~ 'restart; waits for 1 running job to finish, started '[0-9]+'s ago' ]]
        touch "$folder/second"
        wait_until 40 fleet_is '(.workers | length) == 1'
}

@test "long jobs: each is reported once, by the limit of its class" {
        start_workers 1 <<END
command = $(sidekiq_command 3)
job_warn_after = 3s Sleep=1h
END
        pid=$(fleet '.workers[0].pid')
        enqueue 1 Sleep 600
        enqueue 1 Hold "$folder/release"
        wait_until 40 event_count_is job-long 1
        jid=$(sqmgrctl jobs --json | jq -r '.jobs[] | select(.class == "Hold") | .jid')
        sqmgrctl events | grep -q "warning: Hold $jid (queue default) has been running for [0-9]*s in default/1 (pid $pid)\$"
        wait_until 20 lists_read_are $(($(lists_read) + 3))
        event_count_is job-long 1
        alive "$pid"
        enqueue 1 Hold "$folder/release"
        wait_until 40 event_count_is job-long 2
        touch "$folder/release"
        wait_until 30 has_done 2
}

@test "a drain with a timeout announces its end, and then names the jobs that it cost" {
        start_redis
        configure <<END
command = $(sidekiq_command 3) -t 1
drain_timeout = 20s
END
        start_sqmgr
        wait_until 60 fleet_is '.workers[0].ready'
        enqueue 2 Hold "$folder/never"
        wait_until 20 has_started 2
        wait_until 20 fleet_is '.workers[0].busy == 2'
        run -0 sqmgrctl quiet default/1
        run -0 sqmgrctl status
        [[ $output =~ 'operator; waits for 2 running jobs,'.*' cut off in '[0-9]+'s (drain_timeout 20s)' ]]
        wait_until 60 metric_is 'sqmgr_jobs_cut_off_total{fleet="default",by="drain_timeout"} 2'
        sqmgrctl events | grep -q 'warning: default/1 (pid [0-9]*) cut off after 20s (drain_timeout), 2 jobs running: Hold (2)'
        touch "$folder/never"
        wait_until 60 has_done 2
}

# Prints the id of the running job of that class, and the pid of its worker.
job_of() { sqmgrctl jobs --json | jq -er ".jobs[] | select(.class == \"$1\") | \"\(.jid) \(.pid)\""; } # CLASS
times_started() { [ "$(redis hget ledger:started "$1")" = "$2" ]; } # JID COUNT

@test "interruptible: a quieted worker that runs only such a job is stopped, the job runs elsewhere; another class drains" {
        start_workers 2 <<END
command = $(sidekiq_command 1) -t 1
active_process_count = 2
interruptible = Import
END
        enqueue 1 Import "$folder/import"
        wait_until 20 has_started 1
        enqueue 1 Hold "$folder/hold"
        wait_until 20 has_started 2
        wait_until 20 job_of Import
        read -r import importer < <(job_of Import)
        wait_until 20 job_of Hold
        read -r hold holder < <(job_of Hold)
        [ "$importer" != "$holder" ]
        run -0 sqmgrctl restart --wait --timeout 300s
        wait_until 60 gone "$importer"
        wait_until 30 times_started "$import" 2
        sqmgrctl events | grep -q "(pid $importer) asked to exit (reason: restart); its jobs are interruptible"
        # Two more heartbeats prove nothing about a job of another class.
        for _ in 1 2; do
                beat=$(last_heartbeat "$holder")
                wait_until 20 sent_heartbeat_after "$holder" "$beat"
        done
        wait_ticks 4
        fleet_is "any(.workers[]; .pid == $holder and .state == \"quiet\" and .busy == 1)"
        event_count_is stopping 1
        touch "$folder/hold" "$folder/import"
        wait_until 30 gone "$holder"
        wait_until 30 has_done 2
        [ "$(redis hvals ledger:done | tr '\n' ' ')" = '1 1 ' ]
        times_started "$hold" 1
        event_count_is drain-cut 0
}
