# SPDX-License-Identifier: MIT
# Shared by the end-to-end tests. Each has its own folder with a private Redis; contrib/demo/guard ends all processes
# started there when the test ends for any reason.
# shellcheck shell=bash disable=SC2034,SC2048

bats_require_minimum_version 1.5.0

e2e=$BATS_TEST_DIRNAME
top=$(cd "$e2e/../.." && pwd -P)
: "${SQMGR_BUILD:=$top/build/tests/main}"
PATH=$SQMGR_BUILD:$PATH
stub=$SQMGR_BUILD/tests/stub/stub-worker
app=$e2e/app.rb
# Users who cannot write there go without.
export SQMGR_RUBY_CACHE="${SQMGR_RUBY_CACHE:-$SQMGR_BUILD/ruby-cache.$EUID}"
[ -d "$SQMGR_RUBY_CACHE" ] || mkdir "$SQMGR_RUBY_CACHE" 2>/dev/null || :
version=$(sed -n 's/^AC_INIT(\[sqmgr\], \[\(.*\)\])$/\1/p' "$top/configure.ac")

# shellcheck source=contrib/demo/parts.bash
. "$top/contrib/demo/parts.bash"

# jq 1.6 of Debian 12 takes 30 ms to start, which was half of the processor time of all end-to-end tests; gojq takes 4 ms, and
# sorts keys.
jq() { gojq "$@"; }

setup() {
        folder=$(mktemp -d /tmp/sqmgr-e2e.XXXXXX)
        chmod 755 "$folder"
        mkdir "$folder/pids" "$folder/steer"
        exec 9> >(exec setsid "$top/contrib/demo/guard" "$folder" 3>&- >/dev/null 2>&1)
        guard=$!
        cd "$folder" || return 1
        export SQMGR_SOCKET=$folder/sqmgr.sock REDIS_URL=unix://$folder/redis.sock
        export RUBYOPT=-r$e2e/ruby_cache.rb
        unset XDG_RUNTIME_DIR NOTIFY_SOCKET JOURNAL_STREAM
}

teardown() {
        local at_end
        at_end=$(cat "${folder-/nowhere}/at_end" 2>/dev/null)
        if [ -z "${BATS_TEST_COMPLETED-}" ] && [ -n "${folder-}" ]; then
                echo "== status" && sqmgrctl status 2>&1
                for log in ${logs-sqmgr.log workers.log}; do
                        [ ! -e "$folder/$log" ] || { echo "== $log" && tail -n 40 "$folder/$log"; }
                done
        fi
        cd /
        exec 9>&-
        wait "$guard" || true
        eval "$at_end"
        # Hides bash's messages that the guard's processes were killed.
        jobs >/dev/null 2>&1
}

# Sets `idle_pipe` to a descriptor.
open_idle_pipe() {
        [ -p "$BATS_RUN_TMPDIR/idle-pipe" ] || mkfifo "$BATS_RUN_TMPDIR/idle-pipe"
        exec {idle_pipe}<>"$BATS_RUN_TMPDIR/idle-pipe"
}

# SECONDS is the maximum on an idle machine; a busy machine may take longer.
# Pauses grow to half a second, and are at least three times as long as the command took, which on a busy machine is long.
# A pause reads from a pipe that nobody writes to, which needs no process and keeps $!. Without functrace, bats does not
# note each command of the functions that are called, which takes longer than most of them.
wait_until() { # SECONDS COMMAND...
        local limit=$((3 * $1 + 30)) pause=80 poll_began poll_took idle_pipe='' -
        local deadline=$((SECONDS + limit))
        shift
        set +T
        while poll_began=${EPOCHREALTIME/[.,]/} && ! "$@" >/dev/null 2>&1; do
                if [ $SECONDS -ge $deadline ]; then
                        echo "waited $limit s in vain for: $*"
                        return 1
                fi
                poll_took=$(((${EPOCHREALTIME/[.,]/} - poll_began) / 1000))
                poll_took=$((3 * poll_took < pause ? pause : 3 * poll_took < 1000 ? 3 * poll_took : 1000))
                [ -n "$idle_pipe" ] || open_idle_pipe
                printf -v poll_took '%d.%03d' $((poll_took / 1000)) $((poll_took % 1000))
                read -rt "$poll_took" -u "$idle_pipe" || :
                pause=$((pause < 333 ? pause * 3 / 2 : 500))
        done
        [ -z "$idle_pipe" ] || exec {idle_pipe}>&-
}

