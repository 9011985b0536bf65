#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Output of sqmgrctl for a restart over many hosts, each of which is an sqmgr with its own host name.
# seconds: 120
# long: the next release deletes what this tests
# promises: P8
load helpers
load terminal

setup_file() { unshare --uts true 2>/dev/null || skip 'this machine lets nobody have a uts namespace'; }

# Starts an sqmgr with that host name, a member of the group `shop`. Orders are signed, so that a host soon begins one
# order after another.
start_host() { # NAME [LINE...]
        mkdir -p "$folder/$1.steer"
        [ -e releases ] || { mkdir -p releases/v7 && ln -s v7 releases/current; }
        (umask 077 && echo 0123456789abcdef0123456789abcdef >"$folder/key")
        { cat && printf '%s\n' "${@:2}"; } >"$folder/$1.ini" <<END
[sqmgr]
socket = $folder/$1.sock
state_file = $folder/$1.state
check_interval = 500ms

[redis]
url = unix://$folder/redis.sock

[fleet]
ready_after = 500ms
backoff_max = 1s

[fleet:default]
log = $folder/workers.log
command = $stub -u $folder/redis.sock -b 200 -d $folder/$1.steer
directory = $folder/releases/current
rollout_group = shop
rollout_key_file = $folder/key
END
        # shellcheck disable=SC2016
        launch "sqmgr-$1" unshare --uts sh -c 'echo "$0" >/proc/sys/kernel/hostname && exec "$@"' "$1" sqmgr -c "$folder/$1.ini"
        eval "pid_$1=$!"
        wait_until 10 on "$1" ping
        wait_until 20 is_ready "$1"
}
use_host() { export SQMGR_SOCKET=$folder/$1.sock; } # HOST
on() { SQMGR_SOCKET=$folder/$1.sock sqmgrctl "${@:2}"; } # HOST COMMAND...
is_ready() { on "$1" ping --ready; }
start_hosts() { # NAME...
        local name
        start_redis
        for name; do
                start_host "$name"
        done
        use_host "$1"
        wait_until 20 group_is "[.hosts[].host] == $(printf '%s\n' "$@" | jq -R . | jq -cs sort)"
}
group() {
        local rollout_json
        rollout_json=$(sqmgrctl rollout --json) && jq -r "$1" <<<"$rollout_json"
}
group_is() {
        local rollout_json
        rollout_json=$(sqmgrctl rollout --json) && jq -e "$1" <<<"$rollout_json" >/dev/null
}
file_has() { grep -q -e "$1" "$2"; } # PATTERN FILE

