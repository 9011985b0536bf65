#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# sqmgr as a service of the real systemd.
# seconds: 200
# promises: P1 P4 P10
# bats file_tags=root
# shellcheck disable=SC2030,SC2031,SC2034
load machine

@test "the unit starts, shows its counts, applies a reload, and passes systemd-analyze verify" {
        configure <<<'active_process_count = 2'
        start_service 2
        unit_is sqmgr ActiveState active
        wait_until 10 unit_is sqmgr StatusText '2 of 2 workers active, 0 starting, 0 draining'
        unit status sqmgr | grep -F 'Status: "2 of 2 workers active, 0 starting, 0 draining"'
        [ "$(unit show -p NotifyAccess --value sqmgr)" = main ]
        unit_is sqmgr KillMode process

        # Restrictions of the service apply to jobs: sudo must work in them.
        for pid in $(worker_pids); do
                in_machine grep -q '^NoNewPrivs:.0$' "/proc/$pid/status"
                [ "$(in_machine stat -c %U "/proc/$pid")" = app ]
                run ! in_machine grep -qzE '^(NOTIFY_SOCKET|WATCHDOG_|RUNTIME_DIRECTORY)' "/proc/$pid/environ"
        done

        before=$(worker_pids)
        sed 's/^active_process_count.*/active_process_count = 3/' <(in_machine cat /etc/sqmgr/sqmgr.ini) >"$folder/new.ini"
        put /etc/sqmgr/sqmgr.ini <"$folder/new.ini"
        unit reload sqmgr
        wait_until 60 ready 3
        [[ $(worker_pids) == *"${before% *}"* ]]
        echo 'nonsense = 1' | in_machine tee -a /etc/sqmgr/sqmgr.ini >/dev/null
        run ! unit reload sqmgr
        unit_is sqmgr ActiveState active
        ready 3

        [ -z "$(in_machine systemd-analyze verify --man=no sqmgr.service sqmgr@shop.service sqmgr-app@app.service \
                sqmgr-restart.timer sqmgr-restart@shop.timer sqmgr-restart.service sqmgr-restart@shop.service \
                sqmgr-metrics.timer sqmgr-metrics.service 2>&1)" ]
        [ "$(in_machine getent group sqmgr | cut -d: -f1)" = sqmgr ]
        [ "$(in_machine getent passwd sqmgr-reader | cut -d: -f1,7)" = sqmgr-reader:/usr/sbin/nologin ]
        echo "# systemd-analyze security: $(in_machine systemd-analyze security --no-pager sqmgr | grep -o 'exposure level.*[0-9.]* [A-Z]*')" >&3
}

@test "the nightly timer restarts the fleets, shows its next run, and fails if no sqmgr answers" {
        configure <<<'active_process_count = 2'
        start_service 2
        before=$(worker_pids)
        run ! unit is-enabled sqmgr-restart.timer
        unit enable --quiet --now sqmgr-restart.timer
        [[ $(unit show -p TimersCalendar sqmgr-restart.timer) == *'OnCalendar=*-*-* 04:00:00 ; next_elapse='* ]]
        in_machine systemd-analyze calendar '*-*-* 04:00:00' | grep -q 'Next elapse: .* 04:00:00'
        printf '[Timer]\nOnCalendar=\nOnCalendar=*:*:0/2\nRandomizedDelaySec=0\nAccuracySec=100ms\n' |
                put /etc/systemd/system/sqmgr-restart.timer.d/now.conf
        unit daemon-reload
        unit restart sqmgr-restart.timer
        wait_until 60 fleet_is '.generation >= 2'
        unit stop sqmgr-restart.timer
        wait_until 60 unit_is sqmgr-restart ActiveState inactive
        unit_is sqmgr-restart Result success
        run ! same_workers "$before"
        unit stop sqmgr
        run ! unit start sqmgr-restart
        unit_is sqmgr-restart ExecMainStatus 3
}

metrics_file=/run/sqmgr-metrics/sqmgr.prom
metrics_changed() { [ "$(in_machine stat -c %y%i $metrics_file)" != "$1" ]; } # WHAT-IT-WAS

@test "the timer for node_exporter writes the metrics atomically, and keeps them if no sqmgr answers" {
        configure <<<'active_process_count = 2'
        start_service 2
        run ! unit is-enabled sqmgr-metrics.timer
        unit enable --quiet --now sqmgr-metrics.timer
        wait_until 60 in_machine test -s $metrics_file
        in_machine cat $metrics_file | grep -Fx 'sqmgr_workers{fleet="default",state="active"} 2'
        [ "$(in_machine stat -c %a:%U $metrics_file)" = 644:sqmgr ]
        was=$(in_machine stat -c %y%i $metrics_file)
        wait_until 60 metrics_changed "$was"
        # While sqmgr is down the file stays unchanged; once it is back, updates
        # resume.
        unit stop sqmgr
        wait_until 60 unit_is sqmgr-metrics ExecMainStatus 3
        was=$(in_machine stat -c %y%i $metrics_file)
        run ! unit start sqmgr-metrics.service
        run ! metrics_changed "$was"
        unit start sqmgr
        wait_until 60 metrics_changed "$was"
        unit_is sqmgr-metrics ExecMainStatus 0
        unit stop sqmgr-metrics.timer
        in_machine journalctl -u sqmgr-metrics -o cat | grep -F 'sqmgrctl: '
        run ! in_machine journalctl -u sqmgr-metrics -o cat -g '^Starting'
}

