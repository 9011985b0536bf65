#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A release is judged by its jobs: real Sidekiq workers, one class in ten of which fails in the new release.
# seconds: 90
# promises: P1 P7
load preload

# Jobs of ten classes; ReportJob fails in release "bad".
more_jobs() {
        cat <<'END'

9.times do |i|
  Object.const_set("Job#{i}", Class.new do
    include Counted

    def perform
      counted { sleep 0.01 }
    end
  end)
end

class ReportJob
  include Counted

  def perform
    Sidekiq.redis { |redis| redis.hincrby("ledger:started", jid, 1) }
    raise "broken" if RELEASE == "bad"
    Sidekiq.redis { |redis| redis.hincrby("ledger:done", jid, 1) }
  end
end
END
}

# Enqueues ten jobs after ten as long as less than 50 wait, until the file named stop exists.
load_jobs() {
        rm -f stop
        ruby -r "$app" -e 'n = 0
                classes = [*0..8].map { |i| Object.const_get("Job#{i}") } << ReportJob
                until File.exist?("stop")
                        sleep 0.2
                        next if Sidekiq::Queue.new.size > 50
                        classes.each(&:perform_async)
                        n += classes.size
                end
                File.write("enqueued", n)' -r sidekiq/api >/dev/null 2>&1 3>&- 9>&- &
        loader=$!
}
stop_load() {
        touch stop
        wait "$loader"
        wait_until 60 queue_is_empty
        wait_until 60 workers_rest
        # Each job was begun once; only those of the failing class have not ended.
        [ "$(jobs_started)" = "$(cat enqueued)" ]
        [ "$(jobs_run_twice)" = 0 ]
}
queue_is_empty() { [ "$(redis llen queue:default)" = 0 ]; }
workers_rest() { fleet_is 'all(.workers[]; .busy == 0)'; }
trial_runs() { fleet_is '.trial.verdict == "running" and .trial.new.processed > 0'; }

@test "trial: a release whose one class fails halts by itself; forks of the old template take over; no job lost" {
        make_release good
        start_fleet 4 'rollout_trial = 2min' 'rollout_trial_share = 1'
        load_jobs
        make_release bad
        run -1 sqmgrctl restart --wait --timeout 240s
        [[ $output == *'jobs fail more often in the new release: '*' jobs failed in new workers ('* ]]
        [[ $output == *'class with the most failures: ReportJob'* ]]
        fleet_is '.rollout.state == "halted" and .rollout.rolled_back == 2 and .trial.verdict == "worse"'
        fleet_is '.trial.new.failed > 10 and .trial.old.failed == 0'
        # At no time had the release more than its share.
        fleet_is '[.workers[] | select(.generation == 2)] | length <= 1'
        stop_load
        # What the release failed, and nothing else.
        [ "$(jobs_done)" -lt "$(jobs_started)" ]
        # The worker of the bad release accepts jobs until a fork is ready.
        wait_until 30 fleet_is '[.workers[] | select(.state == "active") | .generation] == [1, 1, 1, 1]'
        [ "$(releases 4)" = good:4 ]
}

@test "trial: a release that is not worse passes" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes two minutes'
        make_release good
        start_fleet 4 'rollout_trial = 2min' 'rollout_trial_share = 1'
        load_jobs
        make_release fixed
        sqmgrctl restart default
        wait_until 60 trial_runs
        wait_until 180 fleet_is '.rollout.state == "done"'
        fleet_is '.trial.verdict == "passed" and .trial.new.failed == 0'
        stop_load
        [ "$(releases 4)" = fixed:4 ]
        sqmgrctl events default >shown
        grep -q 'the trial of generation' shown
}

@test "trial: without preload a bad release leaves, and nothing is started until a restart" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes two minutes'
        make_release good
        start_redis
        make_jobs
        configure_preload 'active_process_count = 3' 'rollout_trial = 2min' 'rollout_trial_share = 1'
        set_line preload no
        start_ready 3
        load_jobs
        make_release bad
        run -1 sqmgrctl restart --wait --timeout 240s
        [[ $output == *'jobs fail more often in the new release: '* ]]
        wait_until 60 fleet_is '.active == 2 and .waits_for_code == "rolled-back"'
        stop_load
        [ "$(ask_releases 2 | cut -d' ' -f1 | sort | uniq -c | xargs)" = '2 good' ]
        sqmgrctl status | grep -q 'no worker is started until the next restart'
        ln -sfn good current
        run -0 sqmgrctl restart --wait --timeout 240s
        [ "$(releases 3)" = good:3 ]
}
