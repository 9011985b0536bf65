#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Workers in containers of Podman. The process in a container of `podman --remote run`, as in one of `docker run`, is no
# descendant of the process that sqmgr started, and no signal of sqmgr reaches it.
# seconds: 90
# promises: P1 P4
load helpers
load namespaces

known_jobs_are() { [ "$(sqmgrctl jobs --json | jq '.jobs | length')" = "$1" ]; } # COUNT
processes_are() { [ "$(redis scard processes)" = "$1" ]; } # COUNT

# bats test_tags=root
@test "podman run in the foreground: the process in the container is matched and gets the signals" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes a minute'
        needs_containers
        write_worker "$folder/podman run --rm --pull=never --env=DYNO $(container_options | paste -sd ' ') base"
        passes_through
        fleet_is '[.workers[] | select(.remote)] == []'
}

# bats test_tags=root
@test "podman --remote run: memory, a restart, kill -9 of sqmgr; a container drains although its client was killed" {
        needs_containers
        start_engine
        mkdir release
        echo base >release/image
        container_options >release/options
        export DOCKER=$folder/remote FOLDER=$folder/release
        write_worker "$top/contrib/deploy/container run"
        fleet_lines='memory_threshold = 200M' start_placed 2
        fleet_is 'all(.workers[]; .remote)'
        start_feeding
        enqueue 1 Leak 250 "$folder/release"
        wait_until 60 fleet_is 'any(.workers[]; .state == "quiet" and .reason == "memory")'
        fleet_is '.active == 2'
        touch release

        run -0 "$top/contrib/deploy/container" release base:2
        wait_until 60 fleet_is '.rollout.state == "done" and .active == 2'
        "$DOCKER" ps --format '{{.Image}}' | grep -c '/base:2$' | grep -qx 2
        before=$(worker_pids)
        kill_sqmgr
        start_sqmgr
        wait_until 90 fleet_is '.active == 2 and (.workers | length) == 2 and all(.workers[]; .generation == 2)'
        for pid in $(worker_pids); do
                [[ " $before " == *" $pid "* ]]
        done
        fleet_is '.crash.count == 0'
        stop_feeding
        wait_until 30 stream_is_done

        enqueue 4 Hold "$folder/hold"
        wait_until 30 known_jobs_are 4
        killed=$(fleet '.workers[0].pid')
        kill -KILL "$killed"
        wait_until 30 fleet_is '.active == 2 and all(.workers[]; .pid != '"$killed"')'
        wait_until 30 processes_are 3
        touch hold
        wait_until 60 processes_are 2
        [ "$(redis llen queue:default)" = 0 ]
        [ "$(jobs_done)" = "$(jobs_started)" ]
        [ "$(jobs_run_twice)" = 0 ]
        fleet_is '.active == 2 and (.workers | length) == 2'
}

# Prints a part of a file as JSON: .[0] is its first document.
of_yaml() { # FILE PATH
        ruby -rjson -ryaml -e 'puts YAML.load_stream(File.read(ARGV[0])).to_json' "$top/$1" | jq -er "$2"
}

@test "the Job of a release: no pod is replaced once one has drained, and only an eviction has a deadline" {
        job=contrib/container/kubernetes-job.yaml
        of_yaml $job '.[0] | .apiVersion == "batch/v1" and .kind == "Job"'
        of_yaml $job '.[0].spec | .parallelism > 0 and .completions == null and .activeDeadlineSeconds == null'
        of_yaml $job '.[0].spec | .backoffLimit >= 1000000 and .podReplacementPolicy == "Failed"'
        of_yaml $job '.[0].spec.template.spec | .restartPolicy == "Never" and .hostNetwork == null'
        of_yaml $job '.[0].spec.template.spec.containers[0] | .livenessProbe == null and
                .readinessProbe.exec.command == ["sqmgrctl", "ping", "--ready"]'
        of_yaml $job '.[1].metadata.name == .[0].spec.template.spec.volumes[0].configMap.name'
        of_yaml $job '.[1].data["sqmgr.ini"]' |
                sed "s|^directory = .*|directory = $folder|" >sqmgr.ini
        chmod 600 sqmgr.ini
        XDG_RUNTIME_DIR=$folder REDIS_URL=redis://redis:6379/0 run -0 sqmgr -c sqmgr.ini --check-config
        grep -qx 'shutdown_timeout = 30d' sqmgr.ini
}

@test "KEDA: the list in Redis that docs/containers.md names has the jobs that wait" {
        # shellcheck disable=SC2016
        sed -n '/^apiVersion: keda/,/^```/{/^```/!p}' "$top/docs/containers.md" >keda.yaml
        of_keda() { ruby -rjson -ryaml -e 'puts YAML.load_file("keda.yaml").to_json' | jq -er "$1"; }
        of_keda '.kind == "ScaledObject" and .spec.minReplicaCount >= 1'
        [ "$(of_keda .spec.scaleTargetRef.name)" = "$(of_yaml contrib/container/kubernetes.yaml '.[1].metadata.name')" ]
        of_keda '.spec.triggers[0] | .type == "redis" and all(.metadata[]; type == "string")'
        start_redis
        enqueue 3 Sleep 0
        [ "$(redis llen "$(of_keda '.spec.triggers[0].metadata.listName')")" = 3 ]
}

@test "Kamal: the hook has each worker host restart its workers with the new image" {
        run -0 env SSH=echo WORKER_HOSTS='w1 w2' IMAGE=registry.example.com/app KAMAL_VERSION=abc \
                "$top/contrib/deploy/kamal-post-deploy"
        [ "${lines[0]}" = 'w1 sudo -n /usr/local/sbin/container release registry.example.com/app:abc --wait --timeout 15min' ]
        [ "${#lines[@]}" = 2 ]
        run -1 env SSH=false WORKER_HOSTS='w1 w2' KAMAL_VERSION=abc "$top/contrib/deploy/kamal-post-deploy"
        run -2 "$top/contrib/deploy/container"
        [[ $output == usage:* ]]
        # Nothing is restarted without the image.
        DOCKER=false FOLDER=$folder run -1 "$top/contrib/deploy/container" release nosuch
        [ ! -e image ]

        # The old image is named again if a restart halts or is refused, and only then.
        mkdir bin
        # shellcheck disable=SC2016
        printf '%s\n' '#!/bin/sh' 'echo "$*" >asked' 'exit "$STATUS"' >bin/sqmgrctl
        chmod +x bin/sqmgrctl
        PATH=$folder/bin:$PATH
        release() { run "-$1" env DOCKER=true FOLDER="$folder" STATUS="$1" "$top/contrib/deploy/container" release "$2" --wait; }
        for result in 0:a:a 5:b:b 3:c:c 1:d:c 2:d:c 4:d:c 130:d:d; do
                IFS=: read -r code image named <<<"$result"
                release "$code" "$image"
                [ "$(cat image)" = "$named" ]
                [ "$(cat asked)" = 'restart --wait' ]
        done
}