# Simulates a boot for sqmgr: /run is empty, and the boot id is another one.
boot_anew() {
        unit stop sqmgr
        app_count_is 0
        in_machine rm -rf /run/sqmgr
        in_machine tee /tmp/boot_id </proc/sys/kernel/random/uuid >/dev/null
        in_machine mountpoint -q /proc/sys/kernel/random/boot_id ||
                in_machine mount --bind /tmp/boot_id /proc/sys/kernel/random/boot_id
        unit start sqmgr
}

@test "a boot ends orders, unless the state is outside of /run" {
        configure <<<'active_process_count = 1'
        start_service 1
        sqmgrctl scale default 2
        wait_until 60 ready 2
        unit stop sqmgr
        unit start sqmgr
        wait_until 60 ready 2
        boot_anew
        wait_until 60 ready 1
        fleet_is '.target == 1'

        in_machine install -d -m 700 /var/lib/sqmgr
        in_machine sed -i 's|^\[sqmgr\]|&\nstate_file = /var/lib/sqmgr/state|' /etc/sqmgr/sqmgr.ini
        unit restart sqmgr
        wait_until 60 ready 1
        sqmgrctl scale default 2
        sqmgrctl restart --wait --timeout 300s
        boot_anew
        wait_until 60 ready 2
        fleet_is '.target == 2 and .generation == 2'
}

@test "the watchdog ends a hung sqmgr, and its workers keep running" {
        configure <<<'active_process_count = 2'
        printf '[Service]\nWatchdogSec=10s\n' | put /etc/systemd/system/sqmgr.service.d/short.conf
        start_service 2
        before=$(worker_pids)
        enqueue 60 Sleep 1
        pid=$(main_pid)
        in_machine kill -STOP "$pid"
        wait_until 60 unit_is sqmgr NRestarts 1
        wait_until 20 sqmgrctl ping
        logged 'Watchdog timeout'
        [ "$(main_pid)" != "$pid" ]
        same_workers "$before"
        wait_until 60 has_done 60
        [ "$(jobs_run_twice)" = 0 ]
}

@test "a config with errors: exit 78, and no further start" {
        configure <<<'active_process_count = none'
        run ! unit start sqmgr
        unit_is sqmgr ActiveState failed
        unit_is sqmgr SubState failed
        unit_is sqmgr ExecMainStatus 78
        unit_is sqmgr NRestarts 0
        logged 'sqmgr.ini:10: active_process_count = none'
        configure <<<'active_process_count = 1'
        start_service 1
}

@test "stop drains: running jobs finish, every worker exits" {
        configure <<<'active_process_count = 2'
        start_service 2
        enqueue 10 Sleep 5
        wait_until 30 has_started 10
        unit stop sqmgr
        unit_is sqmgr ActiveState inactive
        unit_is sqmgr Result success
        app_count_is 0
        [ "$(jobs_done)" = 10 ]
        [ "$(jobs_run_twice)" = 0 ]
}

@test "several applications: each instance has its own config, socket and workers" {
        configure shop <<<'active_process_count = 2'
        configure mail <<<'active_process_count = 1'
        unit enable --quiet --now sqmgr@shop sqmgr@mail
        socket=/run/sqmgr/shop/control.sock
        wait_until 60 ready 2
        shop=$(worker_pids)
        socket=/run/sqmgr/mail/control.sock
        wait_until 60 ready 1
        mail=$(worker_pids)
        app_count_is 3
        run ! sqmgrctl -s /run/sqmgr/control.sock ping
        for name in shop mail; do
                [ "$(in_machine sqmgrctl -i $name status --json | jq -r .pid)" = "$(main_pid sqmgr@$name)" ]
        done
        [ "$(in_machine sqmgrctl --complete -i '' | paste -sd ' ')" = 'mail shop' ]

        unit kill --kill-whom=main -s KILL sqmgr@shop sqmgr@mail
        wait_until 20 unit_is sqmgr@shop NRestarts 1
        wait_until 20 unit_is sqmgr@mail NRestarts 1
        wait_until 20 sqmgrctl ping
        [ "$(worker_pids)" = "$mail" ]
        unit stop sqmgr@mail
        unit reload sqmgr@shop
        socket=/run/sqmgr/shop/control.sock
        [ "$(worker_pids)" = "$shop" ]
        app_count_is 2
}

