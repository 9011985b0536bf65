#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# One rollout over five hosts with real Sidekiqs, ordered on one of them: under load, with processes killed during it.
# No more hosts roll at once than allowed, no fleet is below its count, and no job is lost or run twice. With
# SQMGR_LONG=1 there are more rounds, and the master also hangs.
# seconds: 110
# long: the next release deletes what this tests
# promises: P1 P2 P4 P7
# shellcheck disable=SC2034
load helpers
load sentinel
load many-hosts

setup_file() { needs_host_names; }

workers=1
threads=2

# Redis may lose the last moments before the master dies: then no job may be taken or pushed, and running jobs have long
# been replicated.
stop_load() {
        touch hold
        push_held "$threads"
        touch pause
        wait_until 20 test -e paused
        wait_until 30 no_job_waits
        wait_until 10 all_have_all
}
no_job_waits() { [ "$(node "$master" llen queue:default)" = 0 ]; }
all_have_all() {
        local offset replica
        offset=$(node "$master" info replication | sed -n 's/^slave[0-9]*:.*offset=\([0-9]*\),.*/\1/p' | sort -u)
        [ "$(wc -l <<<"$offset")" = 1 ]
}

# A hung server is not queried: that would block.
find_new_master() {
        local name
        for name in a b c; do
                [ "$name" != "$master" ] || continue
                ! node_is "$name" master || { master=$name && return 0; }
        done
        return 1
}

server_is() { [ "$(sqmgrctl status --json | jq -r '.redis[0].server')" = "$1" ]; } # HOST:PORT

# Checks until COMMAND succeeds that no reachable host is below its count.
while_all_serve_until() { # COMMAND...
        local deadline=$((SECONDS + 400)) host
        until "$@" >/dev/null 2>&1; do
                [ $SECONDS -lt $deadline ] || { echo "waited in vain for: $*" && return 1; }
                for host in $hosts; do
                        ! on "$host" sqmgrctl ping >/dev/null 2>&1 || on "$host" fleet_is ".active >= $workers" || {
                                echo "$host is below its count"
                                return 1
                        }
                done
                sleep 0.2
        done
}

# Begins a rollout whose first hosts wait during their lease until FOLDER/boot exists.
begin_held() { # RELEASE
        local host
        rm -f boot
        for host in $hosts; do
                make_host_release "$host" "$1" "sleep 0.05 until File.exist?('$folder/boot')"
                link_host "$host" "$1"
        done
        on h1 sqmgrctl restart --everywhere
        wait_until 60 a_host_rolls
}

start_group() {
        start_cluster
        master=a
        export SENTINELS="$net.11 $net.12 $net.13"
        start_hosts
        start_feeding $((5 * workers * threads))
        wait_until 30 has_noted 20
}
has_noted() { [ "$(count_of "done")" -ge "$1" ]; }

# Starts it as a replica of the new master, once a Sentinel has reported that.
start_replica() { # NAME
        local address=${!1}
        start_node "$1" "${address%:*}" --replicaof "${!master%:*}" 6379
}
replicas_in_sync() {
        local name
        for name in a b c; do
                [ "$name" = "$master" ] || in_sync "$name" || return 1
        done
        on_each server_is "${!master}"
}

# Waits until each host has done a further job.
each_serves_on() {
        local offset host
        offset=$(wc -c <ledger)
        for host in $hosts; do
                wait_until 60 done_on "$host" "$offset"
        done
}

# During the rollout of RELEASE, one rolling and one waiting host lose their sqmgr, and all lose the master.
run_round() { # RELEASE SIGNAL-FOR-THE-MASTER
        local host waiting dead
        begin_held "$1"
        waiting=$(for host in $hosts; do grep -qxF "$host" <(which_rolls) || echo "$host"; done | tail -n 1)
        stop_load
        [ "$(($(count_of started) - $(count_of "done")))" -ge "$threads" ]
        dead=${master}_pid
        kill_host "$rolling"
        kill_host "$waiting"
        kill "-$2" "${!dead}"
        start_host "$rolling"
        start_host "$waiting"
        while_all_serve_until find_new_master
        while_all_serve_until on_each server_is "${!master}"
        # Until a Sentinel demotes it, it accepts writes of waiting clients that are then lost.
        [ "$2" != STOP ] || { kill -CONT "${!dead}" && while_all_serve_until in_sync "${dead%_pid}"; }
        rm pause paused hold
        [ "$2" != KILL ] || start_replica "${dead%_pid}"
        touch boot
        asked=$waiting
        while_all_serve_until group_is "done"
        for host in $hosts; do
                runs_release "$host" "$1"
                wait_until 60 has_drained "$host"
        done
}

nobody_rolls() { [ -z "$(rollout '[.hosts[] | select(.state == "rolling") | .host] | join(" ")')" ]; }

# State of each host in a halted rollout to releases/2: h4 failed, and hosts that did not begin keep the state of an
# earlier rollout.
each_host_is_unchanged() {
        local host
        asked=h5
        wait_until 20 group_is halted
        wait_until 60 nobody_rolls
        is_of_group h4 failed
        runs_release h4 1
        for host in h1 h2 h3 h5; do
                if is_of_group "$host" "done"; then
                        runs_release "$host" 2
                else
                        is_of_group "$host" waiting
                        runs_release "$host" 1 || runs_release "$host" 2
                fi
        done
        each_serves_on
}

@test "five hosts under load: missing code, a release that does not boot, then sqmgr and the Redis master killed during a rollout" {
        # Without a key a host begins at most one rollout in five minutes that was ordered elsewhere.
        (umask 077 && head -c 32 /dev/urandom | base64 >key)
        replicas='b c' fleet_lines="rollout_hosts = 2
rollout_key_file = $folder/key"
        start_group

        for host in h1 h2 h3 h5; do
                make_host_release "$host" 2
                link_host "$host" 2
        done
        run -1 on h2 sqmgrctl restart --everywhere --release releases/2 --wait --timeout 300s
        [[ $output == *h4*"release 'releases/2' was not found"* ]]
        on h4 fleet_is '.generation == 1'
        each_host_is_unchanged

        # Now the release is there, and does not boot.
        make_host_release h4 2 'Sidekiq.logger.fatal("no database.yml") && exit(1)'
        link_host h4 2
        run -1 on h3 sqmgrctl restart --everywhere --release releases/2 --wait --timeout 300s
        [[ $output == *h4*'3 new workers failed in a row'* ]]
        on h4 fleet_is '.generation == 2 and .rollout.state == "halted"'
        each_host_is_unchanged

        run_round 3 KILL
        for ((n = 4; n < ${SQMGR_LONG:+6}+4; n++)); do
                wait_until 60 replicas_in_sync
                run_round "$n" "$( ((n % 2)) && echo KILL || echo STOP)"
        done
        balance
        # shellcheck disable=SC2086
        most=$(rolled_at_once $hosts)
        echo "# rolled at once, at most: $most; $(wc -l <pushed) jobs" >&3
        [ "$most" -ge 1 ] && [ "$most" -le 3 ]
}
