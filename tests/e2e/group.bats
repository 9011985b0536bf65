#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A restart of all hosts of a group, each an sqmgr with its own host name.
# seconds: 160
# long: the next release deletes what this tests
# promises: P2 P4 P8
load helpers

setup_file() { unshare --uts true 2>/dev/null || skip 'this machine lets nobody have a host name of its own'; }

# Standard input has the lines of the fleet.
configure_host() { # NAME
        mkdir -p "$folder/$1.steer"
        cat >"$folder/$1.ini" <<END
[sqmgr]
socket = $folder/$1.sock
state_file = $folder/$1.state
check_interval = 500ms

[redis]
url = unix://$folder/redis.sock

[fleet:default]
command = $stub -u $folder/redis.sock -b 200 -d $folder/$1.steer
log = $folder/workers.log
ready_after = 500ms
backoff_min = 100ms
$(cat)
END
}

# Their workers do not boot until allowed, so that the test can observe a lease.
hold_boots() { touch "${@/%/.steer/hang}"; } # NAME...
let_boot() { rm -f "${@/%/.steer/hang}"; }   # NAME...

# Runs as that host; its pid is in $folder/NAME.pid.
start_host() { # NAME
        # shellcheck disable=SC2016
        launch "sqmgr-$1" unshare --uts sh -c 'hostname "$0"; exec sqmgr -c "$1"' "$1" "$folder/$1.ini"
        echo $! >"$folder/$1.pid"
        wait_until 20 on "$1" sqmgrctl ping
}

on() { # NAME COMMAND...
        local name=$1
        shift
        SQMGR_SOCKET=$folder/$name.sock "$@"
}

# Prints the parameters of a reply, or name and parameters of an error.
ask() { # NAME METHOD PARAMETERS
        ruby --disable-gems -rjson -rsocket -e 'socket = UNIXSocket.new(ARGV[0])
                socket.write(JSON.generate(method: "org.sqmgr.Control.#{ARGV[1]}", parameters: JSON.parse(ARGV[2])) + "\0")
                reply = JSON.parse(socket.gets("\0").chomp("\0"))
                puts JSON.generate(reply["error"] ? reply : reply["parameters"])' "$folder/$1.sock" "$2" "$3"
}
begin() { ask "$1" RestartEverywhere '{"fleet":"default"}'; }
rollout() { ask "$1" GetRollouts '{}' | jq ".rollouts[0]"; }
rollout_is() { rollout "$1" | jq -e "$2" >/dev/null; }

configure_hosts() { # NAME...: each with the lines of standard input
        local lines name
        lines=$(cat)
        for name; do
                configure_host "$name" <<<"$lines"
        done
}
start_hosts() { # NAME...
        local name
        for name; do
                start_host "$name"
        done
        wait_until 20 rollout_is "$1" ".hosts | length == $#"
}
host_is() { rollout_is "$1" ".hosts[] | select(.host == \"$2\") | $3"; } # NAME HOST CONDITION
generation_is() { [ "$(on "$1" fleet .generation)" = "$2" ]; }           # NAME NUMBER
is_begun() { [ "$(begin "$1" | jq -r .group)" = g ]; }                   # NAME
all_ready() { # NAME...
        local name
        for name; do
                wait_until 30 on "$name" ready 2
        done
}

# Prints `BEGIN END NAME` of the last finished lease of each, from its events, in their order.
turns() { # NAME...
        local name
        for name; do
                ask "$name" GetEvents '{}' | jq -r --arg name "$name" '[.events[] |
                        select(.event == "group-turn" or .event == "group-turn-done").at] | "\(.[-2]) \(.[-1]) \($name)"'
        done | sort -n
}

kill_host() { # NAME
        local pid
        pid=$(ask "$1" GetStatus '{}' | jq .pid)
        kill -KILL "$pid"
        wait_until 10 not alive "$pid"
}

