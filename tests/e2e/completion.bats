#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Completion of each program in each installed shell, with the existing fleets, workers and instances.
# seconds: 25
# promises: none
load helpers
load terminal

completion=$top/contrib/completion

start_both() {
        start_fleet 2 '[fleet:mail]' "command = $(stub_command)" "log = $folder/workers.log"
}

# Prints the candidates of bash for the last word of PROGRAM's line.
of() { # PROGRAM WORD...
        bash --norc -c '. "$1" && shift && COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) && compopt() { echo "option $*"; } &&
                "_${1//-/_}" "$1" "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}" && printf "%s\n" "${COMPREPLY[@]}"' \
                bash "$completion/$1.bash" "$@" | paste -sd ' '
}
in_bash() { of sqmgrctl "$@"; }

in_fish() { # PROGRAM WORD...: prints the candidates of fish
        HOME=$folder fish --no-config -c "source $completion/$1.fish; complete -C '$*'" | cut -f 1 | sort | paste -sd ' '
}

# Starts a shell, in which completion runs when Tab is pressed.
open_shell() { # PREPARATION COMMAND...
        launch tmux tmux -D -S "$folder/tmux.sock" -f /dev/null
        wait_until 10 tmux_do new-session -d -s t -x 100 -y 24 -e "PATH=$PATH" -e "SQMGR_SOCKET=$SQMGR_SOCKET" -e "HOME=$folder" "${@:2}"
        type_text "PS1='# '; $1; cd $folder; clear; echo rea''dy"
        press Enter
        # The shell reads keys itself once it shows its prompt; earlier input goes through the line editing of the terminal.
        wait_until 20 at_prompt
}
open_bash() { open_shell ". $completion/sqmgrctl.bash" bash --norc; }
open_zsh() { open_shell "fpath=($completion \$fpath); autoload -U compinit && compinit -u -D" zsh -f; }
at_prompt() { shows '^ready' && shows '^#$\|^# $'; }
type_text() { tmux_do send-keys -t t -l "$1"; }
tab_shows() { # LINE PATTERN: what Tab makes of the line
        press C-u
        type_text "$1"
        press Tab
        wait_until 10 shows "$2"
}

@test "completion covers exactly the commands and options of --help" {
        commands=$(sqmgrctl --help | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z]*\) .*/\1/p')
        [ -n "$commands" ]
        [ "$(sqmgrctl --complete '' | cut -f 1)" = "$commands" ]
        told=$(sqmgrctl --help | grep -oE -- '--[a-z][a-z-]*' | sort -u)
        completed=$(for command in $commands; do sqmgrctl --complete "$command" - ; done | cut -f 1 | sed 's/=.*//' | sort -u)
        [ "$completed" = "$told" ]
        # The command accepts what completion offers.
        for command in $commands; do
                for option in $(sqmgrctl --complete "$command" - | cut -f 1); do
                        [[ $option != --help && $option != --version && $option != --socket && $option != --instance && $option != --timeout && $option != --release ]] || continue
                        run sqmgrctl -s /proc/nowhere/at/all "$command" x y "$option"
                        [[ $output != *'no option'* && $output != *'unrecognized'* ]]
                done
        done
}

