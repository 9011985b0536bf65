#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# sqmgr-web serves what sqmgr reports, and no client can harm it, sqmgr or other clients.
# seconds: 50
# promises: none
load helpers

client() { python3 -B "$e2e/web_client.py" "$@"; }
get() { curl -sf -m 60 --unix-socket "$folder/web.sock" "http://localhost$1" "${@:2}"; }
status_of() { curl -s -m 60 -o /dev/null -w '%{http_code}' --unix-socket "$folder/web.sock" "http://localhost$1" "${@:2}"; }
answers() { [ "$(status_of "$1")" = "${2-200}" ]; } # PATH [STATUS]
reachable_is() { get /api/status | jq -e ".instances | all(.reachable == $1)"; } # true|false
web_memory() { awk '/^VmRSS/ { print $2 }' "/proc/$web_pid/status"; } # kB

start_web() { # OPTION...
        : "${asked:=$folder/sqmgr.sock}"
        command -v sqmgr-web >/dev/null || skip 'sqmgr-web was not built: libmicrohttpd is missing'
        launch web sqmgr-web -s "$asked" -l "unix:$folder/web.sock" --host other.example "$@"
        web_pid=$!
        wait_until 20 answers /healthz
}

# Writes a stream to a file, until the test ends.
watch_stream() { # PATH FILE
        curl -sN --unix-socket "$folder/web.sock" "http://localhost$1" >"$2" 2>&1 9>&- 3>&- &
        record $!
}

# Opens N connections of that kind, until `exec 7>&-`.
hold_connections() { # N KIND
        mkfifo hold.in hold.out
        client hold "$folder/web.sock" "$@" <hold.in >hold.out 3>&- 9>&- &
        exec 7>hold.in 8<hold.out
        rm hold.in hold.out
        read -r -t 120 held <&8
        exec 8<&-
}

# Prints the parts that do not change continuously.
without_variable_fields() { jq 'walk(if type == "object" then with_entries(select(.key | test("seconds$|rtt_ms|memory_bytes|^busy$|^quoted$|^summary$") | not)) else . end)'; }

same_status() {
        get /api/status | jq '.instances[0].status' | without_variable_fields >web.json
        sqmgrctl status --json | without_variable_fields >ctl.json
        diff web.json ctl.json
}

@test "answers of sqmgr-web match those of sqmgr" {
        start_fleet
        start_web --history "$folder/history"
        wait_until 20 same_status
        [ "$(get /api/status | jq -r .host)" = "$(uname -n)" ]
        all_told() { get /api/status | jq -e '.instances[0] | .reachable and .error == null and .age_seconds < 60 and (.queues | length == 1)'; }
        wait_until 20 all_told
        wait_until 20 answers /readyz
        get / | grep -q '<!DOCTYPE html>'
        get /api/history | jq -e '.range == "hour" and .step_seconds == 5'
        answers /api/history?range=week 400

        local headers
        headers=$(get / -D - -o /dev/null | tr -d '\r')
        for header in 'Cache-Control: no-store' 'X-Content-Type-Options: nosniff' 'X-Frame-Options: DENY' \
                'Referrer-Policy: no-referrer' 'Cross-Origin-Resource-Policy: same-origin'; do
                grep -qix "$header" <<<"$headers"
        done
        grep -qi "^Content-Security-Policy: .*default-src 'none'" <<<"$headers"
        not grep -qi '^Access-Control' <<<"$headers"

        # A fleet without its workers is not ready; a stopped fleet needs none.
        : >steer/hang
        kill -KILL "$(fleet '.workers[0].pid')"
        wait_until 20 answers /readyz 503
        get / >/dev/null
        rm steer/hang
        wait_until 60 answers /readyz
        run -0 sqmgrctl stop default
        wait_until 20 same_status
        answers /readyz

        kill "$web_pid"
        wait_until 20 gone "$web_pid"
        [ ! -e "$folder/web.sock" ]
        grep -q 'sqmgr answers' web.log
        not grep -qi 'error' web.log
        [ -s "$folder/history" ]
}

@test "events come as they happen" {
        start_fleet
        start_web
        watch_stream /api/events stream
        wait_until 20 grep -q '^event: status' stream
        run -0 sqmgrctl restart --wait --timeout 300s
        wait_until 20 grep -q '"event":"rollout-done"' stream
        # Each event is one line of data, and one document.
        sed -n 's/^data: //p' stream | jq -es 'length > 1 and all(.instances or (.event and .socket))'
        [ "$(grep -c '"event":"rollout-done"' stream)" = 1 ]
        timeout 10 curl -sN --unix-socket "$folder/web.sock" http://localhost/live | grep -m 1 '^event: page'
}

