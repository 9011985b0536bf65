# SPDX-License-Identifier: MIT
# The failures of the example: a master with a replica and three Sentinels, a client that pushes, and what happens to
# them.
# shellcheck shell=bash disable=SC2154

rounds=1 scale=1
[ -z "${SQMGR_LONG-}" ] || rounds=6 scale=5

# Each node has its own address in the loopback network, so that the ports are the usual ones. Writes need a replica in
# sync.
start_node() { # NAME OPTION...
        local name=$1
        shift
        mkdir -p "$folder/$name"
        launch "$name" redis-server --bind "$(address_of "$name")" --port 6379 --unixsocket "$folder/$name.sock" \
                --dir "$folder/$name" --save '' --replica-announce-ip "$(address_of "$name")" \
                --repl-diskless-sync-delay 0 --min-replicas-to-write 1 --min-replicas-max-lag 10 "$@"
        node_pids[$name]=$!
        disown "$!"
}
address_of() { # NAME
        case $1 in
        a) echo "$net.1" ;;
        b) echo "$net.2" ;;
        esac
}
node() { # NAME COMMAND...
        local name=$1
        shift
        redis-cli -s "$folder/$name.sock" "$@"
}
leads() { [ "$(node "$1" role | head -n 1)" = master ]; }                      # NAME
follows() { node "$1" info replication | grep -q '^master_link_status:up'; }   # NAME
has_good_replica() { node "$1" info replication | grep -q '^min_slaves_good_slaves:1'; } # NAME
# True if all writes so far are replicated.
is_copied() { [ "$(printf 'set day:mark 1\nwait 1 1000\n' | node "$1" | tail -n 1)" = 1 ]; } # NAME

sentinel() { # NUMBER COMMAND...
        local number=$1
        shift
        redis-cli -h "$net.1$number" -p 26379 "$@"
}
start_sentinel() { # NUMBER
        mkdir -p "$folder/s$1"
        printf '%s\n' "bind $net.1$1" 'port 26379' "dir $folder/s$1" "sentinel announce-ip $net.1$1" \
                "sentinel monitor mymaster $net.1 6379 2" 'sentinel failover-timeout mymaster 3000' \
                "sentinel down-after-milliseconds mymaster $patience" >"$folder/s$1/sentinel.conf"
        launch "s$1" redis-server "$folder/s$1/sentinel.conf" --sentinel
}
# True if it knows all others, and can fail over.
is_informed() { # NUMBER
        local known
        known=$(sentinel "$1" sentinel master mymaster | paste - -) &&
                grep -qFx $'flags\tmaster' <<<"$known" && grep -qFx $'num-slaves\t1' <<<"$known" &&
                grep -qFx $'num-other-sentinels\t2' <<<"$known" &&
                sentinel "$1" sentinel replicas mymaster | paste - - | grep -qFx $'flags\tslave'
}
wait_for_sentinels() {
        local number
        for number in 1 2 3; do
                wait_until 60 is_informed $number
        done
}
# A node that is only slow for a while must not count as dead: the time is shortened once a node has died.
be_patient() { # MILLISECONDS
        local number
        for number in 1 2 3; do
                sentinel $number sentinel set mymaster down-after-milliseconds "$1" >/dev/null
        done
}

prepare() {
        local number
        declare -gA node_pids=()
        net=127.$((RANDOM % 254 + 1)).$((RANDOM % 254 + 1)) patience=60000 master=a replica=b
        start_node a
        start_node b --replicaof "$net.1" 6379
        for number in 1 2 3; do
                start_sentinel $number
        done
        wait_until 60 follows b
        wait_until 60 has_good_replica a
        wait_for_sentinels
        sed -i "s/@net@/$net/g" "$folder/sqmgr.ini"
        mkfifo "$folder/orders"
        : >"$folder/ledger"
        start_client
}

start_client() {
        rm -f "$folder/obeyed"
        SENTINELS="$net.11 $net.12 $net.13" LEDGER=$folder/ledger OUTBOX=$folder/outbox \
                launch client ruby "$folder/app/client.rb" "$folder/orders"
        client_pid=$! client_order=0
        disown "$!"
        wait_until 60 obeyed
}
obeyed() { [ "$(cat "$folder/obeyed")" = "$client_order" ]; }
client() { # ORDER WORD...
        echo $((++client_order)) "$@" 1<>"$folder/orders"
        wait_until 120 obeyed
}

