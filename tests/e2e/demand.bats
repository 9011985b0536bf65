#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What the queues demand, for scalers outside of sqmgr: sqmgrctl demand, /api/demand, metrics, the files for KEDA and
# Kubernetes; and scaling = advise, which shows a count and changes none.
# long: the next release deletes what this tests
# seconds: 40
# promises: P2
load helpers

keda=$top/contrib/container/keda.yaml
kubernetes() { ruby "$top/tests/kubernetes/check.rb" "$@"; }
demand() { sqmgrctl demand --json; }
demand_is() { demand | jq -e ".fleets[0] | $1"; } # CONDITION
changes() { sqmgrctl events --json | jq -s '[.[] | select(.event == "scaled")] | length'; }
get() { curl -sf -m 60 --unix-socket "$folder/web.sock" "http://localhost$1"; }
instance_is() { get /api/demand | jq -e ".instances[0] | $1"; } # CONDITION
metric() { sqmgrctl metrics | awk -v name="$1{fleet=\"default\"}" '$1 == name { print $2 }'; } # NAME

# All jobs at once: workers see none before.
burst() { # COUNT SECONDS
        ruby -r "$app" -e 'n, seconds = ARGV
                n.to_i.times.each_slice(500) do |slice|
                        Sidekiq::Client.push_bulk("class" => "Sleep", "queue" => "staged", "args" => [[seconds.to_f]] * slice.size)
                end' "$@"
        redis srem queues staged
        redis sadd queues default
        redis rename queue:staged queue:default
}

start_web() {
        command -v sqmgr-web >/dev/null || return 0
        launch web sqmgr-web -s "$folder/sqmgr.read.sock" -l "unix:$folder/web.sock"
        wait_until 20 instance_is .reachable
}

@test "scaling = advise: a burst is answered in figures, and the count stays until a reload says apply" {
        start_workers 1 <<END_OF_INI
command = $(sidekiq_command 5)
active_process_count = 1
active_process_max = 3
latency_target = 5s
scaling = advise
END_OF_INI
        start_web
        wait_until 30 demand_is '.mode == "advise" and (.automatic | not) and .needed == 0 and .waiting == 0 and .latency_seconds == 0 and .backlog_seconds == 0'
        burst 3000 0.5
        # 3 workers are the most that autoscaling would run; more are needed.
        wait_until 40 demand_is '.needed > 3 and .wanted == 3 and .active == 1 and .waiting > 1000 and .latency_seconds > 0'
        fleet_is '.target == 1 and (.workers | length) == 1'
        [ "$(changes)" = 0 ]
        run -0 sqmgrctl why default
        [[ $output == *"'scaling = advise' keeps the count at 1; 3 would run: "* ]]
        sqmgrctl doctor | grep -q "^ok .*fleet 'default': 'scaling = advise' keeps the count at 1"
        run -0 sqmgrctl status default
        [[ $output == *'1 of 1 active (advice: 3)'* ]]
        run -0 sqmgrctl demand
        [[ $output == *'FLEET'*'NEEDED'*$'\n'default*"'scaling = advise' keeps the count at 1"* ]]
        [ "$(metric sqmgr_fleet_scaling_needed_workers)" -gt 3 ]
        [ "$(metric sqmgr_fleet_scaling_automatic)" = 0 ]
        run -1 sqmgrctl scale default auto
        [[ $output == *'scaling = advise'* ]]

        if command -v sqmgr-web >/dev/null; then
                wait_until 20 instance_is '.reachable and .error == null and .age_seconds < 60 and .fleets[0].needed > 3'
                # The path of the example selects the number, as KEDA does.
                run -0 kubernetes value "$(kubernetes get "$keda" ScaledObject spec.triggers.0.metadata.valueLocation)" <<<"$(get /api/demand)"
                [ "${output%%.*}" -gt 15 ]
                get / | grep -q "scaling = advise"
                get /metrics | grep -q '^sqmgr_fleet_scaling_needed_workers{fleet="default"'
        fi

        sed -i 's/^scaling = advise/scaling = apply/' sqmgr.ini
        run -0 sqmgrctl reload
        wait_until 30 demand_is '.mode == "apply" and .automatic and .active > 1'
        [ "$(changes)" -gt 0 ]
        # The count that autoscaling chose lapses.
        sed -i 's/^scaling = apply/scaling = advise/' sqmgr.ini
        run -0 sqmgrctl reload
        fleet_is '.target == 1 and .scaling.mode == "advise"'
        not any_event '.event == "drain-cut" or .event == "killed" or .event == "crashed"'

        # Without the queues, the need is not known: null is an error for an outer scaler, so it keeps what runs.
        kill -STOP "$redis_pid"
        wait_until 40 demand_is '.needed == null and .latency_seconds == null and .backlog_seconds == null and .wanted == 1'
        kill -CONT "$redis_pid"
        command -v sqmgr-web >/dev/null || return 0
        kill -KILL "$sqmgr_pid"
        wait_until 30 instance_is '(.reachable | not) and .fleets == [] and .error != null'
        run -1 kubernetes value "$(kubernetes get "$keda" ScaledObject spec.triggers.0.metadata.valueLocation)" <<<"$(get /api/demand)"
}

