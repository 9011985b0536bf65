# SPDX-License-Identifier: MIT
# A Redis and an sqmgr in $folder, and what they are asked: for the demo, the examples and the end-to-end tests, each of
# which has a `launch` and a `wait_until` of its own.
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

# jq 1.6 is content with no input at all, so the command before it has its say first.
fleet() {
        local status_json
        status_json=$(sqmgrctl status --json) && jq -r ".fleets[0] | $1" <<<"$status_json"
}
fleet_is() {
        local status_json
        status_json=$(sqmgrctl status --json) && jq -e ".fleets[0] | $1" <<<"$status_json" >/dev/null
}
worker_pids() { fleet '[.workers[].pid] | sort | join(" ")'; }
ready() { fleet_is "[.workers[] | select(.ready)] | length == $1"; }
