# SPDX-License-Identifier: MIT
# Starts a Redis and an sqmgr in $folder, and queries them: for the demo, the examples and the end-to-end tests, which
# each define their own `launch` and `wait_until`.
# shellcheck shell=bash disable=SC2034,SC2154

redis() { redis-cli -s "$folder/redis.sock" "$@"; }
redis_answers() { [ "$(redis ping 2>/dev/null)" = PONG ]; }

start_redis() {
        launch redis redis-server --port 0 --unixsocket "$folder/redis.sock" --dir "$folder" --save '' \
                --appendonly yes
        redis_pid=$!
        wait_until 10 redis_answers
}

start_sqmgr() {
        launch sqmgr sqmgr -c "$folder/sqmgr.ini"
        sqmgr_pid=$!
        wait_until 10 sqmgrctl ping
}

# jq 1.6 accepts empty input, so the exit status of the command before it is checked first.
fleet() {
        local status_json
        status_json=$(sqmgrctl status --json) && jq -r ".fleets[0] | $1" <<<"$status_json"
}
fleet_is() {
        local status_json
        status_json=$(sqmgrctl status --json) && jq -e ".fleets[0] | $1" <<<"$status_json" >/dev/null
}
worker_pids() { fleet '[.workers[].pid] | sort | join(" ")'; }
# Polled most of all: jq alone would take ten times as long.
ready() { # WORKERS of the first fleet
        local status_json
        status_json=$(sqmgrctl status --json) &&
                awk -v n="$1" '{ split($0, part, /"workers":\[/); exit gsub(/"ready":true/, "", part[2]) != n }' <<<"$status_json"
}
