#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The Debian package on a machine with the real systemd: upgrades under load to working and broken packages, downgrade,
# removal and purge. The next package is this one with the programs of a made-up next version (tests/next.edit).
# seconds: 300
# promises: P1 P4
# bats file_tags=root
# shellcheck disable=SC2016,SC2030,SC2031,SC2034
load package

next=$SQMGR_BUILD/../next

setup_file() {
        make_package
        "$BATS_TEST_DIRNAME/build-next" "$next" 3>&-
}

# Repacks the package with another version and optionally other programs.
repack() { # VERSION [SQMGR [SQMGRCTL]]: its file
        local tree=$folder/tree.$1
        dpkg-deb -R "$(package)" "$tree"
        sed -i "s/^Version: .*/Version: $1/" "$tree/DEBIAN/control"
        [ -z "${2-}" ] || install -m 755 "$2" "$tree/usr/sbin/sqmgr"
        # sqmgr of a build finds its programs beside it.
        [ ! -e "${2-}-start" ] || install -m 755 "$2"-{proc-reader,start,journal} "$tree/usr/sbin"
        [ -z "${3-}" ] || install -m 755 "$3" "$tree/usr/bin/sqmgrctl"
        [ "${2-}" != "$folder/unrunnable" ] || chmod 644 "$tree/usr/sbin/sqmgr"
        dpkg-deb --root-owner-group -Zgzip -z1 -b "$tree" "$folder/$1.deb" >/dev/null
        echo "$folder/$1.deb"
}

repack_next() { repack "9.0.0-$1" "$next/main/sqmgr" "$next/main/sqmgrctl"; } # REVISION

# Repacks another package for that one.
repack_other() { # NAME VERSION: its file
        local tree=$folder/$1.$2
        dpkg-deb -R "$(package "$1")" "$tree"
        sed -i -e "s/^Version: .*/Version: $2/" -e "s/sqmgr (= [^)]*)/sqmgr (= $2)/" "$tree/DEBIAN/control"
        dpkg-deb --root-owner-group -b "$tree" "$folder/$1.$2.deb" >/dev/null
        echo "$folder/$1.$2.deb"
}

quoted() { in_machine journalctl -o verbose | grep -q -e "$1"; } # TEXT: what sqmgr has quoted in the journal

status_is() { [ "$(in_machine dpkg-query -W -f '${db:Status-Abbrev}' sqmgr)" = "$1 " ]; } # LETTERS

shop() { socket=/run/sqmgr/shop/control.sock "$@"; }

# Prints the process of sqmgr and of each worker, with its start time.
processes() {
        local pid stat
        for pid in $(main_pid) $(main_pid sqmgr@shop) $(app_pids); do
                stat=$(in_machine cat "/proc/$pid/stat")
                read -r -a stat <<<"${stat##*) }"
                echo "$pid ${stat[19]}"
        done
}
runs_the_installed() { # [UNIT]
        [ "$(in_machine stat -Lc %d:%i "/proc/$(main_pid "${1-sqmgr@app}")/exe")" = "$(in_machine stat -c %d:%i /usr/sbin/sqmgr)" ]
}

# A busy fleet, and an instance with a halted restart: its release does not boot.
begin_both() {
        configure <<<'active_process_count = 2'
        put /etc/sqmgr/shop.ini <<'END'
[sqmgr]
check_interval = 500ms

[fleet:default]
command = sidekiq -r ./app.rb -c 2 -q shop
directory = /srv/shop
ready_after = 1s
END
        printf '[Service]\nUser=app\n' | put /etc/systemd/system/sqmgr@shop.service.d/user.conf
        unit daemon-reload
        put /srv/shop/app.rb <"$e2e/app.rb"
        unit enable --quiet --now sqmgr@app sqmgr@shop
        wait_until 90 ready 2
        shop wait_until 90 ready 1
        put /srv/shop/app.rb <<<'raise "this release has no database.yml"'
        run -1 shop sqmgrctl restart --wait --timeout 300s
        wait_until 30 shop_is_unchanged
        wait_until 30 app_count_is 3
        began=$(starts) were=$(processes)
        [ "$(wc -l <<<"$were")" = 5 ]
}
shop_is_unchanged() { shop fleet_is '.rollout.state == "halted" and .active == 1 and .generation == 2'; }
starts() { unit show -p NRestarts,ExecMainStartTimestampMonotonic sqmgr@app sqmgr@shop; }

