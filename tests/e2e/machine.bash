# SPDX-License-Identifier: MIT
# Shared by the tests of the service: each has its own machine with the real systemd as PID 1, sqmgr installed by `make
# install`, a Redis, and an application of the user `app`.
# shellcheck shell=bash disable=SC2154,SC2034
load helpers

# Installs the machine, by `DESTDIR=`.
# shellcheck disable=SC2016
installs=(sh -c 'cp -a "$0/." "${1#DESTDIR=}"' "$BATS_FILE_TMPDIR/installed")
# The instance that sqmgrctl asks.
socket=/run/sqmgr/app/control.sock

setup_file() { make -s -C "$SQMGR_BUILD" install DESTDIR="$BATS_FILE_TMPDIR/installed"; }

setup() {
        folder=$(mktemp -d /tmp/sqmgr-e2e.XXXXXX)
        exec 9> >(exec setsid "$e2e/machine" "$folder" "${installs[@]}" 3>&- >/dev/null 2>&1)
        machine=$!
        cd /
        wait_until 60 machine_answered
        [ ! -e "$folder/refused" ] || skip "$(cat "$folder/refused")"
        read -r init <"$folder/init"
        if [ "$(in_machine cat /etc/sqmgr-machine)" != "$folder" ]; then
                echo "what is entered through process $init is not the machine: nothing is run there"
                return 1
        fi
        wait_until 60 in_machine systemctl is-active basic.target

        in_machine useradd --create-home --shell /bin/bash app
        put /srv/app/app.rb <"$e2e/app.rb"
        # Services read what Ruby has compiled outside.
        compgen -G "$SQMGR_RUBY_CACHE/*" >/dev/null || RUBYOPT=-r$e2e/ruby_cache.rb sidekiq --version >/dev/null
        put /usr/local/lib/ruby_cache.rb <"$e2e/ruby_cache.rb"
        in_machine systemctl set-environment RUBYOPT=-r/usr/local/lib/ruby_cache.rb "SQMGR_RUBY_CACHE=$SQMGR_RUBY_CACHE"
        printf 'bind 127.0.0.1\nport 6379\ndir /var/lib/redis\nsave ""\n' | put /etc/redis/redis.conf
        in_machine systemctl start redis-server dbus
        wait_until 20 redis_answers
}

teardown() {
        if [ -z "${BATS_TEST_COMPLETED-}" ] && [ -n "${init-}" ]; then
                in_machine systemctl status 'sqmgr*' 2>&1
                in_machine journalctl -n 60 -t sqmgr -t sqmgrctl -t sqmgr-web -t systemd 2>&1
        elif [ -z "${BATS_TEST_COMPLETED-}" ]; then
                cat "$folder/machine.log"
        fi
        exec 9>&-
        wait "$machine" || true
        jobs >/dev/null 2>&1
}

machine_answered() { [ -e "$folder/init" ] || [ -e "$folder/refused" ]; }

in_machine() {
        nsenter -t "$init" -m -p -u -i -n -C env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
                LANG=C.UTF-8 PAGER=cat SYSTEMD_COLORS=0 "$@"
}
put() { in_machine install -D -m 644 /dev/stdin "$1"; } # PATH

redis() { in_machine redis-cli "$@"; }
sqmgrctl() { in_machine sqmgrctl -s "$socket" "$@"; }
unit() { in_machine systemctl "$@"; }
unit_is() { [ "$(unit show -p "$2" --value "$1")" = "$3" ]; } # UNIT PROPERTY VALUE
main_pid() { unit show -p MainPID --value "${1-sqmgr@app}"; }
entries() { in_machine journalctl -o json "$@" | jq -s .; } # MATCH...
logged() { in_machine journalctl | grep -q -e "$1"; } # TEXT

# Prints the processes of the application's user: workers, each one process. Processes of systemd are not counted.
app_pids() { in_machine pgrep -u app -f '^sidekiq |bin/sidekiq ' | sort -n | tr '\n' ' '; }
app_count_is() { [ "$(app_pids | wc -w)" = "$1" ]; }
same_workers() { [ "$(worker_pids)" = "$1" ] && app_count_is "$(wc -w <<<"$1")"; }

# Standard input has further lines of the fleet.
configure() { # [NAME]
        put "/etc/sqmgr/${1-app}.ini" <<END
[sqmgr]
check_interval = 500ms
${sqmgr_lines-}

[fleet:default]
command = sidekiq -r /srv/app/app.rb -c 5
directory = /srv/app
ready_after = 1s
$(cat)
END
}

start_service() { # WORKERS: waits until it is ready
        unit enable --quiet --now sqmgr@app
        wait_until 60 ready "$1"
}
