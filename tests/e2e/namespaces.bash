# SPDX-License-Identifier: MIT
# Workers in PID and UTS namespaces and in containers. FOLDER/worker is the command of the fleet: it starts a Sidekiq
# there.
# shellcheck shell=bash disable=SC2034,SC2154

app=$e2e/namespaces-app.rb
logs='sqmgr.log workers.log engine.log'

# Writes FOLDER/worker. `without_dyno` is set for a worker that is matched without DYNO. The guard would not find a
# process whose folder is in another mount namespace, so `launch` records it.
write_worker() { # WORDS...: before the command of Sidekiq, for /bin/sh
        cat >"$folder/worker" <<END
#!/bin/sh
export RAN_BY=\$SQMGR_WORKER
exec $top/contrib/demo/launch $folder $* ${without_dyno:+env -u DYNO }$(sidekiq_command 2)
END
        chmod 755 "$folder/worker"
}

# Sets `holders` to processes each of which is the first of a PID namespace with such a host name.
make_namespaces() { # HOST-NAME...
        needs_namespace --pid --uts --mount-proc
        local name
        holders=
        for name; do
                # The shell reaps orphans.
                launch holder "${unshare[@]}" --pid --fork --kill-child --uts --mount-proc \
                        sh -c "hostname '$name' && touch '$folder/made' && while :; do sleep 1000; done"
                wait_until 10 test -e made
                rm made
                holders="$holders $(pgrep -P "$!")"
        done
}
# The command of a worker in the first or the second of them, by its index.
write_sharing_worker() {
        # shellcheck disable=SC2086
        set -- $holders
        write_worker "${enter[*]} --target \$((SQMGR_INDEX % 2 ? $1 : $2)) --pid --uts --mount"
}

# Storage, sockets and processes of this podman are in FOLDER. crun knows no hybrid of both versions of control groups,
# so podman sees version 2 alone.
write_podman() {
        cat >"$folder/podman" <<END
#!/bin/sh
exec unshare --mount sh -c 'umount -R -l /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup && exec "\$@"' sh \\
        podman --root $folder/storage --runroot $folder/run --tmpdir $folder/tmp --storage-driver vfs \\
        --cgroup-manager cgroupfs --log-level error "\$@"
END
        chmod 755 "$folder/podman"
        mkdir image
        (
                cd image && mkdir -p etc proc sys dev tmp usr run var/lib && ln -s usr/bin usr/sbin usr/lib usr/lib64 . &&
                        tar c . | ../podman import - base
        ) >engine.log 2>&1
}
# Prints options of `podman run`, each on a line, for a container with the files of this machine.
container_options() {
        printf '%s\n' --cgroups=disabled --network=host --uts=private --hostname=twin --ulimit=nofile=1024:1024 \
                --ulimit=nproc=1000:1000 "--workdir=$folder" --env=RAN_BY --env=REDIS_URL "--volume=$folder:$folder"
        printf -- '--volume=%s:ro\n' /usr:/usr /etc:/etc /var/lib:/var/lib "$top:$top"
}
needs_containers() {
        write_podman
        # shellcheck disable=SC2046
        "$folder/podman" run --rm --pull=never $(container_options) base true >>engine.log 2>&1 ||
                skip "no container can be run here: $(tail -n 1 engine.log)"
}
# Starts a service that runs containers, as the daemon of Docker does: their processes are no descendants of the client.
# FOLDER/remote is the client.
start_engine() {
        launch engine "$folder/podman" system service --time=0 "unix://$folder/podman.sock"
        wait_until 20 test -S "$folder/podman.sock"
        # There is no registry.
        cat >"$folder/remote" <<END
#!/bin/sh
[ "\$1" != pull ] || set -- tag base "\$2"
exec podman --remote --url unix://$folder/podman.sock "\$@"
END
        chmod 755 "$folder/remote"
}

# Starts a fleet of COUNT workers, as FOLDER/worker does. `fleet_lines` has further lines of the fleet.
start_placed() { # COUNT
        start_redis
        configure <<END
command = $folder/worker
directory = $folder
active_process_count = $1
namespaced = yes
ready_after = 500ms
rescue_jobs = requeue
${fleet_lines-}
END
        start_ready "$1"
}

# Prints the PID namespace and the pid there of a process, as jobs record them.
place_of() { # PID
        echo "$(readlink "/proc/$1/ns/pid") $(awk '/^NSpid:/ { print $NF }' "/proc/$1/status")"
}

# True if sqmgr lists COUNT running jobs, and each with the worker and the process that the job itself recorded.
attributed() { # COUNT
        local lines jid worker pid
        lines=$(sqmgrctl jobs --json | jq -r '.jobs[] | "\(.jid) \(.worker) \(.pid)"') || return 1
        [ "$(grep -c . <<<"$lines")" = "$1" ] || return 1
        while read -r jid worker pid; do
                [ "$(redis hget ran "$jid")" = "$worker $(place_of "$pid")" ] || return 1
        done <<<"$lines"
}

# Pushes a stream of jobs until stop_feeding, and records their ids in feed.log.
start_feeding() {
        touch go
        launch feed ruby -r "$app" -e 'feed(ARGV[0])' "$folder"
        feeder=$!
}
stop_feeding() {
        rm go
        wait_until 20 gone "$feeder"
}
# True if each job of the stream is done, once.
stream_is_done() {
        local jids
        mapfile -t jids < <(grep -x '[0-9a-f]*' feed.log)
        [ "$(redis hmget ledger:done "${jids[@]}" | grep -cx 1)" = "${#jids[@]}" ]
}

# Two workers are matched, restarted under a stream of jobs, and adopted.
passes_through() {
        start_placed 2
        fleet_is 'all(.workers[]; .evidence == "redis")'
        enqueue 4 Hold "$folder/hold"
        wait_until 30 attributed 4
        before=$(worker_pids)
        replace_sqmgr 2
        [ "$(worker_pids)" = "$before" ]
        sqmgrctl restart
        wait_until 60 fleet_is '.rollout.state == "done" and .active == 2'
        alive "$before"
        touch hold
        wait_until 60 gone "$before"
        wait_until 20 fleet_is '(.workers | length) == 2'
        [ "$(jobs_done)" = 4 ]
        [ "$(jobs_run_twice)" = 0 ]
        fleet_is '.crash.count == 0'
}
