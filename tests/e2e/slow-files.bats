#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A worker delays the reader of its files by a FUSE file system: only that reader waits, at the start, at polls, at an
# adoption and at an exit.
# seconds: 60
# promises: P8
load helpers

slow=$SQMGR_BUILD/tests/stub/slow-files

# The fleet 'slow' has such files; another fleet is 'default'.
need_fuse() {
        mkdir "$folder/slow" && ln -s "${SQMGR_FUSE-/dev/fuse}" "$folder/slow/fuse"
        [ -w "$folder/slow/fuse" ] || skip 'no device of FUSE can be opened here'
        install -m 755 "$slow" "$folder/slow-files"
        "$folder/slow-files" try "$folder/slow" 2>try.log 3>&- 9>&- &
        local try=$!
        wait_until 5 test -s "$folder/slow/pid.try" || skip "this machine lets nobody have a FUSE in a namespace: $(tail -n 1 try.log)"
        kill -KILL "$try"
}

configure_slow() { # MODE, with more lines of the fleet on standard input
        sqmgr_lines='shutdown_timeout = 1s' configure <<END
command = $(stub_command)
active_process_count = 2
ready_after = 500ms
boot_timeout = 30s

[fleet:slow]
command = $folder/slow-files $1 $folder/slow
active_process_count = 1
log = $folder/slow/log
$(cat)
END
}

is_slow() { test -s "$folder/slow/pid.$1"; } # MODE
# The first fleet is 'default'; 'ping' fails after its own 5 s.
answers() { sqmgrctl ping && fleet_is '.active == 2'; }
# No program that reads command lines may be called: it would block, too.
readers() {
        local pid
        cat "/proc/$sqmgr_pid/task/"*/children | tr ' ' '\n' | while read -r pid; do
                [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != sqmgr-proc-read ] || echo "$pid"
        done | sort
}
is_read() { [ -n "$(readers)" ]; }
reader_was_replaced() { [ -n "$(readers)" ] && [ "$(readers)" != "$first" ]; }

is_replaced() { [[ " $(worker_pids) " != *" $1 "* ]] && ready 2; } # PID
# A worker that ends is replaced: so the fleet is supervised.
is_supervised() {
        worker=$(worker_pids | cut -d ' ' -f 1)
        kill -KILL "$worker"
        wait_until 20 is_replaced "$worker"
}

@test "a worker that holds its mmap_lock by FUSE: all other fleets stay supervised, through a re-exec and a crash" {
        need_fuse
        start_redis
        configure_slow lock <<<''
        start_ready 2
        wait_until 20 is_slow lock
        hung=$(cat slow/pid.lock)
        # It cannot be read: cat blocks.
        not timeout 1 cat "/proc/$hung/cmdline"

        # Polls: the reader is killed and restarted.
        wait_until 20 is_read
        first=$(readers)
        wait_until 20 reader_was_replaced
        answers
        is_supervised
        sqmgrctl doctor || true
        answers

        before=$(worker_pids)
        kill -USR2 "$sqmgr_pid"
        wait_until 20 grep -q 'has taken over' sqmgr.log
        wait_until 20 answers
        [ "$(worker_pids)" = "$before" ]

        rm slow/pid.lock
        kill -TERM "$sqmgr_pid"
        wait "$sqmgr_pid"
        start_sqmgr
        wait_until 20 answers
        wait_until 20 is_slow lock
        hung=$(cat slow/pid.lock)
        wait_until 20 is_read
        first=$(readers)
        wait_until 20 reader_was_replaced
        is_supervised
        before=$(worker_pids)

        # The search for workers reads environments. What it cannot read holds starts for boot_timeout.
        kill_sqmgr
        rm -f state state.starts
        start_sqmgr
        wait_until 20 answers
        [ "$(worker_pids)" = "$before" ]
        is_supervised
        alive "$hung"
}

@test "a log on an overlay of FUSE: only its reader waits" {
        need_fuse
        start_redis
        configure_slow log <<<'framework = plain'
        start_ready 2
        wait_until 20 is_slow log
        slow_pid=$(cat slow/pid.log)
        # Adoption opens the log that the worker has at that time.
        kill_sqmgr
        start_sqmgr
        wait_until 20 answers
        rm slow/pid.log
        kill -KILL "$slow_pid"
        wait_until 20 gone "$slow_pid"
        answers
        is_supervised
        # Its fleet starts the next worker.
        wait_until 30 is_slow log
}

# The child of the fleet 'hung' that has not come to its command.
hung_child() {
        hung=$(sqmgrctl status --json | jq -r '.fleets[] | select(.name == "hung") | .workers[0].pid')
        [ "$(cat "/proc/$hung/comm")" = sqmgr-launch ]
}

# bats test_tags=root
@test "a directory that hangs: its starts wait alone, without a lock or socket, through a re-exec and a crash" {
        [ "$(id -u)" = 0 ] || skip 'not root'
        need_fuse
        launch slow "$slow" dir "$folder/slow"
        wait_until 20 is_slow dir
        start_workers 2 <<END
command = $(stub_command)
active_process_count = 2
ready_after = 500ms

[fleet:hung]
framework = plain
command = /bin/sleep 1000
directory = /proc/$(cat slow/pid.dir)/root/mnt/fuse/hang
active_process_count = 3
boot_timeout = 1h
END
        wait_until 20 hung_child
        # Standard streams and the report.
        [ "$(cd "/proc/$hung/fd" && echo *)" = '0 1 2 3' ]
        answers
        is_supervised
        sqmgrctl reload
        kill -USR2 "$sqmgr_pid"
        wait_until 20 grep -q 'has taken over' sqmgr.log
        wait_until 20 answers
        hung_child
        is_supervised
        kill_sqmgr
        start_sqmgr
        wait_until 20 answers
        is_supervised
        alive "$hung"
        kill -KILL "$(cat slow/server.dir)"
        wait_until 20 gone "$hung"
}
