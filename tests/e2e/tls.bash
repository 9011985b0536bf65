# SPDX-License-Identifier: MIT
# Shared by the tests of Redis over TLS.
# shellcheck shell=bash disable=SC2034,SC2154


# Creates NAME.key and NAME.crt, signed by CA; self-signed if CA is NAME.
make_cert() { # NAME CA SUBJECT-ALTERNATIVE-NAMES
        local name=$1 ca=$2
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$name" \
                -keyout "$name.key" -out "$name.csr" 2>/dev/null
        if [ "$name" = "$ca" ]; then
                openssl x509 -req -in "$name.csr" -signkey "$name.key" -days 2 -out "$name.crt" \
                        -extfile <(echo basicConstraints=critical,CA:TRUE) 2>/dev/null
        else
                openssl x509 -req -in "$name.csr" -CA "$ca.crt" -CAkey "$ca.key" -CAcreateserial -days 2 \
                        -out "$name.crt" -extfile <(echo "subjectAltName=$3") 2>/dev/null
        fi
}

# Uses its own address in the loopback network, so that the port is the usual one.
start_tls_redis() { # OPTION...
        address=127.$((RANDOM % 254 + 1)).$((RANDOM % 254 + 1)).1
        make_cert ca ca
        make_cert server ca "IP:$address"
        make_cert client ca DNS:client
        launch redis redis-server --bind "$address" --port 0 --tls-port 6379 --tls-cert-file "$folder/server.crt" \
                --tls-key-file "$folder/server.key" --tls-ca-cert-file "$folder/ca.crt" \
                --unixsocket "$folder/redis.sock" --dir "$folder" --save '' "$@"
        redis_pid=$!
        wait_until 10 redis_answers
        redis_url=rediss://$address
}

# Starts a Sentinel that knows this Redis as `mymaster`.
start_tls_sentinel() {
        mkdir sentinel
        printf '%s\n' "bind $address" 'port 0' 'tls-port 26379' "tls-cert-file $folder/server.crt" \
                "tls-key-file $folder/server.key" "tls-ca-cert-file $folder/ca.crt" 'tls-replication yes' \
                "dir $folder/sentinel" "sentinel monitor mymaster $address 6379 1" >sentinel/sentinel.conf
        launch sentinel redis-server "$folder/sentinel/sentinel.conf" --sentinel
}
