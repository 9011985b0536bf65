#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Each command of sqmgrctl, in a terminal and piped, with each of its exit codes.
# seconds: 60
# promises: none
load helpers

reads=(status events jobs queues doctor metrics 'why default/1' ping 'ping --ready' version)
orders=(abort 'quiet default/1' restart 'start default' 'scale default 2' 'stop default' 'start default' reload reexec)

# Runs all commands with these options. Words of a command are split.
each_exits() { # CODE COMMAND... -- OPTION...
        local code=$1 command commands=()
        shift
        while [ "$1" != -- ]; do
                commands+=("$1")
                shift
        done
        shift
        for command in "${commands[@]}"; do
                # shellcheck disable=SC2086
                run --separate-stderr sqmgrctl $command "$@"
                echo "$command $*: exit $status, $stderr"
                [ "$status" = "$code" ] || return 1
                [ "$code" = 0 ] || [[ $stderr == 'sqmgrctl: '* ]] || return 1
        done
}

each_says() { # TEXT COMMAND...: exits with 2
        run -2 sqmgrctl "${@:2}"
        [ "$output" = "sqmgrctl: $1" ] || { echo "$output" && return 1; }
}

@test "exit code 0: every command does its work, and prints JSON with --json" {
        start_fleet 2
        each_exits 0 "${reads[@]}" "${orders[@]}" --
        # The workers have their initial ids again, which the test uses.
        wait_until 20 ready 2
        sqmgrctl stop default
        wait_until 20 fleet_is '(.workers | length) == 0'
        sqmgrctl start default
        wait_until 20 ready 2
        for command in "${reads[@]}" "${orders[@]}"; do
                # shellcheck disable=SC2086
                run -0 --separate-stderr sqmgrctl $command --json
                jq -se 'length > 0 and all(.[]; type == "object")' <<<"$output"
        done
        # No order is in progress when the test ends.
        wait_until 20 ready 2
}

@test "exit code 0: the help of each command needs no sqmgr, and its sentences are those of sqmgrctl(1)" {
        SQMGR_SOCKET=$folder/nowhere each_exits 0 "${reads[@]}" "${orders[@]}" rollback top logs -- --help
        mandoc -Tutf8 -Owidth=1000 "$top/man/sqmgrctl.1" | sed 's/.\x08//g' | tr -s '[:space:]' ' ' >page
        sqmgrctl --complete '' | cut -f 1 >commands
        [ "$(wc -l <commands)" -ge 20 ]
        while read -r command; do
                sqmgrctl "$command" --help | sed '1d; /^$/,$d' | tr '\n' ' ' | sed 's/\. */\n/g' >sentences
                [ -s sentences ]
                while read -r sentence; do
                        grep -qF -e "$sentence" page || { echo "sqmgrctl(1) lacks: $command: $sentence" && return 1; }
                done <sentences
        done <commands
}

@test "exit code 2: a near miss is answered with the correct spelling" {
        start_fleet 1
        each_says "'default/1' is a worker. To replace it, run 'sqmgrctl quiet default/1'" restart default/1
        each_says "'default/1' is a worker; 'start' takes a fleet" start default/1
        each_says "unknown fleet 'drained'. Did you mean '--wait=drained'?" restart --wait drained
        each_says "unknown option '--tail'. Did you mean '--lines'?" events --tail
        each_says "unknown option '--once'. To print the workers once, run 'sqmgrctl status'" top --once
        each_says "unknown option '--forces'. For a list, run 'sqmgrctl --help'" stop default --forces
        each_says "'x' is not a number of lines" events -n x
        each_says "unknown fleet 'nosuch'; known: 'default'" why nosuch/1
        run -0 sqmgrctl help
        [[ $output == 'Usage: sqmgrctl '* ]]
        [ "$output" = "$(sqmgrctl --help)" ]
        run -0 sqmgr -h
        [[ $output == 'Usage: sqmgr '* ]]
        run -3 sqmgrctl -s sqmgr.ini ping
        [ "$output" = "sqmgrctl: 'sqmgr.ini' is not a socket. Give the socket of sqmgr by -s or SQMGR_SOCKET" ]
        last=$(sqmgrctl events | tail -n 2)
        [ "$(sqmgrctl events -n 2)" = "$last" ]
        [ "$(sqmgrctl events -n 0)" = '' ]
        launch followed sqmgrctl events -f -n 2
        following=$!
        wait_until 10 [ -s followed.log ]
        kill "$following"
        [ "$(<followed.log)" = "$last" ]
}