@test "hosts roll in turn; a release that does not boot halts the rest, a missing one is not begun, a canary is waited for" {
        start_redis
        mkdir -p releases/1 releases/2
        ln -s releases/2 current
        # With a key, the sender of an order is known, and no host waits between two restarts.
        (umask 077 && openssl rand -hex 32 >key)
        configure_hosts a b c <<END
active_process_count = 2
directory = $folder/current
rollout_group = g
rollout_key_file = $folder/key
END
        start_hosts a b c
        all_ready a b c

        run ask a RestartEverywhere '{"fleet":"default","release":"releases/2"}'
        number=$(jq .epoch <<<"$output")
        [ "$(jq -c . <<<"$output")" = "{\"epoch\":$number,\"group\":\"g\"}" ]
        rollout_is b ".epoch == $number"
        rollout_is b '.state == "running" and .began_by == "a" and .release == "releases/2"'
        wait_until 90 rollout_is c '.state == "done"'
        rollout_is a '[.hosts[].host] == ["a", "b", "c"] and all(.hosts[]; .state == "done")'
        wait_until 30 rollout_is a 'all(.hosts[]; .drained)'
        for host in a b c; do
                generation_is "$host" 2
        done
        turns a b c
        turns a b c | awk 'NF != 3 || $1 < last { bad = 1 } { last = $2 } END { exit bad || NR != 3 }'

        # No host has waited meanwhile for a lease: the first host finds that no worker boots.
        touch a.steer/fail b.steer/fail c.steer/fail
        is_begun b
        wait_until 90 rollout_is a '.state == "halted"'
        rollout_is a '[.hosts[] | select(.state == "failed")] | length == 1'
        rollout_is a '[.hosts[] | select(.state == "waiting")] | length == 2'
        error=$(rollout a | jq -r .error)
        echo "# $error" >&3
        [[ $error =~ ^[abc]:\ 3\ new\ workers\ failed\ in\ a\ row ]]
        [[ $error != *"last lines"* ]]
        rm a.steer/fail b.steer/fail c.steer/fail

        # The rollout has halted for all: the next host has the release, and had time to begin.
        [ "$(ask c AbortEverywhere '{"fleet":"default"}')" = '{"aborted":true}' ]
        [ "$(ask c AbortEverywhere '{"fleet":"default"}')" = '{"aborted":false}' ]
        rollout_is b '.state == "aborted" and .error == "ordered on c"'
        rollout_is b '[.hosts[] | select(.state == "waiting")] | length == 2'

        # No host has this release.
        before=$(for host in a b c; do on "$host" fleet .generation; done)
        ask a RestartEverywhere '{"fleet":"default","release":"releases/3"}'
        wait_until 90 rollout_is a '.state == "halted"'
        rollout a | jq -r .error | grep -F "release 'releases/3' was not found"
        [ "$(for host in a b c; do on "$host" fleet .generation; done)" = "$before" ]

        # The next rollout works.
        number=$(ask a RestartEverywhere '{"fleet":"default","release":"2"}' | jq .epoch)
        wait_until 90 rollout_is a ".state == \"done\" and .epoch == $number"
        wait_until 30 rollout_is a 'all(.hosts[]; .drained)'

        # The first host must stay healthy for this long before others follow.
        sed -i '$a rollout_canary = 2s' b.ini
        on b sqmgrctl reload
        number=$(begin b | jq .epoch)
        wait_until 90 rollout_is a ".state == \"done\" and .epoch == $number"
        turns a b c
        turns a b c | awk 'NR == 1 { end = $2 } NR == 2 { next_one = $1 } END { exit next_one - end < 2 }'
        sed -i 's/^rollout_canary = .*/rollout_canary = 1h/' b.ini
        on b sqmgrctl reload
        number=$(begin b | jq .epoch)
        wait_until 90 rollout_is a ".epoch == $number and any(.hosts[]; .state == \"done\")"
        first=$(rollout a | jq -r '.hosts[] | select(.state == "done").host')
        asked=$(scripts_asked)
        wait_until 30 have_asked $((asked + 20))
        rollout_is a '.state == "running" and ([.hosts[] | select(.state == "waiting")] | length == 2)'
        kill -KILL "$(on "$first" fleet '[.workers[] | select(.state == "active").pid][0]')"
        wait_until 30 rollout_is a '.state == "halted"'
        error=$(rollout a | jq -r .error)
        echo "# $error" >&3
        [[ $error == "$first: "*"was killed by signal 9"* ]]
        rollout_is a '[.hosts[] | select(.state == "waiting")] | length == 2'
}
# Prints the number of script calls of all hosts: each calls it with each poll during a rollout.
scripts_asked() { redis info commandstats | sed -n 's/^cmdstat_eval\(sha\)*:calls=\([0-9]*\),.*/\2/p' | awk '{ n += $1 } END { print n }'; }
have_asked() { [ "$(scripts_asked)" -ge "$1" ]; } # COUNT

