#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Bad configs are refused as a whole, with line and remedy of every error.
# seconds: 15
# promises: P10
# shellcheck disable=SC2030,SC2031
load helpers

# Removes the warning that a fleet has no user, which root gets for all these fleets.
output_without_user_warning() { grep -v '^warning: .* has no .user.' <<<"$output"; }

# Runs sqmgr until it exits, or ends it: an sqmgr that should have refused to start would keep running.
run_sqmgr() { run timeout -k 5 60 sqmgr "$@" </dev/null 3>&- 9>&-; }

# refused INI PATTERN...: start and --check-config exit with 78 and print the same; each pattern matches a line.
refused() {
        local ini=$1 pattern started
        shift
        printf '%s\n' "$ini" >"$folder/bad.ini"
        export XDG_RUNTIME_DIR=$folder # of the socket
        run_sqmgr -c "$folder/bad.ini"
        [ "$status" = 78 ]
        started=$output
        run -78 sqmgr --check-config -c "$folder/bad.ini"
        output=$(output_without_user_warning)
        [ "$(wc -l <<<"$output")" = $# ] || { echo "$# errors expected, got: $output" && return 1; }
        for pattern; do
                grep -Eq "bad\.ini:$pattern" <<<"$output" || { echo "no '$pattern' in: $output" && return 1; }
                grep -Eq "bad\.ini:$pattern" <<<"$started" || { echo "no '$pattern' at start in: $started" && return 1; }
        done
}

@test "a good ini is accepted: FILE: ok" {
        configure <<<'COMMAND = sidekiq'
        run -0 sqmgr --check-config -c "$folder/sqmgr.ini"
        [ "$(output_without_user_warning)" = "$folder/sqmgr.ini: ok" ]
}

# warns TEXT: --check-config accepts the fleet, with this one warning.
warns() {
        run -0 --separate-stderr sqmgr --check-config -c "$folder/sqmgr.ini"
        [ "$output" = "$folder/sqmgr.ini: ok" ]
        stderr=$(output=$stderr output_without_user_warning || true)
        [ "$stderr" = "${1:+warning: $folder/sqmgr.ini:13: fleet 'default': a worker could not be started now: }$1" ] || {
                echo "got: $stderr" && return 1
        }
}

@test "--check-config warns of settings that would prevent a worker from starting, and runs nothing" {
        configure <<<"command = /bin/sh -c 'echo run >$folder/ran'"
        warns ''
        configure <<<$'command = bnudle exec sidekiq\nenvironment = PATH=/usr/bin:/bin'
        warns "cannot run 'bnudle': No such file or directory in PATH '/usr/bin:/bin'"
        configure <<<$'command = /bin/true\ndirectory = /proc/nowhere/current'
        warns "cannot change to directory '/proc/nowhere/current': No such file or directory"
        printf 'export A=1\nexport B\n' >shared.env
        configure <<<$'command = /bin/true\nenvironment_file = '"$folder/shared.env"
        warns "environment_file $folder/shared.env:2: the line is not NAME=VALUE"
        printf 'export A=1\n' >shared.env
        warns ''
        [ ! -e ran ] && [ ! -e workers.log ]
}

@test "as root, --check-config checks with the rights of the fleet's user" {
        [ "$(id -u)" = 0 ] || skip 'not root'
        mkdir -m 700 locked
        touch workers.log && chmod 666 workers.log
        configure <<<$'command = /bin/true\nuser = nobody\ndirectory = '"$folder/locked"
        warns "cannot change to directory '$folder/locked': Permission denied"
        chmod 711 locked
        warns ''
        cp /bin/true locked/mine && chmod 700 locked/mine
        sed -i 's|^command = .*|command = ./mine|' sqmgr.ini
        warns "cannot run './mine': Permission denied"
}

@test "all errors are reported at once" {
        refused $'[fleet:a]\nactive_process_count = x\nnonsense = 1\n[sqmgr]\ncheck_interval = soon' \
                '1: .*command' '2: .*x' '3: .*nonsense' '5: .*soon'
}

@test "the error about a malformed environment does not show its content" {
        refused $'[fleet:a]\ncommand = x\nenvironment = TOKEN=hunter2 hunter3' '3: environment: word 2 has no'
        [[ $output != *hunter* ]]
        refused $'[fleet:a]\ncommand = x\nenvironment = TOKEN-=hunter2' '3: environment: word 1: a name'
        [[ $output != *hunter* ]]
        refused $'[fleet:a]\ncommand = x\nenvironment = TOKEN="hunter2' '3: environment: '
        [[ $output != *hunter* ]]
}

@test "as root, an ini writable by others is refused" {
        [ "$(id -u)" = 0 ] || skip 'not root'
        configure <<<'command = sidekiq'
        chmod 666 "$folder/sqmgr.ini"
        run -78 sqmgr --check-config -c "$folder/sqmgr.ini"
        [[ $output == *sqmgr.ini* ]]
        chmod 644 "$folder/sqmgr.ini"
        chown nobody "$folder/sqmgr.ini"
        run -78 sqmgr --check-config -c "$folder/sqmgr.ini"
        [[ $output == *sqmgr.ini* ]]
}

@test "as root, a state file or socket in a place writable by others is refused by a start and by each check" {
        [ "$(id -u)" = 0 ] || skip 'not root'
        configure <<<'command = sidekiq'
        mkdir -m 777 "$folder/open"
        cp sqmgr.ini right.ini
        for line in "state_file = $folder/open/state" "socket = $folder/open/socket"; do
                sed "/^${line%% *} = /d; s|^\[sqmgr\]|&\n$line|" right.ini >sqmgr.ini
                why="sqmgr.ini:2: ${line%% *}: '${line#* = }': directory '$folder/open' is writable by others"
                for check in --check-config --check-state; do
                        run -78 sqmgr "$check" -c "$folder/sqmgr.ini"
                        [[ $output == *"$why"* ]]
                done
                run_sqmgr -c "$folder/sqmgr.ini"
                [[ $status = 78 && $output == *"$why"* ]]
        done
        [ -z "$(ls -A "$folder/open")" ]
        # Missing files may be created before a start.
        sed "s|^\[sqmgr\]|&\nstate_file = $folder/later/state|" right.ini >sqmgr.ini
        run -0 sqmgr --check-config -c "$folder/sqmgr.ini"
        [[ $output == *"warning: "*"state_file: '$folder/later/state': cannot check the directory: No such"* ]]
}

@test "a second sqmgr on the same socket or state is refused with the name of the first" {
        start_redis
        configure <<<"command = $(stub_command)"
        start_sqmgr
        run_sqmgr -c "$folder/sqmgr.ini"
        [[ $status != 0 && $status != 124 ]]
        [[ $output == *"$sqmgr_pid"* ]]
        sed "s|^socket = .*|&\nstate_file = $folder/other|" sqmgr.ini >other.ini
        run_sqmgr -c "$folder/other.ini"
        [[ $status != 0 && $status != 124 ]]
        [[ $output == *"$sqmgr_pid"* ]]
        sed "s|^socket = .*|socket = $folder/other.sock\nstate_file = $folder/state|" sqmgr.ini >other.ini
        run_sqmgr -c "$folder/other.ini"
        [[ $status != 0 && $status != 124 ]]
        [[ $output == *"$sqmgr_pid"* ]]
        sqmgrctl ping
        fleet_is '(.workers | length) == 1'
}

@test "reload: a bad ini is refused and the old one stays current; a good one is applied" {
        start_redis
        configure <<<"command = $(stub_command)"
        start_sqmgr
        wait_until 20 fleet_is '.active == 1'
        cp sqmgr.ini good.ini
        echo 'active_process_count = none' >>sqmgr.ini
        run -1 sqmgrctl reload
        [[ $output == *sqmgr.ini:*none* ]]
        fleet_is '.target == 1'
        cp good.ini sqmgr.ini
        echo 'active_process_count = 2' >>sqmgr.ini
        run -0 sqmgrctl reload
        [[ $output == *active_process_count* ]]
        wait_until 20 fleet_is '.target == 2 and .active == 2'
}
