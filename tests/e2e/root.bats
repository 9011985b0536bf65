#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# An sqmgr that root starts, as in a container without a USER: its workers are root's too, and all else is the same.
# seconds: 10
# promises: P4
# bats file_tags=root
load helpers

all_are_of_root() { [ "$(ps -o uid= -p "$(worker_pids) $sqmgr_pid" | sort -u | xargs)" = 0 ]; }
warns_of_root() { sqmgrctl doctor --json | jq -e 'any(.findings[]; .level == "warning" and (.text | contains("run as root")))'; }

@test "started by root: workers run as root, which is reported; a restart, a re-exec and adoption work" {
        [ "$(id -u)" = 0 ] || skip 'not root'
        start_fleet 2
        all_are_of_root
        warns_of_root
        first=$(worker_pids)
        run -0 sqmgrctl restart --wait=drained --timeout 60s
        gone "$first"
        all_are_of_root
        before=$(worker_pids)
        reexec_ready 2
        replace_sqmgr 2
        [ "$(worker_pids)" = "$before" ]
        run -0 sqmgrctl status
        all_are_of_root
        # The workers end with an sqmgr that is asked to exit.
        kill -TERM "$sqmgr_pid"
        wait_until 30 gone "$before" "$sqmgr_pid"
}
