#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# sqmgr as a service of the real systemd: sqmgr@app, which runs as the user app.
# seconds: 200
# promises: P1 P4 P10
# bats file_tags=root
# shellcheck disable=SC2030,SC2031,SC2034
load machine

@test "the unit starts, shows its counts, applies a reload, and passes systemd-analyze verify" {
        configure <<<'active_process_count = 2'
        start_service 2
        unit_is sqmgr@app ActiveState active
        wait_until 10 unit_is sqmgr@app StatusText '2 of 2 workers active, 0 starting, 0 draining'
        unit status sqmgr@app | grep -F 'Status: "2 of 2 workers active, 0 starting, 0 draining"'
        [ "$(unit show -p NotifyAccess --value sqmgr@app)" = main ]
        unit_is sqmgr@app KillMode process

        # Restrictions of the service apply to jobs: sudo must work in them.
        for pid in $(worker_pids); do
                in_machine grep -q '^NoNewPrivs:.0$' "/proc/$pid/status"
                [ "$(in_machine stat -c %U "/proc/$pid")" = app ]
                run ! in_machine grep -qzE '^(NOTIFY_SOCKET|WATCHDOG_|[A-Z]*_DIRECTORY)' "/proc/$pid/environ"
        done

        before=$(worker_pids)
        sed 's/^active_process_count.*/active_process_count = 3/' <(in_machine cat /etc/sqmgr/app.ini) >"$folder/new.ini"
        put /etc/sqmgr/app.ini <"$folder/new.ini"
        unit reload sqmgr@app
        wait_until 60 ready 3
        [[ $(worker_pids) == *"${before% *}"* ]]
        echo 'nonsense = 1' | in_machine tee -a /etc/sqmgr/app.ini >/dev/null
        run ! unit reload sqmgr@app
        unit_is sqmgr@app ActiveState active
        ready 3

        [ -z "$(in_machine systemd-analyze verify --man=no sqmgr@app.service sqmgr-restart@app.timer sqmgr-restart@app.service \
                sqmgr-metrics@app.timer sqmgr-metrics@app.service 2>&1)" ]
        [ "$(in_machine getent group sqmgr sqmgr-read | cut -d: -f1 | paste -sd ' ')" = 'sqmgr sqmgr-read' ]
        [ "$(in_machine stat -c %a:%U /run/sqmgr /run/sqmgr/app /var/lib/sqmgr/app /var/log/sqmgr/app | tr '\n' ' ')" = '755:root 755:app 700:app 750:app ' ]
}

@test "the nightly timer restarts the fleets, shows its next run, and fails if no sqmgr answers" {
        configure <<<'active_process_count = 2'
        start_service 2
        before=$(worker_pids)
        run ! unit is-enabled sqmgr-restart@app.timer
        unit enable --quiet --now sqmgr-restart@app.timer
        [[ $(unit show -p TimersCalendar sqmgr-restart@app.timer) == *'OnCalendar=*-*-* 04:00:00 ; next_elapse='* ]]
        in_machine systemd-analyze calendar '*-*-* 04:00:00' | grep -q 'Next elapse: .* 04:00:00'
        printf '[Timer]\nOnCalendar=\nOnCalendar=*:*:0/2\nRandomizedDelaySec=0\nAccuracySec=100ms\n' |
                put /etc/systemd/system/sqmgr-restart@app.timer.d/now.conf
        unit daemon-reload
        unit restart sqmgr-restart@app.timer
        wait_until 60 fleet_is '.generation >= 2'
        unit stop sqmgr-restart@app.timer
        wait_until 60 unit_is sqmgr-restart@app ActiveState inactive
        unit_is sqmgr-restart@app Result success
        run ! same_workers "$before"
        unit stop sqmgr@app
        run ! unit start sqmgr-restart@app
        unit_is sqmgr-restart@app ExecMainStatus 3
}

metrics_file=/run/sqmgr-metrics/app/sqmgr.prom
metrics_changed() { [ "$(in_machine stat -c %y%i $metrics_file)" != "$1" ]; } # WHAT-IT-WAS