not() { ! "$@"; }

# Not the folder of a release, which `make distcheck` may be making there.
copy_programs() { # FOLDER
        find "$SQMGR_BUILD" -maxdepth 1 -type f -name 'sqmgr*' -perm -u+x -exec cp -t "$1" {} +
}

# `"${unshare[@]}" OPTION... COMMAND...` runs a command in namespaces in which it may mount, as the same user; "${plain[@]}"
# runs a program there without these rights.
unshare=(unshare --map-current-user --keep-caps)
plain=(setpriv --inh-caps=-all --ambient-caps=-all)
enter=(nsenter --user --preserve-credentials)
needs_namespace() { # OPTION-OF-UNSHARE...
        "${unshare[@]}" --fork "$@" true 2>/dev/null || skip "this machine lets nobody have a namespace ($*)"
}

# Puts a directory at the path of a file, so that it cannot be written. sqmgr may write it just before: try again.
block() { # FILE
        rm -f "$1" && mkdir "$1"
}

# Sets $!.
launch() { # NAME COMMAND...
        local name=$1
        shift
        setsid "$top/contrib/demo/launch" "$folder" "$@" </dev/null >>"$folder/$name.log" 2>&1 3>&- 9>&- &
}

# Records processes that survive their parent, so that they end with the test.
record() { # PIDS...: each may be a list
        local pid stat
        for pid in $*; do
                { read -r stat <"/proc/$pid/stat"; } 2>/dev/null || continue
                read -r -a stat <<<"${stat##*) }"
                echo "${stat[19]}" >"$folder/pids/$pid"
        done
}

# Prints a port without a listener at this address.
unused_port() { # ADDRESS
        local port
        while port=$((RANDOM % 20000 + 10000)) && (exec 8<>"/dev/tcp/$1/$port") 2>/dev/null; do
                :
        done
        echo "$port"
}

redis_has() { [ "$(redis exists "$1")" = 1 ]; } # KEY

# Standard input has the lines of the fleet; `sqmgr_lines` and `redis_lines` may hold more for those sections, and
# `redis_url` another Redis. ready_after is shorter than its default.
configure() {
        cat >"$folder/sqmgr.ini" <<END
[sqmgr]
socket = $folder/sqmgr.sock
check_interval = 500ms
${sqmgr_lines-}

[redis]
url = ${redis_url-unix://$folder/redis.sock}
${redis_lines-}

[fleet]
ready_after = 1s

[fleet:default]
log = $folder/workers.log
$(cat)
END
}

# Creates a control group with a memory limit; sets $group.
make_group() { # BYTES
        local type controllers mount path
        while read -r _ mount type controllers _; do
                case $type in
                cgroup) [[ ,$controllers, == *,memory,* ]] || continue
                        path=$(sed -n 's/^[0-9]*:\(.*,\|\)memory\(,.*\|\):\(.*\)/\3/p' /proc/self/cgroup) ;;
                cgroup2) path=$(sed -n 's/^0:://p' /proc/self/cgroup) ;;
                *) continue ;;
                esac
                group=${mount%/}${path%/}/sqmgr-e2e-$$
                mkdir "$group" 2>/dev/null || continue
                echo "rmdir '$group'" >>"$folder/at_end"
                for limit in "$group/memory.max" "$group/memory.limit_in_bytes"; do
                        [ -e "$limit" ] || continue
                        echo "$1" >"$limit"
                        [ ! -e "$group/memory.swap.max" ] || echo 0 >"$group/memory.swap.max"
                        return 0
                done
        done </proc/mounts
        skip 'no control group can be given a limit of memory here'
}

sidekiq_command() { echo "sidekiq -r $app -c ${1:-5}"; }
stub_command() { echo "$stub -u $folder/redis.sock -b 200 -d $folder/steer"; }