# The fields of the ledger: time, event, jid, queue, class, argument, pid.
lines() { awk -v event="$1" -v argument="$2" '$2 == event && $6 == argument' "$folder/ledger"; } # EVENT ARGUMENT
has() { [ "$(lines "$1" "$2" | wc -l)" -ge "$3" ]; }                                          # EVENT ARGUMENT COUNT
jids() { lines "$1" "$2" | cut -d' ' -f3 | sort -u | wc -l; }                                 # EVENT ARGUMENT
jobs_wait() { [ -s "$folder/outbox" ]; }
outbox_is_empty() { ! jobs_wait; }
no_job_waits() {
        outbox_is_empty &&
                awk '$2 == "pushed" { open[$3] } $2 == "done" || $2 == "dead" { ended[$3] }
                        END { for (jid in open) if (!(jid in ended)) exit 1 }' "$folder/ledger" && queues_are_empty
}
queues_are_empty() {
        sqmgrctl queues --json | jq -e '.redis[0] | .error == null and .retry == 0 and .schedule == 0 and
                ([.queues[].size] | add) == 0' >/dev/null
}
status_is() { # JQ
        local status_json
        status_json=$(sqmgrctl status --json) && jq -e "$1" <<<"$status_json" >/dev/null
}
pids_of() { sqmgrctl status --json | jq -r ".fleets[] | select(.name == \"$1\") | .workers[].pid"; } # FLEET
all_ready() { status_is 'all(.fleets[]; .active == 1 and (.workers | length) == 1 and .workers[0].ready)'; }
jobs_shown() { [ "$(sqmgrctl jobs --json | jq '.jobs | length')" = "$1" ]; } # COUNT
alerted() { jq -es "any(.[]; $1)" "$folder/alerts" >/dev/null; }              # JQ
# Counts events of workers so far.
deeds() { grep -cE '"event":"(quiet|stopping|killed|gone|crashed|started)"' <(sqmgrctl events --json); }
says() { grep -h "$1" "$folder/client.log" "$folder/workers.log" | awk 'END { print NR }'; } # TEXT
says_more() { [ "$(says "$1")" -gt "$2" ]; }                               # TEXT COUNT

# One job in each worker, which has one thread: further jobs wait in Redis.
occupy() { # NAME
        held=$folder/release.$1
        client push 1 Hold critical "$held"
        client push 1 Hold mail "$held"
        wait_until 60 has begun "$held" 2
}

# Kills a worker with -9 whose job was in a heartbeat.
crash() {
        local before
        wait_until 60 jobs_shown 2
        before=$(pids_of weighted)
        kill -KILL "$before"
        wait_until 60 has begun "$held" 3
        wait_until 60 all_ready
}

# The master dies while the client pushes and the replica lags, and returns as a replica.
fail_over() { # NAME
        local before told
        before=$(deeds)
        wait_for_sentinels
        wait_until 60 outbox_is_empty
        wait_until 60 is_copied "$master"
        client load Work critical "load-$1"
        wait_until 60 has pushed "load-$1" 5
        kill -STOP "${node_pids[$replica]}"
        wait_until 60 jobs_wait
        kill -KILL "${node_pids[$master]}"
        kill -CONT "${node_pids[$replica]}"
        be_patient 1000
        wait_until 120 leads "$replica"
        be_patient "$patience"
        read -r master replica <<<"$replica $master"
        told=$(says 'Redis takes jobs again')
        start_node "$replica" --replicaof "$(address_of "$master")" 6379
        wait_until 60 has_good_replica "$master"
        wait_until 60 says_more 'Redis takes jobs again' "$told"
        client rest
        wait_until 60 status_is ".redis[0] | .state == \"connected\" and .server == \"$(address_of "$master"):6379\""
        [ "$(deeds)" = "$before" ]
}