@test "the timer for node_exporter writes the metrics atomically, and keeps them if no sqmgr answers" {
        configure <<<'active_process_count = 2'
        start_service 2
        run ! unit is-enabled sqmgr-metrics@app.timer
        unit enable --quiet --now sqmgr-metrics@app.timer
        wait_until 60 in_machine test -s $metrics_file
        in_machine cat $metrics_file | grep -Fx 'sqmgr_workers{fleet="default",state="active"} 2'
        [ "$(in_machine stat -c %a:%U $metrics_file)" = 644:app ]
        was=$(in_machine stat -c %y%i $metrics_file)
        wait_until 60 metrics_changed "$was"
        # While sqmgr is down the file stays unchanged; once it is back, updates
        # resume.
        unit stop sqmgr@app
        wait_until 60 unit_is sqmgr-metrics@app ExecMainStatus 3
        was=$(in_machine stat -c %y%i $metrics_file)
        run ! unit start sqmgr-metrics@app.service
        run ! metrics_changed "$was"
        unit start sqmgr@app
        wait_until 60 metrics_changed "$was"
        unit_is sqmgr-metrics@app ExecMainStatus 0
        unit stop sqmgr-metrics@app.timer
        in_machine journalctl -u sqmgr-metrics@app -o cat | grep -F 'sqmgrctl: '
        run ! in_machine journalctl -u sqmgr-metrics@app -o cat -g '^Starting'
}

# Simulates a boot for sqmgr: /run is empty, and the boot id is another one.
boot_anew() {
        unit stop sqmgr@app
        app_count_is 0
        in_machine rm -rf /run/sqmgr
        in_machine tee /tmp/boot_id </proc/sys/kernel/random/uuid >/dev/null
        in_machine mountpoint -q /proc/sys/kernel/random/boot_id ||
                in_machine mount --bind /tmp/boot_id /proc/sys/kernel/random/boot_id
        unit start sqmgr@app
}

@test "orders survive a stop and a boot" {
        configure <<<'active_process_count = 1'
        start_service 1
        sqmgrctl scale default 2
        wait_until 60 ready 2
        sqmgrctl restart --wait --timeout 300s
        unit stop sqmgr@app
        unit start sqmgr@app
        wait_until 60 ready 2
        boot_anew
        wait_until 60 ready 2
        fleet_is '.target == 2 and .generation == 2'
}

@test "the watchdog ends a hung sqmgr, and its workers keep running" {
        configure <<<'active_process_count = 2'
        printf '[Service]\nWatchdogSec=10s\n' | put /etc/systemd/system/sqmgr@app.service.d/short.conf
        start_service 2
        before=$(worker_pids)
        enqueue 60 Sleep 1
        pid=$(main_pid)
        in_machine kill -STOP "$pid"
        wait_until 60 unit_is sqmgr@app NRestarts 1
        wait_until 20 sqmgrctl ping
        logged 'Watchdog timeout'
        [ "$(main_pid)" != "$pid" ]
        same_workers "$before"
        wait_until 60 has_done 60
        [ "$(jobs_run_twice)" = 0 ]
}

@test "a config with errors: exit 78, and no further start" {
        configure <<<'active_process_count = none'
        run ! unit start sqmgr@app
        unit_is sqmgr@app ActiveState failed
        unit_is sqmgr@app SubState failed
        unit_is sqmgr@app ExecMainStatus 78
        unit_is sqmgr@app NRestarts 0
        logged 'app.ini:9: active_process_count = none'
        configure <<<'active_process_count = 1'
        start_service 1
}

@test "stop drains: running jobs finish, every worker exits" {
        configure <<<'active_process_count = 2'
        start_service 2
        enqueue 10 Sleep 5
        wait_until 30 has_started 10
        unit stop sqmgr@app
        unit_is sqmgr@app ActiveState inactive
        unit_is sqmgr@app Result success
        app_count_is 0
        [ "$(jobs_done)" = 10 ]
        [ "$(jobs_run_twice)" = 0 ]
}

