# SPDX-License-Identifier: MIT
# Runs jobs with restarts and killed workers, and checks every run. The variables below set the amount; the defaults are
# the short form.
# shellcheck shell=bash disable=SC2154

: "${rounds:=1}" "${letters:=120}" "${rows:=50000}"
kills_a_round=3

query() { psql -qAtX -v ON_ERROR_STOP=1 -c "$1"; }
query_is() { [ "$(query "$1")" = "$2" ]; } # QUERY RESULT

prepare() {
        lorries=0 killed=0
        start_postgres &&
                psql -qX -v ON_ERROR_STOP=1 -f "$example/schema.sql" &&
                query 'CREATE TABLE cut_off (kill integer, jid text, told boolean)'
}

# Prints its id. Sidekiq 7 logs to standard output when it connects.
start_task() { (cd "$folder/app" && ./start "$@") | tail -n 1; }

parcel="class = 'Parcel' AND state = 'working'"
parcels_run() { [ "$(query "SELECT count(*) FROM events WHERE $parcel AND args->>2 = '$lorry'")" -gt 0 ]; }

# Starts a task of letters, and of parcels that run until their lorry arrives.
post() { # LETTERS
        lorries=$((lorries + 1))
        lorry=$folder/lorry.$lorries
        start_task post "$1" 4 "$lorry" >/dev/null
        wait_until 60 parcels_run
}

# Prints the jobs in the last heartbeats.
told_jobs() { sqmgrctl jobs --json | jq -er '"{" + ([.jobs[].jid] | join(",")) + "}"'; }

