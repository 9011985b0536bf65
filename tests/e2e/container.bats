#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Runs contrib/container/Containerfile instruction by instruction, as a container engine would: the image is the file
# system of a machine, the container is processes with their own namespaces and Docker's capabilities.
# seconds: 90
# promises: P1
# bats file_tags=root
# shellcheck disable=SC2016
load package

recipe=$top/contrib/container/Containerfile

# Files that the recipe copies. The machine has no network: packages that apt-get installs besides sqmgr are already
# there.
make_context() {
        in_machine mkdir -p /context/container /image
        put /context/container/sqmgr.ini <"$top/contrib/container/sqmgr.ini"
        put /context/container/sqmgr_0_all.deb <"$(package)"
        put /context/Gemfile <<<'gem "sidekiq"'
        in_machine sh -ec 'cd /context && bundle lock --local >/dev/null'
        { cat "$e2e/app.rb" && cat; } <<'END' | put /context/config/environment.rb

# Leaves an orphan that does not exit by itself.
class Stray
  include Counted

  def perform(path)
    counted { system("sleep 100000 & echo $! >#{path}") }
  end
end
END
        in_machine sh -c ': >/etc/apt/sources.list && rm -f /etc/apt/sources.list.d/* && echo 127.0.0.1 redis >>/etc/hosts'
        in_machine userdel --remove app
}

# A container has its own processes, mounts, name and /run, and Docker's default capabilities.
put_engine() {
        put /image/enter <<'END'
pod=$1 user=$2 workdir=$3
shift 3
# The image is built in `container`.
mkdir -p /image/container
[ -e "/image/$pod" ] || cp -a /image/container "/image/$pod"
mount --bind "/image/$pod" /run
mount -t proc proc /proc
hostname "$pod"
mkdir -p "$workdir"
cd "$workdir"
# A user is a name, or a number as in an image.
entry=$(getent passwd "$user")
exec setpriv --reuid "$user" --regid "$(echo "$entry" | cut -d: -f4)" --init-groups --bounding-set \
        -all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+net_raw,+sys_chroot,+audit_write,+setfcap \
        env -i HOME="$(echo "$entry" | cut -d: -f6)" "$@"
END
}
in_container() { # COMMAND...
        in_machine unshare --fork --kill-child --pid --mount --uts --ipc --cgroup \
                sh -e /image/enter "${pod:-container}" "$user" "$workdir" "${environment[@]}" "$@"
}

# Prints each instruction on one line.
instructions() { sed -e '/^#/d' "$recipe" | sed -e ':more' -e '/\\$/{N; s/\\\n */ /; t more' -e '}' -e '/^$/d'; }

# Prints the words of a command in either of its forms.
split_command() { # COMMAND
        if [[ $1 == '['* ]]; then
                mapfile -t words < <(jq -r '.[]' <<<"$1")
        else
                words=(sh -c "$1")
        fi
}

copy() { # [--chmod=MODE] SOURCE... DESTINATION
        local mode=
        [[ $1 != --chmod=* ]] || { mode=${1#*=} && shift; }
        # shellcheck disable=SC2086
        in_machine sh -ec 'cd "$1" && to=$(realpath -m "$2") && shift 2 && cd /context && cp -r $* "$to"' \
                sh "$workdir" "${@: -1}" "${@:1:$#-1}"
        [ -z "$mode" ] || in_machine chmod "$mode" "${@: -1}"
}

# An unknown instruction fails.
build() {
        local instruction rest
        user=root workdir=/ arguments=() environment=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
        while read -r instruction rest; do
                echo "$instruction $rest"
                case $instruction in
                FROM) [ "$rest" = 'debian:${DEBIAN}-slim' ] && arguments=() ;;
                ARG) eval "arguments+=($rest)" ;;
                ENV) eval "environment+=($rest)" ;;
                COPY)
                        read -ra words <<<"$rest"
                        copy "${words[@]}"
                        ;;
                RUN) in_container "${arguments[@]}" sh -c "$rest" ;;
                USER) user=$rest ;;
                WORKDIR) workdir=$rest && in_machine mkdir -p "$workdir" ;;
                STOPSIGNAL) stop_signal=$rest ;;
                HEALTHCHECK)
                        [[ $rest =~ --timeout=([0-9]+)s ]]
                        split_command "${rest#*CMD }"
                        health=(timeout "${BASH_REMATCH[1]}" "${words[@]}")
                        ;;
                CMD)
                        split_command "$rest"
                        command=("${words[@]}")
                        ;;
                *) return 1 ;;
                esac </dev/null
        done < <(instructions)
}