@test "ping --ready reports whether each fleet that should run has its workers, and which one has not" {
        start_workers 2 < <(printf '%s\n' "command = $(stub_command)" 'active_process_count = 2' \
                '[fleet:silent]' 'command = sleep 1000' '[fleet:off]' 'command = sleep 1000' 'active_process_count = 0')
        run -1 --separate-stderr sqmgrctl ping --ready
        [[ $output == '' && $stderr == "sqmgrctl: not ready: fleet 'silent': 0 of 1 worker active, 1 starting"* ]]
        run -1 --separate-stderr sqmgrctl ping --ready --json
        jq -e '.error.code == "not-ready" and .error.exit == 1' <<<"$output"
        # A fleet that should not run does not count.
        sqmgrctl stop silent --force
        run -0 sqmgrctl ping --ready
        [ "$output" = 'sqmgr is ready: each running fleet has its workers' ]
        run -0 sqmgrctl ping --ready --json
        [ "$output" = '{"ready":true}' ]
        # Before its exit sqmgr is not ready, although its workers still run.
        echo 1 >steer/busy
        kill -TERM "$sqmgr_pid"
        wait_until 10 not sqmgrctl ping --ready
        run -1 sqmgrctl ping --ready
        [[ $output == 'sqmgrctl: not ready: sqmgr: shutting down, '* ]]
}

@test "a failure is an object with --json, and a sentence on standard error otherwise" {
        start_fleet 1
        fails_as() { # CODE EXIT COMMAND...
                run --separate-stderr sqmgrctl --json "${@:3}"
                echo "$output"
                [ "$status" = "$2" ] && [[ $stderr == 'sqmgrctl: '* && $output == '{"error":'* ]] &&
                        jq -e --arg code "$1" --argjson exit "$2" '.error | .code == $code and .exit == $exit and (.message | length > 0)
                                and (.details | type == "array")' <<<"$output"
        }
        fails_as usage 2 frobnicate
        fails_as unknown-fleet 2 restart nosuch
        fails_as unknown-worker 2 quiet default/9
        fails_as unknown-worker 2 why default/9
        fails_as refused 1 scale default 99
        fails_as refused 1 scale default auto
        fails_as unreachable 3 -s /proc/nowhere/at/all ping
        echo nonsense >>sqmgr.ini
        fails_as refused 1 reload
        jq -e '.error.details | length == 1' <<<"$output"
        kill -STOP "$sqmgr_pid"
        fails_as timed-out 5 --timeout 300ms ping
        kill -CONT "$sqmgr_pid"
        wait_until 10 sqmgrctl ping
        kill -STOP "$redis_pid"
        wait_until 15 not redis_state_is connected
        sqmgrctl restart
        wait_until 10 fleet_is '.waits_for_code == "redis" and .waits_for == "waits for Redis"'
        wait_until 10 fleet_is 'all(.workers[]; .waits_for_code == "redis")'
        kill -CONT "$redis_pid"
}

@test "exit code 1: the command cannot be carried out or answered" {
        start_fleet 2
        run -1 sqmgrctl scale default 99
        [ "$output" = "sqmgrctl: fleet 'default' cannot be scaled to 99; the count must be from 1 to 6 (max_processes)" ]
        run -1 sqmgrctl scale default 0
        [ "$output" = "sqmgrctl: fleet 'default' cannot be scaled to 0; to stop it, run 'sqmgrctl stop default'" ]
        echo nonsense >>sqmgr.ini
        run -1 sqmgrctl reload
        [[ ${lines[1]} == "$folder/sqmgr.ini:"*': '* ]]
        run -1 sqmgrctl reexec
        for command in "${reads[@]}" abort; do
                # shellcheck disable=SC2086
                run -1 bash -c "sqmgrctl $command >/dev/full"
                [[ $output == 'sqmgrctl: cannot write to standard output: No space left on device' ]]
                run -1 bash -c "sqmgrctl $command >&-"
                [[ $output == 'sqmgrctl: cannot write to standard output: Bad file descriptor' ]]
        done
        for command in status 'status --watch' events ping; do
                run -1 timeout 20 bash -c "sqmgrctl $command >&-"
                [[ $output == 'sqmgrctl: cannot write to standard output: Bad file descriptor' ]]
        done
}

