#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The deployment recipes for one host, run as they are: Capistrano with a repository, the shell script and Kamal.
# hosts-deploy.bats has those for many hosts.
# seconds: 45
# promises: P6 P7
# shellcheck disable=SC2034
load helpers

# The application's workers run the release at APP/current.
start_application() {
        start_workers 2 <<END
command = sidekiq -r ./app.rb -c 2
directory = $folder/app/current
active_process_count = 2
ready_after = 1s
END
}

make_release() { # DIRECTORY LINE
        mkdir -p "$1"
        { echo "$2" && cat "$e2e/app.rb"; } >"$1/app.rb"
}

in_release() { # RELEASE: true if all active workers run there
        local pid
        for pid in $(fleet '.workers[] | select(.state == "active") | .pid'); do
                [ "$(readlink "/proc/$pid/cwd")" = "$(realpath "$1")" ] || return 1
        done
}

@test "the shell script deploys a release, and restores the old one if the new one does not boot" {
        mkdir -p app/releases
        make_release app/releases/1 ''
        ln -s releases/1 app/current
        start_application
        old=$(worker_pids)
        enqueue 1 Hold "$folder/release"
        wait_until 20 has_started 1

        make_release app/releases/2 ''
        run -0 "$top/contrib/deploy/deploy" app app/releases/2 default
        [ "$(readlink app/current)" = "$folder/app/releases/2" ]
        in_release app/releases/2
        touch release
        wait_until 30 has_done 1
        wait_until 30 gone "$old"

        make_release app/releases/3 'Sidekiq.logger.fatal("no database.yml") && exit(1)'
        kept=$(worker_pids)
        run -1 "$top/contrib/deploy/deploy" app app/releases/3
        [[ $output == *'no database.yml'* && $output == *"restored to $folder/app/releases/2"* ]]
        [ "$(readlink app/current)" = "$folder/app/releases/2" ]
        alive "$kept"
        [ "$(jobs_run_twice)" = 0 ]

        run -2 "$top/contrib/deploy/deploy" app
        run -2 "$top/contrib/deploy/deploy" app nosuch
        run -2 "$top/contrib/deploy/deploy" app app/releases/1 nofleet
        [ "$(readlink app/current)" = "$folder/app/releases/2" ]
        SQMGR_TIMEOUT=1ms run -5 "$top/contrib/deploy/deploy" app app/releases/1
        [ "$(readlink app/current)" = "$folder/app/releases/1" ]
        wait_until 60 in_release app/releases/1
        wait_until 60 fleet_is '.rollout.state == "done"'
}

@test "the shell script: the link stays if the restart may continue" {
        mkdir -p bin app/releases/1 app/releases/2
        # shellcheck disable=SC2016
        printf '%s\n' '#!/bin/sh' 'exit "$STATUS"' >bin/sqmgrctl
        chmod +x bin/sqmgrctl
        for result in 0:2 1:1 2:1 3:2 4:1 5:2 127:1 130:2; do
                IFS=: read -r code linked <<<"$result"
                ln -sfn "$folder/app/releases/1" app/current
                STATUS=$code PATH=$folder/bin:$PATH run "-$code" "$top/contrib/deploy/deploy" app app/releases/2
                [ "$(readlink app/current)" = "$folder/app/releases/$linked" ]
        done
}

commit_release() { # LINE
        make_release "$folder/repository" "$1"
        git -C repository add -A
        git -C repository -c user.name=sqmgr -c user.email=sqmgr@localhost commit -q --allow-empty -m release
}

# A project as `cap install` creates it; its one server is this machine without ssh.
make_project() {
        mkdir -p project/config/deploy project/lib/capistrano/tasks
        cp "$top/contrib/deploy/sqmgr.rake" project/lib/capistrano/tasks/
        cat >project/Capfile <<'END'
require "capistrano/setup"
require "capistrano/deploy"
require "capistrano/scm/git"
install_plugin Capistrano::SCM::Git
Dir.glob("lib/capistrano/tasks/*.rake").each { |file| import file }
END
        cat >project/config/deploy.rb <<END
set :application, "app"
set :repo_url, "file://$folder/repository"
set :branch, "main"
set :deploy_to, "$folder/app"
set :sshkit_backend, SSHKit::Backend::Local
set :sqmgr_roles, :worker
set :sqmgr_fleets, %w[default]
set :sqmgr_socket, "$SQMGR_SOCKET"
set :sqmgr_timeout, "300s"
set :default_env, { "PATH" => "$PATH" }
set :tmp_dir, "$folder/tmp"
set :format, :simpletext
END
        echo 'server "localhost", roles: %w[worker]' >project/config/deploy/production.rb
        mkdir tmp
}

cap_do() { (cd "$folder/project" && HOME=$folder cap production "$@" 3>&- 9>&-); }

@test "Capistrano deploys each release; a release that does not boot fails the deployment, a rollback fixes it" {
        command -v cap >/dev/null || skip 'capistrano is not installed'
        make_release app/releases/first ''
        ln -s releases/first app/current
        git init -q -b main repository
        make_project
        start_application
        old=$(worker_pids)

        commit_release ''
        run -0 cap_do deploy
        [[ $output == *'restart done; generation 2 is current, 2 workers replaced'* ]]
        good=$(readlink app/current)
        [[ $good == */app/releases/2* ]]
        in_release app/current
        wait_until 30 gone "$old"

        commit_release 'Sidekiq.logger.fatal("no database.yml") && exit(1)'
        kept=$(worker_pids)
        run cap_do deploy
        [ "$status" -ne 0 ]
        [[ $output == *'restart halted; old workers keep running'*'no database.yml'* ]]
        alive "$kept"
        run -0 cap_do deploy:rollback
        [ "$(readlink app/current)" = "$good" ]
        wait_until 30 fleet_is '.rollout.state == "done" and .active == 2'
        in_release "$good"

        run -0 cap_do sqmgr:status
        [[ $output == *default/* ]]
        run -0 cap_do sqmgr:abort
        run -0 cap_do sqmgr:quiet
        wait_until 30 fleet_is '.state == "quiet" and .active == 0'
        run -0 cap_do sqmgr:restart
        fleet_is '.state == "quiet"'
        run -0 cap_do sqmgr:quiet sqmgr:restart
        fleet_is '.state == "running" and .active == 2'
        run -0 cap_do -T
        [[ $output == *sqmgr:restart* && $output == *sqmgr:quiet* ]]
}

@test "Kamal: a new container is healthy once its workers are active, and the old one has time to finish" {
        role() { ruby -rjson -ryaml -e 'puts YAML.load_file(ARGV[0]).to_json' "$top/contrib/deploy/kamal.yml" | jq -er "$1"; }
        start_redis
        echo "until [ -e $folder/boot ]; do sleep 0.1; done; exec $(stub_command)" >command.sh
        configure <<END
command = /bin/sh $folder/command.sh
ready_after = 500ms
END
        start_sqmgr
        # As Docker runs it.
        health=$(role '.servers.workers.options["health-cmd"]')
        run sh -c "$health"
        [ "$status" = 1 ]
        touch boot
        wait_until 30 sh -c "$health"
        [ "$(role .servers.workers.cmd)" = sqmgr ]
        seconds=$(sed -nE 's/^shutdown_timeout = ([0-9]+)s$/\1/p; s/^command = .* -t ([0-9]+)$/\1/p' \
                "$top/contrib/container/sqmgr.ini" | paste -sd +)
        [ "$(role .drain_timeout)" -gt "$((seconds))" ]
}
