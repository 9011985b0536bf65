#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Redis over TLS: the server proves its identity, and so does sqmgr if requested.
# seconds: 50
# promises: P10
# shellcheck disable=SC1091,SC2034
load helpers
. "$BATS_TEST_DIRNAME/tls.bash"

configure_tls() { # LINE...
        redis_lines=$(printf '%s\n' "$@") configure <<END
command = $(stub_command)
ready_after = 500ms
END
}

is_refused_for() { # TEXT
        start_sqmgr
        wait_until 20 grep -F "$1" "$folder/sqmgr.log"
        redis_state_is down
        kill -KILL "$sqmgr_pid"
        wait_until 10 gone "$sqmgr_pid"
        : >"$folder/sqmgr.log"
}

@test "rediss:// with a client certificate: workers are seen and restarted, through outages of Redis" {
        start_tls_redis --tls-auth-clients yes
        configure_tls "tls_ca_file = $folder/ca.crt" "tls_cert_file = $folder/client.crt" \
                "tls_key_file = $folder/client.key"
        start_ready 1
        run -0 sqmgrctl restart --wait=drained --timeout 300s
        # A reply of more than one TLS record.
        redis eval 'for i = 1, 300 do redis.call("SADD", KEYS[1], ARGV[1] .. ":" .. i .. ":" .. string.rep("0", 200)) end' \
                1 processes "$(hostname)"
        run -0 sqmgrctl restart --wait=drained --timeout 300s
        redis client kill type normal skipme no || true
        wait_until 20 grep -F 'connection lost' "$folder/sqmgr.log"
        wait_until 20 redis_state_is connected
        kill -STOP "$redis_pid"
        wait_until 20 redis_state_is down
        kill -CONT "$redis_pid"
        wait_until 20 ready 1
}

@test "with rediss:// the Sentinels are queried over TLS" {
        start_tls_redis --tls-auth-clients yes --tls-replication yes
        start_tls_sentinel
        redis_url=rediss://elsewhere.invalid
        configure_tls "sentinels = $address" 'master_name = mymaster' "tls_ca_file = $folder/ca.crt" \
                "tls_cert_file = $folder/client.crt" "tls_key_file = $folder/client.key"
        start_ready 1
        sqmgrctl status | grep -F "redis rediss://mymaster/0 connected to $address:6379"
}

@test "a server or a client that does not prove its identity is refused, with the reason" {
        start_tls_redis --tls-auth-clients yes
        configure_tls "tls_ca_file = $folder/ca.crt"
        is_refused_for 'certificate required'
        make_cert other other
        configure_tls "tls_ca_file = $folder/other.crt"
        is_refused_for "server certificate rejected: "
        configure_tls
        is_refused_for "server certificate rejected: "
        # The certificate has another name.
        kill -KILL "$redis_pid"
        wait "$redis_pid" || true
        launch named redis-server --bind "$address" --port 0 --tls-port 6379 --tls-cert-file "$folder/client.crt" \
                --tls-key-file "$folder/client.key" --tls-ca-cert-file "$folder/ca.crt" --tls-auth-clients no
        redis_url=rediss://$address
        configure_tls "tls_ca_file = $folder/ca.crt"
        is_refused_for "server certificate rejected: IP address mismatch"
}

@test "tls_verify = no: a server whose certificate cannot be checked is used, and a problem warns" {
        start_tls_redis
        make_cert other other
        kill -KILL "$redis_pid"
        wait "$redis_pid" || true
        launch unknown redis-server --bind "$address" --port 0 --tls-port 6379 --tls-cert-file "$folder/other.crt" \
                --tls-key-file "$folder/other.key" --tls-ca-cert-file "$folder/other.crt" --tls-auth-clients no \
                --unixsocket "$folder/redis.sock" --dir "$folder" --save ''
        wait_until 10 redis_answers
        configure_tls 'tls_verify = no'
        start_ready 1
        sqmgrctl status --json | jq -e '.problems[] | select(.code == "tls-unverified")'
        configure_tls
        run -0 sqmgrctl reload
        [[ $output == *tls_verify* ]]
}

@test "a server without TLS is refused, with the reason" {
        address=127.$((RANDOM % 254 + 1)).$((RANDOM % 254 + 1)).1
        launch redis redis-server --bind "$address" --port 6379 --unixsocket "$folder/redis.sock" --save ''
        wait_until 10 redis_answers
        redis_url=rediss://$address
        configure_tls
        is_refused_for 'Check that the server accepts TLS on this port'
}

@test "the host name is sent to the server, which may have several (SNI)" {
        make_cert ca ca
        make_cert right ca DNS:localhost
        make_cert wrong ca DNS:elsewhere
        port=$(unused_port localhost)
        # Exits at the end of its input.
        launch server bash -c "exec openssl s_server -accept $port -cert wrong.crt -key wrong.key \
                -servername localhost -cert2 right.crt -key2 right.key < <(exec sleep 1000)"
        redis_url=rediss://localhost:$port
        configure_tls "tls_ca_file = $folder/ca.crt"
        start_sqmgr
        wait_until 20 grep 'no reply in time$' "$folder/sqmgr.log"
        not grep -F 'certificate' "$folder/sqmgr.log"
}

@test "TLS files: errors are reported by file and line" {
        make_cert ca ca
        make_cert client ca DNS:client
        make_cert other ca DNS:other
        redis_url=rediss://127.0.0.1:1
        configure_tls "tls_cert_file = $folder/client.crt" "tls_key_file = $folder/other.key"
        run -78 sqmgr --check-config -c "$folder/sqmgr.ini"
        [[ $output == *"sqmgr.ini:9: tls_key_file = $folder/other.key: key values mismatch"* ]]
        configure_tls "tls_ca_file = $folder/nowhere.crt"
        run -78 sqmgr --check-config -c "$folder/sqmgr.ini"
        [[ $output == *"sqmgr.ini:8: tls_ca_file $folder/nowhere.crt: cannot open: No such file"* ]]
        configure_tls "tls_ca_file = $folder/client.key"
        run -78 sqmgr --check-config -c "$folder/sqmgr.ini"
        [[ $output == *"sqmgr.ini:8: tls_ca_file = $folder/client.key: "* ]]
        chmod 666 client.key
        configure_tls "tls_cert_file = $folder/client.crt" "tls_key_file = $folder/client.key"
        run -78 sqmgr --check-config -c "$folder/sqmgr.ini"
        [[ $output == *"sqmgr.ini:9: tls_key_file $folder/client.key: writable by others (mode 0666); run 'chmod go-w $folder/client.key'"* ]]
}
