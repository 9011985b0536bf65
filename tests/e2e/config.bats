#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Bad configs are refused whole, with the place and the remedy of every error.
# seconds: 20
# promises: P10
load helpers

# What it says beside the warning that a fleet has no user, which all these fleets draw from root.
said() { grep -v '^warning: .* has no .user.' <<<"$output"; }

# Ends by itself, or else is ended: a sqmgr that should have refused to start would run on.
run_sqmgr() { run timeout -k 5 60 sqmgr "$@" </dev/null 3>&- 9>&-; }

# refused INI PATTERN...: exit 78 by a start and by --check-config, which say the same, each pattern in some line.
refused() {
        local ini=$1 pattern started
        shift
        printf '%s\n' "$ini" >"$folder/bad.ini"
        run_sqmgr -c "$folder/bad.ini"
        [ "$status" = 78 ]
        started=$output
        run -78 sqmgr --check-config -c "$folder/bad.ini"
        output=$(said)
        [ "$(wc -l <<<"$output")" = $# ] || { echo "$# errors expected, got: $output" && return 1; }
        for pattern; do
                grep -Eq "bad\.ini:$pattern" <<<"$output" || { echo "no '$pattern' in: $output" && return 1; }
                grep -Eq "bad\.ini:$pattern" <<<"$started" || { echo "no '$pattern' at start in: $started" && return 1; }
        done
}

@test "an ini that is not there is refused" {
        run_sqmgr -c "$folder/nowhere.ini"
        [ "$status" = 78 ]
        [[ $output == *nowhere.ini*'No such file or directory'* ]]
}

@test "an ini that is a directory is refused" {
        mkdir "$folder/folder.ini"
        run_sqmgr -c "$folder/folder.ini"
        [ "$status" = 78 ]
        [[ $output == *folder.ini* ]]
}

@test "a good ini is accepted: FILE: ok" {
        configure <<<'COMMAND = sidekiq'
        run -0 sqmgr --check-config -c "$folder/sqmgr.ini"
        [ "$(said)" = "$folder/sqmgr.ini: ok" ]
}

@test "unknown sections and keys are refused, with what was meant" {
        refused $'[fleet:a]\ncommand = x\nmemory_treshold = 1G' "3: .*did you mean 'memory_threshold'"
        refused $'[fleet:a]\ncommand = x\nqqqqqqqq = 1' '3: .*qqqqqqqq'
        refused $'[flet:a]\ncommand = x\n[fleet:b]\ncommand = x' '1: .*flet:a'
}

@test "a key given twice is refused" {
        refused $'[fleet:a]\ncommand = x\nACTIVE_PROCESS_COUNT = 4\nactive_process_count = 5' '4: .*active_process_count'
}

@test "bad numbers, durations and sizes are refused" {
        refused $'[fleet:a]\ncommand = x\nactive_process_count = many' '3: .*many'
        refused $'[fleet:a]\ncommand = x\nactive_process_count = 0' '3: .*0'
        refused $'[fleet:a]\ncommand = x\nactive_process_count = -3' '3: .*-3'
        refused $'[fleet:a]\ncommand = x\nmemory_threshold = 1Q' '3: .*1Q'
        refused $'[fleet:a]\ncommand = x\nready_after = 5 parsecs' '3: .*parsecs'
        refused $'[sqmgr]\nsocket_mode = 999\n[fleet:a]\ncommand = x' '2: .*999'
}

@test "a fleet without a command is refused" {
        refused $'[sqmgr]\n[fleet:a]\nactive_process_count = 2' '2: .*command'
}

@test "settings that contradict each other are refused" {
        refused $'[fleet:a]\ncommand = x\nmemory_threshold = 1G\nmemory_limit = 512M' '[0-9]*: .*memory_limit.*memory_threshold'
        refused $'[fleet:a]\ncommand = x\nstop_timeout = 5s' '3: .*stop_timeout'
        refused $'[fleet:a]\ncommand = x\nactive_process_count = 4\nmax_processes = 4' '[0-9]*: .*max_processes'
}

@test "what inih would misread is refused" {
        refused $'[fleet:a]\ncommand = x\ndirectory = x ; y' '3: .*;'
        refused $'[fleet:a]\ncommand = x\n  -c 5' '3: .*indent'
        refused $'[fleet:a]\ncommand = x\ndirectory = /'"$(printf 'x%.0s' {1..5000})" '3: .*long'
}

@test "all errors are reported at once" {
        refused $'[fleet:a]\nactive_process_count = 0\nnonsense = 1\n[sqmgr]\ncheck_interval = soon' \
                '1: .*command' '2: .*0' '3: .*nonsense' '5: .*soon'
}

@test "a socket path that cannot be listened on is refused, one byte less is not" {
        long=$(printf '/%0102d' 0)
        refused $'[sqmgr]\nsocket = '"${long}1"$'\n[fleet:a]\ncommand = x' '2: .*socket = .*at most 103 bytes'
        printf '[sqmgr]\nsocket = %s\n[fleet:a]\ncommand = x\n' "$long" >"$folder/bad.ini"
        run -0 sqmgr --check-config -c "$folder/bad.ini"
}

@test "of an environment that is malformed nothing is told, whatever it holds" {
        refused $'[fleet:a]\ncommand = x\nenvironment = TOKEN=hunter2 hunter3' '3: environment: word 2 has no'
        [[ $output != *hunter* ]]
        refused $'[fleet:a]\ncommand = x\nenvironment = TOKEN-=hunter2' '3: environment: word 1: a name'
        [[ $output != *hunter* ]]
        refused $'[fleet:a]\ncommand = x\nenvironment = TOKEN="hunter2' '3: environment: '
        [[ $output != *hunter* ]]
}

@test "as root, an ini that others may write to is refused" {
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

@test "a second sqmgr on the same socket, or the same state, is refused and names the first" {
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

@test "reload: a bad ini is refused and the old one stays, a good one comes into force" {
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
