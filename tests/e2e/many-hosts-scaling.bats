#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Hosts of a group that scale by one queue each take a share of the need: with real Sidekiqs. With SQMGR_LONG=1: three
# hosts beside an unmanaged Sidekiq, one of which falls silent.
# seconds: 40
# long: the next release deletes what this tests
# promises: P1
# shellcheck disable=SC2034,SC2154
load helpers
load many-hosts

setup_file() { needs_host_names; }

workers=1
threads=5
fleet_lines='active_process_max = 10
latency_target = 30s
scale_down_after = 10min'

arithmetic_has() { fleet_is ".scaling.arithmetic | any(contains(\"$1\"))"; } # TEXT
arithmetic_has_hosts() { arithmetic_has "of $1 hosts that scale by these queues"; } # HOSTS
wants_more() { fleet_is '.target > 1'; }

# Writes job times as the metrics of Sidekiq 7.0 and later: so they are known at once with any version.
set_service_times() { # SECONDS
        local minute
        for minute in {-1..9}; do
                redis hset "$(date -u -d "$minute minutes" '+j|%Y%m%d|%-H:%-M')" 'Noted|ms' "$(($1 * 100000))" 'Noted|p' 100
        done
}
burst() { # COUNT SECONDS
        ruby -r "$e2e/many-hosts-app.rb" -e 'n, seconds = ARGV.map(&:to_i)
                Sidekiq::Client.push_bulk("class" => "Noted", "args" => [[seconds]] * n)' "$@"
}

start_sharing() {
        set_service_times 1
        start_hosts
        for host in $hosts; do
                wait_until 30 on "$host" arithmetic_has_hosts "$(wc -w <<<"$hosts")"
        done
}

# Records the target counts of all hosts, and the largest number of threads that a host reports as needed.
sample() {
        local host
        for host in $hosts; do
                on "$host" fleet '"target \(.target)"'
                on "$host" fleet '.scaling.arithmetic[]' | sed -n 's/^needed: \(.*\), less those.*/need \1/p'
        done | awk '$1 == "target" { workers += $2 }
                $1 == "need" { for (i = 2; i <= NF; i++) if ($i + 0 > need) need = $i + 0 }
                END { print workers + 0, need + 0 }' >>samples
}

# The need is exceeded at most by the rounding of each host, and by changes between two samples.
stays_within_the_need() {
        awk -v threads=$threads -v hosts="$(wc -w <<<"$hosts")" '
                $1 > workers { workers = $1 }
                $2 > need { need = $2 }
                END {
                        most = 1.1 * need / (0.95 * threads) + hosts
                        print workers " workers at most, for " need " threads"
                        exit !(workers > hosts && workers <= most)
                }' samples
}

none_run_twice() { # COUNT of jobs
        wait_until 90 has_done "$1"
        [ "$(awk '{ n[$1 " " $2]++ } END { for (job in n) bad += n[job] != 1; print bad + 0 }' ledger)" = 0 ]
}
has_done() { [ "$(count_of "done")" = "$1" ]; }

@test "scaling on two hosts of a group: each takes its share of a burst, and reports it" {
        hosts='h1 h2'
        start_redis
        start_sharing
        burst 600 1
        patience=$((SECONDS + 200))
        for host in $hosts; do
                until on "$host" wants_more; do
                        [ $SECONDS -lt $patience ]
                        sample
                done
        done
        # Samples more than the first moment.
        for _ in {1..10}; do
                sample
                sleep 0.5
        done
        stays_within_the_need >&3
        [[ $(on h1 sqmgrctl why default) == *'of 2 hosts that scale by these queues'* ]]
        none_run_twice 600
}

@test "scaling on three hosts of a group: beside an unmanaged Sidekiq, and with a host that falls silent" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes three minutes'
        hosts='h1 h2 h3'
        export LEDGER=$folder/ledger
        start_redis
        # It is counted when each sqmgr starts.
        launch unmanaged sidekiq -r "$e2e/many-hosts-app.rb" -c 5
        unmanaged=$!
        wait_until 40 redis_has processes
        start_sharing
        for host in $hosts; do
                wait_until 90 on "$host" arithmetic_has '1 other process serves these queues, too'
        done
        set_service_times 1
        burst 900 1
        for host in $hosts; do
                until on "$host" wants_more; do
                        [ $SECONDS -lt 400 ]
                        sample
                done
        done
        # As above.
        for _ in {1..20}; do
                sample
                sleep 0.5
        done
        stays_within_the_need >&3
        none_run_twice 900
        alive "$unmanaged"

        # Its workers keep running, now unmanaged.
        kill_host h3
        for host in h1 h2; do
                wait_until 90 on "$host" arithmetic_has_hosts 2
                wait_until 90 on "$host" fleet_is '.scaling.arithmetic | any(test("; [2-9] other processes serve these queues, too"))'
        done
        start_host h3
        for host in $hosts; do
                wait_until 30 on "$host" arithmetic_has_hosts 3
                wait_until 90 on "$host" arithmetic_has '1 other process serves these queues, too'
        done
}
