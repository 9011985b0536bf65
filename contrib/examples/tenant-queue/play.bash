# SPDX-License-Identifier: MIT
# Five tenants with 1 to 5 slots request reports while their workers are killed and replaced.
# shellcheck shell=bash disable=SC2154

sql() { psql -XAtqc "$1"; }
is_true() { [ "$(sql "select $1")" = t ]; } # SQL-CONDITION
# Sidekiq 7 logs to standard output when it connects.
in_app() { (cd "$folder/app" && ruby -r ./report.rb -e 'Sidekiq.logger.level = Logger::ERROR' -e "$1"); } # RUBY

prepare() {
        start_postgres && psql -Xq -v ON_ERROR_STOP=1 -f "$example/schema.sql" \
                -c 'insert into tenants select n, n from generate_series(1, 5) n'
}

start_load() { # COUNT
        launch load env -C "$folder/app" ruby load.rb "$1"
        load_pid=$!
}
end_load() {
        touch "$folder/app/enough"
        wait_until 300 not_running "$load_pid" && wait_until 300 all_done
}
not_running() { ! kill -0 "$1" 2>/dev/null; } # PID
all_done() { is_true "count(*) = 0 from jobs where state in ('queued', 'running')"; }
is_error() { is_true "state = 'error' from jobs where id = $1"; } # JOB

all_at_work() { fleet_is '.active >= .target'; }
holds_no_run() { is_true "count(*) = 0 from runs where pid = $1 and started is not null and ended is null"; } # PID

# Stops a worker first, so that it begins and ends nothing while it is inspected. True if the kill
# cut off a run.
kill_one_at_work() {
        local pid
        for pid in $(worker_pids | tr ' ' '\n' | shuf); do
                kill -STOP "$pid" || return 1
                if holds_no_run "$pid"; then
                        kill -CONT "$pid"
                        continue
                fi
                kill -KILL "$pid"
                wait_until 60 holds_no_run "$pid" &&
                        is_true "count(*) > 0 from runs where pid = $pid and outcome = 'died'"
                return
        done
        return 1
}
kill_the_sweep() { # It is the second fleet.
        kill -KILL "$(sqmgrctl status --json | jq '.fleets[1].workers[0].pid')"
}

trouble() { # KILLS RESTARTS
        local n
        for ((n = 1; n <= $1 || n <= $2; n++)); do
                [ "$n" -gt "$1" ] || wait_until 60 kill_one_at_work || return 1
                wait_until 60 all_at_work || return 1
                [ "$n" -gt "$2" ] || sqmgrctl restart jobs --wait --timeout 300s || return 1
        done
}

# Prints each violation of a promise.
judge() {
        local breaches
        breaches=$(psql -X -f "$example/judge.sql" 2>&1) || breaches+=' (the check failed)'
        [ -z "$breaches" ] || { echo "$breaches" && return 1; }
}

play() {
        local job
        say 'Five tenants with 1 to 5 slots request reports.'
        wait_until 60 ready 2 || return 1
        start_load 250
        job=$(in_app 'puts Report.new(3).async.exhaust("too much")')
        say "Job $job kills each worker that runs it."
        wait_until 60 is_error "$job" || return 1
        say 'Workers are killed with kill -9, and all are replaced, under load. Waiting jobs meanwhile:'
        psql -Xqc 'table waits' -P footer=off
        trouble 3 1 || return 1
        end_load || return 1
        psql -Xq -f "$example/ledger.sql"
        judge && say 'No slot was exceeded, no job overtaken, none ran twice at once, each is a success or an error.'
}
