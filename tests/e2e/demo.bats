#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# contrib/demo/run: its output on a narrow terminal and without one. It leaves nothing behind, and ends no foreign
# process.
# seconds: 110
# promises: none
load helpers

# The demo has its own folder, which its own guard removes: inside of ours it could vanish before its processes.
folder_of() { grep -oE -m 1 '/[^ ]*/sqmgr-demo\.[A-Za-z0-9]+' "$1"; } # OUTPUT
is_left() { [ -e "$(folder_of "$1")" ]; }                              # OUTPUT

@test "demo: on 60 columns the output is colored, fits, shows a halt and its cause, and every job is done once" {
        in_terminal 60 SQMGR_BUILD="$SQMGR_BUILD" "$top/contrib/demo/run" --once | tee shown.log
        shown=$(cat shown.log)
        esc=$'\033'
        grep -q "$esc\[32mactive" <<<"$shown"
        # Checks lines of the demo and of sqmgrctl; the live view uses further escape sequences.
        [ "$(longest_line "$(grep -v "$esc\[[KAJ?0-9]*[KAJhl]" <<<"$shown")")" -le 60 ]
        told=$(tr -s ' \n' ' ' <<<"$shown" | sed "s/$esc\[[0-9;?]*[a-zA-Z]//g" | tr -s ' ')
        [[ $told == *'over memory_threshold (200M)'*'running '*'Import'* ]]
        [[ $told == *'generation 2 ['*'4 workers replaced and gone'* ]]
        [[ $told == *'restart halted; old workers keep running.'*'config/database.yml: no such file'* ]]
        [[ $told == *'generation 4 is current'*'201 jobs: 201 done, 0 lost, 0 run twice. Never fewer than 4 of 4 '* ]]
        run ! is_left shown.log
}

@test "demo: without a terminal the output has no escape sequences, and TERM leaves nothing behind" {
        launch shown env SQMGR_BUILD="$SQMGR_BUILD" "$top/contrib/demo/run"
        demo=$!
        wait_until 60 grep -q 'demo/4 .*active' shown.log
        is_left shown.log
        # Started by root, it runs as nobody.
        [ "$EUID" != 0 ] || [ "$(stat -c %U "$(folder_of shown.log)/sqmgr.sock")" = nobody ]
        kill "$demo"
        wait_until 20 not is_left shown.log
        run ! grep -q $'\033' shown.log
}

@test "demo: a process that reuses the pid of an ended one, and its children, are left alone" {
        mkdir -p demo/pids
        launch other sh -c 'sleep 1000 & echo $! >child; wait'
        other=$!
        wait_until 20 test -s child
        echo 1 >"demo/pids/$other"
        cd /
        "$top/contrib/demo/guard" "$folder/demo" </dev/null
        [ ! -e "$folder/demo" ]
        alive "$other" "$(<"$folder/child")"
}
