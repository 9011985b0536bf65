#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Starts while sqmgr is killed or replaced: each worker runs once.
# seconds: 60
# promises: P4 P8 P10
load helpers

# Prints the names of all workers of this test whose command runs or is about to.
names() {
        local environ
        while read -r environ; do
                tr '\0' '\n' <"$environ" 2>/dev/null | sed -n 's/^SQMGR_WORKER=//p'
        done < <(grep -slzFx "SQMGR_MARK=$folder" /proc/[0-9]*/environ) | sort
}
all_once() {
        fleet_is '.active == 50 and (.workers | length) == 50 and .rollout.state != "running"' &&
                [ "$(names | wc -l)" -eq 50 ] && [ -z "$(names | uniq -d)" ]
}

@test "kill -9 and re-exec in 200 starts: no worker is doubled, none is lost" {
        configure <<END
framework = plain
command = /bin/sleep 1000
active_process_count = 50
ready_after = 100ms
environment = SQMGR_MARK=$folder
END
        start_sqmgr
        wait_until 20 all_once
        for round in {1..4}; do
                # All workers are started anew, and sqmgr ends meanwhile.
                sqmgrctl restart
                sleep "0.0$((RANDOM % 10))"
                if ((round % 2)); then
                        kill_sqmgr
                        start_sqmgr
                else
                        kill -USR2 "$sqmgr_pid"
                fi
                wait_until 60 all_once
                wait_ticks 2
                all_once
        done
}

# The main thread, and the one for the next start.
only_two_threads() { [ "$(sed -n 's/^Threads:\t//p' "/proc/$sqmgr_pid/status")" = 2 ]; }
all_run_sleep() {
        local pid
        for pid in $(worker_pids); do
                [ "$(cat "/proc/$pid/comm")" = sleep ] || return 1
        done
}

# To the kernel, a thread that starts a worker is its parent.
@test "a worker that asks for a signal at the death of its parent outlives the threads that starts need" {
        configure <<END
framework = plain
command = setpriv --pdeathsig KILL /bin/sleep 1000
active_process_count = 5
END
        start_ready 5
        wait_until 20 all_run_sleep
        before=$(worker_pids)
        wait_until 20 only_two_threads
        wait_ticks 2
        [ "$(worker_pids)" = "$before" ]
}
