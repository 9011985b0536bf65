#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Jobs of a killed worker: reported, requeued, or moved to the dead set; counted with real Sidekiqs. KILL_ROUNDS is how
# often a worker is killed under load.
# seconds: 200
# promises: none
load helpers

configure_fleet() { # LINE...
        configure <<END
command = $(sidekiq_command 3)
active_process_count = 2
ready_after = 1s
$(printf '%s\n' "$@")
END
}

# Waits until each busy worker has sent a heartbeat since its jobs began.
shown() { # COUNT
        local jobs_json
        jobs_json=$(sqmgrctl jobs --json) && [ "$(jq '.jobs | length' <<<"$jobs_json")" = "$1" ]
}
only_other() { [ "$(sqmgrctl status --json | jq -c '[.fleets[].name]')" = '["other"]' ]; }
busy_worker() { sqmgrctl jobs --json | jq '.jobs[0].pid'; }

@test "rescue: a job that died with its worker is reported by default" {
        start_workers 2 configure_fleet
        enqueue 1 Hold "$folder/release"
        wait_until 30 shown 1
        jid=$(redis hkeys ledger:started)
        pid=$(busy_worker)
        kill -KILL "$pid"
        wait_until 20 event_count_is job-lost 1
        sqmgrctl events | grep -q "error: Hold $jid (queue default) lost: default/[12] (pid $pid), which ran the job, was killed by signal 9 (SIGKILL)"
        touch "$folder/release"
        [ "$(redis llen queue:default)" = 0 ]
        wait_until 60 ready 2
        [ "$(jobs_done)" = 0 ]
}

@test "rescue: with requeue a job runs again, and a job that kills its workers is moved to Sidekiq's dead set" {
        start_workers 2 configure_fleet 'rescue_jobs = requeue'
        enqueue 1 Hold "$folder/release"
        for round in 1 2 3; do
                wait_until 60 shown 1
                kill -KILL "$(busy_worker)"
                wait_until 20 event_count_is job-rescued "$round"
        done
        wait_until 60 shown 1
        jid=$(redis hkeys ledger:started)
        kill -KILL "$(busy_worker)"
        wait_until 20 event_count_is job-parked 1
        event_count_is job-rescued 3
        [ "$(redis llen queue:default)" = 0 ]
        run -0 ruby -r "$e2e/app.rb" -r sidekiq/api -e 'Sidekiq::DeadSet.new.each { |job|
                puts [job.klass, job.jid, job["error_class"], job["error_message"]].join(" ") }'
        [[ "${lines[*]}" == *"Hold $jid Sqmgr::WorkerDied worker was killed by signal 9 (SIGKILL) while running this job"* ]]

        # It can be retried from there, and its count restarts.
        ruby -r "$e2e/app.rb" -r sidekiq/api -e 'Sidekiq::DeadSet.new.each(&:add_to_queue)'
        wait_until 60 shown 1
        touch "$folder/release"
        wait_until 30 has_done 1
}

@test "rescue: a job that Redis refuses to take back holds up no other, and is put back once it can be" {
        start_workers 1 < <(printf '%s\n' "command = $(sidekiq_command 3) -q default -q bad" 'active_process_count = 1' 'rescue_jobs = requeue')
        for queue in bad default; do
                redis lpush "queue:$queue" "{\"class\":\"Hold\",\"args\":[\"$folder/release\"],\"jid\":\"in-$queue\",\"queue\":\"$queue\",\"retry\":false}"
        done
        wait_until 30 shown 2
        redis set queue:bad 'no list'
        kill -KILL "$(busy_worker)"
        wait_until 20 event_count_is job-rescued 1
        redis del queue:bad
        wait_until 30 event_count_is job-rescued 2
        touch "$folder/release"
        wait_until 30 has_done 2
}