@test "exit code 2: bad usage reports the error and the correct usage" {
        start_fleet 1
        each_exits 2 "${reads[@]}" "${orders[@]}" -- --nosuch
        each_exits 2 status restart abort events jobs stop start quiet -- nosuch
        each_exits 2 queues doctor metrics reload reexec ping version 'why default/1' 'stop default' 'scale default 1' -- default
        each_says 'missing argument: usage: sqmgrctl stop FLEET|WORKER [--force]' stop
        each_says 'too many arguments: usage: sqmgrctl ping [--ready]' ping pong
        each_says 'give one worker, or fleets: usage: sqmgrctl events [FLEET...|WORKER] [--lines N] [--follow]' events default/1 default
        each_says "unknown option '--wiat'. Did you mean '--wait'?" restart --wiat
        each_says '--json takes no value' restart --json=yes
        each_says "'--timeout' needs a value. See 'sqmgrctl --help'" restart --timeout
        each_says "unknown option '-x'. For a list, run 'sqmgrctl --help'" -x status
        each_says "unknown fleet 'defautl'; known: 'default'" status defautl
        sqmgrctl scale default 2
        wait_until 20 ready 2
        each_says "unknown worker 'default/9'; known: 'default/1', 'default/2'" why default/9
        fleet_is '.generation == 1 and .state == "running"'
}

@test "exit code 3: no socket, no listener, or a foreign listener" {
        each_exits 3 "${reads[@]}" "${orders[@]}" --
        [[ $stderr == "sqmgrctl: no socket '$folder/sqmgr.sock'. Start sqmgr, or give"* ]]
        start_fleet 1
        record "$(worker_pids)"
        kill_sqmgr
        each_exits 3 "${reads[@]}" "${orders[@]}" --
        [[ $stderr == "sqmgrctl: sqmgr is not running on '$folder/sqmgr.sock': connection refused. Start sqmgr" ]]
        launch stranger ruby -rsocket -e 'UNIXServer.new(ARGV[0]).then { |s| File.write("listens", ""); loop { s.accept.then { |c| c.write("hello\0"); c.close } } }' stranger.sock
        wait_until 10 test -e listens
        SQMGR_SOCKET=$folder/stranger.sock each_exits 3 ping status --
        [[ $stderr == "sqmgrctl: the process on '$folder/stranger.sock' is not sqmgr: "* ]]
}

# bats test_tags=root
@test "exit code 4: a user without access, and a viewer, learn who has access" {
        [ "$(id -u)" = 0 ] || skip 'not root'
        install -m 755 "$(command -v sqmgrctl)" "$folder/allowed"
        start_fleet 1
        # shellcheck disable=SC2317 # each_exits() calls it
        sqmgrctl() { setpriv --reuid nobody --regid nogroup --clear-groups "$folder/allowed" "$@"; }
        each_exits 4 "${reads[@]}" "${orders[@]}" --
        [[ $stderr == *"not permitted: members of group 'sqmgr-read' may read, and only root and the user of sqmgr may give orders"* ]]
        unset -f sqmgrctl
}

@test "exit code 5: sqmgr does not answer in time" {
        start_fleet 1
        kill -STOP "$sqmgr_pid"
        each_exits 5 "${reads[@]}" abort 'start default' -- --timeout 300ms
        [[ $stderr == 'sqmgrctl: sqmgr did not answer within 300ms; the order may still be carried out' ]]
        kill -CONT "$sqmgr_pid"
        wait_until 10 sqmgrctl ping
}

# Adds a running job as Sidekiq 7 writes it, in a key that the stub does not touch.
runs_job() { # CLASS JID QUEUE STARTED
        redis hset "$(redis smembers processes):work" "t$2" "$(jq -nc --arg class "$1" --arg jid "$2" --arg queue "$3" --arg at "$4" \
                '{queue: $queue, payload: ({class: $class, jid: $jid} | tojson), run_at: ($at | tonumber)}')"
}

@test "logs shows and follows the workers' log file, safe for a terminal" {
        start_fleet 1
        printf 'one\ntwo \033]0;evil\007three\n' >>workers.log
        run -0 --separate-stderr sqmgrctl logs default -n 1
        [ "$output" = 'two ?]0;evil?three' ]
        [ "$stderr" = '' ]
        run -0 --separate-stderr sqmgrctl logs default/1 --lines 2
        [ "${lines[0]}" = one ]
        [[ $stderr == "sqmgrctl: all workers of 'default' write to '$folder/workers.log'" ]]
        launch followed sqmgrctl logs -f -n 0 default
        following=$!
        more_is_followed() { echo later >>workers.log && grep -q later followed.log; }
        wait_until 10 more_is_followed
        kill "$following"
        wait_until 10 gone "$following"
        run -2 sqmgrctl logs nosuch/1
        [ "$output" = "sqmgrctl: unknown fleet 'nosuch'; known: 'default'" ]
        run -2 sqmgrctl logs default --json
        rm workers.log
        run -1 sqmgrctl logs default
        [[ $output == *'workers.log'* ]]
}