# Unchanged except for the program: nothing was started, stopped or ended.
is_unchanged() {
        [ "$(processes)" = "$were" ] && [ "$(starts)" = "$began" ] && shop_is_unchanged
}
all_done_once() { # JOBS
        wait_until 120 has_done "$1"
        [ "$(jobs_started)" = "$1" ]
        [ "$(jobs_run_twice)" = 0 ]
}

@test "debian/tests: the installed package as a service, and without systemd" {
        dpkg_i "$(repack "$version-1")" "$(repack_other sqmgr-web "$version-1")"
        redis flushall
        unit stop redis-server
        (cd "$top" && tar -cf - debian/tests tests/e2e/app.rb) | in_machine tar -C /root --no-same-owner -xf -
        in_machine /root/debian/tests/without-systemd
        in_machine /root/debian/tests/service
}

database_lacks() { [[ $(sqmgrctl status --json | jq -r '.redis[0].error') == *"install the package $1" ]]; } # PACKAGE
database_is() { sqmgrctl status --json | jq -e ".redis[0].state == \"$1\"" >/dev/null; }                       # STATE

# A fleet whose heartbeats are in a database that this package reads.
needs_package() { # PACKAGE URL
        put /etc/sqmgr/app.ini <<END
[fleet:default]
framework = solid_queue
command = /bin/sh -c "exec sleep infinity" -- --mode async
directory = /srv/queue
database_url = $2
END
        unit restart sqmgr@app
        wait_until 60 database_lacks "$1"
        database_is down
        dpkg_i "$(repack_other "$1" "$version-1")"
        wait_until 60 not database_lacks "$1"
}

@test "sqmgr-sqlite, sqmgr-postgresql: a database is down and names the package until that is installed" {
        dpkg_i "$(repack "$version-1")"
        in_machine install -d -o app /srv/queue
        in_machine setpriv --reuid app --regid app --init-groups sqlite3 /srv/queue/queue.sqlite3 \
                <"$top/tests/frameworks/solid_queue/sqlite.sql"
        needs_package sqmgr-postgresql postgresql://%2Fsrv%2Fqueue/none
        database_is down
        needs_package sqmgr-sqlite sqlite3:/srv/queue/queue.sqlite3
        wait_until 60 database_is connected
        in_machine dpkg -P sqmgr-sqlite sqmgr-postgresql
}

# An sqmgr that is no service, of a user `own`; sets $own.
begin_own() {
        in_machine useradd --create-home own
        put /home/own/sqmgr.ini <<'END'
[sqmgr]
socket = /home/own/sqmgr.sock

[fleet:own]
command = sidekiq -r /srv/app/app.rb -c 1 -q own
ready_after = 1s
END
        as_own setsid -f /usr/sbin/sqmgr -c /home/own/sqmgr.ini </dev/null >/dev/null 2>&1 3>&- 9>&-
        wait_until 90 own_ready
        own=$(in_machine pgrep -u own -x sqmgr)
}
as_own() { in_machine setpriv --reuid own --regid own --init-groups env HOME=/home/own "$@"; }
own_status() { in_machine sqmgrctl -s /home/own/sqmgr.sock status --json; }
own_ready() { local status_json && status_json=$(own_status) && jq -e '.fleets[0].workers | length == 1 and all(.[]; .ready)' <<<"$status_json"; }
own_workers() { own_status | jq -r '[.fleets[].workers[].pid] | join(" ")'; }
own_runs_the_installed() {
        [ "$(in_machine stat -Lc %d:%i "/proc/$own/exe")" = "$(in_machine stat -c %d:%i /usr/sbin/sqmgr)" ]
}