@test "demand: a fleet without active_process_max has nulls" {
        start_fleet
        demand_is '.name == "default" and .active >= 0 and .wanted == null and .needed == null and .mode == null and .reason == null'
        run -0 sqmgrctl demand
        [[ ${lines[1]} =~ ^default\ +[0-9]+(\ +-){7}$ ]]
}

@test "the files for KEDA and Kubernetes keep the schemas, and sqmgr accepts the settings" {
        local hpa=$top/contrib/container/hpa.yaml
        kubernetes schema "$keda" "$hpa"
        for change in s/maxReplicaCount/maxReplicas/ 's/minReplicaCount: 1/minReplicaCount: 21/' s/metrics-api/metrics_api/ \
                's/targetValue: "9.5"/targetValue: 9.5/' s/failureThreshold/threshold/ 's/: sum$/: total/' 's/: 600$/: 7200/'; do
                sed "$change" "$keda" >bad.yaml
                run -1 kubernetes schema bad.yaml
        done
        for change in s/maxReplicas/maxReplicaCount/ s/AverageValue/Average/ 's/averageValue: .*/averageValue: 9.5/'; do
                sed "$change" "$hpa" >bad.yaml
                run -1 kubernetes schema bad.yaml
        done
        # The metric exists, and the target is what the threads of a pod can do.
        grep -q '"sqmgr_fleet_scaling_need_threads"' "$top/src/autoscaling/scaling_report.c"
        [ "$(kubernetes get "$hpa" HorizontalPodAutoscaler spec.metrics.0.external.metric.name)" = sqmgr_fleet_scaling_need_threads ]
        [ "$(kubernetes get "$keda" ScaledObject spec.triggers.0.metadata.targetValue)" = 9.5 ]
        [ "$(kubernetes get "$hpa" HorizontalPodAutoscaler spec.metrics.0.external.target.averageValue)" = 9.5 ]
        ruby -ryaml -e 'puts YAML.load_stream(File.read(ARGV[0]))[0]["data"]["sqmgr.ini"]' "$keda" >keda.ini
        [ "$(sed -nE 's/^command = .* -c ([0-9]+)$/\1/p; s/^active_process_count = ([0-9]+)$/\1/p' keda.ini | paste -sd ' ')" = '5 2' ]
        sed -i -e "s|^directory = .*|directory = $folder|" -e '/^user = /d' -e "s|^command = bundle .*|command = $stub|" \
                -e "1a state_file = $folder/state\nsocket = $folder/sqmgr.sock" keda.ini
        run -0 sqmgr --check-config --config keda.ini

        # Its sqmgr-web answers as KEDA asks: at the address of the pod, without a host name.
        command -v sqmgr-web >/dev/null || return 0
        local port web
        web=$(sed -n 's/^command = \(sqmgr-web .*\)/\1/p' keda.ini)
        port=$(unused_port 127.0.0.1)
        start_fleet
        # shellcheck disable=SC2086
        launch web ${web/7433/$port} -s "$folder/sqmgr.read.sock"
        answers() { curl -sf "http://127.0.0.1:$port/api/demand" | jq -e '.instances[0].fleets[0].name == "default"'; }
        wait_until 20 answers
}