# Starts Redis and sqmgr, and waits for the workers. COMMAND creates the configuration, by default `configure`, with the
# lines of the fleet on standard input. Not for the end of a pipe: sqmgr must be a child of the test's own shell.
start_workers() { # COUNT [COMMAND...]
        if [ $# -gt 1 ]; then "${@:2}"; else configure; fi
        start_redis
        start_ready "$1"
}

start_ready() { # COUNT: starts sqmgr, and waits for so many active workers
        start_sqmgr
        wait_until 60 ready "$1"
}

# The same with workers of the stub, 2 by default; `fleet_lines` may hold more lines of their section.
start_fleet() { # [COUNT [LINE...]]
        start_workers "${1-2}" <<END
command = $(stub_command)
active_process_count = ${1-2}
ready_after = 500ms
${fleet_lines-}
$(printf '%s\n' "${@:2}")
END
}

kill_sqmgr() {
        kill -KILL "$sqmgr_pid"
        wait "$sqmgr_pid" 2>/dev/null || true
}
replace_sqmgr() { # COUNT: kill -9, and a start
        kill_sqmgr
        start_ready "$1"
}
reexec_ready() { # COUNT
        sqmgrctl reexec
        wait_until 60 ready "$1"
}

ticks() { sqmgrctl metrics | awk '$1 == "sqmgr_tick_duration_seconds_count" { n = $2 } END { print n; exit !n }'; }
has_ticked() { [ "$(ticks)" -ge "$1" ]; }
# Call this before a check that nothing has happened: sqmgr has had COUNT more ticks.
wait_ticks() { # COUNT
        local from
        from=$(ticks) && wait_until "$1" has_ticked $((from + $1))
}

event_count_is() { # EVENT COUNT: true if there are COUNT events of that kind
        local events
        events=$(sqmgrctl events --json) &&
                [ "$(jq -rs "[.[] | select(.event == \"$1\")] | length" <<<"$events")" = "$2" ]
}
any_event() { sqmgrctl events --json | jq -es "any(.[]; $1)"; } # CONDITION

# Prints when the Sidekiq of that PID sent its last heartbeat.
last_heartbeat() { redis hget "$(redis smembers processes | grep ":$1:")" beat; }
sent_heartbeat_after() { # PID BEAT
        local beat
        beat=$(last_heartbeat "$1") && [ -n "$beat" ] && [ "$beat" != "$2" ]
}

# Prints how often lists of running jobs were read.
lists_read() { redis info commandstats | sed -n 's/^cmdstat_hgetall:calls=\([0-9]*\),.*/\1/p'; }
lists_read_are() { [ "$(lists_read)" -ge "$1" ]; } # COUNT at least

redis_state_is() { [ "$(sqmgrctl status --json | jq -r '.redis[0].state')" = "$1" ]; }

alive() { # PIDS...: all of them; each may be a list
        local pid
        for pid in $*; do
                grep -qs '^State:.[^Z]' "/proc/$pid/status" || return 1
        done
}
gone() { # PIDS...: all of them; each may be a list
        local pid
        for pid in $*; do
                ! alive "$pid" || return 1
        done
}

# Writes to Redis what Sidekiq's client writes, in a twentieth of the time that it takes to start.
# shellcheck disable=SC2016
enqueue() { # COUNT CLASS ARGUMENT...: numbers are passed as numbers
        local jobs
        mapfile -t jobs <<<"$(gojq -nc --argjson now "$EPOCHREALTIME" --argjson call "$SRANDOM" '$ARGS.positional as [$n, $class] |
                ($ARGS.positional[2:] | map(if test("^[0-9]+$") then tonumber else . end)) as $args |
                range($n | tonumber) | {$class, $args, retry: false, queue: "default", created_at: $now, enqueued_at: $now,
                jid: "\(1000000000000 + $call)\(10000000000 + .)"}' --args "$@")"
        redis sadd queues default >/dev/null
        redis lpush queue:default "${jobs[@]}" >/dev/null
}
enqueue_with_client() { # COUNT CLASS ARGUMENT...: the same, at REDIS_URL
        ruby -r "$app" -e 'n, job, *arguments = ARGV
                arguments.map! { |word| word.match?(/\A\d+\z/) ? word.to_i : word }
                n.to_i.times { Object.const_get(job).perform_async(*arguments) }' "$@"
}
jobs_started() { redis hlen ledger:started; }
jobs_done() { redis hlen ledger:done; }
jobs_run_twice() { { redis hvals ledger:started && redis hvals ledger:done; } | awk '$1 > 1 { n++ } END { print n + 0 }'; }
has_started() { [ "$(jobs_started)" -ge "$1" ]; }
has_done() { [ "$(jobs_done)" -ge "$1" ]; }

in_terminal() { # COLUMNS COMMAND...: prints its terminal output, standard error included
        local columns=$1
        shift
        TERM=xterm script -qec "stty cols $columns && $*" /dev/null </dev/null | tr -d '\r'
}
longest_line() { awk '{ gsub(/\033\[[0-9;]*m/, ""); if (length > n) n = length } END { print n + 0 }' <<<"$1"; }
