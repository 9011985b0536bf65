# SPDX-License-Identifier: MIT
# Shared by `run` and the end-to-end tests: an example in $folder/app, its settings beside it, its databases. Needs the
# functions that contrib/demo/parts.bash needs.
# shellcheck shell=bash disable=SC2034,SC2154

examples=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)

# Sources the play.bash of the example, which defines `play`, and `prepare` if something must run before sqmgr.
take_example() { # NAME
        example=$examples/$1
        mkdir "$folder/app" && cp -r "$example"/. "$folder/app"
        sed "s|@folder@|$folder|g" "$example/sqmgr.ini" >"$folder/sqmgr.ini"
        prepare() { :; }
        # shellcheck disable=SC1091
        . "$example/play.bash"
}

start_example() { # NAME
        take_example "$1" && start_redis && prepare && start_sqmgr
}

postgres_answers() { pg_isready -q; }

# Starts a cluster that only its own user and root can reach, by a socket. Durability is off: its data is temporary.
start_postgres() {
        local programs as_server=()
        programs=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
        export PGHOST=$folder/pg/socket PGUSER=postgres PGDATABASE=postgres
        mkdir -p "$PGHOST" && chmod 700 "$folder/pg"
        # PostgreSQL refuses to run as root, and must be able to reach its own folder.
        if [ "$(id -u)" = 0 ]; then
                chmod a+x "$folder"
                as_server=(setpriv --reuid nobody --regid nogroup --clear-groups --)
                chown -R nobody:nogroup "$folder/pg"
        fi
        "${as_server[@]}" "$programs/initdb" -D "$folder/pg/data" -U postgres -A trust -E UTF8 --locale=C.UTF-8 --no-sync \
                >"$folder/postgres.log" 2>&1 || return 1
        launch postgres "${as_server[@]}" "$programs/postgres" -D "$folder/pg/data" -k "$PGHOST" -c listen_addresses= \
                -c fsync=off -c max_connections=200 -c dynamic_shared_memory_type=mmap
        postgres_pid=$!
        wait_until 20 postgres_answers
        # The shared memory of a killed server would survive. Shared memory in files is in the folder; the other kind,
        # marked for removal now, disappears with the last process that uses it.
        ipcrm -m "$(awk 'NR == 7 { print $2 }' "$folder/pg/data/postmaster.pid")"
}
