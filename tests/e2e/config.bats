#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Bad configs are refused as a whole, with line and remedy of every error.
# seconds: 15
# promises: P10
# shellcheck disable=SC2030,SC2031
load helpers

# Removes what only root gets: the warning that a fleet has no user, and the note that the check was made as root.
output_without_user_warning() { grep -v -e '^warning: .* has no .user.' -e '^note: ' <<<"$output"; }

# Runs sqmgr until it exits, or ends it: an sqmgr that should have refused to start would keep running.
run_sqmgr() { run timeout -k 5 60 sqmgr "$@" </dev/null 3>&- 9>&-; }

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

# bats test_tags=root
@test "as root, --check-config says how to check as the user of the instance" {
        [ "$(id -u)" = 0 ] || skip 'not root'
        configure <<<'command = /bin/true'
        program=$(type -P sqmgr)
        for user in nobody nosuchuser root; do
                cp sqmgr.ini "$user.ini"
                run -0 --separate-stderr sqmgr --check-config -c "$folder/$user.ini"
                [ "$output" = "$folder/$user.ini: ok" ]
                note=$(grep '^note: checked as root, ' <<<"$stderr" || true)
                case $user in
                nobody) [[ $note == *": runuser -u nobody -- $program -c $folder/nobody.ini --check-config" ]] ;;
                nosuchuser) [[ $note == *": runuser -u USER -- $program -c $folder/nosuchuser.ini --check-config" ]] ;;
                root) [ -z "$note" ] ;;
                esac
        done
        echo nonsense >>nobody.ini
        run -78 sqmgr --check-config -c "$folder/nobody.ini"
        [[ $output == *'note: checked as root, '* ]]
}

@test "the config file is that of -c, else of SQMGR_CONFIG, else the one with the name of the user" {
        configure <<<'command = /bin/true'
        SQMGR_CONFIG=$folder/sqmgr.ini run -0 sqmgr --check-config
        [[ $output == *"$folder/sqmgr.ini: ok" ]]
        SQMGR_CONFIG=$folder/none run -0 sqmgr --check-config -c sqmgr.ini
        SQMGR_CONFIG=$folder/none run -78 sqmgr --check-config
        [[ $output == *"$folder/none: cannot open: No such file or directory; write it with 'sqmgr init', or name another file with -c or SQMGR_CONFIG"* ]]
        SQMGR_CONFIG='' run sqmgr --check-config
        [[ $output == */sqmgr/"$(id -un)".ini:* ]]
}

@test "all errors are reported at once, by the check and by a start" {
        printf '[fleet:a]\nactive_process_count = x\nnonsense = 1\n[sqmgr]\ncheck_interval = soon\n' >bad.ini
        for arguments in --check-config ''; do
                # shellcheck disable=SC2086
                XDG_RUNTIME_DIR=$folder run_sqmgr $arguments -c "$folder/bad.ini"
                [ "$status" = 78 ]
                [ "$(grep -c 'bad\.ini:[0-9]' <<<"$output")" = 4 ]
        done
}

@test "files that others may write are refused by the check, by a start and by the start of a worker" {
        configure <<<'COMMAND = sidekiq'
        chmod 666 sqmgr.ini
        why="$folder/sqmgr.ini: writable by others (mode 0666); run 'chmod go-w $folder/sqmgr.ini'"
        run -78 sqmgr --check-config -c "$folder/sqmgr.ini"
        [[ $output == *"$why"* ]]
        run_sqmgr -c "$folder/sqmgr.ini"
        [[ $status = 78 && $output == *"$why"* ]]
        chmod 644 sqmgr.ini
        mkdir -m 777 open
        echo A=1 >open/worker.env
        configure <<<$'command = /bin/true\nenvironment_file = '"$folder/open/worker.env"
        warns "environment_file '$folder/open/worker.env': directory '$folder/open' is writable by others (mode 0777); run 'chmod go-w $folder/open'"
}

@test "a directory that all may write is trusted if it is mounted read-only, as a ConfigMap of Kubernetes" {
        local namespace=(unshare --map-root-user --mount)
        "${namespace[@]}" true 2>/dev/null || skip 'this machine lets nobody have a mount namespace'
        configure <<<'command = /bin/true'
        mkdir -m 777 map
        cp sqmgr.ini map/
        run -78 sqmgr --check-config -c "$folder/map/sqmgr.ini"
        run -0 "${namespace[@]}" sh -c 'mount --bind map map && mount -o remount,bind,ro map && exec "$@"' sh \
                sqmgr --check-config -c "$folder/map/sqmgr.ini"
}

@test "files that are closed to sqmgr, and a log that it cannot create, are named with what helps" {
        [ "$(id -u)" != 0 ] || skip 'root can read all files'
        echo A=1 >worker.env
        chmod 0 worker.env
        configure <<<$'command = /bin/true\nenvironment_file = '"$folder/worker.env"
        warns "environment_file '$folder/worker.env': cannot open: Permission denied; run 'chmod u+r $folder/worker.env'"
        configure <<<'command = /bin/true'
        sed -i 's|^log = .*|log = /var/log/workers.log|' sqmgr.ini
        LOGS_DIRECTORY=/var/log/sqmgr/app warns "cannot open log '/var/log/workers.log': Permission denied; set log = /var/log/sqmgr/app/workers.log"
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
