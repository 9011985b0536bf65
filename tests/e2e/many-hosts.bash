# SPDX-License-Identifier: MIT
# Hosts of a group on one machine: each sqmgr runs with its workers in a namespace with its own host name. The
# application of each is in FOLDER/HOST, its releases in FOLDER/HOST/releases.
# shellcheck shell=bash disable=SC2034,SC2154

hosts='h1 h2 h3 h4 h5'
# Output for a failed test.
logs='sqmgr.log workers.log sqmgr-h1.log sqmgr-h2.log sqmgr-h3.log sqmgr-h4.log sqmgr-h5.log h1.workers.log h2.workers.log feed.log'

needs_host_names() { unshare --uts true 2>/dev/null || skip 'this machine lets nobody have a namespace of host names'; }

on() { # HOST COMMAND...
        local host=$1
        shift
        SQMGR_SOCKET=$folder/$host.sock "$@"
}

# Runs on each host; fails at the first failure.
on_each() { # COMMAND...
        local host
        for host in $hosts; do
                on "$host" "$@" || return 1
        done
}

make_host_release() { # HOST RELEASE [LINE]
        local at=$folder/$1/releases/$2
        mkdir -p "$at"
        {
                echo "${3-}"
                echo "require \"$e2e/many-hosts-app.rb\""
        } >"$at/app.rb"
}
# Links a release as a deployment does.
link_host() { # HOST RELEASE
        ln -sfn "releases/$2" "$folder/$1/current.new" && mv -T "$folder/$1/current.new" "$folder/$1/current"
}

# `fleet_lines` has further lines of the fleet; `current` is a directory that all share, `command` a command other than
# Sidekiq.
configure_host() { # HOST
        configure <<END
command = ${command:-sidekiq -r ./app.rb -c $threads -t 5}
directory = ${current:-$folder/$1/current}
active_process_count = $workers
rollout_group = app
ready_after = 500ms
backoff_min = 200ms
backoff_max = 1s
${fleet_lines-}
END
        sed -e "s|^socket = .*|socket = $folder/$1.sock\nstate_file = $folder/$1.state|" -e "s|^log = .*|log = $folder/$1.workers.log|" sqmgr.ini >"$1.ini"
}

start_host() { # HOST
        # shellcheck disable=SC2016
        launch "sqmgr-$1" unshare --uts sh -c 'hostname "$1" && exec "$3" -c "$2"' sh \
                "$1" "$folder/$1.ini" "${program:-sqmgr}"
        declare -g "${1}_pid=$!"
        wait_until 20 on "$1" sqmgrctl ping
}
# Its workers keep running.
kill_host() { # HOST
        local pid=${1}_pid
        # shellcheck disable=SC2046
        record $(on "$1" worker_pids)
        kill -KILL "${!pid}"
        wait "${!pid}" 2>/dev/null || true
}

# All run releases/1.
start_hosts() {
        local host
        : >ledger
        export LEDGER=$folder/ledger
        for host in $hosts; do
                make_host_release "$host" 1
                link_host "$host" 1
                configure_host "$host"
                start_host "$host"
                follow_host "$host"
        done
        for host in $hosts; do
                wait_until 90 on "$host" ready "$workers"
        done
}

# Writes the events of any sqmgr there to FOLDER/HOST.events.
follow_host() { # HOST
        SQMGR_SOCKET=$folder/$1.sock launch "$1.events" sqmgrctl events --follow --json
}

# Prints the rollout as the host `asked` shows it.
rollout() { on "${asked:-h1}" sqmgrctl rollout --json | jq -er "$1"; } # PATH
group_is() { [ "$(rollout .state)" = "$1" ]; } # STATE
is_of_group() { [ "$(rollout ".hosts[] | select(.host == \"$1\") | .state")" = "$2" ]; } # HOST STATE

rolls() { fleet_is '.rollout.state == "running"'; }
a_host_rolls() { rolling=$(which_rolls | head -n 1) && [ -n "$rolling" ]; }
which_rolls() {
        local host
        for host in $hosts; do
                ! on "$host" rolls 2>/dev/null || echo "$host"
        done
}

# True if all active workers run that release, and their number is the count.
runs_release() { # HOST RELEASE
        local pids pid
        pids=$(on "$1" fleet '.workers[] | select(.state == "active") | .pid')
        [ "$(wc -w <<<"$pids")" = "$workers" ] || return 1
        for pid in $pids; do
                [ "$(readlink "/proc/$pid/cwd")" = "$folder/$1/releases/$2" ] || return 1
        done
}
has_drained() { on "$1" fleet_is "(.workers | length) == $workers"; } # HOST

# Prints the maximum number of simultaneous restarts, by their begin and end.
rolled_at_once() { # HOST...
        local host
        for host; do
                grep '^{' "$folder/$host.events.log" | sort -u |
                        jq -r 'select(.event | test("^rollout-(started|done|halted|aborted)$")) | "\(.at) \(.event)"' |
                        sed "s/$/ $host/"
        done | sort -n | awk '$2 == "rollout-started" { on[$3] = 1 }
                $2 != "rollout-started" { delete on[$3] }
                { n = 0; for (host in on) n++; if (n > most) most = n }
                END { print most + 0 }'
}

start_feeding() {
        touch "$folder/go"
        launch feed ruby -r "$e2e/many-hosts-app.rb" -e 'feed(ARGV[0], ARGV[1].to_i)' "$folder" "$1"
        feeder=$!
}
count_of() { grep -c "^$1" "$folder/ledger"; } # WORD
done_on() { grep -q "^done .* $1\$" <(tail -c +"$(($2 + 1))" "$folder/ledger"); } # HOST OFFSET
all_are_done() { [ "$(count_of "done")" = "$(wc -l <"$folder/pushed")" ]; }
# Adds jobs that run as long as FOLDER/hold exists.
push_held() { # COUNT
        ruby -r "$e2e/many-hosts-app.rb" -e 'ARGV[1].to_i.times { puts Noted.perform_async(0, ARGV[0]) }' \
                "$folder/hold" "$1" >>"$folder/pushed"
}
# Each job was started and done once, and so was each that Redis accepted.
balance() {
        rm -f "$folder/go" "$folder/pause"
        wait_until 20 gone "$feeder"
        wait_until 60 all_are_done
        [ "$(awk '{ n[$1 " " $2]++ } END { for (job in n) bad += n[job] != 1; print bad + 0 }' ledger)" = 0 ]
        [ "$(awk '{ print $2 }' ledger | sort -u | sort - pushed | uniq -u | wc -l)" = 0 ]
}
