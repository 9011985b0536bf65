# shellcheck shell=bash disable=SC2034,SC2046,SC2086
# SPDX-License-Identifier: MIT
# Real Celery workers, whose application knows nothing of sqmgr. `broker` is by default the private Redis. Needs
# helpers.bash.

# `concurrency`: processes or threads of a worker; `celery_options`: further options.
celery_command() {
        echo "${python-/usr/bin/python3} -B -m celery -A celery_tasks worker -c ${concurrency-2} --without-mingle" \
                "${celery_options-}"
}
celery_lines() { # COUNT LINE...: lines of a fleet
        printf '%s\n' 'framework = celery' "command = $(celery_command)" "environment_file = $folder/worker.env" \
                "active_process_count = $1" "${@:2}"
}
# A further fleet. Its name is that of the pool, and of its queue.
celery_section() { # POOL:COUNT:CONCURRENCY
        local pool count concurrency celery_options
        IFS=: read -r pool count concurrency <<<"$1"
        celery_options="-P $pool -Q $pool --prefetch-multiplier=1"
        printf '\n[fleet:%s]\nlog = %s\n' "$pool" "$folder/workers.log"
        celery_lines "$count"
}
# `celery_environment`: variables; `celery_pools`: further fleets.
celery_configure() { # COUNT LINE...: further settings of the fleet "default"
        local pool
        broker=${broker-redis+socket://$folder/redis.sock}
        mkdir -p "$folder/records"
        printf '%s\n' "PYTHONPATH=$e2e/celery" C_FORCE_ROOT=1 "RECORDS=$folder/records" "BROKER_URL=$broker" \
                ${celery_environment-} >"$folder/worker.env"
        configure < <(
                celery_lines "$@"
                for pool in ${celery_pools-}; do
                        celery_section "$pool"
                done
        )
}
celery_fleet() { # COUNT LINE...
        start_workers "$1" celery_configure "$@"
        wait_until 60 settled
}
celery_python() { env $(cat "$folder/worker.env") "${python-/usr/bin/python3}" -B "$@"; }
# QUEUE, NODE and COUNTDOWN have a meaning for it.
celery_send() { # COUNT TASK ARGUMENT...
        celery_python "$e2e/celery/celery_tasks.py" "$@"
}

records() { cat "$folder/records/$1" 2>/dev/null; } # sent|started|done
recorded() { [ "$(records "$1" | wc -l)" -ge "$2" ]; } # sent|started|done COUNT
same_records() { [ "$(records "$1" | sort)" = "$(records "$2" | sort)" ]; } # NAME NAME
# Each task that was sent has begun once and ended once.
nothing_lost() { # COUNT
        [ "$(records sent | wc -l)" = "$1" ]
        wait_until 60 recorded "done" "$1"
        same_records sent started
        same_records sent "done"
        not grep -qE 'Cold shutdown|Requeuing undeliverable|sqmgr_celery: ' "$folder/workers.log"
}
nothing_killed() { not grep -qE 'SIGKILL|exited with status [1-9]' "$folder/sqmgr.log"; }

worker_is() { fleet_is "any(.workers[]; .pid == $1 and ($2))"; } # PID CONDITION
fleets_are() { # CONDITION
        local status_json
        status_json=$(sqmgrctl status --json) && jq -e "all(.fleets[]; $1)" <<<"$status_json" >/dev/null
}
settled() { fleets_are '.active == .target and (.workers | length) == .target and all(.workers[]; .ready)'; }
all_pids() { sqmgrctl status --json | jq -r '[.fleets[].workers[].pid] | sort | join(" ")'; }
# The pools of workers that outlive sqmgr end with the test, too.
record_workers() {
        local pid
        for pid in $(all_pids); do
                record "$pid" "$(pgrep -P "$pid" | tr '\n' ' ')"
        done
}
running_jobs_are() { # CONDITION
        local jobs_json
        jobs_json=$(sqmgrctl jobs --json) && jq -e ".jobs | $1" <<<"$jobs_json" >/dev/null
}

# For a long run. The broker runs.
celery_hundred() {
        concurrency=4 celery_pools='threads:1:6 solo:2:1' celery_configure 3 'memory_threshold = 400M'
        start_sqmgr
        wait_until 120 settled
        celery_send 60 nap 2-20
        QUEUE=threads celery_send 30 nap 2-20
        QUEUE=solo celery_send 10 nap 2-20
        for _ in 1 2; do
                wait_until 20 fleet_is '[.workers[].busy] | add > 6'
                sqmgrctl restart --wait --timeout 240s
        done
        # No worker that is being replaced takes it.
        celery_send 1 leak 450 "$folder/release"
        wait_until 120 any_event '.event == "quiet" and .reason == "memory"'
        celery_send 39 nap 2-20
        sqmgrctl scale default 5
        sqmgrctl scale threads 2
        wait_until 60 fleet_is '.active == 5'
        sqmgrctl scale default 2
        sqmgrctl scale threads 1
        sqmgrctl scale solo 1
        touch "$folder/release"
        wait_until 240 recorded "done" 140
        wait_until 60 settled
        nothing_lost 140
        fleets_are '.crash.count == 0'
        nothing_killed
}
