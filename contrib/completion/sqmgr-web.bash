# SPDX-License-Identifier: MIT
# Completes the options of `sqmgr-web --help` in bash.
# shellcheck shell=bash

_sqmgr_web() {
        COMPREPLY=()
        case $3 in
        -s | --socket | --history)
                compopt -o default
                ;;
        -l | --listen | --host) ;;
        *)
                mapfile -t COMPREPLY < <(compgen -W "$("$1" --help 2>/dev/null | grep -oE -- '--[a-z][a-z-]*')" -- "$2")
                ;;
        esac
}
complete -F _sqmgr_web sqmgr-web
