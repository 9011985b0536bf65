#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Workers of Celery and BullMQ that do not load their shim: the problem shim-not-loaded, and what happens to them.
# seconds: 30
# promises: P1 P4 P6
load helpers

has_problem() { sqmgrctl status --json | jq -e 'any(.problems[]; .code == "shim-not-loaded")' >/dev/null; }
problem_says() { # TEXT
        has_problem && sqmgrctl status | grep -qF "$1"
}
records() { cat "$folder/records/$1" 2>/dev/null; } # sent|started|done
recorded() { [ "$(records "$1" | wc -l)" = "$2" ]; } # sent|started|done COUNT
celery_env() { env RECORDS="$folder/records" BROKER_URL="redis+socket://$folder/redis.sock" C_FORCE_ROOT=1 "$@"; }
# `python -E` ignores PYTHONPATH.
celery_command() { echo "/usr/bin/python3 -E -B -m celery -A $1 worker -c 1 --without-mingle"; } # APPLICATION

@test "shim: python -E: a task runs to its end through kill -9 of sqmgr and a restart, and the line that is shown helps" {
        mkdir "$folder/records"
        celery_env env | grep -E '^(RECORDS|BROKER_URL|C_FORCE_ROOT)=' >"$folder/worker.env"
        start_workers 1 <<END
framework = celery
command = $(celery_command celery_tasks)
directory = $e2e/celery
environment_file = $folder/worker.env
boot_timeout = 3s
active_process_count = 1
END
        fleet_is '.workers[0] | .evidence == "proc" and .busy == null'
        problem_says 'python -E'
        grep -q 'default/1 .* running' "$folder/sqmgr.log"
        old=$(worker_pids)
        celery_env PYTHONPATH="$e2e/celery" /usr/bin/python3 -B "$e2e/celery/celery_tasks.py" 1 hold "$folder/release"
        wait_until 30 recorded started 1
        record "$old"
        replace_sqmgr 1
        [ "$(worker_pids)" = "$old" ]
        problem_says 'python -E'

        # Its exit is the proof.
        sqmgrctl restart
        wait_until 40 fleet_is '.quiet == 1 and .active == 1 and .rollout.state == "done"'
        wait_ticks 4
        alive "$old"
        recorded "done" 0
        touch "$folder/release"
        wait_until 30 gone "$old"
        recorded "done" 1
        recorded started 1

        line=$(sqmgrctl status | sed -n 's/.*Add to the application: \(import sys; [^;]*; import sqmgr_celery\).*/\1/p' | head -1)
        printf '%s\n' "import sys; sys.path.append('$e2e/celery')" "$line" 'from celery_tasks import *' >"$folder/lined.py"
        sed -i "s|^command = .*|command = $(celery_command lined)|; s|^directory = .*|directory = $folder|; /^boot_timeout/d" "$folder/sqmgr.ini"
        sqmgrctl reload
        sqmgrctl restart --wait --timeout 60s
        wait_until 20 fleet_is '.workers == [.workers[] | select(.evidence == "file" and .busy == 0)] and .quiet == 0'
        not has_problem
}

@test "shim: Node.js does not find it: the next start omits it, no TERM ends its jobs, a restart goes on" {
        printf '%s\n' '#!/bin/sh' "NODE_OPTIONS=\$(echo \"\$NODE_OPTIONS\" | sed s,/node/sqmgr,/gone/sqmgr,) exec node $folder/app.js" \
                >"$folder/run"
        chmod +x "$folder/run"
        echo 'setInterval(() => {}, 1000);' >"$folder/app.js"
        start_workers 2 <<END
framework = bullmq
command = $folder/run
boot_timeout = 3s
active_process_count = 2
END
        event_count_is shim-not-loaded 2
        problem_says "did not start with sqmgr's 'node/sqmgr-bullmq.cjs': Cannot find module"
        grep -q 'sqmgr-bullmq.cjs' "$folder/workers.log"
        old=$(worker_pids)
        sqmgrctl restart
        wait_until 40 fleet_is '.rollout.state == "done" and .active == 2'
        wait_ticks 4
        alive "$old"
        sqmgrctl why default/1 | grep -q 'is not known to catch its stop signal'
        sqmgrctl stop default/1 --force
        sqmgrctl stop default/2 --force
        wait_until 20 gone "$old"
        fleet_is '.active == 2'
}
