#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The recipes of docs/hosts.md, run as they are, against three hosts without ssh: each is an sqmgr with a socket, an
# application and releases of its own. A good release is deployed to one host, then to the others. A bad one stops at
# the first host.
# seconds: 45
# promises: P6 P7
# shellcheck disable=SC2034,SC2317
load helpers

hosts=(h1 h2 h3)
logs='sqmgr-h1.log sqmgr-h2.log sqmgr-h3.log h1/workers.log'

on() { # HOST COMMAND...
        local host=$1
        shift
        SQMGR_SOCKET=$folder/$host/sqmgr.sock "$@"
}

# The command of a release is its file named worker; its file named number has its number.
make_release() { # HOST RELEASE [LINE]
        mkdir -p "$1/app/releases/$2"
        printf '%s\n' '#!/bin/sh' "${3-}" "exec $(stub_command)" >"$1/app/releases/$2/worker"
        chmod +x "$1/app/releases/$2/worker"
        echo "$2" >"$1/app/releases/$2/number"
}
make_releases() { # RELEASE [LINE]
        local host
        for host in "${hosts[@]}"; do
                make_release "$host" "$@"
        done
}
bad='echo no database.yml; exit 1'

start_hosts() {
        local host
        start_redis
        make_releases 1
        for host in "${hosts[@]}"; do
                ln -s releases/1 "$host/app/current"
                configure <<'LINES'
command = ./worker
directory = DIRECTORY
active_process_count = 2
ready_after = 500ms
LINES
                sed "s|^socket = .*|socket = $folder/$host/sqmgr.sock|; s|^log = .*|log = $folder/$host/workers.log|
                     s|DIRECTORY|$folder/$host/app/current|" sqmgr.ini >"$host/sqmgr.ini"
                launch "sqmgr-$host" sqmgr -c "$host/sqmgr.ini"
        done
        for host in "${hosts[@]}"; do
                wait_until 60 on "$host" ready 2
        done
}

runs_release() { # HOST RELEASE: true if its link and all its active workers are of that release
        local pid pids
        [ "$(cat "$1/app/current/number")" = "$2" ] || return 1
        pids=$(on "$1" fleet '.workers[] | select(.state == "active") | .pid') && [ "$(wc -w <<<"$pids")" = 2 ] || return 1
        for pid in $pids; do
                [ "$(cat "/proc/$pid/cwd/number")" = "$2" ] || return 1
        done
}

# Prints what an untouched host keeps.
traces() { readlink "$1/app/current" && stat -c %i "$1/app/current" && on "$1" worker_pids && on "$1" fleet .generation; } # HOST

at() { on "$1" sqmgrctl events --json | jq -es "[.[] | select(.event == \"$2\")][-1].at"; } # HOST EVENT
# True if no other host began before the first one was done.
first_was_alone() {
        local ended started host
        ended=$(at h1 rollout-done) || return 1
        for host in h2 h3; do
                started=$(at "$host" rollout-started) && jq -en "$started >= $ended" >/dev/null || return 1
        done
}

# Deploys by a function deploy_release, with its output in $output.
check_recipe() {
        local host
        make_releases 2
        make_releases 3 "$bad"
        run -0 deploy_release 2
        for host in "${hosts[@]}"; do
                runs_release "$host" 2
        done
        first_was_alone
        for host in "${hosts[@]}"; do
                wait_until 30 on "$host" fleet_is '.workers | length == 2'
        done

        untouched=$(traces h2 && traces h3)
        old=$(on h1 worker_pids)
        run deploy_release 3
        [ "$status" -ne 0 ]
        [[ $output == *'restart halted; old workers keep running'*'new workers failed in a row'* ]]
        [ "$(traces h2 && traces h3)" = "$untouched" ]
        # The first host has its link and its old workers, too.
        runs_release h1 2
        alive "$old"
        [ "$(on h1 fleet .rollout.state)" = halted ]
}

# The same for a release that only the first host has.
check_missing_release() {
        make_release h1 4
        run deploy_release 4
        [ "$status" -ne 0 ]
        [ "$(traces h2 && traces h3)" = "$untouched" ]
        runs_release h1 2
}