@test "jobs and queues are columns, and stacked lines in a narrow terminal" {
        start_fleet 1
        now=$(date +%s)
        runs_job Mail 0123456789abcdef01234567 mail $((now - 7200))
        runs_job Billing::Reports::MonthlyStatementJob abcdef0123456789abcdef01 größen $((now - 3 * 86400))
        cat >wide <<'END'
CLASS                                  JID                       QUEUE   WORKER     FOR
Billing::Reports::MonthlyStatementJob  abcdef0123456789abcdef01  größen  default/1  3d
Mail                                   0123456789abcdef01234567  mail    default/1  2h
END
        cat >narrow <<'END'
CLASS                                  WORKER     FOR
Billing::Reports::MonthlyStatementJob  default/1  3d
      abcdef0123456789abcdef01, queue größen
Mail                                   default/1  2h
      0123456789abcdef01234567, queue mail
END
        diff wide <(sqmgrctl jobs)
        diff wide <(in_terminal 200 sqmgrctl jobs)
        diff narrow <(in_terminal 80 sqmgrctl jobs)

        redis lpush queue:größen "{\"enqueued_at\":$((now - 7200))}" "{\"enqueued_at\":$now}"
        redis lpush queue:default "{\"enqueued_at\":$((now - 3 * 86400))}"
        redis sadd queues größen default
        redis sadd paused größen
        redis zadd retry 1 x
        cat >queues <<END
unix://$folder/redis.sock: 1 retries, 0 scheduled, 0 dead
  QUEUE         SIZE    LATENCY
  default          1         3d
  größen           2         2h  paused
END
        diff queues <(sqmgrctl queues)
        diff queues <(in_terminal 80 sqmgrctl queues)
}

@test "doctor: a finding is one line; in a terminal, a paragraph with the remedy on its own line" {
        start_fleet 1 "environment = DYNO=web.1"
        redis config set appendonly no
        finding="fleet 'default': environment sets DYNO; heartbeats of Sidekiq under that name cannot be matched"
        has_line() { sqmgrctl doctor | grep -qxF "$1"; }
        run -1 sqmgrctl doctor
        wait_until 20 has_line "warning  $finding. Remove the variable from environment, or set namespaced = yes"
        wait_until 20 has_line "problem  Redis unix://$folder/redis.sock: no persistence: all jobs are lost when Redis restarts. Set appendonly to yes"
        esc=$'\033'
        cat >narrow <<END
${esc}[33mwarning  ${esc}[0mfleet 'default': environment sets DYNO; heartbeats of Sidekiq under
         that name cannot be matched
         remedy: Remove the variable from environment, or set namespaced = yes
END
        diff narrow <(in_terminal 80 sqmgrctl doctor | grep -A 2 DYNO | head -n 3)
}

@test "no command prints a line longer than the terminal is wide" {
        start_workers 1 <<END
command = $(stub_command)
ready_after = 500ms
[fleet:integrations-of-low-priority]
command = $(stub_command)
log = $folder/workers.log
END
        echo "pid=% tid=1 config/boot.rb:12:in 'require': cannot load such file -- bootsnap/setup (LoadError)" >steer/fail
        run -1 sqmgrctl restart default --wait --timeout 300s
        rm steer/fail
        sqmgrctl restart integrations-of-low-priority
        for columns in 80 200; do
                for command in "${reads[@]}" 'why integrations-of-low-priority/1' 'why default/99' 'status defautl' \
                        '-s /run/some/place/that/is/not/there/at/all/control.sock status' 'stop' 'scale default 99' \
                        'abort' 'quiet integrations-of-low-priority' 'stop integrations-of-low-priority' \
                        'restart integrations-of-low-priority' 'start integrations-of-low-priority' --help; do
                        [ "$command" != metrics ] || continue
                        shown=$(in_terminal $columns sqmgrctl "$command")
                        echo "$columns $command: $shown"
                        [ "$(longest_line "$shown")" -le $columns ]
                        [ -n "$shown" ]
                done
        done
        [ "$(longest_line "$(sqmgrctl --help)")" -le 80 ]
}