# A host takes no lease within 30 s of its connection to Redis: few tests with many steps each are faster.
@test "restart --everywhere --wait reports each host, exits 0 when all are done, and 1 with the host that halts the rollout" {
        start_hosts alpha beta gamma
        mkdir releases/v8
        [ "$(group .epoch,.state | paste -sd ' ')" = '0 none' ]
        sqmgrctl rollout | grep -qx "default: group 'shop': no rollout started yet"
        run -0 --separate-stderr sqmgrctl restart --everywhere --wait
        grep -qE "^[0-9:]{8} default: rollout [0-9]{10} of group 'shop' running, 3 hosts, 1 host at a time, started [0-9]+s ago on alpha$" <<<"$output"
        for name in alpha beta gamma; do
                grep -qE "^[0-9:]{8} $name: done, [123] of 3 hosts" <<<"$output"
        done
        first=$(group .epoch)
        [[ ${lines[-1]} == "default: rollout $first done: 3 hosts restarted"* ]]
        [ "$stderr" = '' ]
        # One after another.
        # A host that polls slowly sees two hosts finish at once.
        counts=$(sed -n 's/^[0-9:]* [a-z]*: done, \([0-9]\) .*/\1/p' <<<"$output")
        [ "$(wc -l <<<"$counts")" = 3 ]
        [ "$(sort -n <<<"$counts")" = "$counts" ]
        [ "$(tail -n 1 <<<"$counts")" = 3 ]
        group_is '.group == "shop" and (.epoch | . > 1700000000 and . - now < 100) and .state == "done" and .release == null and .error == null
                and (.hosts | all(.state == "done" and .error == null and .seconds >= 0))'
        # Each host shows the same rollout, and itself as `here`.
        [ "$(for name in alpha beta gamma; do on "$name" rollout --json | jq -r '.hosts[] | select(.here).host'; done | paste -sd ' ')" = 'alpha beta gamma' ]
        [ "$(for name in alpha beta gamma; do on "$name" status --json | jq .fleets[0].generation; done | paste -sd ' ')" = '2 2 2' ]
        run -0 sqmgrctl abort --everywhere
        [ "$output" = 'default: no rollout in progress' ]

        # A host whose state cannot be written orders no rollout, and takes no lease until it can.
        wait_until 10 block beta.state.new
        run -1 on beta restart --everywhere
        [[ $output == *"order refused, nothing has changed: the state file '$folder/beta.state' cannot be written"* ]]
        sqmgrctl restart --everywhere
        wait_until 60 group_is '[.hosts[].state] == ["done", "waiting", "done"]'
        wait_until 20 group_is '.hosts[1].progress | startswith("does not start while its state file cannot be written")'
        [ "$(on beta status --json | jq .fleets[0].generation)" = 2 ]
        rmdir beta.state.new
        wait_until 60 group_is '.state == "done"'

        # The code is missing on that host.
        ln -sfn v8 releases/current
        sed -i "s|^directory = .*|directory = $folder/releases/v7|" beta.ini
        on beta reload
        before=$(on beta status --json | jq .fleets[0].generation)
        run -1 --separate-stderr on gamma restart --everywhere --release releases/v8 --wait
        second=$(group .epoch)
        [ "$second" -gt "$first" ]
        [[ $stderr == *"default: rollout $second halted with "*beta*"run 'sqmgrctl restart default --everywhere'"* ]]
        group_is '.release == "releases/v8" and .state == "halted" and (.hosts[] | select(.host == "beta") | .state == "failed" and .error != null)'
        [ "$(on beta status --json | jq .fleets[0].generation)" = "$before" ]
        run -0 sqmgrctl rollout
        [[ $output == *"rollout $second of group 'shop' halted, release 'releases/v8'"*"to end the rollout, run 'sqmgrctl abort default --everywhere'"*'beta '*failed* ]]
        run -0 sqmgrctl abort --everywhere
        [ "$output" = 'default: rollout aborted on all hosts; remaining old workers keep running' ]
        wait_until 10 group_is '.state == "aborted"'

        # The code is there, but does not boot.
        echo 'config/database.yml: no such file' >beta.steer/fail
        run -1 --separate-stderr sqmgrctl restart default --everywhere --wait
        third=$(group .epoch)
        [[ $stderr == *"default: rollout $third halted with "*beta* ]]
        [[ $stderr != *database.yml* ]]
        rm beta.steer/fail
        run -0 --separate-stderr sqmgrctl --json restart --everywhere --wait=drained --timeout 300s
        jq -es --argjson third "$third" 'length > 1 and (last | .epoch > $third and .state == "done" and all(.hosts[]; .state == "done" and .drained))' <<<"$output"
}

@test "senseless group commands are refused with a sentence" {
        start_hosts alpha
        start_host other 'rollout_hosts = 2' '[fleet:mail]' "command = $(stub_command)" "log = $folder/mail.log" 'rollout_group = mail' \
                '[fleet:alone]' "command = $(stub_command)" "log = $folder/mail.log"
        run -2 sqmgrctl restart --release v7
        [[ $output == *'--release needs --everywhere'* ]]
        run -2 sqmgrctl restart --everywhere a b
        [[ $output == *'--everywhere takes one fleet'* ]]
        run -2 sqmgrctl restart --everywhere nosuch
        [[ $output == *"unknown fleet 'nosuch'"* ]]
        run -2 on other restart --everywhere
        [[ $output == *"give one of the fleets with a 'rollout_group'; known: 'default', 'mail'"* ]]
        run -2 on other rollout --json
        [[ $output == *"'default', 'mail'"* ]]
        run -0 on other rollout
        [[ $output == *"group 'shop'"*"group 'mail'"* ]]
        run -1 on other restart alone --everywhere
        [[ $output == *"fleet 'alone' has no rollout_group"* ]]
        run -1 on other rollout alone
        run -2 sqmgrctl rollout forget default
        [[ $output == *'forget takes a fleet and a host'* ]]
        run -2 sqmgrctl rollout forget
        run -2 sqmgrctl rollout a b
        run -1 sqmgrctl rollout forget default nosuch
        [[ $output == *nosuch* ]]
        run -2 sqmgrctl quiet default --everywhere
        [[ $output == *"'quiet' has no option --everywhere"* ]]
        # A host that is gone is left out, and returns by itself.
        wait_until 20 group_is 'any(.hosts[]; .host == "other")'
        kill -KILL "$pid_other"
        run -0 sqmgrctl rollout forget default other
        [ "$output" = 'default: host other forgotten; it rejoins when its sqmgr runs again' ]
        group_is '[.hosts[].host] == ["alpha"]'

        # Facts that only Redis has are not guessed.
        redis-cli -s "$folder/redis.sock" shutdown nosave || true
        wait_until 20 rollout_has_line "default: group 'shop': unknown whether a rollout was started (Redis does not answer)"
        group_is '.state == "none" and (.trouble | startswith("Redis is unreachable"))'
}
rollout_has_line() { sqmgrctl rollout | grep -qxF -e "$1"; } # LINE