@test "rescue: jobs that died while sqmgr was dead are requeued once; those of a clean exit are not" {
        start_workers 2 configure_fleet 'rescue_jobs = requeue'
        enqueue 1 Hold "$folder/release"
        wait_until 30 shown 1
        pid=$(busy_worker)
        kill -KILL "$sqmgr_pid"
        wait_until 10 gone "$sqmgr_pid"
        kill -KILL "$pid"
        wait_until 10 gone "$pid"
        start_sqmgr
        wait_until 20 event_count_is job-rescued 1
        touch "$folder/release"
        wait_until 60 has_done 1
        wait_until 60 ready 2

        rm "$folder/release"
        enqueue 1 Hold "$folder/release"
        wait_until 30 shown 1
        kill -TERM "$(busy_worker)"
        wait_until 60 fleet_is '.crash.last != null and (.crash.last | contains("exited"))'
        touch "$folder/release"
        wait_until 60 has_done 2
        wait_until 60 ready 2
        event_count_is job-rescued 1
}

@test "rescue: jobs in private queues are left there" {
        start_workers 2 configure_fleet 'rescue_jobs = requeue'
        enqueue 2 Hold "$folder/release"
        wait_until 30 shown 2
        for identity in $(redis smembers processes); do
                redis sadd "$identity:super_queues" "queue:sq|$identity|default"
        done
        pids=$(sqmgrctl jobs --json | jq '.jobs[].pid' | sort -u)
        # shellcheck disable=SC2086
        kill -KILL $pids
        wait_until 20 event_count_is rescue-off 1
        wait_ticks 12
        event_count_is rescue-off 1
        event_count_is job-rescued 0
        [ "$(redis llen queue:default)" = 0 ]
}

@test "rescue: a job that Redis forgets before it accepts the requeue is reported" {
        start_redis
        mkdir -p "$folder/steer"
        printf '%s\n' "command = $(stub_command)" 'rescue_jobs = requeue' | configure
        start_sqmgr
        wait_until 20 fleet_is '.active == 1'
        identity=$(redis smembers processes)
        redis set queue:low x
        redis hset "$identity:work" t1 '{"queue":"low","payload":{"class":"A","jid":"1"},"run_at":1700000000}'
        kill -KILL "$(worker_pids)"
        tried() { redis info errorstats | grep WRONGTYPE; }
        wait_until 20 tried
        # As Redis does a minute after the last heartbeat.
        redis del "$identity:work"
        wait_until 20 event_count_is rescue-failed 1
        sqmgrctl events | grep -q "died; its running jobs cannot be read from Redis: command refused:$"
        sqmgrctl events | grep -q "WRONGTYPE"
}

@test "rescue: jobs wait for Redis if it is down when their worker dies" {
        start_workers 2 configure_fleet 'rescue_jobs = requeue'
        enqueue 1 Hold "$folder/release"
        wait_until 30 shown 1
        pid=$(busy_worker)
        kill -STOP "$redis_pid"
        kill -KILL "$pid"
        wait_until 15 not redis_state_is connected
        wait_ticks 12
        kill -CONT "$redis_pid"
        wait_until 30 event_count_is job-rescued 1
        touch "$folder/release"
        wait_until 60 has_done 1
}

@test "rescue: jobs that wait for Redis survive the death and replacement of sqmgr" {
        start_workers 2 configure_fleet 'rescue_jobs = requeue'
        rescued=0
        for death in reexec kill; do
                enqueue 1 Hold "$folder/release"
                wait_until 30 shown 1
                pid=$(busy_worker)
                kill -STOP "$redis_pid"
                kill -KILL "$pid"
                wait_until 15 not redis_state_is connected
                if [ $death = kill ]; then
                        kill -KILL "$sqmgr_pid"
                        wait_until 10 gone "$sqmgr_pid"
                        start_sqmgr
                else
                        sqmgrctl reexec
                fi
                kill -CONT "$redis_pid"
                wait_until 30 event_count_is job-rescued 1
                sqmgrctl events | grep -q " re-enqueued: .* (pid $pid), which ran the job, was killed by signal 9 (SIGKILL)"
                touch "$folder/release"
                rescued=$((rescued + 1))
                wait_until 60 has_done $rescued
                # Else the next death would find this job in the last heartbeat.
                wait_until 60 shown 0
                wait_until 60 ready 2
                rm "$folder/release"
        done
}

