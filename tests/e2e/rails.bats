#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A typical Rails application on the installed package: created by `rails new`, with ActiveJob on Sidekiq and rows in
# PostgreSQL. Only its user can read its environment file with credentials. Another user deploys it by Capistrano, with
# the shipped task.
# seconds: 70
# promises: P1 P6 P7
# bats file_tags=root
# shellcheck disable=SC2016
load package

redis() { in_machine redis-cli --no-auth-warning -a "$redis_password" "$@"; }
as() { # USER COMMAND...
        in_machine setpriv --reuid "$1" --regid "$1" --init-groups env HOME="/home/$1" "${@:2}"
}

make_secrets() {
        local name
        for name in redis_password database_password secret_key; do
                printf -v "$name" '%s' "$(od -An -N 24 -tx1 /dev/urandom | tr -d ' \n')"
        done
}

start_databases() {
        local version
        version=$(in_machine sh -c 'ls /usr/lib/postgresql | sort -V | tail -n 1')
        in_machine pg_createcluster --port 5432 --locale C.UTF-8 --start "$version" app -- --no-sync
        unit_is "postgresql@$version-app" ActiveState active
        as postgres psql -qX -v ON_ERROR_STOP=1 <<END
CREATE ROLE app LOGIN PASSWORD '$database_password';
CREATE DATABASE app_production OWNER app;
END
        # No column is unique, so that duplicates are visible.
        sql 'CREATE TABLE runs (id bigserial PRIMARY KEY, number integer NOT NULL, release integer NOT NULL,
                pid integer NOT NULL, worker text, key text NOT NULL)'
        in_machine redis-cli config set appendonly yes requirepass "$redis_password"
        redis_answers
}

sql() { in_machine psql -qAtX -v ON_ERROR_STOP=1 -c "$1" "postgresql://app:$database_password@127.0.0.1/app_production"; }
sql_is() { [ "$(sql "$1")" = "$2" ]; } # QUERY RESULT

# Steps of an administrator, once.
prepare_machine() {
        in_machine useradd --create-home --shell /bin/bash --groups sqmgr deploy
        # Else its workers log to one file, in which a line without a pid may be of another worker.
        in_machine usermod --append --groups systemd-journal app
        in_machine install -d -o deploy -g deploy /srv/app /srv/app/shared
        in_machine install -d -o app -g app /srv/app/shared/log /srv/app/shared/tmp
        in_machine install -m 640 -g app /dev/stdin /etc/sqmgr/app.env <<END
RAILS_ENV=production
SECRET_KEY_BASE=$secret_key
DATABASE_URL=postgresql://app:$database_password@127.0.0.1/app_production
REDIS_URL=redis://:$redis_password@127.0.0.1:6379/0
END
        in_machine install -D -m 640 -g app /dev/stdin /etc/sqmgr/redis.password <<<"$redis_password"
        put /etc/sqmgr/app.ini <<END
[sqmgr]
socket_group = sqmgr

[redis]
url = redis://127.0.0.1:6379/0
password_file = /etc/sqmgr/redis.password

[fleet:default]
command = bundle exec sidekiq -e production
directory = /srv/app/current
environment_file = /etc/sqmgr/app.env
active_process_count = 2
memory_threshold = 1G
ready_after = 1s
END
}

# The application, in its developer's directory. Only Debian's gems are available; those of development are left out.
make_application() {
        as deploy sh -ec 'cd
                rails new app --api --database=postgresql --skip-git --skip-bundle --skip-bootsnap --skip-test --quiet
                cd app
                printf "%s\n" "source \"https://rubygems.org\"" "gem \"rails\"" "gem \"pg\"" "gem \"sidekiq\"" >Gemfile
                bundle lock --local >/dev/null
                rm -f config/master.key config/credentials.yml.enc
                mkdir -p app/jobs config/deploy lib/capistrano/tasks
                cp /usr/share/doc/sqmgr/examples/deploy/sqmgr.rake lib/capistrano/tasks/
                git init -q -b main .'
        for_developer config/initializers/jobs.rb <<'END'
Rails.application.config.active_job.queue_adapter = :sidekiq
Redis.silence_deprecations = true if defined?(Redis) && Redis.respond_to?(:silence_deprecations=)
END
        for_developer config/sidekiq.yml <<<':concurrency: 5'
        for_developer app/models/run.rb <<<'class Run < ApplicationRecord; end'
        for_developer Capfile <<'END'
require "capistrano/setup"
require "capistrano/deploy"
require "capistrano/scm/git"
install_plugin Capistrano::SCM::Git
Dir.glob("lib/capistrano/tasks/*.rake").each { |file| import file }
END
        for_developer config/deploy.rb <<'END'
set :application, "app"
set :repo_url, "file:///home/deploy/app"
set :branch, "main"
set :deploy_to, "/srv/app"
set :sshkit_backend, SSHKit::Backend::Local
append :linked_dirs, "log", "tmp"
set :sqmgr_timeout, "300s"
END
        for_developer config/deploy/production.rb <<<'server "localhost", roles: %w[app]'
}
for_developer() { as deploy sh -c 'cat >~/app/"$1"' sh "$1"; } # PATH