# Sets $jid, $pid and $attempt.
find_parcel() { # IN-LAST-HEARTBEAT CONDITION
        local told found
        told=$(told_jobs) || return 1
        found=$(query "SELECT concat_ws(' ', jid, pid, attempt) FROM events
                WHERE $parcel AND args->>2 = '$lorry' AND (jid = ANY('$told')) = $1 AND $2 LIMIT 1")
        [ -n "$found" ] && read -r jid pid attempt <<<"$found"
}

# A stopped worker sends no heartbeat, so its last one stays valid.
freeze() { # IN-LAST-HEARTBEAT
        find_parcel "$1" true && kill -STOP "$pid" || return 1
        find_parcel "$1" "pid = $pid" && return
        kill -CONT "$pid"
        return 1
}

freeze_told() {
        post "$letters" && wait_until 30 freeze true
}

# Finds a job that began after the last heartbeat of its worker. If there is none, tries other parcels.
freeze_untold() {
        post "$letters" || return 1
        until freeze false; do
                touch "$lorry"
                post 0 || return 1
        done
}

kill_frozen() {
        local told
        told=$(told_jobs) || return 1
        killed=$((killed + 1))
        query "INSERT INTO cut_off SELECT $killed, jid, jid = ANY('$told') FROM events
                WHERE pid = $pid AND state = 'working'"
        kill -KILL "$pid"
        say "worker $pid is killed"
        touch "$lorry"
}

restart_under_load() {
        post "$letters" || return 1
        say 'all workers are replaced while they run jobs'
        sqmgrctl restart --wait || return 1
        touch "$lorry"
}

# The run in a frozen worker continues after the sweep has started another in its place.
late_run_is_refused() { # PID JID ATTEMPT LORRY
        wait_until 120 query_is "SELECT attempt > $3 FROM events WHERE jid = '$2'" t || return 1
        say "worker $1 continues"
        kill -CONT "$1"
        touch "$4"
        wait_until 60 query_is "SELECT 'attempt $3 came too late' = ANY(messages) FROM events WHERE jid = '$2'" t
}

trouble() {
        local late n
        restart_under_load || return 1
        freeze_untold || return 1
        late=("$pid" "$jid" "$attempt" "$lorry")
        say "worker $pid is frozen"
        for ((n = 1; n <= kills_a_round; n++)); do
                if ((n % 2)); then
                        freeze_untold || return 1
                else
                        freeze_told || return 1
                fi
                kill_frozen || return 1
        done
        late_run_is_refused "${late[@]}"
}

# Prints lines of a number, which must be 0, and its meaning.
violations() {
        query "
        WITH history AS (
                SELECT *, lag(state) OVER earlier AS last_state, lag(attempt) OVER earlier AS last_attempt,
                        lag(gave_up) OVER earlier AS had_given_up
                FROM transitions WINDOW earlier AS (PARTITION BY jid ORDER BY id)
        ), steps AS (
                SELECT CASE
                        WHEN last_state IS NULL THEN state = 'enqueue' AND attempt = 0
                        WHEN had_given_up OR last_state IN ('finish', 'failed') THEN false
                        WHEN state = 'working' THEN last_state IN ('enqueue', 'working') AND attempt = last_attempt + 1
                        WHEN attempt <> last_attempt THEN false
                        WHEN state = 'enqueue' THEN last_state = 'error'
                        WHEN state = 'error' THEN last_state = 'working' OR gave_up
                        ELSE last_state = 'working' END AS allowed
                FROM history
        ), jobs AS (
                SELECT *, CASE
                        WHEN class = 'Letter' AND (args->>1)::int % 50 = 10 THEN 'failed'
                        WHEN class = 'Telegram' THEN 'error'
                        ELSE 'finish' END AS expected,
                        (SELECT count(*) FROM deliveries WHERE deliveries.jid = events.jid) AS deliveries
                FROM events
        )
        SELECT count(*), 'jobs without an end' FROM jobs WHERE NOT final
        UNION ALL SELECT count(*), 'tasks with more or fewer jobs than were ordered' FROM tasks
                WHERE jobs <> (SELECT count(*) FROM events WHERE task_id = tasks.id)
        UNION ALL SELECT count(*), 'steps backward' FROM steps WHERE NOT allowed
        UNION ALL SELECT count(*), 'jobs with another end than theirs' FROM jobs WHERE state <> expected
        UNION ALL SELECT count(*), 'letters and parcels not delivered, or twice' FROM jobs
                WHERE class IN ('Letter', 'Parcel') AND deliveries <> (state = 'finish')::int
        UNION ALL SELECT $rows - count(DISTINCT number), 'rows not exported' FROM lines
        UNION ALL SELECT count(*) - count(DISTINCT number), 'rows exported twice' FROM lines
        " | tr '|' ' '
}

# Each job requeued by sqmgr is written once, however often it was requeued.
put_back_by_sqmgr() {
        sed -n 's/.* \([0-9a-f]\{24\}\) (queue .*) re-enqueued.*/\1/p' "$folder/sqmgr.log" | sort -u | paste -sd,
}

judge() {
        local file ok=true number what by_sqmgr by_sweep by_both
        say "$(query "SELECT format('%s workers were killed with %s jobs running', count(DISTINCT kill), count(*))
                FROM cut_off")"
        read -r by_sqmgr by_sweep by_both < <(query "
                SELECT concat_ws(' ', count(*) FILTER (WHERE found), count(*) FILTER (WHERE swept > 0),
                        count(*) FILTER (WHERE found AND swept > 0))
                FROM (SELECT swept, jid = ANY('{$(put_back_by_sqmgr)}') AS found
                        FROM cut_off JOIN events USING (jid)) AS jobs")
        say "sqmgr has requeued $by_sqmgr of them, the sweep $by_sweep, including $by_both by both"
        [ "$by_sqmgr" -gt 0 ] && [ "$by_sweep" -gt 0 ] || ok=false
        query_is 'SELECT count(DISTINCT kill) FROM cut_off' "$((rounds * kills_a_round))" || ok=false

        say "$(query "SELECT sum(n) || ' jobs: ' || string_agg(n || ' ' || state, ', ' ORDER BY state)
                FROM (SELECT state, count(*) AS n FROM events GROUP BY state) AS counts")"
        while read -r number what; do
                say "$number $what"
                [ "$number" = 0 ] || ok=false
        done < <(violations)

        file=$folder/app/export-$export.csv
        [ "$(wc -l <"$file")" = "$rows" ] && sort -t, -k1n -uc "$file" || ok=false
        for number in $(query 'SELECT id FROM tasks'); do
                "$example/progress" "$number" | grep -q ' 100% ' || ok=false
        done
        $ok
}

play() {
        local round
        wait_until 120 ready 3 || return 1
        # Simulates an outage of Redis: rows without jobs.
        REDIS_URL=unix://$folder/nowhere start_task post 20 0 none >/dev/null
        export=$(start_task export "$rows" 500)
        for ((round = 1; round <= rounds; round++)); do
                trouble || return 1
                say "$("$example/progress" "$export" | head -n 1)"
        done
        wait_until 240 query_is 'SELECT count(*) FROM events WHERE NOT final' 0 || return 1
        "$example/progress" 3
        judge
}
