#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The libraries of contrib/heartbeat alone: their records match sqmgr-heartbeat(7), and they do what it requires of a
# worker.
# seconds: 60
# promises: P1 P5
# shellcheck disable=SC1091,SC2030,SC2031
load helpers
. "$BATS_TEST_DIRNAME/native/jobs.bash"

declare -gA pid was ran

run_worker() { # KIND [WORD...]: further words of its command
        local kind=$1
        shift
        mkdir -p "$folder/status"
        # shellcheck disable=SC2046
        SQMGR_STATUS_DIR=$folder/status launch workers $(native_command "$kind" "$folder/$kind") "$@"
        pid[$kind]=$!
}
is_in_redis() { [[ " $in_redis " == *" $1 "* ]]; } # KIND
key() { echo "sqmgr:worker:$(uname -n):${pid[$1]}"; }
record() { # KIND: a line for each field
        if is_in_redis "$1"; then
                redis hgetall "$(key "$1")" | paste -d= - -
        else
                cat "$folder/status/${pid[$1]}"
        fi 2>/dev/null
}
field() { record "$1" | sed -n "s/^$2=//p"; } # KIND NAME
field_is() { [ "$(field "$1" "$2")" = "$3" ]; } # KIND NAME VALUE
record_heartbeats() { # KIND...
        local kind
        for kind; do
                was[$kind]=$(field "$kind" beat)
        done
}
has_new_heartbeat() { # KIND: since it was recorded
        local now
        now=$(field "$1" beat)
        [ -n "$now" ] && [ "$now" != "${was[$1]}" ]
}
wait_for_heartbeats() { # SECONDS KIND...
        local kind limit=$1
        shift
        record_heartbeats "$@"
        for kind; do
                wait_until "$limit" has_new_heartbeat "$kind"
        done
}
start_of() { # PID
        local stat
        stat=$(cat "/proc/$1/stat")
        read -r -a stat <<<"${stat##*) }"
        echo "${stat[19]}"
}
catches() { # PID SIGNAL
        local mask
        mask=$(sed -n 's/^SigCgt:\t//p' "/proc/$1/status")
        (((16#$mask >> ($(kill -l "$2") - 1)) & 1))
}
threads_of() { if [ "$1" = shell ]; then echo 1; else echo "$2"; fi; } # KIND THREADS
no_record() { # KIND
        if is_in_redis "$1"; then
                [ "$(redis exists "$(key "$1")")$(redis sismember sqmgr:workers "$(uname -n):${pid[$1]}")" = 00 ]
        else
                [ ! -e "$folder/status/${pid[$1]}" ] && [ ! -e "$folder/status/.${pid[$1]}" ]
        fi
}
wait_for_exit() { # KIND: after TERM
        wait_until 10 gone "${pid[$1]}"
        wait "${pid[$1]}"
}

# A worker keeps the promises of its record.
stays_idle() { # KIND...
        local kind
        for kind; do
                wait_until 20 field_is "$kind" quiet 1
                wait_until 20 field_is "$kind" busy 0
                ran[$kind]=$(count_in "$folder/$kind/ran")
        done
        wait_for_heartbeats 3 "$@"
        wait_for_heartbeats 3 "$@"
        for kind; do
                echo "# $kind: idle?"
                field_is "$kind" busy 0
                field_is "$kind" quiet 1
                [ "$(count_in "$folder/$kind/ran")" = "${ran[$kind]}" ]
        done
}

@test "both Redis clients of Node.js are among the tested heartbeat libraries" {
        needs_modules
        is_in_redis ioredis
        is_in_redis node-redis
}

@test "each heartbeat library: its record, its signals, and exit status 0" {
        start_redis
        for kind in $in_redis $in_files; do
                job_folder "$folder/$kind"
                touch "$folder/$kind/hold"
                add_jobs "$folder/$kind" 1 6
                run_worker "$kind"
        done
        for kind in $in_redis $in_files; do
                echo "# $kind"
                n=$(threads_of "$kind" 4)
                wait_until 20 field_is "$kind" busy "$n"
                field_is "$kind" v 1
                field_is "$kind" quiet 0
                field_is "$kind" start "$(start_of "${pid[$kind]}")"
                field_is "$kind" quiet_sig TSTP
                record "$kind" | grep -qx 'resume_sig='
                field_is "$kind" stop_sig TERM
                field_is "$kind" concurrency "$n"
                [[ $(field "$kind" tag) =~ ^[a-z]+\ ?$ ]]
                beat=$(field "$kind" beat)
                [[ $beat =~ ^[0-9]+\.[0-9]+$ ]]
                [ $((EPOCHSECONDS - ${beat%.*})) -le 60 ]
                [ "$(record "$kind" | wc -l)" = 10 ]
                catches "${pid[$kind]}" TSTP
                catches "${pid[$kind]}" TERM
                if is_in_redis "$kind"; then
                        [ "$(redis sismember sqmgr:workers "$(uname -n):${pid[$kind]}")" = 1 ]
                        ttl=$(redis ttl "$(key "$kind")")
                        [ "$ttl" -gt 0 ] && [ "$ttl" -le 60 ]
                fi
        done
        # Heartbeats continue while jobs run, without a change.
        # shellcheck disable=SC2086
        wait_for_heartbeats 6 $in_redis $in_files
        for kind in $in_redis $in_files; do
                echo "# $kind"
                n=$(threads_of "$kind" 4)
                kill -TSTP "${pid[$kind]}"
                wait_until 10 field_is "$kind" quiet 1
                [ "$(field "$kind" busy)" -ge "$n" ]
                kill -TSTP "${pid[$kind]}"
                rm "$folder/$kind/hold"
        done
        # shellcheck disable=SC2086
        stays_idle $in_redis $in_files
        for kind in $in_redis $in_files; do
                echo "# $kind"
                n=$(threads_of "$kind" 4)
                [ "$(count_in "$folder/$kind/done") $(count_in "$folder/$kind/queue")" = "$n $((6 - n))" ]
                kill -TERM "${pid[$kind]}"
                # At its end Python restores the original signal handlers.
                [[ $kind == python* ]] || kill -TERM "${pid[$kind]}" 2>/dev/null || true
        done
        for kind in $in_redis $in_files; do
                echo "# $kind"
                wait_for_exit "$kind"
                no_record "$kind"
        done
        [ -z "$(ls -A "$folder/status")" ]
}

@test "each heartbeat library: under load no job begins after quiet and idle, and no job is lost or run twice" {
        start_redis
        for kind in $in_redis $in_files; do
                job_folder "$folder/$kind"
                add_jobs "$folder/$kind" 1 200
                run_worker "$kind"
        done
        for kind in $in_redis $in_files; do
                echo "# $kind"
                wait_until 30 has_in "$folder/$kind/done" 10
                # No job waits for the first record.
                wait_until 20 field_is "$kind" quiet 0
                # No reader sees half a record.
                until [ "$(field "$kind" quiet)" = 1 ]; do
                        [ "$(record "$kind" | wc -l)" = 10 ]
                        kill -TSTP "${pid[$kind]}"
                done
        done
        # shellcheck disable=SC2086
        stays_idle $in_redis $in_files
        for kind in $in_redis $in_files; do
                [ "$(count_in "$folder/$kind/running")" = 0 ]
                kill -TERM "${pid[$kind]}"
        done
        for kind in $in_redis $in_files; do
                echo "# $kind"
                wait_for_exit "$kind"
                run_worker "$kind"
        done
        for kind in $in_redis $in_files; do
                echo "# $kind"
                # One worker gets TERM without TSTP, while its jobs run; its first record must exist before.
                wait_until 30 field_is "$kind" quiet 0
                wait_until 30 has_in "$folder/$kind/done" 60
                kill -TERM "${pid[$kind]}"
                wait_for_exit "$kind"
                no_record "$kind"
                [ "$(count_in "$folder/$kind/running")" = 0 ]
                [ "$(cat "$folder/$kind"/ran/* | wc -l)" = "$(count_in "$folder/$kind/done")" ]
        done
}

@test "each heartbeat library: no job waits for a record that cannot be written; writing recovers by itself" {
        for kind in $in_redis $in_files; do
                job_folder "$folder/$kind"
                add_jobs "$folder/$kind" 1 4
                run_worker "$kind"
        done
        # At once: emptying the directory while records are written takes several tries.
        mv "$folder/status" "$folder/first"
        for kind in $in_redis $in_files; do
                echo "# $kind"
                wait_until 20 all_done "$folder/$kind" 4
        done
        mkdir "$folder/status"
        start_redis
        for kind in $in_redis $in_files; do
                echo "# $kind"
                wait_until 20 field_is "$kind" quiet 0
        done
        mv "$folder/status" "$folder/elsewhere"
        kill -STOP "$redis_pid"
        for kind in $in_redis $in_files; do
                add_jobs "$folder/$kind" 5 4
        done
        for kind in $in_redis $in_files; do
                echo "# $kind"
                wait_until 20 all_done "$folder/$kind" 8
        done
        kill -CONT "$redis_pid"
        mv "$folder/elsewhere" "$folder/status"
        # shellcheck disable=SC2086
        wait_for_heartbeats 10 $in_redis $in_files
        # Its exit does not wait either.
        kill -STOP "$redis_pid"
        mv "$folder/status" "$folder/last"
        for kind in $in_redis $in_files; do
                kill -TERM "${pid[$kind]}"
        done
        for kind in $in_redis $in_files; do
                echo "# $kind"
                wait_for_exit "$kind"
        done
        kill -CONT "$redis_pid"
}

@test "a child of fork() has the original signal handlers, and the record stays the parent's" {
        for kind in ruby python c; do
                job_folder "$folder/$kind"
                run_worker "$kind" fork
                wait_until 20 test -s "$folder/$kind/child"
                child=$(cat "$folder/$kind/child")
                alive "$child"
                kill -TERM "$child"
                wait_until 10 gone "$child"
                wait_for_heartbeats 6 "$kind"
                field_is "$kind" quiet 0
                [ ! -e "$folder/status/$child" ]
                add_jobs "$folder/$kind" 1 4
                wait_until 10 all_done "$folder/$kind" 4
                kill -TERM "${pid[$kind]}"
                wait_for_exit "$kind"
                no_record "$kind"
        done
}

@test "jobs of 16 threads are counted correctly" {
        for kind in ruby python c node; do
                job_folder "$folder/$kind"
                touch "$folder/$kind/hold"
                # shellcheck disable=SC2046
                SQMGR_STATUS_DIR=$folder/status launch workers $(native_command "$kind" "$folder/$kind" 16)
                pid[$kind]=$!
                mkdir -p "$folder/status"
                add_jobs "$folder/$kind" 1 400
        done
        for kind in ruby python c node; do
                echo "# $kind"
                wait_until 20 field_is "$kind" busy 16
                rm "$folder/$kind/hold"
                wait_until 40 all_done "$folder/$kind" 400
                kill -TSTP "${pid[$kind]}"
        done
        stays_idle ruby python c node
        for kind in ruby python c node; do
                kill -TERM "${pid[$kind]}"
                wait_for_exit "$kind"
        done
}

@test "both keys have the prefix of redis-namespace" {
        start_redis
        export NAMESPACE=app
        for kind in ruby-redis python-redis ioredis; do
                is_in_redis $kind || continue
                job_folder "$folder/$kind"
                run_worker "$kind"
                wait_until 20 redis_has "app:$(key "$kind")"
                [ "$(redis sismember app:sqmgr:workers "$(uname -n):${pid[$kind]}")" = 1 ]
                kill -TERM "${pid[$kind]}"
                wait_for_exit "$kind"
        done
        [ "$(redis dbsize)" = 0 ]
}