@test "several applications: each instance has its own user, config, socket and workers" {
        local name
        for name in shop post; do
                in_machine useradd --system "$name"
        done
        configure shop <<<'active_process_count = 2'
        configure mail-jobs <<<'active_process_count = 1'
        # An instance that is not named as its user.
        printf '[Service]\nUser=post\n' | put /etc/systemd/system/sqmgr@mail-jobs.service.d/user.conf
        unit daemon-reload
        unit enable --quiet --now sqmgr@shop sqmgr@mail-jobs
        socket=/run/sqmgr/shop/control.sock
        wait_until 60 ready 2
        shop=$(worker_pids)
        socket=/run/sqmgr/mail-jobs/control.sock
        wait_until 60 ready 1
        mail=$(worker_pids)
        [ "$(for pid in $shop $mail; do in_machine stat -c %U "/proc/$pid"; done | paste -sd ' ')" = 'shop shop post' ]
        for name in shop mail-jobs; do
                [ "$(in_machine sqmgrctl -i $name status --json | jq -r .pid)" = "$(main_pid sqmgr@$name)" ]
        done
        [ "$(in_machine sqmgrctl --complete -i '' | paste -sd ' ')" = 'mail-jobs shop' ]
        run ! unit start sqmgr@nobody
        logged 'Assertion failed for sqmgr@nobody.service'

        unit kill --kill-whom=main -s KILL sqmgr@shop sqmgr@mail-jobs
        wait_until 20 unit_is sqmgr@shop NRestarts 1
        wait_until 20 unit_is sqmgr@mail-jobs NRestarts 1
        wait_until 20 sqmgrctl ping
        [ "$(worker_pids)" = "$mail" ]
        unit stop sqmgr@mail-jobs
        unit reload sqmgr@shop
        socket=/run/sqmgr/shop/control.sock
        [ "$(worker_pids)" = "$shop" ]
}

@test "a user that cannot read its journal: workers log to a file that is rotated, and the tail of a dead one comes from there" {
        put /srv/app/fails <<'END'
echo "$1: no database.yml" >&2
exit 1
END
        put /etc/sqmgr/app.ini <<'END'
[fleet:one]
command = sh /srv/app/fails one
framework = plain
END
        unit enable --quiet --now sqmgr@app
        wait_until 30 fleet_is '.crash.quoted == "one: no database.yml" and .log == "/var/log/sqmgr/app/workers.log"'
        [ "$(in_machine stat -c %U /var/log/sqmgr/app/workers.log)" = app ]
        in_machine logrotate --force --state /root/rotated "$sysconfdir/logrotate.d/sqmgr"
        in_machine grep -qFx 'one: no database.yml' /var/log/sqmgr/app/workers.log.1

        # Members of this group read all of the journal.
        in_machine usermod --append --groups systemd-journal app
        unit restart sqmgr@app
        wait_until 30 fleet_is '.log == "journal" and .crash.quoted == "one: no database.yml"'
        # The crash before the restart counts, too: the worker may not have written to the journal yet.
        own_lines() { in_machine setpriv --reuid app --regid app --init-groups sqmgrctl -s "$socket" logs one; }
        in_journal() { own_lines | grep 'one/1.*no database.yml'; }
        wait_until 30 in_journal
        # Lines of another user under the name of a worker.
        in_machine setpriv --reuid nobody --regid nogroup --clear-groups systemd-cat -t one/1 echo forged
        wait_until 20 logged forged
        run ! grep forged <(sqmgrctl logs one)
}
sysconfdir=$(sed -n 's/^sysconfdir = //p' "$SQMGR_BUILD/Makefile")

