#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# sqmgr init converts the configuration of another supervisor to a config file that a start accepts.
# seconds: 5
# promises: none
# shellcheck disable=SC2030,SC2031
load helpers

# A systemctl with one service, and instances 1 to 3 of a template.
make_systemctl() {
        mkdir "$folder/bin"
        cat >"$folder/bin/systemctl" <<'END'
#!/bin/sh
case "$*" in
*nosuch*) echo "No files found for nosuch.service." >&2 && exit 1 ;;
'list-units '*) printf '  sidekiq@%s.service loaded active running Sidekiq\n' 1 2 3 ;;
'cat '*) cat "${0%/bin/*}/unit" "${0%/bin/*}/drop-in" ;;
esac
END
        chmod +x "$folder/bin/systemctl"
        PATH=$folder/bin:$PATH
        cat >"$folder/unit" <<END
# /etc/systemd/system/sidekiq.service
[Unit]
Description=Sidekiq

[Service]
Type=notify
User=$(id -un)
WorkingDirectory=$folder
ExecStart=/usr/bin/env sidekiq -e production
Environment=RAILS_ENV=production \\
        MALLOC_ARENA_MAX=2
LimitNOFILE=4096
PrivateTmp=yes

[Install]
WantedBy=multi-user.target
END
        printf '%s\n' '# drop-in' '[Service]' 'ExecStart=' 'ExecStart=/usr/bin/env sidekiq -c 10' 'EnvironmentFile=/etc/hostname' \
                >"$folder/drop-in"
}

# becomes FILE LINE...: a start would accept the FILE that init has written, and FILE has each line.
becomes() {
        local file=$1 line
        XDG_RUNTIME_DIR=$folder run -0 sqmgr --check-config -c "$file"
        shift
        for line; do
                grep -qFx -e "$line" "$file" || { echo "no '$line' in" && cat "$file" && return 1; }
        done
        [ "$(wc -l <"$file")" -le 20 ]
}

@test "sqmgr init: a systemd service with its drop-ins, and counted instances" {
        make_systemctl
        run -0 --separate-stderr sqmgr init --from-systemd sidekiq -o "$folder/one.ini"
        [ "$output" = '' ]
        [ "$stderr" = 'sqmgr init: LimitNOFILE=4096: not taken over: set it in the unit of sqmgr
sqmgr init: PrivateTmp=yes: not taken over: sqmgr has no such key' ]
        becomes "$folder/one.ini" '[fleet:sidekiq]' 'command = /usr/bin/env sidekiq -c 10' 'framework = sidekiq' \
                "user = $(id -un)" "directory = $folder" 'environment = RAILS_ENV=production  MALLOC_ARENA_MAX=2' \
                'environment_file = /etc/hostname' 'active_process_count = 1'
        run -0 --separate-stderr sqmgr init --from-systemd sidekiq@ --memory 1G -o "$folder/three.ini"
        becomes "$folder/three.ini" '[fleet:sidekiq]' 'active_process_count = 3' 'memory_threshold = 1G'
        # The same from a unit file, and from the output of systemctl.
        run -0 --separate-stderr sqmgr init --from-systemd "$folder/unit" -o "$folder/file.ini"
        becomes "$folder/file.ini" '[fleet:unit]' 'command = /usr/bin/env sidekiq -e production'
        sqmgr init --from-systemd - --name jobs <"$folder/unit" >"$folder/input.ini"
        becomes "$folder/input.ini" '[fleet:jobs]'
}

@test "sqmgr init: a supervisord program" {
        cat >"$folder/supervisord.conf" <<END
[supervisord]
nodaemon=true

[program:web]
command=puma

[program:jobs]
command=/usr/bin/env rq worker high   ; the workers
directory=$folder
user=$(id -un)
numprocs=2
environment=QUEUE="high, low",
    LANG="C"
stdout_logfile=$folder/jobs.log
END
        run -0 sqmgr init --from-supervisord "$folder/supervisord.conf" --entry jobs -o "$folder/jobs.ini"
        [ "$output" = '' ]
        becomes "$folder/jobs.ini" '[fleet:jobs]' 'command = /usr/bin/env rq worker high' 'framework = rq' \
                'active_process_count = 2' "log = $folder/jobs.log"
        run -1 sqmgr init --from-supervisord "$folder/supervisord.conf"
        [ "$output" = "sqmgr init: there are several programs, as 'web' and 'jobs': choose one by --entry" ]
}

@test "sqmgr init: a Procfile with its directory and its .env" {
        printf '%s\n' 'web: bin/rails server' 'worker: RAILS_ENV=production bundle exec sidekiq' >"$folder/Procfile"
        echo 'A=1' >"$folder/.env"
        run -0 --separate-stderr sqmgr init --from-procfile Procfile -o "$folder/worker.ini"
        becomes "$folder/worker.ini" '[fleet:worker]' "command = /bin/sh -c 'exec env RAILS_ENV=production bundle exec sidekiq'" \
                "directory = $folder" 'environment_file = .env'
}

@test "sqmgr init: the variables of sidekiqswarm, from the environment and from a file" {
        SIDEKIQ_COUNT=4 SIDEKIQ_MAXMEM_MB=700 SIDEKIQ_PRELOAD_APP=1 sqmgr init --from-sidekiqswarm >"$folder/a.ini"
        becomes "$folder/a.ini" '[fleet:default]' 'command = bundle exec sidekiq' 'active_process_count = 4' \
                'memory_threshold = 700M' 'preload = yes'
        echo 'export SIDEKIQ_COUNT=2' >"$folder/env"
        sqmgr init --from-sidekiqswarm=env --command 'sidekiq -c 5' --environment-file "$folder/env" >"$folder/b.ini"
        becomes "$folder/b.ini" 'command = sidekiq -c 5' 'active_process_count = 2' "environment_file = $folder/env"
}

@test "sqmgr init: options alone" {
        sqmgr init --command 'celery -A app worker' --count 2 --user "$(id -un)" --group "$(id -gn)" --directory "$folder" \
                --memory 25% --name mail -o "$folder/mail.ini"
        becomes "$folder/mail.ini" '[fleet:mail]' 'framework = celery' 'active_process_count = 2' \
                "directory = $folder" 'memory_threshold = 25%'
        run -0 sqmgr init --help
        [[ $output == 'Usage: sqmgr init '* ]]
}

@test "sqmgr init replaces no file, and bad input creates none" {
        make_systemctl
        echo mine >"$folder/there.ini"
        run -1 sqmgr init --command sidekiq -o "$folder/there.ini"
        [[ $output == *'there.ini is there already'* ]]
        [ "$(<"$folder/there.ini")" = mine ]
        ln -s nowhere "$folder/link.ini"
        run -1 sqmgr init --command sidekiq -o "$folder/link.ini"
        [ ! -e "$folder/nowhere" ]
        printf '[Service]\nExecStart=sidekiq\nno entry\n' >"$folder/bad"
        bad_inputs=("--from-systemd $folder/bad" "--from-systemd $folder/nosuch" '--from-systemd nosuch' '--from-systemd /' '--from-procfile unit'
                '--from-supervisord unit' --from-sidekiqswarm '--command sidekiq --count many' '--command sidekiq --name a/b'
                '--command sidekiq --framework rails' '' '--nosuch' 'x' '--from-procfile a --from-systemd b')
        for options in "${bad_inputs[@]}"; do
                # shellcheck disable=SC2086
                run -1 --separate-stderr sqmgr init $options -o "$folder/out.ini"
                [ "$output" = '' ]
                [[ $stderr == *'sqmgr init: '* ]]
                [ ! -e "$folder/out.ini" ]
        done
}
