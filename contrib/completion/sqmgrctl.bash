# SPDX-License-Identifier: MIT
# Completes sqmgrctl in bash: sqmgrctl itself lists the candidates.
# shellcheck shell=bash

_sqmgrctl() {
        local words=() word i cut=0
        # Bash splits --wait=drained and sqmgr@NAME into three words each.
        for ((i = 1; i <= COMP_CWORD; i++)); do
                word=${COMP_WORDS[i]}
                if ((${#words[@]} > 0)) && [[ $word == [=@] || ${COMP_WORDS[i - 1]} == [=@] ]]; then
                        words[-1]+=$word
                else
                        words+=("$word")
                fi
        done
        word=${words[-1]}
        if [[ $word == *[=@]* && $word != "${COMP_WORDS[COMP_CWORD]}" ]]; then
                # Bash replaces the text after '=', and also after '@'.
                cut=${word%%[=@]*}
                [[ $word == "$cut"@* ]] || cut+='='
                cut=${#cut}
        fi
        if [[ $3 == -s || $3 == --socket ]]; then
                compopt -o default
                COMPREPLY=()
                return
        fi
        mapfile -t COMPREPLY < <("$1" --complete "${words[@]}" 2>/dev/null | cut -f 1)
        for i in "${!COMPREPLY[@]}"; do
                COMPREPLY[i]=${COMPREPLY[i]:cut}
        done
}
complete -F _sqmgrctl sqmgrctl