start_container() {
        run_container
        wait_until 60 is_healthy
        wait_until 60 fleet_is '.active == 2'
}
run_container() {
        in_container REDIS_URL=redis://redis:6379/0 "${command[@]}" > >(exec 3>&- 9>&- && in_machine systemd-cat -t sqmgr) 2>&1 3>&- 9>&- &
        container=$!
        wait_until 60 find_init
}
# Finds the pid of the container's sqmgr, as the machine sees it.
find_init() { init_there=$(in_machine pgrep -n -x sqmgr) && [ "$init_there" != "${others-}" ]; }
# Like `docker exec`.
execute() { # COMMAND...
        in_machine nsenter -t "$init_there" -m -p -u -i -C setpriv --reuid "$user" --regid app --init-groups \
                env -C "$workdir" -i "${environment[@]}" REDIS_URL=redis://redis:6379/0 "$@"
}
sqmgrctl() { execute sqmgrctl "$@"; }
is_healthy() { execute "${health[@]}"; }
stop_container() { in_machine kill -s "$stop_signal" "$init_there"; }
has_ended() { # sets $status
        status=0
        wait "$container" || status=$?
}

enqueue() { # CLASS ARGUMENT
        execute ruby -r ./config/environment.rb -e 'Object.const_get(ARGV[0]).perform_async(ARGV[1])' "$@"
}
users() { execute ps -eo user:32=,comm= | awk '$2 ~ /^sqmgr|^ruby|sidekiq/ { print $1 }' | sort -u | tr '\n' ' '; }

@test "image of contrib/container: sqmgr is a healthy PID 1, reaps orphans, and on a stop jobs finish or are requeued" {
        put_engine
        make_context
        build
        # As if the container had two minutes to stop.
        in_machine sed -i.sample 's/^shutdown_timeout = 3s$/shutdown_timeout = 60s/' /etc/sqmgr/app.ini
        run ! in_machine cmp -s /etc/sqmgr/app.ini /etc/sqmgr/app.ini.sample
        start_container
        [ "$(sqmgrctl status --json | jq .pid)" = 1 ]
        [ "$(users)" = 'app ' ]

        enqueue Stray /tmp/stray
        wait_until 30 has_done 1
        stray=$(in_machine cat /tmp/stray)
        [ "$(execute ps -o ppid= -p "$stray" | tr -d ' ')" = 1 ]
        execute kill -KILL "$stray"
        wait_until 20 not execute ps -p "$stray"

        in_machine kill -STOP "$init_there"
        run is_healthy
        in_machine kill -CONT "$init_there"
        [ "$status" != 0 ]
        wait_until 20 is_healthy

        enqueue Hold /tmp/hold
        wait_until 30 has_started 2
        stop_container
        wait_until 20 fleet_is '.active == 0'
        in_machine touch /tmp/hold
        has_ended
        [ "$status" = 0 ]
        [ "$(jobs_done)" = 2 ]
        [ "$(redis llen queue:default)" = 0 ]

        # The default of ten seconds, and a job that takes longer.
        in_machine mv /etc/sqmgr/app.ini.sample /etc/sqmgr/app.ini
        in_machine sed -nE 's/^shutdown_timeout = ([0-9]+)s$/\1/p; s/^command = .* -t ([0-9]+)$/\1/p' /etc/sqmgr/app.ini >"$folder/seconds"
        [ "$(wc -l <"$folder/seconds")" = 2 ]
        [ "$(($(paste -sd + "$folder/seconds")))" -le 7 ]
        start_container
        enqueue Hold /tmp/never
        wait_until 30 has_started 3
        begun=$(date +%s%N)
        stop_container
        has_ended
        echo "# stopped with a job that does not end: after $((($(date +%s%N) - begun) / 1000000)) ms" >&3
        [ "$status" = 0 ]
        [ "$(redis llen queue:default)" = 1 ]
        [ "$(jobs_run_twice)" = 0 ]
}

