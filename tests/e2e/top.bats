#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# sqmgrctl top in a real terminal: its views, its keys, and that it restores the terminal.
# seconds: 30
# promises: none
load helpers
load terminal

shows() { screen_text | grep -q -e "$1"; } # PATTERN
shows_twice() { [ "$(screen_text | grep -c -e "$1")" = 2 ]; } # PATTERN
coloured() { screen_text -e | grep -q $'\033'; }
has_cursor() { [ "$(tmux_do display-message -p -t t '#{cursor_flag} #{alternate_on}')" = '1 0' ]; }

open_top() {
        type_shows 'stty -g >before; sqmgrctl top; echo code $?; stty -g >after' 'default (sidekiq): '
}
# Checks that the terminal is restored, whatever ended sqmgrctl top.
closed() { # CODE
        wait_until 10 shows "^code $1"
        wait_until 10 cmp before after
        has_cursor
}

@test "top at 80x24: sorted workers, the filter, and one worker with its jobs, history and log" {
        start_fleet 3
        local pid
        pid=$(fleet '.workers[1].pid')
        echo 2 >"steer/busy.$pid"
        wait_until 10 fleet_is '.workers[1].busy == 2'
        printf 'a line\n\033]0;title\007hostile\n\033[2Jcleared\n' >>workers.log
        open_terminal 80 24
        open_top
        wait_until 10 shows '^>  default/1 .*active'
        shows 'by name'
        shows 'Enter opens  s sort  / filter  Q quiet  R restart'
        press_shows b 'by busy'
        [ "$(screen_text | grep -o 'default/[0-9]' | head -n 1)" = default/2 ]
        press /
        press_shows default/3 'Filter: default/3_'
        press_shows Enter "only 'default/3'"
        not shows default/1
        press_shows Escape 'default/1'
        press_shows Home '^>  default/2 .*2/5'
        press_shows Enter 'default/2:.*\[1 jobs\]'
        wait_until 10 shows 'default/2 (pid [0-9]*): 2 more running'
        press_shows Tab 'default/2 .* started'
        wait_until 10 shows '^Now: active for'
        press_shows 3 '^?\]0;title?hostile$'
        shows 'cleared$'
        press_shows Escape '^>  default/2'
        press_shows '?' 'Q and R ask first'
        press_shows q '^>  default/2'
        press q
        closed 0
}

@test "top at 200x60: acts only after a yes" {
        start_fleet 2
        local pid
        pid=$(fleet '.workers[0].pid')
        open_terminal 200 60
        open_top
        wait_until 10 shows 'UPTIME  WHY'
        press_shows Q 'Quiet default/1? .* y: yes, any other key: no'
        press_shows Enter 'canceled'
        fleet_is '[.workers[].state] == ["active", "active"]'
        [ "$(fleet '.workers[0].pid')" = "$pid" ]
        # Input that arrives with the key, as pasted text does, does not answer a question not yet displayed.
        press Q y
        wait_until 10 shows 'Quiet default/1? .* y: yes, any other key: no'
        press_shows y 'default/1 quieted; a new worker replaces it'
        wait_until 20 fleet_is 'all(.workers[]; .pid != '"$pid"')'
        wait_until 20 ready 2
        press_shows R 'Restart default?'
        press n
        fleet_is '.generation == 1'
        press_shows R 'Restart default?'
        press_shows y 'default: restart ordered; jobs are not interrupted'
        wait_until 20 shows 'generation 2, restart done'
        wait_until 20 ready 2
        press q
        closed 0
}

@test "top follows the terminal size, and reports a terminal that is too small" {
        start_fleet 2
        open_terminal 80 24
        open_top
        coloured
        tmux_do resize-window -t t -x 39 -y 24
        wait_until 10 shows 'too small'
        press Q
        tmux_do resize-window -t t -x 120 -y 8
        wait_until 10 shows '^>  default/1'
        not shows 'Quiet default'
        tmux_do resize-window -t t -x 200 -y 60
        wait_until 10 shows 'UPTIME  WHY'
        press_shows C-z Stopped
        has_cursor
        type_shows fg '^>  default/1'
        press C-c
        wait_until 10 has_cursor
        type_line 'clear; echo code $?; stty -g >after'
        closed 0
}