# Adds jobs that keep the workers of a host alive.
hold_workers() { # HOST
        local pid
        for pid in $(on "$1" status --json | jq '.fleets[0].workers[].pid'); do
                echo 2 >"$folder/$1.steer/busy.$pid"
        done
        wait_until 10 is_busy "$1"
}
is_busy() { on "$1" status --json | jq -e 'all(.fleets[0].workers[]; .busy == 2)'; }
release_workers() { rm "$folder/$1.steer"/busy.*; } # HOST

@test "rollout --watch and --wait follow a rollout with and without a terminal, through another rollout and the next sqmgr" {
        start_hosts alpha beta
        hold_workers beta
        open_terminal 80 24
        type_line 'sqmgrctl rollout --watch'
        wait_until 10 shows 'each second; q quits'
        wait_until 10 shows "group 'shop': no rollout started yet"
        run -5 --separate-stderr sqmgrctl restart --everywhere --wait=drained --timeout 1s
        [[ $stderr == *"rollout $(group .epoch) did not end within 1s and continues. To see it, run 'sqmgrctl rollout default'"* ]]
        wait_until 30 shows "rollout [0-9]* of group 'shop' running"
        wait_until 60 shows 'beta .*done .*old workers finish their jobs'
        wait_until 30 shows '\[##*\] 100%  2 of 2 hosts done, 1 draining'
        release_workers beta
        wait_until 30 shows '2 of 2 hosts done$'
        tmux_do send-keys -t t q
        wait_until 10 not shows 'each second'

        type_line 'clear; sqmgrctl restart --everywhere --wait; echo code $?'
        wait_until 30 shows '\[[-#]*\]'
        wait_until 30 shows 'default: rollout [0-9]* done: 2 hosts restarted'
        wait_until 10 shows 'code 0'

        hold_workers alpha
        type_line 'clear; sqmgrctl restart --everywhere --wait=drained; echo code $?'
        wait_until 30 shows 'rollout [0-9]* of group'
        wait_until 30 shows 'old workers finish their jobs'
        tmux_do send-keys -t t C-c
        wait_until 10 shows 'detached; the rollout continues'

        launch first sqmgrctl restart --everywhere --wait=drained
        first=$!
        wait_until 30 file_has 'rollout [0-9]* of group' first.log
        wait_until 30 file_has 'alpha: done' first.log
        number=$(on beta restart --everywhere | sed -n 's/^default: rollout \([0-9]*\) of group .*/\1/p')
        wait_until 20 file_has "restarted: rollout $number of group" first.log
        kill -KILL "$pid_alpha"
        wait "$pid_alpha" || true
        wait_until 20 file_has 'connection to sqmgr lost; the rollout continues' first.log
        start_host alpha
        wait_until 20 file_has 'reconnected' first.log
        release_workers alpha
        wait "$first"
        file_has "default: rollout $number done: 2 hosts restarted; their old workers are gone" first.log
}

@test "restart --wait reports no end of a rollout from an sqmgr that came back without Redis" {
        start_hosts alpha
        # No host takes a lease in the first 30 s.
        launch waiter sqmgrctl restart --everywhere --wait --timeout 15s
        waiter=$!
        wait_until 10 file_has 'rollout [0-9]* of group' waiter.log
        number=$(group .epoch)
        redis-cli -s "$folder/redis.sock" shutdown nosave || true
        kill -KILL "$pid_alpha"
        wait "$pid_alpha" || true
        # shellcheck disable=SC2016
        launch sqmgr-alpha unshare --uts sh -c 'echo "$0" >/proc/sys/kernel/hostname && exec "$@"' alpha sqmgr -c "$folder/alpha.ini"
        wait_until 10 file_has 'Redis is unreachable' waiter.log
        local code=0
        wait "$waiter" || code=$?
        [ "$code" = 5 ]
        file_has "rollout $number did not end within 15s and continues" waiter.log
        rollout_has_line "default: group 'shop': state of rollout $number unknown (Redis does not answer)"
}