# Redis has no memory left: running jobs continue, pushed jobs wait, and the client dies with them.
fill() { # NAME
        local before beats told
        wait_until 60 outbox_is_empty
        before=$(deeds) beats=$(says 'heartbeat: .*OOM') told=$(says 'Redis takes no jobs')
        node "$master" config set maxmemory 1 >/dev/null
        client load Work mail "full-$1"
        wait_until 60 says_more 'Redis takes no jobs' "$told"
        wait_until 60 has pushed "full-$1" 5
        kill -KILL "$client_pid"
        touch "$held"
        wait_until 60 has 'done' "$held" 2
        wait_until 60 has 'done' "load-$1" "$(jids pushed "load-$1")"
        wait_until 60 says_more 'heartbeat: .*OOM' "$beats"
        [ "$(deeds)" = "$before" ]
        start_client
        told=$(says 'Redis takes jobs again')
        [ -s "$folder/outbox" ]
        node "$master" config set maxmemory 0 >/dev/null
        wait_until 60 says_more 'Redis takes jobs again' "$told"
        [ "$(deeds)" = "$before" ]
}

# Workers are quieted when a deployment begins; running jobs end on the old code; the backlog shows the order.
#
# Queues are weighted, with 120 jobs each. While cleanup has jobs, it comes first in at least one fetch of six: that all
# 120 jobs of mail precede its first job has a probability of at most (5/6)^120 = 3e-10. Of the fetches from mail or
# cleanup, mail gets three of four: that the last job of cleanup precedes the last one of mail has the probability of
# 120 or more of 239 at 1/4, below 1e-15.
deploy() { # NAME
        local queue old pid
        occupy "deploy-$1"
        old="$(pids_of strict) $(pids_of weighted)"
        sqmgrctl quiet strict
        sqmgrctl quiet weighted
        wait_until 60 status_is 'all(.fleets[].workers[]; .state == "quiet")'
        for queue in low default critical; do
                client push $((40 * scale)) Work $queue "pile-$1"
        done
        for queue in cleanup sync mail; do
                client push $((120 * scale)) Work $queue "pile-$1"
        done
        wait_until 60 outbox_is_empty
        wait_until 60 alerted '.event == "queue-over"'
        [ "$(jids begun "pile-$1")" = 0 ]
        sqmgrctl restart --resume --wait --timeout 300s
        [ "$(jids 'done' "$held")" = 0 ]
        touch "$held"
        wait_until 120 no_job_waits
        for pid in $old; do
                wait_until 120 exited "$pid"
                lines 'done' "$held" | grep -q " $pid$"
        done
        wait_until 60 all_ready
        lines begun "pile-$1" | cut -d' ' -f4 | awk '/critical|default|low/' | uniq >"$folder/strict"
        [ "$(paste -sd' ' "$folder/strict")" = 'critical default low' ]
        lines begun "pile-$1" | cut -d' ' -f4 | awk '/mail|cleanup/' >"$folder/weighted"
        [ "$(grep -nFx cleanup "$folder/weighted" | head -n 1 | cut -d: -f1)" -lt \
                "$(grep -nFx mail "$folder/weighted" | tail -n 1 | cut -d: -f1)" ]
        [ "$(tail -n 1 "$folder/weighted")" = cleanup ]
}
exited() { [ ! -e "/proc/$1" ]; } # PID

alarms_were_raised() {
        alerted '.event == "crashed" and .fleet == "weighted"' && alerted '.event == "job-rescued"' &&
                alerted '.event == "redis-failover"' && alerted '.event == "queue-over"' &&
                alerted '.event == "queue-back"'
}

dead_in_redis() { node "$master" --raw zrange dead 0 -1 | jq -r .jid | sort -u; }
ledger() { ruby "$folder/app/judge.rb" "$folder/ledger" "$folder/sqmgr.log"; }

day() {
        local round
        wait_until 60 all_ready
        for ((round = 1; round <= rounds; round++)); do
                say '06:00 each worker has a long job, and jobs wait that will always fail'
                occupy "day-$round"
                client push 3 Broken critical "broken-$round"
                say '09:00 kill -9 of a worker'
                crash
                say '11:00 the master dies under load, and comes back as the replica'
                fail_over $round
                say '14:00 Redis is full, and the client dies meanwhile'
                fill $round
                say '17:00 a deployment: quiet, a pile of jobs, restart'
                deploy $round
        done
        wait_until 60 alarms_were_raised
        say "20:00 all is quiet; reported events: $(jq -r .event "$folder/alerts" | sort -u | paste -sd' ')"
        say
        ledger
}

# Its first failure is final.
play() (
        set -eE
        trap 'say "failed: $BASH_COMMAND"' ERR
        day
)
