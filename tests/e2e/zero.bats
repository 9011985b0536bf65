#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Scale to zero: a fleet without jobs has no worker, and the first job, or one that falls due, starts one.
# seconds: 130
# promises: P1 P2
load preload

asleep() { fleet_is '.target == 0 and (.workers | length) == 0'; }
template_is_ready() { fleet_is '.template.state == "ready"'; }
why_says() { [[ $(sqmgrctl why default) == *"$1"* ]]; } # TEXT
first_at() { redis hvals ledger:at | sort -n | head -n 1; }

# Jobs that record when they begin, in milliseconds.
make_timed_jobs() {
        make_jobs
        cat >>"$app" <<'END'

class Timed
  include Counted

  def perform(seconds = 0)
    at = Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond)
    Sidekiq.redis { |redis| redis.hset("ledger:at", jid, at) }
    counted { sleep seconds }
  end
end
END
}

# Prints the time of the enqueueing in milliseconds.
enqueue_timed() { # COUNT [IN-SECONDS]
        ruby -r "$app" -e 'n, later = ARGV
                at = Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond)
                n.to_i.times { later ? Timed.perform_in(later.to_f) : Timed.perform_async(0.05) }
                puts at' "$@"
}

@test "zero: a preloaded fleet without jobs has no worker; 500 jobs begin within a second, and none is lost" {
        start_redis
        make_timed_jobs
        make_release one
        configure_preload 'active_process_count = 0' 'active_process_max = 3' 'scale_down_after = 2s' 'latency_target = 5s'
        start_sqmgr
        # One worker shows which queues the fleet serves.
        wait_until 60 any_event '.event == "scaled" and (.text | contains("0 -> 1"))'
        wait_until 60 asleep
        wait_until 20 template_is_ready
        why_says 'from the template'
        [[ $(sqmgrctl status) == *'asleep, 0 of 0 active'* ]]
        run -0 sqmgrctl ping --ready

        at=$(enqueue_timed 500 | tail -n 1)
        wait_until 30 has_started 1
        # On a busy machine any step may take longer.
        took=$(($(first_at) - at)) limit=${SQMGR_LONG:+1000}
        echo "the first job began $took ms after it was enqueued"
        [ "$took" -lt "${limit:-10000}" ]
        wait_until 60 has_done 500
        wait_until 60 asleep
        [ "$(jobs_started)" -eq 500 ]
        [ "$(jobs_run_twice)" -eq 0 ]
        not any_event '.event == "drain-cut" or .event == "killed" or .event == "crashed" or .event == "job-lost"'
}

@test "zero: a sqmgr that is killed while a fleet sleeps wakes it afterwards, and so does a scheduled job in time" {
        make_timed_jobs
        start_workers 0 <<END
command = $(sidekiq_command 1)
active_process_count = 0
active_process_max = 2
scale_down_after = 1s
END
        wait_until 60 any_event '.event == "scaled" and (.text | contains("0 -> 1"))'
        wait_until 60 asleep
        kill_sqmgr
        start_sqmgr
        # The queues are known: no worker is started to show them.
        wait_until 20 why_says 'which boots in'
        asleep
        run -0 sqmgrctl restart --wait --timeout 120s
        [[ $output == *'default: restart done; no worker was running, later ones start with generation 2'* ]]
        # The worker that has shown the release may already be gone again.
        [ "$(sqmgrctl events --json | jq -s '[.[] | select(.event == "scaled" and (.text | contains("0 -> ")))] | length')" -eq 0 ]
        enqueue_timed 1
        wait_until 60 has_done 1
        wait_until 60 asleep

        enqueue_timed 1 22
        wait_until 60 any_event '.event == "scaled" and (.text | contains("a scheduled job falls due"))'
        [ "$(jobs_started)" -eq 1 ]
        wait_until 60 has_done 2
        wait_until 60 asleep
}

@test "zero: a restart of a sleeping fleet halts if the release does not boot" {
        start_redis
        make_timed_jobs
        make_release one
        configure_preload 'active_process_count = 0' 'active_process_max = 3' 'scale_down_after = 1s'
        start_sqmgr
        wait_until 60 any_event '.event == "scaled" and (.text | contains("0 -> 1"))'
        wait_until 60 asleep
        make_release two 'raise "broken"'
        run -1 sqmgrctl restart --wait --timeout 120s
        fleet_is '.rollout.state == "halted"'
        make_release three
        run -0 sqmgrctl restart --wait --timeout 120s
        wait_until 60 asleep
}
