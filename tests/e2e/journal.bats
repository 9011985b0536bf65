#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# With a real journal: log tails of failed workers are read back, and a stuck journal blocks nothing. journald runs
# below its own /run, in a mount namespace.
# seconds: 20
# promises: P7 P8
# bats file_tags=root
load helpers

journald=/lib/systemd/systemd-journald

start_journal() {
        [ "$(id -u)" = 0 ] || skip 'not root'
        unshare -m true 2>/dev/null || skip 'this machine lets nobody have a mount namespace'
        start_redis
        cat >journald.sh <<'END'
set -e
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/systemd/journald.conf.d /run/systemd/journal /run/log/journal
printf '[Journal]\nStorage=volatile\nAudit=no\nReadKMsg=no\nRateLimitIntervalSec=0\n' >/run/systemd/journald.conf.d/sqmgr-test.conf
exec env -i "$1"
END
        launch journald unshare -m sh -e journald.sh $journald
        journal_pid=$!
        wait_until 10 journal_is_up
}

# Runs a command that sees the /run of the journal.
within() { nsenter -t "$journal_pid" -m --wdns="$folder" "$@"; }

journal_is_up() { within test -e /run/systemd/journald.conf.d/sqmgr-test.conf && within systemd-cat true; }

journal_has() { within journalctl -q -o cat "${@:2}" | grep -q "$1"; } # PATTERN [MATCH...]

# Starts sqmgr as a service does, or as by hand.
start_sqmgr_in_journal() { # service|hand
        local place=()
        if [ "$1" = service ]; then
                # shellcheck disable=SC2016
                place=(systemd-cat sh -c 'JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) exec "$@"' sh)
        fi
        launch sqmgr nsenter -t "$journal_pid" -m --wdns="$folder" "${place[@]}" sqmgr -c "$folder/sqmgr.ini"
        wait_until 10 sqmgrctl ping
}

fails_with_lines() {
        cat >app.sh <<'END'
echo 'booting'
echo 'app.rb:3: no database.yml (RuntimeError)' >&2
echo '        from app.rb:1' >&2
exit 1
END
        configure_log "$1" "command = /bin/sh $folder/app.sh" 'active_process_count = 2' 'ready_after = 500ms'
}

configure_log() { # LOG LINE...
        local log=$1
        shift
        printf '%s\n' "$@" | configure
        sed -i "s|^log = .*|log = $log|" sqmgr.ini
}

# shellcheck disable=SC2053
last_lines_are() { [[ $(fleet .crash.last) == *'exited with status 1'* && $(fleet .crash.quoted) == $1 ]]; } # PATTERN

@test "log = journal: the log tail of a failed worker is read back" {
        start_journal
        fails_with_lines journal
        start_sqmgr_in_journal hand
        wait_until 20 last_lines_are $'booting\napp.rb:3: no database.yml (RuntimeError)'
        grep -q '^    | app.rb:3: no database.yml (RuntimeError)$' sqmgr.log
        # Each line names its worker.
        within journalctl -q -o cat -t default/2 | grep -qFx booting
        # Also of a dead worker, and of all workers of a fleet.
        within sqmgrctl logs default/2 | grep -q ' default/2\[[0-9]*\]: booting$'
        run ! grep -q 'default/1' <(within sqmgrctl logs default/2 -n 1000)
        within sqmgrctl logs default -n 1000 | grep -q ' default/1\[[0-9]*\]: booting$'
        run -2 within sqmgrctl logs default --previous
        run -2 within sqmgrctl logs default/2 --previous --follow
}

@test "logs --previous shows earlier processes of a worker, also of a dead one" {
        start_journal
        cat >app.sh <<'END'
echo "life of $$"
exec sleep 1000
END
        configure_log journal 'framework = plain' "command = /bin/sh $folder/app.sh" 'active_process_count = 1'
        start_sqmgr_in_journal service
        lives_of() { within sqmgrctl logs default/1 "$@" | grep -o 'life of .*'; }
        await_life() { wait_until 20 fleet_is ".workers[0].pid > 0 and .workers[0].pid != $1" && wait_until 20 lives_include "life of $(worker_pids)"; }
        lives_include() { lives_of | grep -qFx "$1"; }
        await_life 0
        first=$(worker_pids)
        run ! lives_of --previous
        kill -KILL "$first"
        await_life "$first"
        second=$(worker_pids)
        [ "$(lives_of)" = "life of $first"$'\n'"life of $second" ]
        [ "$(lives_of --previous)" = "life of $first" ]
        sqmgrctl stop default --force
        wait_until 20 gone "$second"
        wait_until 20 fleet_is '.workers == []'
        [ "$(lives_of)" = "life of $first"$'\n'"life of $second" ]
        [ "$(lives_of --previous)" = "life of $first"$'\n'"life of $second" ]

        # By process if the line does not name the worker.
        sed -i 's/^log = .*/log = inherit/' sqmgr.ini
        sqmgrctl reload
        sqmgrctl start default
        wait_until 20 fleet_is '.workers[0].pid > 0'
        third=$(worker_pids)
        wait_until 20 lives_include "life of $third"
        kill -KILL "$third"
        wait_until 20 gone "$third"
        sqmgrctl stop default --force
        wait_until 20 fleet_is '.workers == []'
        [[ $(lives_of) == *"life of $third"* ]]
}

