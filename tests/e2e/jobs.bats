#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# `sqmgrctl jobs` shows running jobs, and reports jobs that cannot be read.
# seconds: 60
# promises: none
load helpers

jobs_are() { # CONDITION
        local jobs_json
        jobs_json=$(sqmgrctl jobs --json "${@:2}") && jq -e ".jobs | $1" <<<"$jobs_json" >/dev/null
}

@test "jobs shows class, id, queue, worker and duration of real Sidekiq jobs" {
        start_redis
        configure <<END
command = $(sidekiq_command 2)
active_process_count = 2
END
        cat >>"$folder/sqmgr.ini" <<END
[fleet:other]
command = $(stub_command)
log = $folder/workers.log
END
        start_sqmgr
        wait_until 60 fleet_is '.active == 2'
        run -0 sqmgrctl jobs
        [ "$output" = 'no running jobs known' ]

        enqueue 3 Hold "$folder/release"
        wait_until 20 has_started 3
        wait_until 30 jobs_are 'length == 3'
        jobs_are 'all(.[]; .class == "Hold" and .queue == "default" and (.worker | startswith("default/")))'
        jobs_are "all(.[]; now - .started_at >= 0 and now - .started_at < 600)"
        [ "$(sqmgrctl jobs --json | jq -r '.jobs[].jid' | sort)" = "$(redis hkeys ledger:started | sort)" ]
        for pid in $(sqmgrctl jobs --json | jq '.jobs[].pid'); do
                [[ " $(worker_pids) " == *" $pid "* ]]
        done
        jobs_are 'length == 3' default
        jobs_are 'length == 0' other
        run -0 sqmgrctl jobs default
        [ "${#lines[@]}" = 4 ]
        [[ "${lines[0]}" == CLASS*JID*QUEUE*WORKER*FOR ]]
        [[ "${lines[1]}" =~ ^Hold\ +[0-9a-f]{24}\ +default\ +default/[12]\ +[0-9]+ ]]
        run -2 sqmgrctl jobs nosuch

        # Without Redis, running jobs are unknown.
        kill -STOP "$redis_pid"
        run -1 --separate-stderr sqmgrctl jobs
        [[ "$stderr" == *"running jobs are unknown (Redis unix://"* ]]
        wait_until 15 not redis_state_is connected
        run -1 --separate-stderr sqmgrctl jobs
        [[ "$stderr" == *"running jobs are unknown (Redis unix://"* ]]
        kill -CONT "$redis_pid"
        touch "$folder/release"
        wait_until 60 jobs_are 'length == 0'
}

@test "jobs: an unreadable job hides no other, and is reported" {
        start_fleet 2 'rescue_jobs = requeue'
        fleet_pids=$(worker_pids)
        pid=${fleet_pids% *}
        identity=$(redis smembers processes | grep ":$pid:")
        other=$(redis smembers processes | grep -v ":$pid:")
        redis hset "$identity:work" t1 '{"queue":"low","payload":{"class":"A","jid":"1"},"run_at":1700000000}' t2 garbage
        run -1 --separate-stderr sqmgrctl jobs
        [ "${#lines[@]}" = 2 ]
        [[ ${lines[1]} == 'A '* ]]
        [[ $stderr == "sqmgrctl: default/"[12]" (pid $pid): 1 more running, unreadable (not in the format of Sidekiq)" ]]
        redis set "$other:work" x
        run -1 sqmgrctl jobs --json
        jq -e '(.jobs | length == 1) and (.errors | length == 2) and (.errors[0] | contains("running jobs are unknown")) and (.quoted | contains("WRONGTYPE"))' <<<"$output"

        # It is also reported when the worker dies.
        kill -KILL "$pid"
        has_event_with() { sqmgrctl events --json | jq -es "any(.[]; .event == \"$1\" and (.text | contains(\"$2\")))"; }
        wait_until 20 has_event_with rescue-failed 'died with 1 running job not re-enqueued: the record in Redis is not'
        has_event_with job-rescued 'A 1 (queue low)'
        [ "$(redis llen queue:low)" = 1 ]
}
