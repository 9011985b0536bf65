#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Alerts: a command of the operator reports events.
# seconds: 15
# promises: none
load helpers

# Runs the lines as a script in a directory of its own.
start_with_script() { # LINE...
        mkdir told
        printf '%s\n' '#!/bin/sh' "cd $folder/told || exit" "$@" >tell
        chmod 755 tell
        sqmgr_lines="alert_command = $folder/tell 'two words'
${sqmgr_lines-}"
        start_workers 1 <<<"command = $(stub_command)"
}

@test "alerts report a killed worker and the loss and return of Redis, as the user, in the words of 'events'" {
        # shellcheck disable=SC2016
        start_with_script 'echo "$1,$SQMGR_EVENT,$SQMGR_FLEET,$SQMGR_WORKER,$(id -un)" >>words' 'cat >>events'
        kill -KILL "$(worker_pids)"
        wait_until 20 grep -q '"crashed"' told/events
        grep -qFx "two words,crashed,default,default/1,$(id -un)" told/words
        jq 'select(.event == "crashed")' told/events >crashed.json
        jq -e '.level == "error" and .worker == "default/1" and .pid > 1 and .count == 1' crashed.json
        # Same text as in sqmgrctl.
        command jq -S 'del(.count)' crashed.json >told.json
        sqmgrctl events --json | command jq -S 'select(.event == "crashed")' >shown.json
        diff told.json shown.json

        kill -KILL "$redis_pid"
        wait_until 20 grep -q '"redis-down"' told/events
        # The end of a problem is reported as well, at level info.
        start_redis
        wait_until 20 grep -q '"redis-up"' told/events
        jq -es 'any(.[]; .event == "redis-up" and .level == "info" and .fleet == "default")' told/events
        # Events of a lower level are not reported.
        run ! grep -q '"started"\|"active"' told/events
}

@test "a command that hangs or fails blocks nothing, and a reload removes it" {
        # shellcheck disable=SC2016
        sqmgr_lines='alert_level = info' \
                start_with_script 'echo "$SQMGR_EVENT" >>words' '[ "$SQMGR_EVENT" = started ] && exit 7' 'exec sleep 1000'
        wait_until 10 grep -q "alert_command for 'started' failed (exit status 7)" sqmgr.log
        wait_until 10 grep -q active told/words
        run -0 sqmgrctl restart --wait --timeout 300s
        fleet_is '.generation == 2 and .rollout.state == "done"'
        sed -i '/^alert_/d' sqmgr.ini
        run -0 sqmgrctl reload
        [[ $output == *"alert_command: $folder/tell"*' -> none'* ]]
        # The hung command is still the only one, or was ended before the next began.
        begun=$(wc -l <told/words)
        [ "$begun" -le $((2 + $(grep -c 'killed (reason: no exit within' sqmgr.log))) ]
        run -0 sqmgrctl ping
}
