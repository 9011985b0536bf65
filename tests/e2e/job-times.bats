#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Job durations are read from the metrics that Sidekiq 7.0 and later writes, one minute after the jobs: `why` shows them.
# seconds: 50
# promises: none
load helpers

metrics_written() { [ -n "$(redis --scan --pattern 'j|*')" ]; }
uses_sidekiq_metrics() { sqmgrctl why default | grep -F '(source: metrics of Sidekiq)'; }

@test "job times are read from the metrics of a real Sidekiq" {
        major=$(ruby -r sidekiq -e 'puts Sidekiq::VERSION[/\d+/]')
        [ "$major" -ge 7 ] || skip 'Sidekiq before 7 writes no metrics of jobs'
        start_workers 1 <<END
command = $(sidekiq_command 5)
active_process_count = 1
active_process_max = 2
latency_target = 30s
END
        enqueue 15 Sleep 2
        wait_until 30 has_done 15
        wait_until 30 metrics_written
        # The metrics of a minute are read once it is over.
        wait_until 70 uses_sidekiq_metrics
        run -0 uses_sidekiq_metrics
        [[ $output =~ 'a job takes 2'(\.[0-9])?'s (source: metrics of Sidekiq)' ]]
}
