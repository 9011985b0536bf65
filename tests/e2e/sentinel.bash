# SPDX-License-Identifier: MIT
# Shared by the tests of a failover: a master, replicas and three Sentinels. Each test has its own addresses in the
# loopback network, so that the ports are the usual ones.
# shellcheck shell=bash disable=SC2034,SC2154

start_node() { # NAME ADDRESS OPTION...
        local name=$1 address=$2
        shift 2
        mkdir -p "$folder/$name"
        launch "$name" redis-server --bind "$address" --port 6379 --unixsocket "$folder/$name.sock" \
                --dir "$folder/$name" --save '' --replica-announce-ip "$address" --repl-diskless-sync-delay 0 "$@"
        declare -g "${name}_pid=$!"
}
node() { # NAME COMMAND...
        local name=$1
        shift
        redis-cli -s "$folder/$name.sock" ${password:+-a "$password" --no-auth-warning} "$@"
}
node_is() { [ "$(node "$1" role | head -n 1)" = "$2" ]; } # NAME ROLE
in_sync() { node "$1" info replication | grep -q '^master_link_status:up'; } # NAME

start_sentinel() { # NUMBER MASTER-ADDRESS [LINE...]
        local number=$1 master=$2
        shift 2
        mkdir -p "$folder/s$number"
        {
                printf '%s\n' "bind $net.1$number" 'port 26379' "dir $folder/s$number" \
                        "sentinel announce-ip $net.1$number" \
                        "sentinel monitor mymaster $master 6379 2" \
                        'sentinel down-after-milliseconds mymaster 3000' \
                        'sentinel failover-timeout mymaster 3000' "$@"
        } >"$folder/s$number/sentinel.conf"
        launch "s$number" redis-server "$folder/s$number/sentinel.conf" --sentinel
        declare -g "s${number}_pid=$!"
}
sentinel() { # NUMBER COMMAND...
        local number=$1
        shift
        redis-cli -h "$net.1$number" -p 26379 ${sentinel_password:+-a "$sentinel_password" --no-auth-warning} "$@"
}
# True if it knows all replicas and the other Sentinels: it can fail over.
sentinel_knows() { # NUMBER
        sentinel "$1" sentinel master mymaster | paste -d ' ' - - | grep -qFx "num-slaves $(wc -w <<<"$replicas")" &&
                sentinel "$1" sentinel master mymaster | paste -d ' ' - - | grep -qFx 'num-other-sentinels 2'
}

# Refused for a while after the last failover, and until the replica is known well enough.
sentinel_fails_over() { [ "$(sentinel 1 sentinel failover mymaster)" = OK ]; }

# The master is `a`. `replicas` is `b` by default, or for example `b c`. Options of the servers are in `node_options`,
# lines of the Sentinels in `sentinel_lines`.
start_cluster() {
        local number replica address
        : "${replicas:=b}"
        net=127.$((RANDOM % 254 + 1)).$((RANDOM % 254 + 1))
        a=$net.1:6379 b=$net.2:6379 c=$net.3:6379
        start_node a "$net.1" "${node_options[@]}"
        for replica in $replicas; do
                address=${!replica}
                start_node "$replica" "${address%:*}" --replicaof "$net.1" 6379 "${node_options[@]}"
        done
        for replica in $replicas; do
                wait_until 20 in_sync "$replica"
        done
        for number in 1 2 3; do
                start_sentinel $number "$net.1" "${sentinel_lines[@]}"
        done
        for number in 1 2 3; do
                wait_until 30 sentinel_knows $number
        done
        redis_url=redis://elsewhere.invalid/0
        redis_lines="sentinels = $net.11:26379, $net.12, $net.13:26379
master_name = mymaster
${redis_lines-}"
}
