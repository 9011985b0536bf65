#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Real workers report how many of their jobs failed: Sidekiq by sqmgr-outcomes.rb, also in forks of a template, and RQ by
# itself.
# seconds: 45
# promises: P1
load helpers
# shellcheck disable=SC2034

trial_app() {
        cat "$e2e/app.rb" - >"$folder/trial_app.rb" <<'END'

class OkJob
  include Counted

  def perform
    counted { sleep 0.05 }
  end
end

class FailJob
  include Counted

  def perform
    Sidekiq.redis { |redis| redis.hincrby("ledger:started", jid, 1) }
    raise "failed"
  end
end

# Reports the options that a child process inherits.
class ChildJob
  include Counted

  def perform
    options = IO.popen(["ruby", "-e", 'print ENV["RUBYOPT"].inspect'], &:read)
    Sidekiq.redis { |redis| redis.set("child", options) }
  end
end
END
        app=$folder/trial_app.rb
}

start_trial() { # [LINE...]
        trial_app
        start_workers 2 < <(printf '%s\n' "command = $(sidekiq_command 2)" 'active_process_count = 2' 'rollout_trial = 1min' "$@")
}

identities() { redis smembers processes; }
# Prints `PROCESSED FAILED CLASS COUNT` of each process.
figures() {
        local identity
        for identity in $(identities); do
                redis hmget "$identity" sqmgr_processed sqmgr_failed sqmgr_failed_class sqmgr_failed_class_count | paste -sd ' '
        done
}
sums() { figures | awk '{ processed += $1; failed += $2; of_class += $NF } END { print processed, failed, of_class }'; }
sums_are() { [ "$(sums)" = "$1" ]; } # PROCESSED FAILED OF_CLASS
publish_zero() { [ "$(figures | sort -u)" = '0 0  0' ] && [ "$(figures | wc -l)" = 2 ]; }
options_of() { tr '\0' '\n' <"/proc/$1/environ" | grep ^RUBYOPT=; } # PID
known_options() { redis_has child; }

run_jobs() {
        wait_until 30 publish_zero
        enqueue 13 OkJob
        enqueue 7 FailJob
        wait_until 60 sums_are '20 7 7'
        figures >&2
        # Each process that ran a failing job names its class, and no other class.
        [ "$(figures | awk '$2 > 0 { print $3 }' | sort -u)" = FailJob ]
        # The key expires as Sidekiq has it.
        for identity in $(identities); do
                [ "$(redis ttl "$identity")" -gt 0 ]
        done
        # What Sidekiq counts itself is the same.
        [ "$(redis get stat:processed) $(redis get stat:failed)" = '20 7' ]
        enqueue 1 ChildJob
        wait_until 30 known_options
        wait_until 30 sums_are '21 7 7'
}

@test "outcomes: Sidekiq's processes publish them; children of jobs do not inherit the option" {
        export RUBYOPT=-W:no-deprecated
        start_trial
        for pid in $(worker_pids); do
                [[ $(options_of "$pid") == "RUBYOPT=-W:no-deprecated -r"*/sqmgr-outcomes.rb ]]
        done
        run_jobs
        [ "$(redis get child)" = '"-W:no-deprecated"' ]
        # Without a trial, nothing is loaded.
        sed -i '/^rollout_trial/d' sqmgr.ini
        sqmgrctl reload
        run -0 sqmgrctl restart --wait=drained --timeout 120s
        for pid in $(worker_pids); do
                [ "$(options_of "$pid")" = RUBYOPT=-W:no-deprecated ]
        done
        [ -z "$(figures | tr -d ' \n')" ]
}

@test "outcomes: Sidekiq's processes that are forked from a template start at zero" {
        unset RUBYOPT
        start_trial 'preload = yes'
        fleet_is 'all(.workers[]; .forked)'
        run_jobs
        [ "$(redis get child)" = nil ]
}

@test "outcomes: no heartbeat, no figures: Sidekiq sees that its key has expired; a Ruby without the events starts" {
        start_redis
        cat >expired.rb <<'END'
require "sidekiq"
require "sidekiq/cli"
require "sidekiq/launcher"
Sidekiq.logger.level = Logger::FATAL
registered = 0
if Sidekiq.respond_to?(:default_configuration)
  config = Sidekiq.default_configuration
  config.queues = %w[default]
else
  config = Sidekiq.options
  config[:queues] = %w[default]
end
launcher = Sidekiq::Launcher.new(config)
launcher.define_singleton_method(:fire_event) { |event, **| registered += 1 if event == :heartbeat }
exists = -> { !Sidekiq.redis { |redis| redis.hget(launcher.identity, "beat") }.nil? }
beat = -> { launcher.send(:❤) }
beat.call
puts "first #{exists.call} #{registered}"
Sidekiq.redis { |redis| redis.del(launcher.identity) }
launcher.define_singleton_method(:to_json) { |*| raise "unreachable" }
beat.call
puts "failed #{exists.call} #{registered}"
launcher.singleton_class.remove_method(:to_json)
beat.call
puts "again #{exists.call} #{registered}"
p Sidekiq.redis { |redis| redis.hget(launcher.identity, "sqmgr_processed") }
END
        script=$top/src/preload/sqmgr-outcomes.rb
        run -0 --separate-stderr ruby -r "$script" expired.rb
        [ "$output" = "$(printf '%s\n' 'first true 1' 'failed false 1' 'again true 2' '"0"')" ]

        echo 'TracePoint.define_singleton_method(:new) { |*| raise ArgumentError, "unknown event: end" }' >truffle.rb
        run -0 ruby -r ./truffle.rb -r "$script" -e 'puts "starts"'
        [ "$output" = starts ]
}

rq_identities() { redis smembers rq:workers; }
rq_sums() {
        for identity in $(rq_identities); do
                redis hmget "$identity" successful_job_count failed_job_count | paste -sd ' '
        done | awk '{ successful += $1; failed += $2 } END { print successful + 0, failed + 0 }'
}
rq_sums_are() { [ "$(rq_sums)" = "$1" ]; } # SUCCESSFUL FAILED

@test "outcomes: RQ counts successful and failed jobs apart" {
        start_workers 2 < <(printf '%s\n' 'framework = rq' "command = /usr/bin/rq worker -u unix://$folder/redis.sock work" \
                "environment = PYTHONPATH=$e2e PYTHONDONTWRITEBYTECODE=1" 'active_process_count = 2' 'rollout_trial = 1min')
        PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$e2e/rq_app.py" 13 nap 0
        PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$e2e/rq_app.py" 7 fail
        wait_until 60 rq_sums_are '13 7'
}
