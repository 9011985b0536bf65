#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Workers forked from a loaded Rails application: ActiveJob on Sidekiq, with rows in
# PostgreSQL.
# seconds: 100
# promises: P1
# shellcheck disable=SC1091,SC2034
load helpers
. "$BATS_TEST_DIRNAME/../../contrib/examples/shared.bash"

sql() { psql -qAtX -v ON_ERROR_STOP=1 -c "$1"; }
sql_is() { [ "$(sql "$1")" = "$2" ]; } # QUERY RESULT

start_app() { # LINE...
        cp -r "$top/tests/rails" "$folder/app"
        export RAILS_ENV=production DATABASE_URL=postgresql:///postgres
        start_redis && start_postgres && psql -qX -v ON_ERROR_STOP=1 -f "$folder/app/db/structure.sql"
        configure <<END
command = bundle exec sidekiq -e production -r . -c 5
directory = $folder/app
preload = yes
active_process_count = 3
$(printf '%s\n' "$@")
END
        start_sqmgr
        wait_until 120 ready 3
}

# Enqueues jobs with these numbers. Numbers are passed as numbers.
perform_later() { # JOB FIRST LAST ARGUMENT...
        (cd "$folder/app" && bundle exec ruby -r ./config/environment -e '
                job, first, last, *arguments = ARGV
                arguments.map! { |word| word.match?(/\A[\d.]+\z/) ? word.to_f : word }
                (first.to_i..last.to_i).each { |n| Object.const_get(job).perform_later(n, *arguments) }' "$@")
}
runs_are() { sql_is 'SELECT count(*) FROM runs' "$1"; }
job_count_is() { [ "$(sqmgrctl jobs --json | jq '.jobs | length')" = "$1" ]; }
template() { fleet ".template.$1"; }

# The nonce identifies a process; a fork that inherited it would have its template's.
nonces() { redis smembers processes | awk -F: '{ print $NF }' | sort -u | wc -l; }

@test "preload: each worker of a Rails application has its own nonce, and every job runs once through a restart and a kill -9" {
        start_app 'rescue_jobs = requeue'
        fleet_is '.template | .state == "ready" and .generation == 1 and .memory_bytes > 0 and .refused == null'
        old=$(worker_pids) first=$(template pid)

        # Old workers hold these jobs until the new workers have run the others.
        perform_later NoteJob 1 15 "$folder/old"
        wait_until 30 job_count_is 15
        perform_later NoteJob 16 200 0.1
        run -0 sqmgrctl restart --wait --timeout 300s
        fleet_is '.template | .state == "ready" and .generation == 2'
        second=$(template pid)
        wait_until 60 runs_are 185
        touch "$folder/old"
        wait_until 60 gone "$old"
        alive "$first"

        perform_later NoteJob 201 215 "$folder/new"
        wait_until 30 job_count_is 15
        [ "$(nonces)" = 3 ]
        # The last heartbeats listed its jobs, which are requeued.
        read -r victim _ <<<"$(worker_pids)"
        kill -KILL "$victim"
        wait_until 30 gone "$victim"
        wait_until 60 ready 3
        touch "$folder/new"
        wait_until 60 runs_are 215
        [ "$(template pid)" = "$second" ]

        sql_is 'SELECT count(DISTINCT number) FROM runs' 215
        sql_is 'SELECT count(DISTINCT pid), count(DISTINCT worker), array_agg(DISTINCT loader) FROM runs WHERE number <= 15' "3|3|{$first}"
        sql_is 'SELECT array_agg(DISTINCT loader) FROM runs WHERE number > 15' "{$second}"
        sql_is 'SELECT count(*) FROM (SELECT FROM runs GROUP BY backend HAVING count(DISTINCT pid) > 1) AS shared' 0
}

# Loading the application to enqueue takes seconds: only once all jobs are taken.
three_workers_ran_jobs() {
        sql_is 'SELECT count(DISTINCT pid) FROM runs' 3 && return
        [ "$(redis llen queue:default)" != 0 ] || perform_later AskJob 1 60
        return 1
}
all_have_answered() { [ "$(redis llen queue:default)" = 0 ] && sql_is 'SELECT count(*) FROM runs' "$(redis get stat:processed)"; }
has_event() { sqmgrctl events --json | jq -es "any(.[]; $1)"; }

@test "preload: if the loaded application holds its own open connection, workers boot separately and no answer is wrong" {
        export RAW_CONNECTION=1
        start_app
        fleet_is '.template.refused | test("socket")'
        has_event '.event == "preload-refused" and (.text | test("socket"))'
        sqmgrctl doctor --json | jq -e 'any(.findings[]; .level == "warning" and (.text | test("socket")))'
        wait_until 60 three_workers_ran_jobs
        wait_until 30 all_have_answered
        sql_is 'SELECT count(*) FROM runs WHERE wrong <> 0' 0
        sql_is 'SELECT count(*) FROM runs WHERE loader <> pid' 0

        # The release that fixes this.
        sed -i 's/^  CONNECTION = .*/  CONNECTION = nil/' app/app/jobs/ask_job.rb
        run -0 sqmgrctl restart --wait --timeout 300s
        fleet_is '.template | .state == "ready" and .refused == null'
        perform_later NoteJob 1 9 0
        wait_until 30 sql_is "SELECT count(*) FROM runs WHERE loader = $(template pid)" 9
}