@test "a user's own sqmgr: systemctl --user" {
        in_machine systemctl start dbus systemd-logind
        uid=$(in_machine id -u app)
        in_machine loginctl enable-linger app
        wait_until 30 unit is-active "user@$uid.service"
        as_app() { in_machine setpriv --reuid app --regid app --init-groups env HOME=/home/app XDG_RUNTIME_DIR="/run/user/$uid" "$@"; }
        sqmgrctl() { as_app sqmgrctl "$@"; }

        configure own <<<'active_process_count = 2'
        in_machine sed -i '/^user = /d' /etc/sqmgr/own.ini
        as_app mkdir -p /home/app/.config/sqmgr
        as_app cp /etc/sqmgr/own.ini /home/app/.config/sqmgr/sqmgr.ini
        [ -z "$(as_app systemd-analyze verify --man=no --user sqmgr.service 2>&1)" ]
        as_app systemctl --user enable --quiet --now sqmgr
        wait_until 60 ready 2
        before=$(worker_pids)
        in_machine test -S "/run/user/$uid/sqmgr/control.sock"
        as_app systemctl --user kill --kill-whom=main -s KILL sqmgr
        wait_until 20 sqmgrctl ping
        wait_until 20 ready 2
        same_workers "$before"
        as_app systemctl --user reload sqmgr
        as_app systemctl --user stop sqmgr
        app_count_is 0
}

@test "the journal: each event has its fields, its id and its entry in the catalog" {
        configure <<<'active_process_count = 2'
        [ -z "$(in_machine journalctl --update-catalog 2>&1)" ]
        start_service 2
        victim=$(fleet '.workers[0].pid')
        in_machine kill -KILL "$victim"
        wait_until 20 logged 'default/1 .* was killed by signal 9'
        entries SQMGR_EVENT=crashed >"$folder/crashed"
        jq -e --arg pid "$victim" 'length == 1 and (.[0] | .SQMGR_FLEET == "default" and .SQMGR_WORKER == "default/1" and
                .SQMGR_REASON == "crash" and .SQMGR_GENERATION == "1" and .SQMGR_PID == $pid and .PRIORITY == "3" and
                ._SYSTEMD_UNIT == "sqmgr.service")' "$folder/crashed"
        in_machine journalctl -x SQMGR_EVENT=crashed >"$folder/explained"
        cat "$folder/explained"
        grep -q 'Subject: Worker default/1 has crashed' "$folder/explained"
        grep -q "journalctl _PID=$victim" "$folder/explained"

        # systemd would not list an unknown id.
        while read -r name id _; do
                in_machine journalctl --list-catalog "$id" | grep -q "^$id sqmgr: "
                seen=$(entries "SQMGR_EVENT=$name" | jq -r 'map(.MESSAGE_ID) | unique | join(" ")')
                [ -z "$seen" ] || [ "$seen" = "$id" ]
        done < <("$SQMGR_BUILD/tests/unit/list_events")
}

@test "on TERM, sqmgr asks systemd for the reason: a re-exec meanwhile does not lose the answer" {
        configure <<<'active_process_count = 1'
        start_service 1
        pid=$(main_pid)
        has_ended() { ! in_machine grep -q '^State:.[^Z]' "/proc/$pid/status"; }
        # It answers no calls.
        kill -STOP "$init"
        in_machine kill -TERM "$pid"
        in_machine kill -USR2 "$pid"
        run wait_until 20 logged 're-exec refused.*asked to exit'
        kill -CONT "$init"
        [ "$status" = 0 ]
        wait_until 60 has_ended
}

# Checks the journal of this process under this name.
journal_has() { # PID IDENTIFIER TEXT
        entries "_PID=$1" "SYSLOG_IDENTIFIER=$2" >"$folder/entries" &&
                jq -e --arg text "$3" 'any(.[]; .MESSAGE | contains($text))' "$folder/entries"
}

@test "preload: the journal attributes output to each fork, and a restart of the service keeps the forks" {
        configure <<<$'active_process_count = 2\npreload = yes\nlog = journal'
        start_service 2
        before=$(worker_pids)
        for index in 1 2; do
                pid=$(fleet ".workers[$index - 1].pid")
                wait_until 20 journal_has "$pid" "default/$index" 'Running in ruby'
                # All of its output.
                entries "_PID=$pid" | jq -e --arg id "default/$index" 'all(.[]; .SYSLOG_IDENTIFIER == $id and ._SYSTEMD_UNIT == "sqmgr.service")'
        done
        entries SYSLOG_IDENTIFIER=default/template >"$folder/entries"
        template=$(fleet .template.pid)
        jq -e --arg pids "$before" 'all(.[]; ._PID as $pid | $pids | split(" ") | index($pid) | not)' "$folder/entries"

        victim=${before%% *}
        in_machine kill -ABRT "$victim"
        wait_until 20 logged "(pid $victim) was killed by signal 6"
        wait_until 30 ready 2
        [ "$(fleet .template.pid)" = "$template" ]
        before=$(worker_pids)
        unit restart sqmgr
        wait_until 60 fleet_is '.template.state == "ready"'
        same_workers "$before"
        fleet_is 'all(.workers[]; .forked)'
        unit kill --kill-whom=main -s KILL sqmgr
        wait_until 20 unit_is sqmgr NRestarts 1
        wait_until 60 fleet_is '.template.state == "ready"'
        same_workers "$before"
        fleet_is 'all(.workers[]; .forked)'
        unit stop sqmgr
        app_count_is 0
        in_machine pgrep -u app >"$folder/left" || true
        [ ! -s "$folder/left" ]
}