# The number of the release is in the rows of its jobs.
commit_release() { # NUMBER
        for_developer app/jobs/note_job.rb <<END
require "digest"

class NoteJob < ApplicationJob
  def perform(number, wait)
    wait.is_a?(String) ? (sleep 0.05 until File.exist?(wait)) : sleep(wait)
    Run.create!(number: number, release: $1, pid: Process.pid, worker: ENV["SQMGR_WORKER"],
                key: Digest::SHA256.hexdigest(Rails.application.secret_key_base))
  end
end
END
        as deploy git -C /home/deploy/app add -A
        as deploy git -C /home/deploy/app -c user.name=deploy -c user.email=deploy@localhost commit -q -m "release $1"
}
cap_do() { as deploy sh -c 'cd ~/app && exec cap production "$@"' sh "$@"; }

# Enqueues jobs as a web server does, with the current release. Numbers are passed as numbers.
perform_later() { # [FIRST LAST WAIT]...
        as app sh -c 'set -a && . /etc/sqmgr/app.env && cd /srv/app/current && exec bin/rails runner "
                ARGV.each_slice(3) do |first, last, wait|
                  wait = wait.to_f unless wait.include?(%q(/))
                  (first.to_i..last.to_i).each { |number| NoteJob.perform_later(number, wait) }
                end" "$@"' sh "$@"
}
runs_are() { sql_is 'SELECT count(*) FROM runs' "$1"; }
releases_of() { sql "SELECT string_agg(DISTINCT release::text, ' ') FROM runs WHERE number BETWEEN $1 AND $2"; } # FIRST LAST
# The queue hands out jobs in order: the first ones run, whatever happens to later ones.
run_at_least() { [ "$(sqmgrctl jobs --json | jq '.jobs | length')" -ge "$1" ]; } # JOBS
in_release() { # DIRECTORY: true if two workers are active, and all active workers run there
        local pid pids
        pids=$(fleet '.workers[] | select(.state == "active") | .pid')
        [ "$(wc -w <<<"$pids")" = 2 ]
        for pid in $pids; do
                [ "$(in_machine readlink "/proc/$pid/cwd")" = "$1" ]
        done
}
current_release() { in_machine readlink /srv/app/current; }
all_alive() { in_machine kill -0 "$@"; } # PID...
all_gone() { not in_machine ps -o pid= -p "$*"; } # PID...

@test "Rails with Capistrano: two releases, one that does not boot and a rollback; every job is done once, no secret is shown" {
        dpkg_i "$(package)"
        make_secrets
        start_databases
        prepare_machine
        make_application
        run ! as deploy cat /etc/sqmgr/app.env

        # The service may be started first: its workers have no directory yet.
        unit enable --quiet --now sqmgr@app
        commit_release 1
        run -0 cap_do deploy
        # A retry may have started a worker from the release just before its restart.
        wait_until 60 fleet_is '(.workers | length) == 2 and all(.workers[]; .ready)'
        first=$(current_release) old=$(worker_pids)
        # Four threads remain for the short jobs.
        perform_later 1 6 /srv/app/shared/tmp/old 101 180 0.5
        wait_until 60 run_at_least 6

        commit_release 2
        run -0 cap_do deploy
        [[ $output == *'is current, 2 workers replaced'* ]]
        second=$(current_release)
        [ "$second" != "$first" ]
        in_release "$second"
        # shellcheck disable=SC2086
        all_alive $old
        perform_later 201 220 0
        wait_until 60 runs_are 100
        in_machine touch /srv/app/shared/tmp/old
        wait_until 30 runs_are 106
        # shellcheck disable=SC2086
        wait_until 60 all_gone $old
        [ "$(releases_of 1 6)" = 1 ]
        [ "$(releases_of 201 220)" = 2 ]

        kept=$(worker_pids)
        perform_later 301 306 /srv/app/shared/tmp/new
        wait_until 30 run_at_least 6
        for_developer config/initializers/broken.rb <<<'raise "no key for the mail server"'
        commit_release 3
        run cap_do deploy
        [ "$status" -ne 0 ]
        [[ $output == *'restart halted; old workers keep running'*'no key for the mail server'* ]]
        [[ $(current_release) != "$second" ]]
        # shellcheck disable=SC2086
        all_alive $kept
        in_release "$second"
        run -0 cap_do deploy:rollback
        [ "$(current_release)" = "$second" ]
        wait_until 60 fleet_is '.rollout.state == "done" and .active == 2'
        in_release "$second"
        perform_later 401 420 0
        wait_until 30 runs_are 126
        in_machine touch /srv/app/shared/tmp/new
        wait_until 30 runs_are 132
        [ "$(releases_of 301 420)" = 2 ]

        sql_is 'SELECT count(DISTINCT number), min(number), max(number) FROM runs' '132|1|420'
        sql_is 'SELECT string_agg(DISTINCT key, NULL) FROM runs' "$(printf %s "$secret_key" | sha256sum | cut -d' ' -f1)"
        for name in queue:default retry dead; do
                [ "$(redis exists "$name")" = 0 ]
        done

        # All of its output, and all logs of it and its workers.
        {
                sqmgrctl doctor --json
                sqmgrctl status --json
                sqmgrctl events --json
                sqmgrctl why default/1
        } >"$folder/told"
        in_machine journalctl --all -o export >"$folder/journal"
        grep -qF 'no key for the mail server' "$folder/told"
        grep -aqF 'no key for the mail server' "$folder/journal"
        for secret in "$redis_password" "$database_password" "$secret_key"; do
                in_machine grep -qF "$secret" /etc/sqmgr/app.env
                run -1 grep -acF "$secret" "$folder/told" "$folder/journal"
        done
        unit stop sqmgr@app
        app_count_is 0
}