@test "a user's own sqmgr: systemctl --user" {
        in_machine systemctl start systemd-logind
        uid=$(in_machine id -u app)
        in_machine loginctl enable-linger app
        wait_until 30 unit is-active "user@$uid.service"
        as_app() { in_machine setpriv --reuid app --regid app --init-groups env HOME=/home/app XDG_RUNTIME_DIR="/run/user/$uid" "$@"; }
        # shellcheck disable=SC2317 # other functions call it
        sqmgrctl() { as_app sqmgrctl "$@"; }

        configure own <<<'active_process_count = 2'
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
                ._SYSTEMD_UNIT == "sqmgr@app.service")' "$folder/crashed"
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
                entries "_PID=$pid" | jq -e --arg id "default/$index" 'all(.[]; .SYSLOG_IDENTIFIER == $id and ._SYSTEMD_UNIT == "sqmgr@app.service")'
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
        unit restart sqmgr@app
        wait_until 60 fleet_is '.template.state == "ready"'
        same_workers "$before"
        fleet_is 'all(.workers[]; .forked)'
        unit kill --kill-whom=main -s KILL sqmgr@app
        wait_until 20 unit_is sqmgr@app NRestarts 1
        wait_until 60 fleet_is '.template.state == "ready"'
        same_workers "$before"
        fleet_is 'all(.workers[]; .forked)'
        unit stop sqmgr@app
        app_count_is 0
        in_machine pgrep -u app >"$folder/left" || true
        [ ! -s "$folder/left" ]
}

status_of() { in_machine sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/status"; } # PID NAME
# shellcheck disable=SC2016
can_write() { # PID PATH
        in_machine nsenter -t "$1" -m setpriv --reuid app --regid app --clear-groups --inh-caps -all sh -c ': >"$1"' sh "$2" 2>/dev/null
}

@test "sandbox.conf: no process has privileges, and its user operates sqmgr" {
        put /etc/systemd/system/sqmgr@app.service.d/sandbox.conf <"$top/contrib/systemd/sandbox.conf"
        configure <<<'active_process_count = 2'
        start_service 2
        in_machine install -d -o app /srv/app/log
        for pid in $(main_pid) $(worker_pids); do
                for set in CapInh CapPrm CapEff CapBnd CapAmb; do
                        [ "$(status_of "$pid" $set)" = 0000000000000000 ]
                done
                [ "$(status_of "$pid" NoNewPrivs)" = 1 ]
                [ "$(status_of "$pid" Seccomp)" = 2 ]
                [ "$(in_machine ls "/proc/$pid/root/dev" | grep -cx -e null -e urandom -e kmsg -e fuse)" = 2 ]
                can_write "$pid" /srv/app/log/x
                can_write "$pid" /home/app/x
                not in_machine nsenter -t "$pid" -m touch /usr/local/x
        done
        echo "# systemd-analyze security: $(in_machine systemd-analyze security --no-pager sqmgr@app | grep -o 'exposure level.*[0-9.]* [A-Z]*')" >&3

        # Nothing here needs root.
        sqmgrctl() { in_machine setpriv --reuid app --regid app --init-groups env HOME=/home/app sqmgrctl -s "$socket" "$@"; }
        before=$(worker_pids)
        sqmgrctl reload
        sqmgrctl restart --wait=drained --timeout 300s
        [ "$(worker_pids)" != "$before" ]
        before=$(worker_pids) pid=$(main_pid)
        sqmgrctl reexec
        [ "$(main_pid)" = "$pid" ]
        same_workers "$before"
        unit kill --kill-whom=main -s KILL sqmgr@app
        wait_until 20 unit_is sqmgr@app NRestarts 1
        wait_until 20 sqmgrctl ping
        same_workers "$before"
        fleet_is '.generation == 2'
}

@test "if the system bus does not answer, a restart counts as a stop, within 2 s" {
        configure <<<'active_process_count = 2'
        start_service 2
        before=$(worker_pids)
        in_machine kill -STOP "$(main_pid dbus)"
        unit restart --no-block sqmgr@app
        wait_until 20 logged 'asked to exit by SIGTERM'
        wait_until 20 logged 'systemd does not report'
        in_machine kill -CONT "$(main_pid dbus)"
        wait_until 60 ready 2
        [ "$(worker_pids)" != "$before" ]
        before=$(worker_pids)
        unit stop dbus.socket dbus.service
        in_machine rm -f /run/dbus/system_bus_socket
        unit restart sqmgr@app
        [ "$(in_machine journalctl | grep -c 'systemd does not report')" = 2 ]
        wait_until 60 ready 2
        [ "$(worker_pids)" != "$before" ]
}