@test "Ansible: one host, then the others; a release that does not boot changes no other host" {
        start_hosts
        for host in "${hosts[@]}"; do
                echo "$host sqmgr_app=$folder/$host/app sqmgr_socket=$folder/$host/sqmgr.sock"
        done >inventory
        deploy_release() {
                HOME=$folder ansible-playbook -i inventory "$top/contrib/deploy/ansible.yml" -e "release=$1" \
                        -e sqmgr_hosts=all -e ansible_connection=local </dev/null 3>&- 9>&-
        }
        check_recipe
        [[ $output == *"h1 "*"failed=1"* ]]
        check_missing_release
}

# SSHKit runs a command as it does by ssh, but here: @host stands for the name of the host.
make_project() {
        mkdir -p project/config/deploy project/lib/capistrano/tasks
        cp "$top/contrib/deploy/sqmgr.rake" project/lib/capistrano/tasks/
        cat >project/Capfile <<'END'
require "capistrano/setup"
require "capistrano/deploy"
require "open3"
Dir.glob("lib/capistrano/tasks/*.rake").each { |file| import file }

class Here < SSHKit::Backend::Abstract
  def execute_command(command)
    output.log_command_start(command.with_redaction)
    command.started = Time.now
    stdout, stderr, status = Open3.capture3(command.to_command.gsub("@host", host.hostname))
    command.on_stdout(nil, stdout)
    command.on_stderr(nil, stderr)
    command.exit_status = status.exitstatus
    output.log_command_exit(command)
  end
end

task :copy do
  on(release_roles(:all)) { execute :cp, "-R", releases_path.join(ENV.fetch("NUMBER")), release_path }
end
after "deploy:new_release_path", "copy"
END
        cat >project/config/deploy.rb <<END
set :scm, nil
set :application, "app"
set :deploy_to, "$folder/@host/app"
set :sshkit_backend, Here
set :sqmgr_roles, :worker
set :sqmgr_fleets, %w[default]
set :sqmgr_socket, "$folder/@host/sqmgr.sock"
set :sqmgr_limit, 2
set :format, :simpletext
END
        printf 'server "%s", roles: %%w[worker]\n' "${hosts[@]}" >project/config/deploy/production.rb
}

@test "Capistrano: one host, then the others; a release that does not boot changes no other host" {
        command -v cap >/dev/null || skip 'capistrano is not installed'
        start_hosts
        make_project
        cap_do() { (cd project && HOME=$folder NUMBER=${2-} cap production "$1" 3>&- 9>&-); }
        deploy_release() { cap_do deploy "$1"; }
        check_recipe
        [[ $output == *$'\nsqmgr: stopped; hosts that were not changed: h2 h3\n'* ]]
        run -0 cap_do deploy:rollback
        for host in "${hosts[@]}"; do
                runs_release "$host" 2
                on "$host" fleet_is '.rollout.state == "done" and .generation >= 3'
        done
        first_was_alone
}

# Each host is a folder of this machine, as the application's directory on it.
@test "the shell script: one host, then the others; a release that does not boot changes no other host" {
        start_hosts
        cat >ssh <<END
#!/bin/sh
cd "$folder/\$1" && SQMGR_SOCKET=$folder/\$1/sqmgr.sock exec sh -c "\$2"
END
        chmod +x ssh
        deploy_release() { SSH=$folder/ssh "$top/contrib/deploy/deploy-hosts" app "$1" default "${hosts[@]}" 3>&- 9>&-; }
        check_recipe
        [ "$status" = 1 ]
        [ "${lines[-1]}" = 'deploy-hosts: stopped; hosts that were not changed: h2 h3' ]
        check_missing_release
        [ "${lines[-1]}" = "deploy-hosts: h2 does not have release '4'; no host was changed" ]
        run -2 "$top/contrib/deploy/deploy-hosts" app 4 default
        LIMIT=0 run -2 "$top/contrib/deploy/deploy-hosts" app 2 default "${hosts[@]}"
        [ "$output" = "deploy-hosts: LIMIT must be a number of hosts, at least 1; it is '0'" ]

        # A worker that crashes later is replaced from the old release.
        kill -KILL "${old%% *}"
        wait_until 20 gone "${old%% *}"
        wait_until 20 runs_release h1 2
}
