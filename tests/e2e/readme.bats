#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# README.md: its settings are accepted, and its way from nothing to a service is gone, with bundler and rbenv.
# seconds: 110
# promises: none
# shellcheck disable=SC2030,SC2031
load machine

readme=$top/README.md

# The settings in README.md: each block that begins with a section, as a file of its own.
settings() { # FOLDER
        awk -v folder="$1" '/^```ini$/ { inside = 1; n++; next } /^```$/ { inside = 0 } inside { print > (folder "/" n ".ini") }' "$readme"
}

@test "README.md: every example of settings is accepted" {
        mkdir "$folder/settings"
        settings "$folder/settings"
        [ "$(find "$folder/settings" -name '*.ini' | wc -l)" -ge 3 ]
        in_machine useradd --create-home shop
        for file in "$folder"/settings/*.ini; do
                put /etc/sqmgr/example.ini <"$file"
                run in_machine sqmgr --check-config -c /etc/sqmgr/example.ini
                echo "$file: $output"
                [ "$status" = 0 ]
        done
}

# An application as its owner would have it: its Ruby from rbenv, its gems from bundler.
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

@test "README.md: from nothing to a service, with rbenv and bundler, restarted by its group" {
        in_machine sh -c 'command -v rbenv && command -v bundle' || skip 'rbenv or bundler is not installed'
        make_application
        mkdir "$folder/settings"
        settings "$folder/settings"
        put /etc/sqmgr/sqmgr.ini <"$folder/settings/1.ini"
        in_machine systemd-sysusers
        in_machine systemd-tmpfiles --create
        in_machine journalctl --update-catalog
        unit daemon-reload
        run -0 in_machine sqmgr --check-config
        [[ $output == *'sqmgr.ini: ok' ]]
        unit enable --quiet --now sqmgr
        wait_until 90 ready 2
        for pid in $(worker_pids); do
                in_machine grep -qz '^RBENV_VERSION=mine\|^RBENV_DIR=' "/proc/$pid/environ"
                in_machine grep -qz '^RAILS_ENV=production$' "/proc/$pid/environ"
        done
        in_machine usermod -aG sqmgr app
        run -0 in_machine runuser -u app -- sqmgrctl restart --wait --timeout 300s
        [[ $output == *'restart done, generation 2 is in force: 2 workers replaced'* ]]
        in_machine journalctl -q -x SQMGR_WORKER=default/1 | grep -q 'takes jobs'
        unit stop sqmgr
        app_count_is 0
}

# What stands in README.md below "The service", one command a line.
commands() { sed -n '/^## The service$/,/^## /s/^    \([a-z].*[^ ]\)  *# .*/\1/p' "$readme"; }

@test "README.md: each command of the service does as it stands there, and leaves the fleet at work" {
        configure <<<$'active_process_count = 1\nlog = journal'
        mapfile -t commands < <(commands)
        [ ${#commands[@]} -ge 10 ]
        for command in "${commands[@]}"; do
                echo "$command"
                run -0 --separate-stderr in_machine sh -c "$command"
                [[ $command != journalctl* || $output == *sqmgr* || $output == *pid=* ]]
                # shellcheck disable=SC2154
                run ! grep -v -e '^Created symlink' -e '^$' <<<"$stderr"
                [[ $command != 'systemctl stop'* ]] || unit start sqmgr
                wait_until 60 ready 1
        done
        [ "$(in_machine journalctl -q -u sqmgr _COMM=sqmgr | grep -c 'pid=.* INFO')" = 0 ]
}