@test "top: a signal restores the terminal; NO_COLOR is respected" {
        start_fleet 1
        open_terminal 80 24 NO_COLOR=1
        local signal pid
        for signal in TERM HUP QUIT INT; do
                open_top
                not coloured
                pid=$(tmux_do list-panes -t t -F '#{pane_pid}')
                pid=$(pgrep -P "$pid" -x sqmgrctl)
                kill "-$signal" "$pid"
                closed 0
                rm before after
                type_line clear
                wait_until 10 not shows code
        done
}

@test "top: while sqmgr is down, its last state is shown with its age; sqmgr is found again" {
        start_fleet 2
        open_terminal 80 24
        open_top
        kill_sqmgr
        wait_until 10 shows 'State of [0-9]*s ago; reconnecting'
        shows default/2
        press_shows Q 'Quiet default/1?'
        press y
        # The error is also shown below.
        wait_until 10 shows_twice 'connection refused'
        start_sqmgr
        wait_until 10 not shows 'reconnecting'
        wait_until 10 shows default/2
        wait_until 20 ready 2
        kill -STOP "$sqmgr_pid"
        wait_until 20 shows 'did not answer within 3s'
        press_shows m 'by memory'
        kill -CONT "$sqmgr_pid"
        wait_until 10 not shows 'did not answer'
        press q
        closed 0
}

# Answers each call with the same reply, unlike an sqmgr.
hostile_server() {
        cat >hostile.py <<'END'
import json, os, socket
evil = "\x1b]0;stolen\x07\x1b[2J\x1b[31mred\x9b1m\r\nnext"
worker = {"id": "w/1", "pid": 1, "state": evil, "ready": True, "waits_for": evil, "uptime_seconds": 1.0, "state_seconds": 1.0}
fleet = {"name": evil, "framework": evil, "state": evil, "state_text": evil, "waits_for": evil, "workers": [worker]}
job = {"class": evil, "jid": evil, "queue": evil, "worker": "w/1", "started_at": None}
event = {"at": 1.0, "event": evil, "level": evil, "worker": "w/1", "text": evil}
reply = {"version": evil, "redis": [], "fleets": [fleet], "jobs": [job], "errors": [evil], "events": [event]}
server = socket.socket(socket.AF_UNIX)
server.bind(os.environ["SQMGR_SOCKET"])
server.listen()
while True:
    client = server.accept()[0]
    if client.recv(65536):
        client.sendall(json.dumps({"parameters": reply}).encode() + b"\0")
        client.recv(1)
    client.close()
END
        launch hostile python3 -B hostile.py
}

@test "top: text of a hostile sqmgr reaches no terminal unescaped" {
        hostile_server
        wait_until 10 test -S "$SQMGR_SOCKET"
        open_terminal 120 24
        type_shows 'stty -g >before; script -qc "sqmgrctl top" bytes; echo code $?; stty -g >after' '^>  w/1'
        shows '?\]0;stolen??\[2J'
        press_shows Enter '\[1 jobs\]'
        wait_until 10 shows 'CLASS'
        press_shows Tab '^1970.*stolen'
        press q
        closed 0
        run ! grep -aF -e $'\033]' -e $'\007' -e $'\302\233' bytes
}

@test "top needs a terminal, and an sqmgr" {
        start_fleet 1
        run -2 sqmgrctl top
        [[ $output == *"needs a terminal. Without one, run 'sqmgrctl status --watch'"* ]]
        run -2 sqmgrctl top --json
        run -2 sqmgrctl top default
        run -2 sqmgrctl top --watch
        kill_sqmgr
        open_terminal 80 24
        type_shows 'sqmgrctl top; echo code $?' '^code 3'
        has_cursor
}
