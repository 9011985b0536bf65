#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# sqmgr-app@USER.service: the sqmgr of one application, run as its user, under the real systemd.
# seconds: 25
# promises: P1 P4
# shellcheck disable=SC2030,SC2031,SC2034
load machine

app=sqmgr-app@app
as_app() { in_machine setpriv --reuid app --regid app --init-groups env HOME=/home/app "$@"; }
# The application's user sets no socket.
sqmgrctl() { as_app sqmgrctl "$@"; }

# Root's part: enables the unit, and gives the settings to the user. Standard input has more lines of [sqmgr].
install_app() { # [COMMAND FRAMEWORK]
        put /root/app.ini <<END_OF_INI
[sqmgr]
check_interval = 500ms
state_file = /var/lib/sqmgr-app/app/state
$(cat)

[fleet:default]
command = ${1-sidekiq -r /srv/app/app.rb -c 5}
framework = ${2-sidekiq}
directory = /srv/app
log = /var/log/sqmgr-app/app/worker.log
active_process_count = 2
ready_after = 1s
END_OF_INI
        in_machine install -D -o app -g app -m 640 /root/app.ini /etc/sqmgr/app/app.ini
        in_machine install -d -o app /srv/app/log
        unit enable --quiet --now $app
        wait_until 60 ready 2
}

status_of() { in_machine sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/status"; } # PID NAME
# shellcheck disable=SC2016
can_write() { # PID PATH
        in_machine nsenter -t "$1" -m setpriv --reuid app --regid app --clear-groups --inh-caps -all sh -c ': >"$1"' sh "$2" 2>/dev/null
}

@test "no process of the unit is privileged; its user operates it; restart and kill -9 keep the workers, stop drains" {
        unit start dbus
        # A running job, which finishes shortly after TERM.
        put /srv/app/work <<'END_OF_SCRIPT'
trap 'sleep 1; echo done >>/srv/app/log/done; exit' TERM
while :; do sleep 0.1; done
END_OF_SCRIPT
        install_app 'sh /srv/app/work' plain </dev/null
        before=$(worker_pids)
        for pid in $(main_pid $app) $before; do
                [ "$(in_machine stat -c %U "/proc/$pid")" = app ]
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
        for pid in $before; do
                run ! in_machine grep -qzE '^(NOTIFY_SOCKET|[A-Z]*_DIRECTORY)=' "/proc/$pid/environ"
        done
        [ "$(in_machine stat -c %a:%U /run/sqmgr-app /run/sqmgr-app/app /run/sqmgr-app/app/control.sock \
                /var/lib/sqmgr-app/app /var/log/sqmgr-app/app | tr '\n' ' ')" = '755:root 755:app 660:app 700:app 750:app ' ]

        # Actions that need no root: change the settings, deploy a release, re-execute another sqmgr.
        as_app tee -a /etc/sqmgr/app/app.ini <<<'max_age = 7d' >/dev/null
        sqmgrctl reload
        unit reload $app
        sqmgrctl restart --wait=drained --timeout 300s
        [ "$(worker_pids)" != "$before" ]
        [ "$(in_machine cat /srv/app/log/done | wc -l)" = 2 ]
        before=$(worker_pids) pid=$(main_pid $app)
        sqmgrctl reexec
        [ "$(main_pid $app)" = "$pid" ]
        [ "$(worker_pids)" = "$before" ]

        unit restart $app
        [ "$(main_pid $app)" != "$pid" ]
        wait_until 20 sqmgrctl ping
        [ "$(worker_pids)" = "$before" ]
        unit kill --kill-whom=main -s KILL $app
        wait_until 20 unit_is $app NRestarts 1
        wait_until 20 sqmgrctl ping
        [ "$(worker_pids)" = "$before" ]
        fleet_is '.generation == 2'
        unit stop $app
        unit_is $app Result success
        run ! in_machine pgrep -u app
        [ "$(in_machine cat /srv/app/log/done | wc -l)" = 4 ]
        not logged 'systemd does not report'
}

@test "if the system bus does not answer, a restart counts as a stop, within 2 s" {
        unit start dbus
        install_app 'sleep infinity' plain </dev/null
        before=$(worker_pids)
        in_machine kill -STOP "$(main_pid dbus)"
        unit restart --no-block $app
        wait_until 20 logged 'asked to exit by SIGTERM'
        wait_until 20 logged 'systemd does not report'
        in_machine kill -CONT "$(main_pid dbus)"
        wait_until 60 ready 2
        [ "$(worker_pids)" != "$before" ]
        before=$(worker_pids)
        unit stop dbus.socket dbus.service
        in_machine rm -f /run/dbus/system_bus_socket
        unit restart $app
        [ "$(in_machine journalctl | grep -c 'systemd does not report')" = 2 ]
        wait_until 60 ready 2
        [ "$(worker_pids)" != "$before" ]
}

@test "shutdown of the machine drains the workers first, whatever on_stop is" {
        # Delays the shutdown of the machine, so that the test can check it.
        put /etc/systemd/system/hold.service <<'END_OF_UNIT'
[Unit]
DefaultDependencies=no
Conflicts=shutdown.target
Before=shutdown.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/true
ExecStop=/bin/sleep infinity
TimeoutStopSec=infinity
END_OF_UNIT
        unit start hold dbus
        install_app <<<$'on_stop = leave\nshutdown_timeout = 1s'
        unit poweroff --no-block
        wait_until 60 unit_is $app ActiveState inactive
        app_count_is 0
        logged 'draining all workers'
}
