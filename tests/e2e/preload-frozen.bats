#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# With SQMGR_LONG=1: a template that is stopped, as by a debugger, is not given up soon. A worker that waits for it
# finally starts.
# seconds: 2
# promises: P8
load preload

@test "a frozen template is given up if a worker waits for it, and that worker starts again" {
        [ -n "${SQMGR_LONG-}" ] || skip 'for a long run: it takes two minutes'
        start_fleet 2
        old=$(worker_pids) template=$(template)
        kill -STOP "$template"
        kill -KILL "${old%% *}"
        # Seconds in which the template is stopped count less.
        wait_until 10 fleet_is '(.workers | length) == 1'
        wait_until 120 other_template_than "$template"
        wait_until 10 gone "$template"
        wait_until 30 ready 2
        event_count_is template-failed 1
        sqmgrctl events | grep -q "template of fleet 'default' (pid $template) did not fork within"
        alive "${old##* }"
        all_are_known
}
