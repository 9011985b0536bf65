# SPDX-License-Identifier: MIT
# What `run` and the end-to-end tests share: an example in $folder/app, its settings beside it, its databases. Who sources
# it has what contrib/demo/parts.bash has.
# shellcheck shell=bash disable=SC2034,SC2154

examples=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)

# Defines `play`, and `prepare` where something is needed before sqmgr starts, in the words of the example's own play.bash.
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

# A cluster that only its own user and root can reach, by a socket. Nothing of it is worth a disk's time.
start_postgres() {
        local programs as_server=()
        programs=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
        export PGHOST=$folder/pg/socket PGUSER=postgres PGDATABASE=postgres
        mkdir -p "$PGHOST" && chmod 700 "$folder/pg"
        # It refuses to run as root, and has to reach its own folder.
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
        # Its shared memory would outlive one that is killed. What is in files is in the folder; the other, marked now, goes
        # with the last process that uses it.
        ipcrm -m "$(awk 'NR == 7 { print $2 }' "$folder/pg/data/postmaster.pid")"
}