@test "as a service, logs go to the journal by default, and each line names its worker" {
        start_journal
        configure_log none 'framework = plain' "command = sh -c 'echo hello; exec sleep 1000'" 'active_process_count = 1'
        sed -i '/^log = /d' sqmgr.ini
        start_sqmgr_in_journal service
        wait_until 20 fleet_is '.log == "journal"'
        hello() { within journalctl -q -o cat -t default/1 | grep -qFx hello; }
        wait_until 20 hello
}

@test "log = inherit, as a service: a halted restart reports the log tail" {
        start_journal
        printf 'one\ntwo\nthree\nfour\nfive\nsix\n' >steer/lines
        configure_log inherit "command = $(stub_command)" 'active_process_count = 2' 'ready_after = 500ms'
        start_sqmgr_in_journal service
        wait_until 20 ready 2
        old=$(worker_pids)
        mv steer/lines steer/fail
        run -1 sqmgrctl restart --wait --timeout 300s
        [[ $output == *'3 new workers failed in a row; last failure: default/'*$'two\n'*'six'* ]]
        [[ $(fleet .rollout.quoted) == $'two\nthree\nfour\nfive\nsix' ]]
        alive "$old"
        wait_until 10 journal_has 'SQMGR_QUOTED=two$' -o verbose
        within sqmgrctl logs default -n 1000 >shown
        pid=$(worker_pids | head -n 1)
        within journalctl -q "_PID=$pid" >ours
        [ ! -s ours ] || grep -qFf ours shown
        run ! grep -q 'restart halted' shown
        # _COMM=sqmgr excludes the lines of workers and keeps those of sqmgr.
        within journalctl -q -o cat | grep -qFx six
        within journalctl -q -o cat _COMM=sqmgr >own
        grep -q 'restart halted' own
        run ! grep -qFx six own
}

@test "log = journal: a worker behind a wrapper dies after a normal start" {
        start_journal
        cat >wrapper.sh <<END
echo 'the wrapper begins'
sh -c 'echo "the worker begins"; exec $(stub_command)' &
wait \$!
echo 'the wrapper ends'
exit 1
END
        configure_log journal "command = /bin/bash $folder/wrapper.sh" 'ready_after = 500ms'
        start_sqmgr_in_journal hand
        wait_until 20 ready 1
        kill -KILL "$(worker_pids)"
        wait_until 20 last_lines_are $'the wrapper begins\nthe worker begins\n*the wrapper ends'
}

@test "a worker without output has no log tail, and is not shown that of others" {
        start_journal
        configure_log journal "command = /bin/sh -c 'exit 1'"
        start_sqmgr_in_journal hand
        within systemd-cat echo 'of someone else'
        wait_until 20 fleet_is '.crash.count >= 4'
        [[ $(fleet .crash.last) != *'last lines'* ]]
}

@test "a stuck journal blocks nothing: entries are lost, and the loss is reported" {
        start_journal
        configure_log /dev/null "command = $(stub_command)" 'ready_after = 500ms'
        start_sqmgr_in_journal service
        wait_until 20 ready 1
        kill -STOP "$journal_pid"
        # More than the queue holds.
        for ((i = 0; i < 30 + $(sysctl -n net.unix.max_dgram_qlen); i++)); do
                sqmgrctl abort
                sqmgrctl restart
        done
        sqmgrctl ping
        wait_until 20 fleet_is '.generation > 30'
        kill -CONT "$journal_pid"
        wait_until 20 journal_has "restart to generation 2 started by $(id -un)" "SQMGR_BY_UID=$(id -u)"
        # Reported with the first entry that fits.
        told_with_an_entry() { sqmgrctl restart && journal_has 'entries were lost here'; }
        wait_until 20 told_with_an_entry
}

@test "preload, log = journal: each worker has its own stream" {
        local worker stand=(python3 "$e2e/preload_stand.py")
        start_journal
        export PRELOAD=$top/src/preload/sqmgr-preload.rb
        launch stand nsenter -t "$journal_pid" -m --wdns="$folder" "${stand[@]}" serve sidekiq -r "$app" -c 1
        wait_until 10 test -S stand
        "${stand[@]}" ready
        worker=$("${stand[@]}" fork SQMGR_WORKER=default/1 log=journal)
        "${stand[@]}" go "$worker"
        wait_until 20 journal_has "pid=$worker .*Running in ruby" -t default/1 _PID="$worker" PRIORITY=6
        run ! grep "pid=$worker" stand.log
}
