# SPDX-License-Identifier: MIT
# Completes the options of `sqmgr-replay --help` in bash.
# shellcheck shell=bash

_sqmgr_replay() {
        COMPREPLY=()
        case $3 in
        -s | --set) ;;
        *)
                if [[ $2 == -* ]]; then
                        mapfile -t COMPREPLY < <(compgen -W "$("$1" --help 2>/dev/null | grep -oE -- '--[a-z][a-z-]*')" -- "$2")
                else
                        compopt -o default
                fi
                ;;
        esac
}
complete -F _sqmgr_replay sqmgr-replay
