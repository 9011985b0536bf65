# SPDX-License-Identifier: MIT
# Completes the options of `sqmgr --help` in bash.
# shellcheck shell=bash

_sqmgr() {
        local command=() unit
        [[ ${COMP_WORDS[1]} != init || $COMP_CWORD == 1 ]] || command=(init)
        COMPREPLY=()
        case $3 in
        -c | --config | -o | --output | --environment-file | --from-supervisord | --from-procfile | --directory | --drop-in)
                compopt -o default
                return
                ;;
        --from-systemd)
                # Not by compgen -W, which expands its words: a name may contain a backslash.
                while read -r unit _; do
                        unit=${unit%.service}
                        [[ $unit != "$2"* ]] || COMPREPLY+=("$(printf %q "$unit")")
                done < <(systemctl list-unit-files --type=service --plain --no-legend 2>/dev/null)
                compopt -o default
                return
                ;;
        --framework)
                mapfile -t COMPREPLY < <(compgen -W 'sidekiq resque rq celery bullmq solid_queue good_job native plain' -- "$2")
                return
                ;;
        --user | --group)
                mapfile -t COMPREPLY < <(compgen -A "${3#--}" -- "$2")
                return
                ;;
        --entry | --command | --count | --memory | --name)
                return
                ;;
        esac
        mapfile -t COMPREPLY < <(compgen -W "$([[ $COMP_CWORD != 1 ]] || echo init)
                $("$1" "${command[@]}" --help 2>/dev/null | grep -oE -- '--[a-z][a-z-]*')" -- "$2")
}
complete -F _sqmgr sqmgr
