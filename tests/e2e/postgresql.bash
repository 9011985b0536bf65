# SPDX-License-Identifier: MIT
# A private PostgreSQL in $folder/pg, for tests that load helpers first: reached by a socket in $folder/pg/socket, and by a
# port of an address of this test. It ends with the test (contrib/demo/guard). No cluster of the system is touched.
# shellcheck shell=bash disable=SC2034,SC2154

postgresql_programs=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
# PostgreSQL refuses to run as root.
as_postgresql=()
[ "$(id -u)" != 0 ] || as_postgresql=(setpriv --reuid nobody --regid nogroup --clear-groups --)

sql() { psql -XAtq -v ON_ERROR_STOP=1 -c "$1"; } # STATEMENT
is_true() { [ "$(sql "select ($1)")" = t ]; }     # CONDITION
postgresql_answers() { pg_isready -q -t 1; }

# Makes the cluster, with a database `queue`, and starts it. Sets database_url (socket) and tcp_database_url.
start_postgresql() {
        export PGHOST=$folder/pg/socket PGUSER=postgres PGDATABASE=postgres
        mkdir -p "$PGHOST" && chmod a+x "$folder" && chmod 755 "$folder/pg" "$PGHOST"
        [ "${#as_postgresql[@]}" = 0 ] || chown -R nobody:nogroup "$folder/pg"
        if [ -d "$BATS_FILE_TMPDIR/cluster" ]; then # of an earlier test of the file
                cp -a "$BATS_FILE_TMPDIR/cluster" "$folder/pg/data"
        else
                "${as_postgresql[@]}" "$postgresql_programs/initdb" -D "$folder/pg/data" -U postgres -A trust -E UTF8 \
                        --locale=C.UTF-8 --no-sync --wal-segsize=1 >"$folder/postgresql.log" 2>&1 || return 1
                cp -a "$folder/pg/data" "$BATS_FILE_TMPDIR/cluster"
        fi
        postgresql_address=127.$((RANDOM % 254 + 1)).$((RANDOM % 254 + 1)).1
        restart_postgresql
        sql 'create database queue'
        export PGDATABASE=queue
        # Rails reads no user before an empty host.
        database_url="postgresql:///queue?host=$PGHOST&user=postgres"
        tcp_database_url=postgresql://postgres@$postgresql_address/queue
}

# Starts the server, or starts it again after its end. Sets postgresql_pid.
restart_postgresql() {
        # Files of a killed server that still wait for its last children would refuse the next one.
        launch postgresql "${as_postgresql[@]}" "$postgresql_programs/postgres" -D "$folder/pg/data" -k "$PGHOST" \
                -c "listen_addresses=$postgresql_address" -c fsync=off -c max_connections=200 \
                -c dynamic_shared_memory_type=mmap
        postgresql_pid=$!
        wait_until 20 postgresql_answers
        # The shared memory of a killed server would survive. Shared memory in files is in the folder; the other kind,
        # marked for removal now, disappears with the last process that uses it.
        ipcrm -m "$(awk 'NR == 7 { print $2 }' "$folder/pg/data/postmaster.pid")"
}

# The server and its processes; one a line.
postgresql_processes() { echo "$postgresql_pid" && pgrep -P "$postgresql_pid"; }

kill_postgresql() { # after this, connections are lost
        local pids
        mapfile -t pids < <(postgresql_processes)
        kill -KILL "${pids[@]}" 2>/dev/null || true
        wait_until 20 gone "${pids[@]}"
        rm -f "$folder/pg/data/postmaster.pid" "$PGHOST"/.s.PGSQL*
}

freeze_postgresql() {
        local pids
        # A process that was started meanwhile is frozen, too.
        kill -STOP "$postgresql_pid"
        mapfile -t pids < <(postgresql_processes)
        kill -STOP "${pids[@]}" 2>/dev/null || true
}
thaw_postgresql() {
        local pids
        mapfile -t pids < <(postgresql_processes)
        kill -CONT "${pids[@]}" 2>/dev/null || true
}
