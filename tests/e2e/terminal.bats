#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# sqmgrctl in a real terminal, wide and narrow, and without a terminal.
# seconds: 45
# promises: none
load helpers
load terminal

shows_once() { [ "$(screen_text | grep -c -e "$1")" = 1 ]; } # PATTERN
# The same for a sentence that may be broken over lines.
screen_has() { screen_text -J | tr -s ' \n' ' ' | grep -q -e "$1"; } # PATTERN

# Jobs that keep the old workers alive: a restart lasts as long as the test needs.
hold_workers() {
        local pid
        for pid in $(worker_pids); do
                echo 2 >"$folder/steer/busy.$pid"
        done
        wait_until 10 fleet_is 'all(.workers[]; .busy == 2)'
}
release_workers() { rm "$folder"/steer/busy.*; }

has_lines() { [ "$(grep -c -e "$2" "$3")" -ge "$1" ]; } # COUNT PATTERN FILE

@test "status: at 80 columns reasons are separate lines, at 200 a column; piped, one line each without colors" {
        start_fleet 2 'memory_threshold = 1G'
        hold_workers
        sqmgrctl restart
        wait_until 20 fleet_is '.quiet == 2'
        narrow=$(in_terminal 80 sqmgrctl status) wide=$(in_terminal 200 sqmgrctl status) piped=$(sqmgrctl status)
        [ "$(longest_line "$narrow")" -le 80 ]
        [ "$(longest_line "$wide")" -le 200 ]
        esc=$'\033'
        grep -qE "^  default/1 +[0-9]+  $esc\[36mquiet [0-9]+s$esc\[0m +1  2/5   +[0-9.]+M +0%" <<<"$narrow"
        grep -q '^      restart; waits for 2 running jobs to finish$' <<<"$narrow"
        grep -qE 'default/1 .*quiet.* restart; waits for 2 running jobs to finish$' <<<"$wide"
        grep -qE '^  default/1 .* quiet [0-9]+s +1 .*  restart; waits for 2 running jobs to finish$' <<<"$piped"
        [[ $piped != *"$esc"* ]]
        [[ $(NO_COLOR=1 in_terminal 80 sqmgrctl status) != *"$esc"* ]]
        [[ $(in_terminal 80 TERM=dumb sqmgrctl status) != *"$esc"* ]]
        # The columns are aligned.
        [ "$(sed -n 's/\(.*  \)\(STATE\|active\|quiet\) .*/\1/p' <<<"$piped" | awk '{ print length }' | sort -u | wc -l)" = 1 ]
        fleet_is '.memory_threshold_bytes == 1073741824'
        run ! grep -q ' $' <<<"$narrow$wide$piped"
        release_workers
        # The view of a restart uses escape sequences, none of them a color then.
        [[ $(in_terminal 80 sqmgrctl restart --wait) =~ $esc\[[0-9]+m ]]
        [[ ! $(NO_COLOR=1 in_terminal 80 sqmgrctl restart --wait) =~ $esc\[[0-9]+m ]]
}

@test "status --watch repaints, follows the terminal size and the next sqmgr, and exits on q" {
        start_fleet 1
        open_terminal 80 24
        type_shows 'stty -a >before; sqmgrctl status --watch' 'default/1 .*active'
        wait_until 10 not shows 'sqmgrctl status'
        wait_until 10 shows '^[0-2][0-9]:[0-5][0-9]:[0-5][0-9], updated each second; q quits$'
        sqmgrctl scale default 3
        wait_until 10 shows 'default/3 .*active'
        wait_until 10 shows 'active 1[0-9]s'
        wait_until 10 shows_once default/1
        tmux_do resize-window -t t -x 120 -y 24
        wait_until 10 shows 'UPTIME  WHY'
        # If not all fits, inconspicuous workers are counted only, and the rest is cut off.
        tmux_do resize-window -t t -x 120 -y 10
        wait_until 10 shows '^  3 active and ready (not shown)$'
        wait_until 10 not shows default/3
        tmux_do resize-window -t t -x 120 -y 4
        wait_until 10 shows '^\.\.\. [0-9] more lines'
        tmux_do resize-window -t t -x 80 -y 24
        wait_until 10 shows 'default/3'
        wait_until 10 not shows WHY
        sqmgrctl reexec
        wait_until 10 shows 'up [0-9]s;'
        kill_sqmgr
        wait_until 10 shows 'State of that time; reconnecting. q quits'
        shows 'default/3'
        start_sqmgr
        wait_until 10 not shows 'reconnecting'
        wait_until 10 shows "pid $sqmgr_pid"
        tmux_do send-keys -t t q
        wait_until 10 shows 'sqmgrctl status'
        wait_until 10 not shows 'default/3'
        type_shows 'echo code $?; stty -a >after' 'code 0'
        wait_until 10 cmp before after
}

@test "status --watch: Ctrl-C and Ctrl-Z restore the terminal" {
        start_fleet 1
        open_terminal 80 24
        type_shows 'stty -a >before; sqmgrctl status --watch' 'default/1 .*active'
        tmux_do send-keys -t t C-z
        wait_until 10 shows Stopped
        type_shows 'stty -a >stopped; fg' 'default/1 .*active'
        tmux_do send-keys -t t C-c
        wait_until 10 not shows default/1
        type_line 'stty -a >after'
        wait_until 10 cmp before after
        cmp before stopped
}

@test "status --watch without a terminal prints the status each second; bad usage is refused" {
        start_fleet 1
        launch watch sqmgrctl status --watch
        watching=$!
        launch objects sqmgrctl status --watch --json
        objects=$!
        wait_until 10 has_lines 2 '^sqmgr 0' watch.log
        wait_until 10 has_lines 2 '^{' objects.log
        kill "$watching" "$objects"
        run -0 jq -e .pid objects.log
        run -2 sqmgrctl restart --watch
        [[ $output == *"'status' has"* ]]
        run -2 sqmgrctl status nosuch --watch
        kill_sqmgr
        run -3 sqmgrctl status --watch
}

@test "restart --wait in a terminal: a progress bar and the workers, one sentence at the end" {
        start_fleet 2
        open_terminal 80 24
        hold_workers
        touch steer/hang
        type_shows 'sqmgrctl restart --wait=drained; echo code $?' 'default: restart to generation 2, 2 workers to replace'
        wait_until 10 shows 'default: generation 2 \[------------------------------\] 0/2 replaced, [0-9]*s'
        wait_until 10 shows 'default/3 .*starting [0-9]*s .* 2  -'
        wait_until 10 shows 'waits for its first heartbeat'
        rm steer/hang
        # The bar shrinks to fit the text beside it.
        wait_until 20 shows '\[##*\] 2/2 replaced, 2 draining, [0-9]*s$'
        wait_until 10 shows 'default/1 .*quiet [0-9]*s .*2/5'
        shows 'restart; waits for 2 running jobs to finish'
        wait_until 10 shows 'default/3 .*active'
        # It is one view, repainted in place.
        wait_until 10 shows_once '^default: generation'
        release_workers
        wait_until 20 shows '^code 0'
        shows 'default: restart done; generation 2 is current, 2 workers replaced and gone'
}

@test "restart --wait in a small terminal shows workers in transition, and counts the others" {
        start_fleet 6 'restart_surge = 1'
        open_terminal 80 14
        hold_workers
        touch steer/hang
        type_shows 'sqmgrctl restart --wait; echo code $?' '^  6 active and ready (not shown), 6 of them outdated$'
        wait_until 10 shows 'default/7 .*starting'
        wait_until 10 not shows 'default/1'
        wait_until 10 shows_once '^default: generation'
        release_workers
        rm steer/hang
        wait_until 30 shows '^code 0'
}

@test "restart --wait in a terminal: Ctrl-C detaches, the restart continues" {
        start_fleet 2
        open_terminal 80 24
        hold_workers
        type_line 'bash -c "sqmgrctl restart --wait=drained"; echo code $?'
        wait_until 20 shows '2/2 replaced, 2 draining'
        tmux_do send-keys -t t C-c
        wait_until 10 screen_has "detached; the restart continues. To follow it, run 'sqmgrctl status --watch'; to end it, 'sqmgrctl abort'"
        type_shows 'echo code $?' '^code 130'
        fleet_is '.quiet == 2 and .generation == 2'
        release_workers
        wait_until 20 fleet_is '.rollout.state == "done" and (.workers | length) == 2'
}

@test "restart --wait without a terminal: SIGINT detaches; an ignored SIGINT stays ignored" {
        start_fleet 1
        hold_workers
        # A shell starts background commands with SIGINT ignored, and may itself have SIGINT ignored.
        env --default-signal=INT sqmgrctl restart --wait=drained >detached.log 2>&1 3>&- 9>&- &
        waiting=$!
        wait_until 10 grep -q 'restart to generation 2' detached.log
        kill -INT "$waiting"
        status=0
        wait "$waiting" || status=$?
        [ "$status" = 130 ]
        grep -q 'detached; the restart continues' detached.log
        sqmgrctl restart --wait=drained >ignoring.log 2>&1 3>&- 9>&- &
        waiting=$!
        wait_until 10 grep -q 'replaces the running restart to generation 2\|restart to generation 3' ignoring.log
        kill -INT "$waiting"
        release_workers
        wait "$waiting"
        grep -q 'restart done' ignoring.log
}

@test "a restart during another one reports the new start, and so do waiting clients, with and without a terminal" {
        start_fleet 2
        open_terminal 80 30
        touch steer/hang
        type_shows 'sqmgrctl restart --wait; echo code $?' '0/2 replaced'
        launch follow sqmgrctl restart --wait
        following=$!
        wait_until 10 grep -q 'default: replaces the running restart to generation 2' follow.log
        wait_until 10 shows 'default: new restart to generation 3, [0-9] workers to replace'
        run -0 sqmgrctl restart
        [ "${lines[0]}" = 'default: replaces the running restart to generation 3' ]
        [[ ${lines[1]} == 'default: restart to generation 4, '* ]]
        wait_until 10 grep -qE '^[0-9:]{8} default: new restart to generation 4, ' follow.log
        rm steer/hang
        wait "$following"
        wait_until 20 shows '^code 0'
        shows 'default: restart done; generation 4 is current'
        sqmgrctl restart --json | jq -e '.fleets[0].superseded == null'
}

@test "restart --wait in a terminal: a halt shows its reason, and the log tail of the failed worker line by line" {
        start_fleet 1
        open_terminal 80 24
        printf 'pid=%% tid=1 %s\n' booting 'no database.yml' >steer/fail
        type_line 'sqmgrctl restart --wait; echo code $?'
        wait_until 20 shows '^code 1'
        screen_has "default: restart halted; old workers keep running. Fix the release, then run 'sqmgrctl restart default'. Reason: 3 new workers failed in a row; last failure: "
        shows '^  pid=[0-9]* tid=1 no database.yml'
        # Elsewhere each sentence is one line, followed by its quotation.
        run -1 sqmgrctl restart --wait
        [[ ${lines[-3]} == 'sqmgrctl: default: restart halted; '*':' ]]
        [[ ${lines[-2]} == *booting && ${lines[-1]} == *'no database.yml' ]]
        [ "$(in_terminal 80 sqmgrctl status | grep -c '^  pid=.* no database.yml')" -ge 1 ]
}

@test "restart --wait in a terminal: sqmgr dies and comes back, and the view continues" {
        start_fleet 2
        hold_workers
        open_terminal 80 30
        type_line 'sqmgrctl restart --wait=drained; echo code $?'
        wait_until 20 shows '2/2 replaced, 2 draining'
        kill_sqmgr
        wait_until 10 shows 'connection to sqmgr lost; the restart continues'
        start_sqmgr
        wait_until 10 shows 'reconnected'
        release_workers
        wait_until 20 shows '^code 0'
        shows 'restart done; generation 2 is current, 2 workers replaced and gone'
}