@test "rescue: a fleet no longer configured is removed once the jobs of its last worker are requeued" {
        start_workers 2 configure_fleet 'rescue_jobs = requeue'
        enqueue 1 Hold "$folder/release"
        wait_until 30 shown 1
        kill -STOP "$redis_pid"
        pids=$(worker_pids)
        sed -i 's/^\[fleet:default\]$/[fleet:other]/' sqmgr.ini
        sqmgrctl reload
        # shellcheck disable=SC2086
        kill -KILL $pids
        wait_until 15 not redis_state_is connected
        kill -CONT "$redis_pid"
        wait_until 30 event_count_is job-rescued 1
        wait_until 30 only_other
        touch "$folder/release"
        wait_until 60 has_done 1
}


@test "rescue: repeated kills under load lose no job older than a heartbeat" {
        start_workers 2 configure_fleet 'rescue_jobs = requeue'
        # Seconds between heartbeats: 5, or 10 since Sidekiq 7.
        beat=$(ruby -r "$app" -r sidekiq/launcher -e 'puts Sidekiq::Launcher::BEAT_PAUSE')
        rounds=${KILL_ROUNDS-15} enqueued=0
        : >"$folder/kills"
        while [ "$(wc -l <"$folder/kills")" -lt "$rounds" ]; do
                # Short and long jobs, so that at any moment some are younger than a heartbeat.
                if [ "$(redis llen queue:default)" -lt 6 ]; then
                        enqueue 4 Sleep 2
                        enqueue 2 Sleep $((beat + 4))
                        enqueued=$((enqueued + 6))
                fi
                # Varies the moment.
                sleep "$((1 + RANDOM % 4)).$((RANDOM % 10))"
                mapfile -t pids < <(fleet '.workers[] | select(.busy > 0) | .pid')
                [ "${#pids[@]}" -gt 0 ] || continue
                pid=${pids[RANDOM % ${#pids[@]}]}
                # A stopped worker sends no heartbeats.
                kill -STOP "$pid" || continue
                echo "$(last_heartbeat "$pid") $pid" >>"$folder/kills"
                kill -KILL "$pid"
        done
        drained() { shown 0 && [ "$(redis llen queue:default)" = 0 ] && fleet_is 'all(.workers[]; .busy == 0)'; }
        wait_until 240 drained
        # No job may appear any more, not even by a heartbeat in flight.
        sleep $((beat + 2))
        wait_until 240 drained

        started=$(jobs_started) done=$(jobs_done)
        again=$(redis hvals ledger:started | awk '$1 > 1 { n++ } END { print n + 0 }')
        twice=$(redis hvals ledger:done | awk '$1 > 1 { n++ } END { print n + 0 }')
        rescued=$(grep -c ') re-enqueued' "$folder/sqmgr.log")
        # A job that never began was taken out of its queue just before the kill.
        vanished=$((enqueued - started))
        # A job that was killed four times is in the dead set.
        mapfile -t lost < <(comm -23 <(redis hkeys ledger:started | sort) \
                <({ redis hkeys ledger:done && redis zrange dead 0 -1 | jq -r .jid; } | sort))
        young=0
        for jid in "${lost[@]}"; do
                # Its start, by the worker's log, and the worker's last heartbeat.
                read -r began pid < <(sed -n "s/^\(.* \)\?\([^ ]*Z\) pid=\([0-9]*\) .*jid=$jid.*: start\$/\2 \3/p" \
                        "$folder/workers.log" | tail -n 1)
                beaten=$(sed -n "s/^\([0-9.]*\) $pid\$/\1/p" "$folder/kills")
                age=$(awk -v a="$(date -d "$began" +%s.%N)" -v b="$beaten" 'BEGIN { print b - a }')
                echo "# lost $jid, begun $age s before the last beat" >&3
                # The jobs of a heartbeat are slightly older than its time.
                awk -v age="$age" 'BEGIN { exit !(age < 2) }' && young=$((young + 1))
        done
        echo "# $(wc -l <"$folder/kills") killed, $enqueued jobs, $rescued rescued, ${#lost[@]} lost of which $young were" \
                "younger than a beat, $vanished never began, $again begun again, $done done, $twice done twice" >&3
        [ "$rescued" -gt 0 ]
        [ "${#lost[@]}" = "$young" ]
}
