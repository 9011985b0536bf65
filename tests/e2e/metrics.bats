#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Metrics for Prometheus.
# seconds: 15
# promises: none
load helpers

metric_is() { sqmgrctl metrics | grep -qFx "$1"; } # LINE

@test "metrics report workers, their exits and a Redis that is down, and promtool has no complaint" {
        start_fleet
        run -0 sqmgrctl metrics
        [[ $output == *'sqmgr_workers{fleet="default",state="active"} 2'* ]]
        [[ $output == *"sqmgr_redis_up{url=\"unix://$folder/redis.sock\"} 1"* ]]
        [[ $output =~ sqmgr_worker_memory_bytes\{fleet=\"default\",worker=\"default/1\"\}\ [1-9] ]]
        [[ $output =~ sqmgr_tick_duration_seconds_count\ [1-9] ]]
        kill -KILL "$(fleet '.workers[0].pid')"
        wait_until 10 metric_is 'sqmgr_worker_ends_total{fleet="default",reason="crash"} 1'
        wait_until 20 ready 2
        run -0 sqmgrctl restart --wait=drained --timeout 300s
        metric_is 'sqmgr_worker_ends_total{fleet="default",reason="restart"} 2'
        metric_is 'sqmgr_rollout_state{fleet="default",state="done"} 1'
        metric_is 'sqmgr_fleet_generation{fleet="default"} 2'

        sqmgrctl metrics >text
        if command -v promtool >/dev/null; then
                run -0 promtool check metrics <text
                [ -z "$output" ]
        fi
        # No label contains a pid, and each family has its help and its type.
        run ! grep -E '[{,]pid=' text
        sed -E '/^#/d; s/[{ ].*//; s/_(sum|count)$//' text | sort -u >families
        [ -s families ]
        while read -r family; do
                grep -q "^# HELP $family " text && grep -q "^# TYPE $family " text || { echo "$family" && return 1; }
        done <families

        kill -KILL "$redis_pid"
        wait_until 10 metric_is "sqmgr_redis_up{url=\"unix://$folder/redis.sock\"} 0"
        sqmgrctl metrics --json | jq -e '.text | startswith("# HELP sqmgr_info ")'
}

@test "metrics report the configuration, and whether the last one read is current" {
        start_workers 2 < <(printf '%s\n' "command = $(stub_command)" 'active_process_count = 2' 'memory_threshold = 1G')
        sqmgrctl scale default 3
        metric_is 'sqmgr_fleet_configured_workers{fleet="default"} 2'
        metric_is 'sqmgr_fleet_target_workers{fleet="default"} 3'
        metric_is 'sqmgr_fleet_memory_threshold_bytes{fleet="default"} 1073741824'
        metric_is 'sqmgr_config_last_reload_successful 1'
        read_at() { sqmgrctl metrics | sed -n 's/^sqmgr_config_last_reload_success_timestamp_seconds //p'; }
        before=$(read_at)
        cp sqmgr.ini good.ini
        echo nonsense >>sqmgr.ini
        run -1 sqmgrctl reload
        metric_is 'sqmgr_config_last_reload_successful 0'
        [ "$(read_at)" = "$before" ]
        cp good.ini sqmgr.ini
        sqmgrctl reload
        metric_is 'sqmgr_config_last_reload_successful 1'
        awk -v a="$before" -v b="$(read_at)" -v now="$(date +%s.%N)" 'BEGIN { exit !(a < b && b <= now + 0.001) }'
}
