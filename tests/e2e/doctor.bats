#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# `sqmgrctl doctor` with a Redis that is configured well, configured badly, or refuses to
# answer.
# seconds: 30
# promises: none
load helpers

has_finding() { sqmgrctl doctor --json | jq -e "any(.findings[]; $1)"; }

has_problem() { sqmgrctl status --json | jq -e "any(.problems[]; $1)"; }
has_metric() { sqmgrctl metrics | grep -qxF "$1"; }

start_fleet() { # LINE...
        start_redis
        printf '%s\n' "$@" | configure
        start_sqmgr
        wait_until 30 fleet_is '.active == 1'
}

@test "doctor: a correct setup has no problem, exit 0" {
        start_fleet "command = $(sidekiq_command)"
        run -0 sqmgrctl doctor
        [[ $output == *"ok       Redis unix://$folder/redis.sock: no eviction (maxmemory-policy noeviction)"* ]]
        [[ $output == *'persistence by append-only file (appendonly)'* ]]
        [[ $output != *problem* ]]
        sqmgrctl doctor --json | jq -e 'all(.findings[]; (.level == "ok") == (.remedy == null))'
        [ "$(id -u)" != 0 ] || has_finding '.level == "warning" and (.text | contains("run as root"))'
}

@test "doctor: a start that would fail is a problem while the workers still run" {
        touch env
        start_fleet "command = $(stub_command)" "environment_file = $folder/env"
        chmod 666 env
        run -1 sqmgrctl doctor
        [[ $output == *"problem  fleet 'default': workers cannot start: "*"environment_file '$folder/env': writable by others (mode 0666); run 'chmod go-w $folder/env'"* ]]
        rm env
        run -1 sqmgrctl doctor
        [[ $output == *"problem  fleet 'default': workers cannot start: "*"environment_file '$folder/env': cannot open: "* ]]
        fleet_is '.active == 1'
}

@test "doctor: a Redis that evicts, does not save, or is shared with a cache is a problem with a remedy" {
        start_fleet "command = $(stub_command)"
        redis config set appendonly no
        redis config set save ''
        run -1 sqmgrctl doctor
        [[ $output == *'problem  Redis '*'no persistence'*'. Set appendonly to yes'* ]]
        redis config set appendonly yes
        redis config set maxmemory-policy volatile-ttl
        run -0 sqmgrctl doctor
        [[ $output == *'warning  Redis '*'volatile-ttl'* ]]
        # A cache evicts its own keys; keys of jobs have no expiry.
        redis set cached "$(printf '%01000d' 0)" ex 10000
        redis config set maxmemory 1
        redis set another x >/dev/null || true
        redis config set maxmemory 0
        run -1 sqmgrctl doctor
        [[ $output == *'problem  Redis '*' keys evicted since Redis started'*'. Give the jobs a Redis of their own'* ]]
}

@test "doctor: a refused query to Redis is reported, a Redis that is down is a problem" {
        start_redis
        redis acl setuser jobs on '>secret' '~*' '+@all' -config
        redis_lines=$'username = jobs\npassword = secret' configure <<<"command = $(stub_command)"
        start_sqmgr
        wait_until 20 redis_state_is connected
        redis config set appendonly no
        run -0 sqmgrctl doctor
        [[ $output == *'persistence is unknown (reason: Redis refuses CONFIG):'*'NOPERM'* ]]
        redis acl setuser jobs -info
        run -0 sqmgrctl doctor
        [[ $output == *'settings are unknown (reason: Redis refuses INFO):'*'NOPERM'* ]]
        kill -STOP "$redis_pid"
        run -1 sqmgrctl doctor
        kill -KILL "$redis_pid"
        wait_until 10 redis_state_is down
        run -1 sqmgrctl doctor
        [ "$(grep -c '^problem  Redis ' <<<"$output")" = 1 ]
        wait_until 10 has_problem '.code == "redis-down" and .severity == "error" and .since > 0'
        [[ $output != *secret* ]]
}

@test "doctor finds a worker in its own pid namespace, and a timeout that is cut short" {
        needs_namespace --pid
        start_redis
        configure <<<"command = ${unshare[*]} --pid --fork --kill-child sleep 1000"
        start_sqmgr
        wait_until 20 has_finding '.about == "default/1" and .level == "problem" and (.text | contains("PID namespace"))'
        ln -s "$stub" "$folder/sidekiq"
        printf '%s\n' '#!/bin/sh' "$folder/sidekiq -u $folder/redis.sock -d $folder/steer -t 58 &" 'wait' >"$folder/wrapper"
        chmod +x "$folder/wrapper"
        touch "$folder/steer/hang"
        printf '%s\n' "command = $folder/wrapper" | configure
        sqmgrctl reload
        sqmgrctl restart
        wait_until 20 has_finding '.level == "problem" and (.text | contains("up to 58s (-t)"))'
        [ "$(sqmgrctl events --json | jq -rs '[.[] | select(.event == "stop-timeout-short")] | length')" = 1 ]
        [[ $(sqmgrctl events) == *'Set stop_timeout to 63s or more'* ]]
}

@test "doctor finds jobs in a queue that no worker serves, if counts follow queues" {
        start_workers 1 <<END
command = $(stub_command)
active_process_max = 2
END
        waits='.text | test("^1 job waiting in queue .mailers., oldest [23]min.*, but no worker serves the queue")'
        redis sadd queues mailers default
        for queue in mailers default; do
                redis lpush "queue:$queue" "{\"class\":\"Mail\",\"enqueued_at\":$(($(date +%s) - 120))}"
        done
        wait_until 30 has_finding "$waits"
        not has_finding '.text | contains("no worker serves the queue") and contains("default")'
        redis del queue:mailers
        not has_finding "$waits"
}

@test "a config file that the next start would refuse is a problem until it is fixed" {
        start_fleet "command = $(stub_command)"
        cp sqmgr.ini good.ini
        not has_problem '.code == "config-refused"'
        echo 'nonsense = 1' >>sqmgr.ini
        wait_until 20 has_problem '.code == "config-refused" and .severity == "error" and .unready == false'
        run -1 sqmgrctl doctor
        [[ $output == *'problem  config file: '* ]]
        has_metric 'sqmgr_problem{code="config-refused",severity="error"} 1'
        run ! sqmgrctl reload
        cp good.ini sqmgr.ini
        wait_until 20 not has_problem '.code == "config-refused"'
        # The command that the problem names shows the error.
        echo 'nonsense = 1' >>sqmgr.ini
        wait_until 20 has_problem '.code == "config-refused"'
        run ! sqmgrctl reload
        cp good.ini sqmgr.ini
        sqmgrctl reload
        not has_problem '.code == "config-refused"'
}

@test "a memory threshold below the memory of a booted worker is a problem of its fleet" {
        start_fleet "command = $(stub_command)" 'memory_threshold = 1M'
        wait_until 120 has_problem '.code == "memory-churn" and .fleet == "default" and .worker == null and .since > 0'
}