@test "completion lists the existing fleets and workers, and is quick and silent without sqmgr" {
        run -0 --separate-stderr sqmgrctl --complete restart ''
        [ "$output$stderr" = '' ]
        run -0 --separate-stderr sqmgrctl --complete
        [ "$output$stderr" = '' ]
        start_both
        # Words, the last of which is completed, and the candidates.
        while IFS='|' read -r words candidates; do
                # shellcheck disable=SC2086 # words of a command
                [ "$(sqmgrctl --complete ${words% *} "${words##* }" | cut -f 1 | paste -sd ' ')" = "$candidates" ] || { echo "$words" && return 1; }
        done <<'END'
restart |default mail
restart default |mail
restart --wait m|mail
quiet m|mail mail/1
why default/|default/1 default/2
why default/1 |
events m|mail mail/1
events default |mail
events default/1 |
scale |default mail
scale default |auto
scale default auto |
nosuch |
ping |
--timeout |
END
        [ "$(env -u SQMGR_SOCKET sqmgrctl --complete -s "$SQMGR_SOCKET" start d)" = 'default' ]
        [ "$(sqmgrctl --complete --socket=/proc/nowhere stop '')" = '' ]
        # A hung sqmgr does not delay completion.
        kill -STOP "$sqmgr_pid"
        run -0 timeout 20 sqmgrctl --complete restart ''
        kill -CONT "$sqmgr_pid"
        [ "$output" = '' ]
}

# Runs a command with a /run that has the instance $name, a name that is no word of a shell, and a directory without a
# socket.
# shellcheck disable=SC2016
among_instances() { # COMMAND...
        name=${folder##*/}
        "${unshare[@]}" --mount bash -c 'mount -t tmpfs none /run && mkdir -p "/run/sqmgr/$1" /run/sqmgr/empty "/run/sqmgr/a b" &&
                for place in "$1" "a b"; do touch "/run/sqmgr/$place/control.sock" &&
                        mount --bind "$0" "/run/sqmgr/$place/control.sock" || exit 1; done && exec "${@:2}"' \
                "$SQMGR_SOCKET" "$name" env -u SQMGR_SOCKET "$@"
}

@test "sqmgrctl connects to an instance by its name, and completion lists the names" {
        needs_namespace --mount
        start_both
        name=${folder##*/}
        run -0 among_instances sqmgrctl -i "$name" status
        [[ $output == *", instance $name, "*mail/1* ]]
        run -0 among_instances sqmgrctl ping --instance "sqmgr@$name"
        [ "$output" = 'sqmgr answers' ]
        run -3 among_instances sqmgrctl -i app ping
        [[ $output == "sqmgrctl: the instance 'app' does not run: no socket '/run/sqmgr/app/control.sock'. Start it, or"* ]]
        run -2 among_instances sqmgrctl -i /run/sqmgr/shop ping
        [[ $output == "sqmgrctl: '/run/sqmgr/shop' is not the name of an instance: "* ]]
        # Names that a shell would not take literally are not offered.
        [ "$(among_instances sqmgrctl --complete -i '')" = "$name" ]
        [ "$(among_instances sqmgrctl --complete status --instance s)" = "$name" ]
        [ "$(among_instances sqmgrctl --complete -i x)" = '' ]
        [ "$(among_instances sqmgrctl --complete -i "$name" status m)" = mail ]
        [ "$(sqmgrctl --complete help st | cut -f 1 | paste -sd ' ')" = 'status stop start' ]
        export -f of in_bash
        export completion
        [ "$(among_instances bash -c 'in_bash -i sqm')" = "$name" ]
        [ "$(among_instances bash -c "in_bash -i sqmgr @ $name status m")" = mail ]
        [ -n "$(command -v fish)" ] || skip 'fish is not installed'
        export -f in_fish
        [ "$(among_instances bash -c 'in_fish sqmgrctl -i s')" = "$name" ]
}

@test "bash completes commands, options, names, the value of --wait and files" {
        start_both
        [ "$(in_bash re)" = 'restart reload reexec' ]
        [ "$(in_bash restart --wa)" = '--wait --wait=drained' ]
        [ "$(in_bash restart --wait = dr)" = drained ]
        [ "$(in_bash restart --wait =)" = drained ]
        [ "$(in_bash restart --wait = drained d)" = default ]
        [ "$(in_bash why mail)" = 'mail mail/1' ]
        [ "$(in_bash -s "$SQMGR_SOCKET" status m)" = mail ]
        [[ $(in_bash -s /t) == 'option -o default'* ]]
        open_bash
        tab_shows 'sqmgrctl wh' 'sqmgrctl why $\|sqmgrctl why$'
        tab_shows 'sqmgrctl why mail/' 'sqmgrctl why mail/1'
        tab_shows 'sqmgrctl restart --wait=d' 'sqmgrctl restart --wait=drained'
        tab_shows 'sqmgrctl restart --wait=drained d' 'sqmgrctl restart --wait=drained default'
        tab_shows 'sqmgrctl -s sqmgr.i' 'sqmgrctl -s sqmgr.ini'
}

@test "zsh completes commands with descriptions, options, names and files" {
        command -v zsh >/dev/null || skip 'zsh is not installed'
        start_both
        open_zsh
        tab_shows 'sqmgrctl wh' 'sqmgrctl why $'
        tab_shows 'sqmgrctl why mail/' 'sqmgrctl why mail/1'
        tab_shows 'sqmgrctl restart --wait=d' 'sqmgrctl restart --wait=drained'
        tab_shows 'sqmgrctl re' 'restart  *-- replaces all workers without interrupting jobs'
        tab_shows 'sqmgrctl -s sqmgr.i' 'sqmgrctl -s sqmgr.ini'
}

@test "a socket of another user cannot have a command completed" {
        # shellcheck disable=SC2016
        launch server python3 -c '
import json, os, socket
server = socket.socket(socket.AF_UNIX)
server.bind("bound.sock")
server.listen()
os.rename("bound.sock", "other.sock")
while True:
    client = server.accept()[0]
    client.recv(65536)
    fleets = [{"name": name, "workers": [{"id": name + "/1"}]} for name in ("$(id)", "a\n;b", "good")]
    client.sendall(json.dumps({"parameters": {"fleets": fleets}}).encode() + b"\0")
    client.close()'
        wait_until 10 test -S other.sock
        [ "$(sqmgrctl --complete -s other.sock restart '')" = good ]
        [ "$(sqmgrctl --complete -s other.sock why '' | paste -sd ' ')" = 'good good/1' ]
}

@test "fish completes commands, options, names and files" {
        command -v fish >/dev/null || skip 'fish is not installed'
        start_both
        [ "$(in_fish sqmgrctl re)" = 'reexec reload restart' ]
        [ "$(in_fish sqmgrctl restart --wa)" = '--wait --wait=drained' ]
        [ "$(in_fish sqmgrctl restart --wait=d)" = '--wait=drained' ]
        [ "$(in_fish sqmgrctl why mai)" = 'mail mail/1' ]
        [ "$(in_fish sqmgrctl start '')" = 'default mail' ]
        [ "$(in_fish sqmgrctl -s sqmgr.i)" = 'sqmgr.ini' ]
}

of_sqmgr() { of sqmgr "$@"; }

@test "options of sqmgr and of sqmgr init are completed in bash and fish" {
        [ "$(of_sqmgr i)" = init ]
        [ "$(of_sqmgr --check-)" = '--check-config --check-state' ]
        [ "$(of_sqmgr init --from-s)" = '--from-systemd --from-supervisord --from-sidekiqswarm' ]
        [ "$(of_sqmgr init --framework r)" = 'resque rq' ]
        [ "$(of_sqmgr init -o x)" = 'option -o default ' ]
        [ "$(of_sqmgr init --user roo)" = root ]
        [ "$(of_sqmgr init --group roo)" = root ]
        [ "$(of_sqmgr init --count '')" = '' ]
        # Names of units are not expanded.
        # shellcheck disable=SC2016
        systemctl() { printf '%s enabled enabled\n' 'app-a\x2db.service' 'app-$(touch,expanded).service'; }
        export -f systemctl
        [ "$(of_sqmgr init --from-systemd app-)" = 'option -o default app-a\\x2db app-\$\(touch\,expanded\)' ]
        [ -n "$(command -v fish)" ] || skip 'fish is not installed'
        [ "$(in_fish sqmgr i)" = init ]
        [ "$(in_fish sqmgr init --from-p)" = --from-procfile ]
        [ "$(in_fish sqmgr init --framework r)" = 'resque rq' ]
        [[ " $(in_fish sqmgr init --user roo) " == *' root '* ]]
        [ "$(in_fish sqmgr init --count '')" = '' ]
}

@test "options of sqmgr-web are completed in bash, zsh and fish" {
        command -v sqmgr-web >/dev/null || skip 'sqmgr-web was not built: libmicrohttpd is missing'
        told=$(sqmgr-web --help | grep -oE -- '--[a-z]+' | paste -sd ' ')
        [[ $told == *--history* ]]
        touch web.file
        [ "$(of sqmgr-web -)" = "$told" ]
        [ "$(of sqmgr-web --li)" = --listen ]
        [ "$(of sqmgr-web --history w)" = 'option -o default ' ]
        [ "$(of sqmgr-web --host '')" = '' ]
        if [ -n "$(command -v fish)" ]; then
                [ "$(in_fish sqmgr-web --li)" = --listen ]
                [ "$(in_fish sqmgr-web -s web.f)" = web.file ]
                [ "$(in_fish sqmgr-web --host '')" = '' ]
        fi
        command -v zsh >/dev/null || skip 'zsh is not installed'
        open_zsh
        tab_shows 'sqmgr-web --li' 'sqmgr-web --listen'
        tab_shows 'sqmgr-web --history web.f' 'sqmgr-web --history web.file'
        tab_shows 'sqmgr init --framework si' 'sqmgr init --framework sidekiq'
}
