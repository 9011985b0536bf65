#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A job above 256 KiB is not parsed: it costs only its bytes of memory, counts as running, and is not requeued.
# seconds: 20
# promises: P1 P8
load helpers

queue_is() { sqmgrctl queues --json | jq -e ".redis[0].queues[] | $1" >/dev/null; }
heads_read() { redis info commandstats | sed -n 's/^cmdstat_lindex:calls=\([0-9]*\),.*/\1/p' | grep . || echo 0; }
heads_read_are() { [ "$(heads_read)" -ge "$1" ]; } # COUNT at least
peak_kib() { sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB$/\1/p' "/proc/$1/status"; } # PID

configure_fleet() {
        redis_lines='queue_warn_size = 1000' configure <<END
command = $(sidekiq_command 3)
rescue_jobs = requeue
END
}

@test "8 MB of empty objects at the head of a queue cost only their bytes; a running job of 300 KB is unknown" {
        start_workers 1 configure_fleet
        before=$(peak_kib "$sqmgr_pid")
        ruby -e 'print %({"class":"X","jid":"1","enqueued_at":1700000000,"args":[), "{}," * 2_666_000, "0]}"' |
                redis -x lpush queue:heavy
        redis sadd queues heavy
        wait_until 30 heads_read_are $(($(heads_read) + 3))
        run -0 sqmgrctl status
        # sqmgr holds its bytes twice, in a buffer and in the reply. As a tree it would need 600 MB.
        echo "peak: $before KiB, then $(peak_kib "$sqmgr_pid")"
        [ $(($(peak_kib "$sqmgr_pid") - before)) -lt $((64 * 1024)) ]
        queue_is 'select(.name == "heavy") | .size == 1 and .latency_seconds == null'
        redis del queue:heavy

        ruby -r "$app" -e 'Hold.perform_async(ARGV[0], "x" * 300_000)' "$folder/release"
        wait_until 30 fleet_is '.workers[0].busy == 1'
        pid=$(worker_pids)
        run -1 --separate-stderr sqmgrctl jobs
        [[ $stderr == "sqmgrctl: default/1 (pid $pid): 1 more running, too large to read (over 256 KiB)" ]]
        # A quieted worker is not proven idle while that job runs.
        sqmgrctl quiet default
        wait_until 20 fleet_is '.workers[0].state == "quiet"'
        beat=$(last_heartbeat "$pid")
        wait_until 30 sent_heartbeat_after "$pid" "$beat"
        wait_ticks 3
        fleet_is '.workers[0] | .state == "quiet" and .busy == 1'
        kill -KILL "$pid"
        wait_until 20 any_event '.event == "rescue-failed" and (.text | contains("died with 1 running job not re-enqueued: too large to read (over 256K). Enqueue the job again"))'
        event_count_is job-rescued 0
        [ "$(redis llen queue:default)" = 0 ]
}
