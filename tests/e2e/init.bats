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
Nice=5
CPUQuota=150%
MemoryMax=2G
IOSchedulingClass=best-effort
ProtectSystem=full
ReadWritePaths=-/srv/app/shared
CapabilityBoundingSet=CAP_NET_BIND_SERVICE
OOMScoreAdjust=100
PIDFile=/run/sidekiq.pid

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
        [ "$(wc -l <"$file")" -le 30 ]
}

@test "sqmgr init: a systemd service with its drop-ins, and counted instances" {
        make_systemctl
        run -0 --separate-stderr sqmgr init --from-systemd sidekiq -o "$folder/one.ini"
        [ "$output" = '' ]
        [ "$stderr" = 'sqmgr init: MemoryMax=2G: memory_threshold is three quarters of that, for each worker. In the drop-in it is for all workers together: multiply it by their number
sqmgr init: OOMScoreAdjust=100: not taken over: sqmgr is small, and its workers would inherit it
sqmgr init: PIDFile=/run/sidekiq.pid: not taken over: sqmgr has no such key' ]
        becomes "$folder/one.ini" '[fleet:sidekiq]' 'command = /usr/bin/env sidekiq -c 10' 'framework = sidekiq' \
                "directory = $folder" '# LimitNOFILE=4096' 'environment = RAILS_ENV=production  MALLOC_ARENA_MAX=2' \
                'environment_file = /etc/hostname' 'active_process_count = 1'
        run -0 --separate-stderr sqmgr init --from-systemd sidekiq@ --memory 1G -o "$folder/three.ini"
        becomes "$folder/three.ini" '[fleet:sidekiq]' 'active_process_count = 3' 'memory_threshold = 1G'
        grep -qx "# Check:   runuser -u $(id -un) -- sqmgr -c .*/sqmgr/$(id -un).ini --check-config" "$folder/three.ini"
        # The same from a unit file, and from the output of systemctl.
        run -0 --separate-stderr sqmgr init --from-systemd "$folder/unit" -o "$folder/file.ini"
        becomes "$folder/file.ini" '[fleet:unit]' 'command = /usr/bin/env sidekiq -e production'
        sqmgr init --from-systemd - --name jobs <"$folder/unit" >"$folder/input.ini"
        becomes "$folder/input.ini" '[fleet:jobs]'
}

@test "sqmgr init: what only a unit can set becomes a drop-in that systemd accepts" {
        make_systemctl
        run -0 --separate-stderr sqmgr init --from-systemd sidekiq --user deploy --group www -o "$folder/one.ini" --drop-in "$folder/init.conf"
        run ! grep -q '^# Limit' "$folder/one.ini"
        [ "$(stat -c %a "$folder/one.ini" "$folder/init.conf")" = $'640\n644' ]
        sed '1,/^\[Service\]$/d' "$folder/init.conf" >"$folder/lines"
        printf '%s\n' Group=www LimitNOFILE=4096 Nice=5 CPUQuota=150% MemoryMax=2G IOSchedulingClass=best-effort ProtectSystem=full \
                ReadWritePaths=-/srv/app/shared CapabilityBoundingSet=CAP_NET_BIND_SERVICE | diff - "$folder/lines"
        mkdir -p "$folder/units/sqmgr@deploy.service.d"
        cp "$folder/init.conf" "$folder/units/sqmgr@deploy.service.d/"
        printf '[Service]\nExecStart=/bin/true\nType=oneshot\n' >"$folder/units/sqmgr@deploy.service"
        run -0 env SYSTEMD_UNIT_PATH="$folder/units:" systemd-analyze verify --man=no "$folder/units/sqmgr@deploy.service"
        [[ $output != *init.conf* ]]
        # systemd reads the file: it does not take everything.
        echo 'Nice=much' >>"$folder/units/sqmgr@deploy.service.d/init.conf"
        run env SYSTEMD_UNIT_PATH="$folder/units:" systemd-analyze verify --man=no "$folder/units/sqmgr@deploy.service"
        [[ $output == *init.conf* ]]
        # Nothing to write, or nothing that may be written.
        run -0 --separate-stderr sqmgr init --command sidekiq --drop-in "$folder/none.conf" -o "$folder/two.ini"
        [[ $stderr == *'no drop-in is needed'* && ! -e $folder/none.conf ]]
        run -1 sqmgr init --from-systemd sidekiq --drop-in "$folder/init.conf" -o "$folder/three.ini"
        [[ $output == *'init.conf is there already'* && ! -e $folder/three.ini ]]
        run -1 sqmgr init --from-systemd sidekiq --drop-in "$folder/new.conf" -o "$folder/one.ini"
        [[ $output == *'one.ini is there already'* && ! -e $folder/new.conf ]]
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
        sqmgr init --command 'celery -A app worker' --count 2 --user app --group www --directory "$folder" \
                --memory 25% --name mail -o "$folder/mail.ini"
        becomes "$folder/mail.ini" '[fleet:mail]' 'framework = celery' 'active_process_count = 2' \
                "directory = $folder" 'memory_threshold = 25%' '# Group=www'
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