# Prints a part of the manifest as JSON: .[0] is the settings, .[1] the pods.
of_manifest() { # PATH
        ruby -rjson -ryaml -e 'puts YAML.load_stream(File.read(ARGV[0])).to_json' "$top/contrib/container/kubernetes.yaml" | jq -er "$1"
}
# Runs a probe as a kubelet does.
probe() { # NAME
        local container='.[1].spec.template.spec.containers[0]' words
        mapfile -t words < <(of_manifest "$container.$1Probe.exec.command[]")
        execute timeout "$(of_manifest "$container.$1Probe.timeoutSeconds")" "${words[@]}"
}

@test "Kubernetes manifest: a pod is ready with its workers and alive without Redis, never ready if a worker does not boot, and TERM lets jobs finish" {
        put_engine
        make_context
        build
        of_manifest '.[0].data["sqmgr.ini"]' >"$folder/sqmgr.ini"
        put /etc/sqmgr/app.ini <"$folder/sqmgr.ini"
        sed -nE 's/^shutdown_timeout = ([0-9]+)s$/\1/p; s/^command = .* -t ([0-9]+)$/\1/p' "$folder/sqmgr.ini" >"$folder/seconds"
        [ "$(wc -l <"$folder/seconds")" = 2 ]
        [ "$(($(paste -sd + "$folder/seconds")))" -lt "$(of_manifest '.[1].spec.template.spec.terminationGracePeriodSeconds')" ]
        of_manifest '.[1].spec.template.spec.securityContext | .runAsNonRoot and .runAsUser == 10001' >/dev/null
        [ "$user" = 10001 ]
        of_manifest '.[1].spec | .strategy.rollingUpdate.maxUnavailable == 0 and .template.spec.hostNetwork == null' >/dev/null

        pod=workers-old
        start_container
        wait_until 60 probe readiness
        old=$init_there old_container=$container
        in_machine systemctl stop redis-server
        wait_until 30 redis_state_is down
        probe liveness
        in_machine systemctl start redis-server
        wait_until 60 probe readiness

        # The new pod sends heartbeats beside the old one, under its own host name.
        in_machine cp -r /app/config /app/config.good
        put /app/config/environment.rb <<<'abort "no database.yml"'
        pod=workers-bad others=$init_there
        run_container
        wait_until 60 fleet_is '.crash.count >= 3'
        probe liveness
        run ! probe readiness
        [[ $output == *default* ]]
        bad_container=$container
        in_machine kill -KILL "$init_there"
        wait "$bad_container" || true

        init_there=$old
        probe readiness
        in_machine sh -c 'rm -r /app/config && mv /app/config.good /app/config'
        enqueue Hold /tmp/pod
        wait_until 30 has_started 1
        pod=workers-new
        run_container
        wait_until 60 probe readiness
        new=$init_there

        init_there=$old container=$old_container
        in_machine kill -s TERM "$old"
        wait_until 20 fleet_is '.active == 0'
        init_there=$new
        probe readiness
        in_machine touch /tmp/pod
        has_ended
        [ "$status" = 0 ]
        wait_until 20 has_done 1
        [ "$(jobs_run_twice)" = 0 ]
}
