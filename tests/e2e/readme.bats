#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# README.md and docs/: the installation of README.md is run up to a deployment, with bundler and rbenv. Each block of
# commands of docs/ is run beside a running fleet, which must keep running.
# seconds: 240
# promises: none
# bats file_tags=root
# shellcheck disable=SC2030,SC2031
load machine

# Writes the blocks of one kind, such as `sh`, of a page to files, named by the line NNN that each begins after.
blocks() { # PAGE KIND FOLDER
        mkdir -p "$3"
        awk -v kind="\`\`\`$2" -v folder="$3" '$0 == kind { file = sprintf("%s/%03d", folder, FNR); next }
                /^```$/ { file = "" } file != "" { print >file }' "$1"
}

run_block() { # FILE
        echo "$1:"
        cat "$1"
        run -0 in_machine sh -e -c "$(cat "$1")"
}

# An application as its owner has it: Ruby from rbenv, gems from bundler.
make_application() {
        in_machine mkdir -p /srv/app/releases/1 /srv/app/shared
        put /srv/app/releases/1/config/environment.rb <"$e2e/app.rb"
        put /srv/app/releases/1/Gemfile <<<'gem "sidekiq"'
        in_machine ln -s releases/1 /srv/app/current
        put /srv/app/shared/env <<<'RAILS_ENV=production'
        in_machine chown -R app: /srv/app
        # shellcheck disable=SC2016
        in_machine runuser -u app -- env HOME=/home/app sh -ec '
                mkdir -p ~/.rbenv/versions/mine/bin
                ln -s /usr/bin/ruby /usr/bin/bundle ~/.rbenv/versions/mine/bin/
                rbenv rehash
                cd /srv/app/releases/1
                echo mine >.ruby-version
                bundle install --quiet --local'
}

@test "README.md: from an empty machine to a service and a deployment, with rbenv and bundler" {
        local path
        in_machine sh -c 'command -v rbenv && command -v bundle' || skip 'rbenv or bundler is not installed'
        make_application
        blocks "$top/README.md" ini "$folder/ini"
        blocks "$top/README.md" sh "$folder/sh"
        [ "$(find "$folder/ini" -type f | wc -l)" = 1 ]
        [ "$(cat "$folder"/ini/* | grep -cv '^$')" -le 12 ]
        [ "$(find "$folder/sh" -type f | wc -l)" = 2 ]
        # shellcheck disable=SC2016
        path=$(sed -n 's/.*`\(environment = PATH=[^`]*\)`.*/\1/p' "$top/README.md")
        [ -n "$path" ]
        sed "s,^directory = .*,&\n$path," "$folder"/ini/* | put /etc/sqmgr/app.ini
        in_machine systemd-sysusers
        in_machine journalctl --update-catalog
        unit daemon-reload
        for file in "$folder"/sh/*; do
                run_block "$file"
                wait_until 90 ready 2
        done
        [[ $output == *'restart done; generation 2 '*', 2 workers replaced'* ]]
        for pid in $(worker_pids); do
                in_machine grep -qz '^RBENV_VERSION=mine\|^RBENV_DIR=' "/proc/$pid/environ"
                in_machine grep -qz '^RAILS_ENV=production$' "/proc/$pid/environ"
        done
        in_machine runuser -u app -- sqmgrctl status
        unit stop sqmgr@app
        app_count_is 0
}

@test "docs: each block of commands works as written, and the fleet keeps running" {
        local page
        redis config set appendonly yes
        configure <<<$'active_process_count = 1\nlog = journal'
        start_service 1
        for page in "$top"/docs/*.md; do
                blocks "$page" sh "$folder/sh/${page##*/}"
        done
        [ "$(find "$folder/sh" -type f | wc -l)" -ge 12 ]
        for file in "$folder"/sh/*/*; do
                run_block "$file"
                wait_until 60 ready 1
        done
        [ "$(in_machine journalctl -q -u sqmgr@app _COMM=sqmgr | grep -c 'pid=.* INFO')" = 0 ]
}