@test "upgrade under load: each instance re-executes in its process, and no worker, job or order is affected" {
        dpkg_i "$(repack "$version-1")"
        begin_both
        begin_own
        own_had=$(own_workers)
        rounds=${SQMGR_LONG:+10}
        enqueue $((100 * ${rounds:-1})) Sleep 1
        wait_until 20 has_started 5
        run -0 dpkg_i "$(repack_next 1)"
        echo "$output"
        [[ $output == *"sqmgr: sqmgr@app.service runs the installed sqmgr, in the same process (pid $(main_pid))"* ]]
        [[ $output == *"sqmgr: sqmgr@shop.service runs the installed sqmgr, in the same process (pid $(main_pid sqmgr@shop))"* ]]
        is_unchanged
        runs_the_installed
        runs_the_installed sqmgr@shop
        status_is ii

        [[ $output == *"sqmgr: process $own of own still runs the old sqmgr: to replace it, run 'kill -USR2 $own' as own"* ]]
        not own_runs_the_installed
        as_own kill -USR2 "$own"
        wait_until 30 own_runs_the_installed
        wait_until 30 own_ready
        [ "$(own_workers)" = "$own_had" ]

        for ((round = 2; round <= ${rounds:-1}; round++)); do
                dpkg_i "$(repack_next "$round")"
                is_unchanged
                runs_the_installed
        done
        all_done_once $((100 * ${rounds:-1}))
        wait_until 30 ready 2
        is_unchanged
        put /srv/shop/app.rb <"$e2e/app.rb"
        shop sqmgrctl restart --wait --timeout 300s
}

@test "upgrade to a program that fails or refuses: the old one keeps running, dpkg warns, and the next upgrade fixes it" {
        dpkg_i "$(repack "$version-1")"
        begin_both
        enqueue 60 Sleep 1
        wait_until 20 has_started 5
        printf '#!/bin/sh\necho "I do not run"\nexit 3\n' >"$folder/ending"
        printf '#!/bin/sh\n' >"$folder/unrunnable"
        printf '\177ELF' >"$folder/garbled"
        printf '#!/bin/sh\nexit 0\n' >"$folder/silent"
        for broken in ending unrunnable garbled silent; do
                run -0 dpkg_i "$(repack "9.0.0-$broken" "$folder/$broken")"
                echo "$output"
                [[ $output == *"sqmgr: sqmgr@app.service still runs the old sqmgr"* ]]
                [[ $output == *"sqmgr: sqmgr@shop.service still runs the old sqmgr"* ]]
                status_is ii
                is_unchanged
                fleet_is '.active == 2'
        done
        quoted 'I do not run'
        run -0 dpkg_i "$(repack 9.0.1-1)"
        status_is ii
        is_unchanged
        runs_the_installed

        # Errors in the settings of one instance.
        in_machine sed -i '$a nonsense = 1' /etc/sqmgr/shop.ini
        run -0 dpkg_i "$(repack 9.0.2-1)"
        [[ $output == *"sqmgr: sqmgr@shop.service still runs the old sqmgr"* ]]
        quoted "shop.ini:.*unknown key 'nonsense'"
        is_unchanged
        runs_the_installed
        in_machine sed -i '/^nonsense/d' /etc/sqmgr/shop.ini
        shop sqmgrctl reexec
        is_unchanged
        runs_the_installed sqmgr@shop
        all_done_once 60
}

@test "downgrade: the older program cannot read the state, so the newer keeps running; after a fresh start the older finds the workers" {
        older=$(repack "$version-1")
        newer=$(repack_next 1)
        dpkg_i "$newer"
        configure <<<'active_process_count = 1'
        start_service 1
        pids=$(worker_pids) pid=$(main_pid)
        run -0 dpkg_i "$older"
        echo "$output"
        [[ $output == *'dpkg: warning: downgrading sqmgr'*"sqmgr@app.service still runs the old sqmgr"* ]]
        [ "$(worker_pids)" = "$pids" ] && [ "$(main_pid)" = "$pid" ]

        in_machine systemctl restart sqmgr@app
        wait_until 30 runs_the_installed
        wait_until 30 ready 1
        [ "$(worker_pids)" = "$pids" ]
        run -0 dpkg_i "$newer"
        status_is ii
        [ "$(worker_pids)" = "$pids" ]
        runs_the_installed
}