@test "output of a dying worker is shown nowhere" {
        start_fleet
        start_web --history "$folder/history"
        watch_stream /api/events stream
        wait_until 20 grep -q '^event: status' stream
        echo 'pid=% tid=1 the password is correct-horse' >steer/fail
        kill -KILL "$(fleet '.workers[0].pid')"
        # Clients of the control socket see it.
        sees() { sqmgrctl "$@" | grep -q correct-horse; }
        wait_until 20 sees events --json
        wait_until 20 sees status --json
        run -0 sqmgrctl restart
        wait_until 60 sees events --json
        crashes() { get /api/status | jq -e '.instances[0].status.fleets[0] | .crash.last and .rollout.state == "halted"'; }
        wait_until 60 crashes
        marked() { get /api/history | jq -e 'any(.marks[]; .event == "halt")'; }
        wait_until 20 marked
        wait_until 20 grep -q '"event":"rollout-halted"' stream
        for path in / /live /api/status /api/events /api/history /metrics /readyz; do
                curl -sN -m 3 --unix-socket "$folder/web.sock" "http://localhost$path" >>shown || [ $? = 28 ] || [ $path = /readyz ]
        done
        grep -q 'halted' shown
        not grep -q correct-horse shown stream history web.log
}

@test "metrics of one and several instances pass promtool" {
        start_fleet
        start_web
        get /metrics >text
        grep -qFx 'sqmgr_workers{fleet="default",state="active"} 2' text
        grep -qFx "sqmgr_web_instance_up{socket=\"$asked\"} 1" text
        ! command -v promtool >/dev/null || promtool check metrics <text
        get /metrics -H 'Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5' -D head >open
        grep -qi '^content-type: application/openmetrics-text; version=1.0.0; charset=utf-8' head
        [ "$(tail -n 1 open)" = '# EOF' ]

        launch web2 sqmgr-web -s "$asked" -s "$folder/none.sock" -l "unix:$folder/web2.sock"
        wait_until 20 test -S "$folder/web2.sock"
        two() { curl -sf --unix-socket "$folder/web2.sock" http://localhost/metrics >text && grep -qFx "sqmgr_workers{socket=\"$asked\",fleet=\"default\",state=\"active\"} 2" text; }
        wait_until 20 two
        grep -qFx "sqmgr_web_instance_up{socket=\"$folder/none.sock\"} 0" text
        [ "$(grep -c '^# TYPE sqmgr_workers ' text)" = 1 ]
        ! command -v promtool >/dev/null || promtool check metrics <text
        curl -s --unix-socket "$folder/web2.sock" http://localhost/readyz | grep -q "^$folder/none.sock: cannot connect: no such socket"
}

@test "an sqmgr that is killed, comes back and is re-executed is shown correctly" {
        start_fleet
        start_web
        wait_until 20 reachable_is true
        kill -KILL "$sqmgr_pid"
        wait_until 20 reachable_is false
        answers /readyz 503
        # The last known state stays, with its age, which grows.
        get /api/status | jq -e '.instances[0] | .error and .status.fleets[0].name == "default"'
        watch_stream /live live
        # shellcheck disable=SC2016
        wait_until 30 eval '[ "$(grep -o "[0-9]*s ago" live | sort -u | wc -l)" -ge 2 ]'
        start_sqmgr
        wait_until 20 reachable_is true
        wait_until 20 same_status
        wait_until 20 sqmgrctl reexec
        wait_until 20 same_status
        # The connection to the earlier program ends now, unless that was noticed before.
        wait_until 20 reachable_is true
}

@test "malformed requests are refused, and the next client is served" {
        start_fleet
        local port
        port=$(unused_port 127.0.0.1)
        start_web -l "127.0.0.1:$port"
        run -0 client raw "$port"
        [ -z "$output" ]
        # A socket at a path has no address: its name is localhost.
        [ "$(status_of / -H 'Host: 127.0.0.1')" = 421 ]
        alive "$web_pid"
}

@test "a thousand silent connections cost little, and no client is kept out" {
        start_fleet
        ulimit -n 4096 || skip 'no more descriptors than 1,024 are allowed here'
        start_web
        local before first last kind
        get / >/dev/null
        before=$(web_memory)
        for kind in idle half idle half; do
                hold_connections 1000 "$kind"
                [ "$held" = 1000 ]
                wait_until 20 eval 'get /metrics | grep -q "^sqmgr_web_connections 100[0-9]$"'
                answers /
                last=$(web_memory)
                : "${first:=$last}"
                exec 7>&-
                wait_until 20 eval 'get /metrics | grep -q "^sqmgr_web_connections 1$"'
        done
        echo "memory: $before kB, with 1,000 connections $first kB, at last $last kB"
        [ $((first - before)) -lt 40000 ]
        [ $((last - before)) -lt 50000 ]
        # More than the limit.
        hold_connections 1200 half
        answers /
        wait_until 20 eval 'get /metrics | grep -q "^sqmgr_web_refused_connections_total [1-9]"'
        exec 7>&-
        alive "$web_pid"
}

@test "a slow client, or one with hundreds of streams, does not affect other clients" {
        start_fleet
        ulimit -n 4096 || skip 'no more descriptors than 1,024 are allowed here'
        start_web
        local before
        get / >/dev/null
        before=$(web_memory)
        hold_connections 300 stream
        # Each was admitted by closing the oldest; so is any further client.
        [ "$held" -ge 256 ]
        timeout 20 curl -sN --unix-socket "$folder/web.sock" http://localhost/live | grep -m 1 '^event: page'
        local streams
        streams=$(get /metrics | awk '$1 == "sqmgr_web_streams" { print $2 }')
        [ "$streams" -gt 200 ] && [ "$streams" -le 256 ]
        answers /api/status
        exec 7>&-
        wait_until 40 eval 'get /metrics | grep -q "^sqmgr_web_streams 0$"'
        hold_connections 200 slow
        wait_until 20 same_status
        exec 7>&-
        echo "memory: $before kB, then $(web_memory) kB"
        [ $(($(web_memory) - before)) -lt 40000 ]
}

@test "a program that is not sqmgr takes little memory, and the others are shown" {
        start_fleet
        launch false python3 -B "$e2e/web_client.py" false "$folder/false.sock"
        wait_until 20 test -S false.sock
        start_web -s "$folder/false.sock"
        shown() { get /api/status | jq -e '.instances | .[0].reachable and (.[1].error | test("reply to GetStatus refused"))'; }
        wait_until 20 shown
        watch_stream /live live
        told_anew() { [ "$(grep -c '^event: page' live)" -ge 3 ]; }
        wait_until 20 told_anew
        shown
        get / | grep -q 'reply to GetStatus refused'
        [ "$(awk '/^VmHWM/ { print $2 }' "/proc/$web_pid/status")" -lt 60000 ]
}

called() { awk -v name="$1" '$1 == name { print $2 }' calls; } # METHOD
statuses() { grep -c '^event: status' stream; }
has_statuses() { [ "$(statuses)" -ge "$1" ]; }

# Prints the calls of GetStatus and GetEvents while one viewer receives this many statuses.
count_calls() { # STATUSES
        local told calls
        told=$(statuses) calls=$(($(called GetStatus) + $(called GetEvents)))
        wait_until 60 has_statuses $((told + $1))
        told=$(($(statuses) - told)) calls=$(($(called GetStatus) + $(called GetEvents) - calls))
        # One call may be in flight at either end.
        [ "$calls" -ge $((2 * told - 4)) ] && [ "$calls" -le $((2 * told + 4)) ]
}

@test "the number of clients does not change how often sqmgr is queried" {
        start_fleet
        launch relay python3 -B "$e2e/web_client.py" relay "$folder/relay.sock" "$folder/sqmgr.sock" "$folder/calls"
        wait_until 20 test -S relay.sock
        asked=$folder/relay.sock start_web
        watch_stream /api/events stream
        wait_until 20 has_statuses 2
        count_calls 3
        hold_connections 50 stream
        [ "$held" = 50 ]
        local before
        before=$(called GetMetrics)
        for _ in {1..20}; do
                answers / && answers /api/status && answers /metrics
        done
        count_calls 3
        # At most one a second.
        [ $(($(called GetMetrics) - before)) -le $((SECONDS + 1)) ]
        exec 7>&-
}

@test "bad options are reported, and a foreign socket is left alone" {
        command -v sqmgr-web >/dev/null || skip 'sqmgr-web was not built: libmicrohttpd is missing'
        run -2 sqmgr-web -l 0.0.0.0:7433
        [[ $output == *'--public'* ]]
        run -2 sqmgr-web -l localhost:7433
        [[ $output == *'127.0.0.1:7433'* ]]
        run -2 sqmgr-web -s relative.sock
        run -2 sqmgr-web extra
        run -2 sqmgr-web --no-such-option
        run -0 sqmgr-web --version
        [[ $output == "sqmgr-web $version"$'\n'* ]]
        run -0 sqmgr-web --help
        [[ $output == Usage:* ]]
        echo mine >"$folder/file"
        run -1 sqmgr-web -l "unix:$folder/file"
        [ "$(cat "$folder/file")" = mine ]
        run -1 sqmgr-web -l "unix:$folder/nowhere/web.sock"
        # A socket in use, and one left by a dead process.
        launch web sqmgr-web -l "unix:$folder/web.sock"
        web_pid=$!
        wait_until 20 answers /healthz
        [ "$(stat -c %a web.sock)" = 660 ]
        run -1 sqmgr-web -l "unix:$folder/web.sock"
        [[ $output == *'in use'* ]]
        kill -KILL "$web_pid"
        wait_until 20 gone "$web_pid"
        launch web sqmgr-web -l "unix:$folder/web.sock"
        wait_until 20 answers /healthz
}
