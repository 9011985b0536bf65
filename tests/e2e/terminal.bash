# SPDX-License-Identifier: MIT
# A terminal with a shell: types input and reads the screen.
# shellcheck shell=bash

open_terminal() { # COLUMNS ROWS [VARIABLE=VALUE]
        launch tmux tmux -D -S "$folder/tmux.sock" -f /dev/null
        wait_until 10 tmux_do new-session -d -s t -x "$1" -y "$2" \
                "PS1='$ ' PATH='$PATH' SQMGR_SOCKET='$SQMGR_SOCKET' ${3-} bash --norc"
        wait_until 10 shows '\$'
}
tmux_do() { tmux -N -S "$folder/tmux.sock" "$@" 3>&- 9>&-; }
type_line() { tmux_do send-keys -t t "$1" Enter; }
press() { tmux_do send-keys -t t "$@"; } # KEY...
screen_text() { tmux_do capture-pane -p -t t "$@"; }
shows() { screen_text -J | grep -q -e "$1"; } # PATTERN
press_shows() { press "$1" && wait_until 10 shows "$2"; }    # KEY PATTERN
type_shows() { type_line "$1" && wait_until 10 shows "$2"; } # LINE PATTERN
