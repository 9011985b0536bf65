# SPDX-License-Identifier: MIT
# Fleets whose heartbeats stand in a database, and an account of their jobs: for solid_queue.bats, good_job.bats and
# solid_queue_sqlite.bats, which load helpers and postgresql.bash first. SQMGR_SOLID_QUEUE and SQMGR_GOOD_JOB name a program
# that is used in the place of the stand-in, with the same arguments.
# shellcheck shell=bash disable=SC2034,SC2154

solid_queue=${SQMGR_SOLID_QUEUE-/usr/bin/ruby $e2e/database/solid_queue_standin.rb}
good_job=${SQMGR_GOOD_JOB-/usr/bin/ruby $e2e/database/good_job_standin.rb}

# Writes worker.env, the environment of workers, of which sqmgr reads DATABASE_URL, too; and the configuration.
# `worker_environment` has further variables. Needs `framework`, `program`, `start_arguments` and database_url.
database_configure() { # COUNT LINE...: further settings
        mkdir -p "$folder/records" && chmod 777 "$folder/records"
        printf '%s\n' "DATABASE_URL=${application_url-$database_url}" "RECORDS=$folder/records" ${worker_environment-} >"$folder/worker.env"
        # Whoever may read it knows the password. The fleet's user must be able to.
        chmod 640 "$folder/worker.env"
        [ "$(id -u)" != 0 ] || chown root:nogroup "$folder/worker.env"
        configure < <(printf '%s\n' "framework = $framework" "command = $program start ${start_arguments-}" \
                "environment_file = $folder/worker.env" "database_url_file = ${url_file-$folder/worker.env}" \
                "active_process_count = $1" "${@:2}")
}
database_fleet() { # COUNT LINE...
        database_configure "$@"
        start_ready "$1"
}

# Standard output is an application's.
send() { env DATABASE_URL="${application_url-$database_url}" RECORDS="$folder/records" $program enqueue "$@" >/dev/null; } # COUNT CLASS ARGUMENT...
make_tables() { env DATABASE_URL="${application_url-$database_url}" RECORDS="$folder/records" $program schema "$1" >/dev/null; } # FILE

records() { cut -d' ' -f1 "$folder/records/$1" 2>/dev/null; } # sent|started|done
recorded() { [ "$(records "$1" | wc -l)" -ge "$2" ]; }        # sent|started|done COUNT
begun_twice() { records started | sort | uniq -d; }
# Each job that was sent has begun and ended; those that began or ended twice are among the excused ones.
nothing_lost() { # COUNT [EXCUSED]: a list of jobs
        local name wrong
        [ "$(records sent | sort -u | wc -l)" = "$1" ] || return 1
        for name in started "done"; do
                wrong=$(comm -3 <(records sent | sort -u) <(records "$name" | sort -u))
                [ -z "$wrong" ] || { echo "not $name: $wrong" && return 1; }
                wrong=$(comm -13 <(sort -u <<<"${2-}") <(records "$name" | sort | uniq -d))
                [ -z "$wrong" ] || { echo "$name twice: $wrong" && return 1; }
        done
}
worker_is() { fleet_is "any(.workers[]; .pid == $1 and ($2))"; } # PID CONDITION
running_jobs_are() { # CONDITION
        local jobs_json
        jobs_json=$(sqmgrctl jobs --json) && jq -e ".jobs | $1" <<<"$jobs_json" >/dev/null
}
queue_is() { sqmgrctl queues --json | jq -e "any(.redis[].queues[]; .name == \"$1\" and ($2))" >/dev/null; } # NAME CONDITION
has_finding() { sqmgrctl doctor --json | jq -e "any(.findings[]; $1)" >/dev/null; } # CONDITION
why_says() { sqmgrctl why default | grep -qE "$1"; }                                # PATTERN
# A worker that sqmgr has signaled shows that.
nothing_was_signaled() { fleet_is '.quiet == 0 and .stopping == 0' && ! any_event '.event == "quiet" or .event == "stop" or .event == "killed" or .event == "hung"'; }

database_helper() { pgrep -P "$sqmgr_pid" -f '^sqmgr-(postgresql|sqlite)$' | tail -n 1; }
another_helper_than() { [ -n "$(database_helper)" ] && [ "$(database_helper)" != "$1" ]; } # PID
milliseconds() { echo $((${EPOCHREALTIME/./} / 1000)); }
# sqmgr's answers come within a second, whatever its database does; on a busy machine within five.
answers_at_once() {
        local began
        began=$(milliseconds)
        sqmgrctl status --json >/dev/null || return 1
        [ $(($(milliseconds) - began)) -lt 5000 ]
}
