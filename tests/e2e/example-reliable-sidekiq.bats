#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# contrib/examples/reliable-sidekiq: the promises of its README, while a worker is killed, the master dies, Redis is
# full, the client dies, and a deployment runs. SQMGR_LONG=1 runs this six times.
# long: it plays an example; other files test what the example uses
# seconds: 60
# promises: P1 P5
load helpers
# shellcheck source=contrib/examples/shared.bash
. "$top/contrib/examples/shared.bash"

say() { echo "# $*" >&3; }

@test "reliable sidekiq: through all failures every job is done or dead, in order, and an alert is sent" {
        start_example reliable-sidekiq
        day
        # The dead jobs of the ledger are those that Sidekiq shows.
        [ "$(dead_in_redis)" = "$(awk '$2 == "dead" { print $3 }' ledger | sort -u)" ]
        # The failures did happen.
        [ "$(grep -c ') re-enqueued' sqmgr.log)" = "$rounds" ]
        [ "$(grep -c "fleet 'strict': Redis failed over from" sqmgr.log)" = "$rounds" ]
        grep -q ' refused ' ledger
        grep -q ' kept ' ledger
        # Only kill -9 cut off jobs.
        [ "$(sqmgrctl events --json | jq -s '[.[] | select(.event | IN("killed", "drain-cut", "hung"))] | length')" = 0 ]
}

with_outbox() { # RUBY
        ruby -r "$examples/reliable-sidekiq/outbox" -r "$examples/reliable-sidekiq/scheduler" -e '
                Redis.silence_deprecations = true if defined?(Redis) && Redis.respond_to?(:silence_deprecations=)
                Sidekiq.configure_client { |config| config.redis = {url: ENV["REDIS_URL"], reconnect_attempts: 0} }
                OUTBOX = Outbox.new("outbox", limit: Integer(ENV.fetch("LIMIT", 1 << 20))).install
                class Work
                  include Sidekiq::Job
                end' -e "$1"
}
arguments_in_order() { redis --raw lrange queue:default 0 -1 | jq '.args[0]' | tac | paste -sd' '; }

@test "reliable sidekiq: the outbox is bounded, reported once, survives its process, and is pushed in order" {
        LIMIT=2000 run -0 with_outbox 'n = 0
                begin
                  loop { Work.perform_async(n += 1) }
                rescue Outbox::Full => error
                  puts error.message, n - 1
                end'
        count=${lines[-1]}
        [ "$count" -gt 3 ]
        [ "${lines[-2]}" = 'Redis takes no jobs, and outbox is full' ]
        [ "$(grep -c 'they wait in outbox' <<<"$output")" = 1 ]

        # A line truncated by a crash.
        sed -i '$ s/......$//' outbox
        truncate -s -1 outbox
        with_outbox "Work.perform_async($count)"
        start_redis
        run -0 with_outbox "OUTBOX.drain; Work.perform_async($((count + 1)))"
        [[ $output == *"Redis takes jobs again, $count that waited are pushed"* ]]
        [ "$(arguments_in_order)" = "$(seq -s' ' $((count + 1)))" ]
}

@test "reliable sidekiq: a job that is due while Redis is full stays scheduled until there is room" {
        start_redis
        redis zadd retry 1 '{"class":"Work","jid":"j","queue":"default","args":[1],"retry_count":0}'
        redis config set maxmemory 1
        run ! with_outbox 'Scheduler.new.enqueue_jobs'
        [[ $output == *OOM* ]]
        [ "$(redis zcard retry)" = 1 ]
        redis config set maxmemory 0
        with_outbox 'Scheduler.new.enqueue_jobs'
        [ "$(redis zcard retry)" = 0 ]
        [ "$(redis lindex queue:default 0 | jq -c '[.retry_count, .args[0], .enqueued_at > 0]')" = '[0,1,true]' ]
        [ "$(redis smembers queues)" = default ]
}

@test "reliable sidekiq: the thread that moves due jobs survives a start while Redis is down" {
        with_outbox 'config = [Sidekiq.default_configuration] if Sidekiq.respond_to?(:default_configuration)
                poller = Sidekiq::Scheduled::Poller.new(*config)
                poller.send(:cleanup) if poller.respond_to?(:cleanup, true)'
}

judge() { # EVENT...: of one job of class Work
        local event
        for event; do
                echo "0.0 $event 0123456789abcdef01234567 mail Work x 1"
        done >ledger
        run ruby "$examples/reliable-sidekiq/judge.rb" ledger rescued
}

@test "reliable sidekiq: every run is checked against the ledger: none lost, each repeated run explained" {
        : >rescued
        judge sent pushed begun 'done'
        [ "$status" = 0 ]
        judge sent pushed begun
        [ "$status" = 1 ]
        [[ $output == *'is lost'* ]]
        judge sent pushed begun begun 'done'
        [ "$status" = 1 ]
        [[ $output == *'was run 2 times, of which 1 are explained'* ]]
        judge sent refused sent pushed begun begun 'done'
        [ "$status" = 1 ]
        judge sent pushed sent begun begun 'done'
        [ "$status" = 0 ]
        judge sent pushed begun failed dead
        [ "$status" = 1 ]
        [[ $output == *'died'* ]]
        echo 'Work 0123456789abcdef01234567 (queue mail) re-enqueued: weighted/1 (pid 2), which ran the job, was killed' >rescued
        judge sent pushed begun begun 'done'
        [ "$status" = 0 ]
        # Jobs that were never promised may be missing.
        judge sent refused
        [ "$status" = 0 ]
}