@test "a first installation prints the next steps, and is refused while an sqmgr runs as root" {
        run -0 dpkg_i "$(repack "$version-1")"
        echo "$output"
        [[ $output == *"1. Copy the sample"*"2. Check it: "*"3. Start it: "*"systemctl enable --now sqmgr@app"* ]]
        # The steps.
        in_machine install -m 640 -g app /usr/share/doc/sqmgr/examples/sqmgr.ini /etc/sqmgr/app.ini
        in_machine sed -i -e 's|/srv/myapp/current|/srv/app|' -e 's|^command = .*|command = sidekiq -r ./app.rb|' /etc/sqmgr/app.ini
        in_machine runuser -u app -- sqmgr --check-config
        unit enable --quiet --now sqmgr@app
        wait_until 60 ready 1

        printf '[fleet:root]\ncommand = sleep infinity\nframework = plain\n' | put /etc/sqmgr/root.ini
        unit start sqmgr@root
        pid=$(main_pid sqmgr@root)
        run -1 dpkg_i "$(repack "$version-2")"
        [[ $output == *"sqmgr: process $pid is an sqmgr that runs as root. "*"systemctl disable --now sqmgr"* ]]
        status_is ii
        unit stop sqmgr@root
        run -0 dpkg_i "$folder/$version-2.deb"
        [[ $output != *'nothing runs yet'* ]]
}

# Replaces the file as dpkg does.
replace() { # LIBRARY [BYTES]: only its first BYTES
        in_machine sh -c 'cp -p "$0" "$0.new" && truncate -s "${1:-+0}" "$0.new" && mv "$0.new" "$0"' "$@"
}
maps_what_is_gone() { in_machine grep -q 'libinih.*(deleted)' "/proc/$(main_pid "$1")/maps"; } # UNIT

@test "a library upgrade: needrestart re-executes the instances that are linked" {
        put /root/needrestart.deb <"$(needrestart_deb)"
        in_machine dpkg -x /root/needrestart.deb /
        dpkg_i "$(repack "$version-1")"
        begin_both
        enqueue 40 Sleep 1
        library=$(in_machine sed -n 's/.* \(\/.*libinih[^ ]*\)$/\1/p' "/proc/$(main_pid)/maps" | head -n 1)
        in_machine ln -s sqmgr@.service /etc/needrestart/restart.d/sqmgr@app.service
        run -0 needrestart_list
        [[ $output != *'sqmgr'* ]]

        replace "$library"
        run -0 needrestart_list
        [[ $output == *'sqmgr: sqmgr@app.service was asked to load the installed libraries'* ]]
        [[ $output == *'being deferred:'*'sqmgr@shop.service'* ]]
        wait_until 30 not maps_what_is_gone sqmgr@app
        maps_what_is_gone sqmgr@shop

        # A library that does not load.
        in_machine ln -s sqmgr@.service /etc/needrestart/restart.d/sqmgr@shop.service
        in_machine cp "$library" /root/library
        replace "$library" 100
        run -0 needrestart_list
        [[ $output == *'sqmgr: sqmgr@shop.service was asked to load the installed libraries'* ]]
        wait_until 30 logged 're-exec refused'
        is_unchanged
        in_machine mv /root/library "$library"
        run -0 needrestart_list
        wait_until 30 not maps_what_is_gone sqmgr@shop
        all_done_once 40
        is_unchanged
}
needrestart_list() { in_machine env DEBIAN_FRONTEND=noninteractive needrestart -r a -l; }

web() { in_machine ruby -rnet/http -e 'puts Net::HTTP.get_response(URI("http://127.0.0.1:7433#{ARGV[0]}")).code' "$1"; } # PATH
web_is() { [ "$(web "$1" 2>/dev/null)" = "$2" ]; }

