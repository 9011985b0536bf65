#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# contrib/ for Prometheus and Grafana: alerts fire exactly when they should, and name only existing metrics.
# seconds: 25
# promises: none
load helpers

tool=$top/tests/prometheus/check.rb
rules=$top/contrib/prometheus/sqmgr.rules.yml
tests=$top/tests/prometheus/alerts.yml
dashboard=$top/contrib/grafana/sqmgr.json

check() { ruby "$tool" "$@"; }

@test "alerts: each fires exactly under its own condition" {
        command -v promtool >/dev/null || skip "promtool is not installed (Debian's prometheus)"
        promtool check rules "$rules"
        check tests "$rules" "$tests" >tests.yml
        promtool test rules tests.yml
        for change in 's/for: 2m/for: 1m/' 's/humanizeDuration/humanize/'; do
                sed "$change" "$rules" >bad.yml
                check tests bad.yml "$tests" >tests.yml
                run -1 promtool test rules tests.yml
        done
}

@test "alerts: each has a severity, a meaning and a remedy" {
        check alerts "$rules" "$tests" "$top/docs/monitoring.md"
        for change in s/SqmgrRedisDown/redisDown/ '0,/severity: critical/s//severity: bad/' '0,/summary:/s//summery:/' \
                's/SqmgrRedisDown/SqmgrRedisGone/' '0,/when-an-alert-fires/s//nowhere/'; do
                sed "$change" "$rules" >bad.yml
                run -1 check alerts bad.yml "$tests" "$top/docs/monitoring.md"
        done
}

@test "docs/monitoring.md: Prometheus accepts its scrape_configs" {
        command -v promtool >/dev/null || skip "promtool is not installed (Debian's prometheus)"
        # shellcheck disable=SC2016
        sed -n '/^```yaml$/,/^```$/{/^```/d;p}' "$top/docs/monitoring.md" >prometheus.yml
        grep -q '^scrape_configs:' prometheus.yml
        cp "$rules" .
        promtool check config prometheus.yml
}

@test "dashboard: each query is PromQL, and follows the chosen data source, jobs and instances" {
        check dashboard "$dashboard"
        while read -r change; do
                jq "$change" "$dashboard" >bad.json
                run -1 check dashboard bad.json
        done <<'END'
.panels[2].targets[0].datasource.uid = "mine"
.panels[1].targets[0].expr |= gsub("job=~"; "job!~")
.panels[2].targets[0].expr = "sqmgr_redis_up{job=~\"$job\"}"
(.panels[].targets[]?.expr) |= gsub("__rate_interval"; "__interval")
(.panels[].targets[]?.expr) |= gsub("increase"; "abs")
del(.panels[].targets)
END
        command -v promtool >/dev/null || skip "promtool is not installed (Debian's prometheus)"
        check queries "$dashboard" >queries.yml
        promtool check rules queries.yml
}

get_from_web() { curl -sf -m 60 --unix-socket "$folder/web.sock" http://localhost/metrics; }
web_has_metric() { get_from_web | grep -q "^$1"; } # NAME
has_metric() { sqmgrctl metrics | grep -q "^$1"; } # NAME

@test "alerts and dashboard name only metrics and labels that sqmgr exports" {
        start_redis
        configure <<END
command = $(sidekiq_command 2)
active_process_count = 1
active_process_max = 1
memory_threshold = 20M
memory_limit = 10G
job_warn_after = 1s
[fleet:preloaded]
command = $(stub_command)
preload = yes
[fleet:database]
framework = solid_queue
command = true --mode async
database_url = postgresql:///none?host=$folder
active_process_count = 0
END
        enqueue 3 Hold "$folder/release"
        start_sqmgr
        # Metrics that exist only after an event: a long job, and in a worker whose memory ran out.
        wait_until 60 has_metric sqmgr_fleet_oldest_job_seconds
        wait_until 60 has_metric 'sqmgr_culprits_total{'
        wait_until 20 has_metric sqmgr_queue_latency_seconds
        wait_until 60 has_metric 'sqmgr_fleet_scaling_oldest_ratio{'
        sqmgrctl metrics >text
        # Detection of a leak takes hours.
        echo 'sqmgr_fleet_memory_growth_times{fleet="default"} 4' >>text
        echo 'sqmgr_fleet_memory_growth_bytes_per_second{fleet="default"} 9' >>text
        if command -v sqmgr-web >/dev/null; then
                launch web sqmgr-web -s "$SQMGR_SOCKET" -l "unix:$folder/web.sock"
                wait_until 20 web_has_metric sqmgr_web_instance_up
                get_from_web >>text
        else
                # Built without libmicrohttpd.
                echo 'sqmgr_web_instance_up{socket="a"} 1' >>text
        fi
        check names text "$rules" "$dashboard"
        for change in s/sqmgr_redis_up/sqmgr_redis_down/ 's/state="halted"/state="stuck"/' 's/without (url)/without (uri)/' \
                's/labels.queue /labels.line /' 's/{reason="crash"}/{why="crash"}/' s/labels.by/labels.from/; do
                sed "$change" "$rules" >bad.yml
                not cmp -s bad.yml "$rules"
                run -1 check names text bad.yml
        done
        for change in s/sqmgr_worker_threads/sqmgr_worker_strings/ 's/{{queue}}/{{line}}/' 's/, fleet)"/, fleets)"/'; do
                sed "$change" "$dashboard" >bad.json
                not cmp -s bad.json "$dashboard"
                run -1 check names text bad.json
        done
}