@test "a host killed while rolling resumes, a host that is gone is forgotten, a flushed Redis is reported" {
        start_redis
        configure_hosts a b <<END
active_process_count = 2
rollout_group = g
END
        start_hosts a b
        hold_boots a b
        is_begun a
        wait_until 90 rollout_is a 'any(.hosts[]; .state == "rolling")'
        first=$(rollout a | jq -r '.hosts[] | select(.state == "rolling").host')
        second=$([ "$first" = a ] && echo b || echo a)
        wait_until 20 generation_is "$first" 2
        before=$(on "$first" worker_pids)
        kill_host "$first"
        start_host "$first"
        let_boot "$first"
        # Same workers, same lease.
        for pid in $before; do
                [[ " $(on "$first" worker_pids) " == *" $pid "* ]] || gone "$pid"
        done
        wait_until 60 host_is "$second" "$first" '.state == "done"'
        generation_is "$first" 2
        # The second host takes its lease, and continues after its sqmgr is re-executed with another program.
        wait_until 60 host_is "$first" "$second" '.state == "rolling"'
        wait_until 20 generation_is "$second" 2
        on "$second" sqmgrctl reexec
        let_boot "$second"
        wait_until 60 rollout_is "$first" '.state == "done"'

        # An abort also reaches the host that is rolling. It was ordered on this host, which need not wait for it.
        hold_boots a
        is_begun a
        wait_until 60 host_is a a '.state == "rolling"'
        wait_until 20 generation_is a 3
        [ "$(ask b AbortEverywhere '{"fleet":"default"}')" = '{"aborted":true}' ]
        wait_until 20 on a fleet_is '.rollout.state == "aborted" and (.rollout.error | contains("ordered on b"))'
        let_boot a
        generation_is b 2

        # No host knows a rollout any more.
        number=$(rollout a | jq .epoch)
        redis flushall >&2
        wait_until 30 rollout_is a ".trouble != null and (.trouble | contains(\"has lost rollout $number\"))"
        wait_until 30 rollout_is b '.trouble != null'
        ask a GetEvents '{}' | jq -e 'any(.events[]; .event == "group-trouble")'
        kill_host b
        is_begun a
        wait_until 90 rollout_is a '.state == "done" or any(.hosts[]; .state == "done")'
        rollout_is a ".epoch > $number and .trouble == null"
        # After the flush a host is a member once it has reported: this one did before it was killed.
        rollout_is a '.state == "running" and any(.hosts[]; .host == "b" and .state == "waiting")'
        run ask a ForgetHost '{"fleet":"default","host":"x"}'
        [[ $output == *"host 'x' is not in the group"* ]]
        [ "$(ask a ForgetHost '{"fleet":"default","host":"b"}')" = '{}' ]
        rollout_is a '.state == "done" and .left == ["b"]'
}

# Two instances on one machine with the same host name and the same path of the state.
start_container() { # NAME
        mkdir -p box "$1"
        ln -s "$1/twin.sock" "$1.sock"
        sed "/^socket\|^state_file/s|$folder|$folder/box|" twin.ini >"$1/twin.ini"
        # shellcheck disable=SC2016
        launch "sqmgr-$1" unshare --uts --mount --pid --fork --mount-proc --kill-child sh -c \
                'mount --bind "$0" box && hostname twin && exec sqmgr -c box/twin.ini' "$1"
        wait_until 20 on "$1" sqmgrctl ping
}
instance_of() { redis hget sqmgr:rollout:g:hosts "$1" | sed 's/ .*//'; } # HOST
is_named() { [ -n "$(instance_of "$1")" ]; } # HOST

@test "two containers with one name are distinguished, an sqmgr that comes back is recognized" {
        unshare --pid --fork --mount-proc true 2>/dev/null || skip 'no namespace of processes can be made here'
        start_redis
        configure_host a <<END
active_process_count = 1
rollout_group = g
END
        start_host a
        wait_until 20 is_named a
        instance=$(instance_of a)
        # Its new report describes its current state.
        redis hdel sqmgr:rollout:g:hosts a
        kill_host a
        start_host a
        wait_until 20 is_named a
        [ "$(instance_of a)" = "$instance" ]
        redis hdel sqmgr:rollout:g:hosts a
        on a sqmgrctl reexec
        wait_until 20 is_named a
        [ "$(instance_of a)" = "$instance" ]
        redis hdel sqmgr:rollout:g:hosts a
        pid=$(ask a GetStatus '{}' | jq .pid)
        kill -TERM "$pid"
        wait_until 20 gone "$pid"
        start_host a
        wait_until 20 is_named a
        [ "$(instance_of a)" = "$instance" ]

        configure_host twin <<END
active_process_count = 1
rollout_group = g
END
        start_container one
        wait_until 20 is_named twin
        # During a rollout it reports with each poll.
        is_begun one
        start_container two
        wait_until 30 rollout_is two '.trouble != null and (.trouble | contains("another machine has host name"))'
        rollout_is one '.trouble == null'
}

@test "without rollout_group Redis is not queried, and orders report the missing setting" {
        start_redis
        configure_host a <<<'active_process_count = 1'
        start_host a
        wait_until 20 on a ready 1
        for method in RestartEverywhere AbortEverywhere; do
                run ask a "$method" '{"fleet":"default"}'
                [[ $output == *"fleet 'default' has no rollout_group. Set one"* ]]
        done
        [ "$(ask a GetRollouts '{}')" = '{"rollouts":[]}' ]
        [ -z "$(redis keys 'sqmgr:*')" ]
        run redis info commandstats
        [[ $output != *cmdstat_eval* ]]

        # It joins by a reload, and leaves by a reload.
        sed -i '$a rollout_group = g' a.ini
        on a sqmgrctl reload
        wait_until 20 rollout_is a '.hosts[0].host == "a"'
        on a fleet_is '.rollout_group == "g"'
        is_begun a
        sed -i '/^rollout_group/d' a.ini
        on a sqmgrctl reload
        [ "$(ask a GetRollouts '{}')" = '{"rollouts":[]}' ]
        left() { [ "$(redis zcard sqmgr:rollout:g:seen)" = 0 ]; }
        wait_until 20 left
}