@test "sqmgr-web has its own user, is restarted by an upgrade and removed by a purge, without an effect on sqmgr" {
        before_all=$(web_files)
        dpkg_i "$(repack "$version-1")" "$(repack_other sqmgr-web "$version-1")"
        run -1 unit is-enabled sqmgr-web
        run ! unit is-active sqmgr-web
        configure <<<'active_process_count = 1'
        unit enable --quiet --now sqmgr-web
        wait_until 30 web_is /healthz 200
        wait_until 30 web_is /readyz 503
        start_service 1
        wait_until 30 web_is /readyz 200
        pid=$(main_pid sqmgr-web) sqmgr=$(main_pid) pids=$(worker_pids)
        [ "$(in_machine stat -c %U "/proc/$pid")" != root ]
        [ "$(in_machine sed -n 's/^CapEff:[[:space:]]*//p' "/proc/$pid/status")" = 0000000000000000 ]
        wait_until 30 in_machine test -s /var/lib/private/sqmgr-web/history

        dpkg_i "$(repack "$version-2")" "$(repack_other sqmgr-web "$version-2")"
        wait_until 30 web_is /readyz 200
        [ "$(main_pid sqmgr-web)" != "$pid" ]
        [ "$(main_pid)" = "$sqmgr" ] && [ "$(worker_pids)" = "$pids" ]
        unit kill -s KILL sqmgr-web
        wait_until 30 web_is /readyz 200

        in_machine dpkg -P sqmgr-web
        run ! unit is-active sqmgr-web
        [ "$(main_pid)" = "$sqmgr" ] && [ "$(worker_pids)" = "$pids" ]
        [ "$(web_files)" = "$before_all" ] || diff <(echo "$before_all") <(web_files)
}
# The checkout, of which another group of tests may build a part, is not the machine's.
web_files() { in_machine find /etc /run /usr /var -path "$top" -prune -o ! -path '/run/systemd/*' -name '*sqmgr-web*' -print | sort; }

# Everything that the package, its scripts and sqmgr leave on the machine, and the user.
left() { in_machine find /etc /run /usr /var /root -path "$top" -prune -o -name '*sqmgr*' ! -path '/root/sqmgr*.deb' ! -path /etc/sqmgr-machine -print | sort; }

@test "removal drains and names surviving workers, which a new installation adopts; purge leaves nothing" {
        before_all=$(left)
        deb=$(repack "$version-1")
        dpkg_i "$deb"
        begin_both
        begin_own
        in_machine sed -i 's/^\[sqmgr\]/&\non_stop = leave/' /etc/sqmgr/shop.ini
        unit reload sqmgr@shop
        kept=$(shop worker_pids)
        # Another process of its user, whose name imitates a message of the package.
        in_machine setpriv --reuid app --regid app --init-groups \
                perl -e '$0 = "\e[31mred\nall is well"; sleep 1000' 3>&- 9>&- &
        wait_until 20 in_machine pgrep -u app red
        loud=$(in_machine pgrep -u app red)
        in_machine sh -c 'echo "$1" >"/sys/fs/cgroup$(systemctl show -p ControlGroup --value sqmgr@shop)/cgroup.procs"' sh "$loud"
        enqueue 10 Sleep 5
        wait_until 30 has_started 10
        run -0 in_machine dpkg -r sqmgr
        echo "$output"
        [[ $output == *'sqmgr: stopping sqmgr@app.service (2 of 2 workers active, 0 starting, 0 draining)'* ]]
        [[ $output == *"sqmgr: process $kept of app, of sqmgr@shop.service, keeps running without a supervisor: "* ]]
        [[ $output == *"sqmgr: process $loud of app, of sqmgr@shop.service, keeps running without a supervisor: [31mredall is"* ]]
        in_machine kill "$loud"
        [[ $output == *"sqmgr: process $own of own is an sqmgr outside of the system's services; it keeps running without its program file. To stop it, run 'kill $own'"* ]]
        [ "$(jobs_done)" = 10 ]
        [ "$(jobs_run_twice)" = 0 ]
        [ "$(app_pids)" = "$kept " ]
        status_is rc
        in_machine kill "$own"
        wait_until 30 not in_machine test -e "/proc/$own"

        run -0 dpkg_i "$deb"
        unit is-active sqmgr@shop && false
        unit start sqmgr@shop
        shop wait_until 30 fleet_is '.active == 1 and .rollout.state == "halted"'
        [ "$(shop worker_pids)" = "$kept" ]

        run -0 in_machine dpkg -P sqmgr
        echo "$output"
        [[ $output == *"sqmgr: /run/sqmgr is kept: these processes still run: $kept."* ]]
        in_machine test -e /run/sqmgr/shop/state
        in_machine kill -KILL "$kept"

        dpkg_i "$deb"
        put /var/log/sqmgr/app/workers.log <<<'a log'
        run -0 in_machine dpkg -P sqmgr
        in_machine rm -r /etc/sqmgr /etc/systemd/system/sqmgr@shop.service.d
        [ "$(left)" = "$before_all" ] || diff <(echo "$before_all") <(left)
        in_machine getent group sqmgr
}
