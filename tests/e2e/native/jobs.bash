# SPDX-License-Identifier: MIT
# Workers of each speaker of contrib/heartbeat, with jobs that are files: who renames `queue/N` to `running/N` has it,
# adds a line to `ran/N`, waits while there is `hold`, and renames it to `done/N`. Where the record is in Redis, the
# worker and the test use REDIS_URL. One that forks has its child write its pid to `child`: by then its signals are set.
# shellcheck shell=bash disable=SC1091,SC2034

. "$(dirname "${BASH_SOURCE[0]}")/modules.bash"

in_redis='ruby-redis python-redis'
! has_modules || in_redis+=' ioredis node-redis'
in_files='ruby python node shell c'

# What to run, in words that hold no spaces.
native_command() { # KIND FOLDER [THREADS]
        case $1 in
        ruby-redis) echo "ruby $native_tests/worker.rb $2 ${3-4} redis" ;;
        ruby) echo "ruby $native_tests/worker.rb $2 ${3-4} file" ;;
        python-redis) echo "/usr/bin/python3 -B $native_tests/worker.py $2 ${3-4} redis" ;;
        python) echo "/usr/bin/python3 -B $native_tests/worker.py $2 ${3-4} file" ;;
        ioredis | node-redis) echo "env NODE_PATH=$(modules_folder)/node_modules node $native_tests/worker.js $2 ${3-4} $1" ;;
        node) echo "node $native_tests/worker.js $2 ${3-4} file" ;;
        shell) echo "/bin/sh $native_tests/worker.sh $2" ;;
        c) echo "$SQMGR_BUILD/tests/stub/native-worker $2 ${3-4}" ;;
        esac
}

job_folder() { mkdir -p "$1"/{queue,running,ran,done}; } # FOLDER
# They are named by numbers from the first one on.
add_jobs() { # FOLDER FIRST COUNT
        local i
        for ((i = $2; i < $2 + $3; i++)); do
                : >"$1/queue/$i"
        done
}
count_in() { find "$1" -mindepth 1 | wc -l; } # FOLDER
has_in() { [ "$(count_in "$1")" -ge "$2" ]; } # FOLDER COUNT
# All of them done, each once.
all_done() { # FOLDER COUNT
        [ "$(count_in "$1/done")" = "$2" ] && [ "$(count_in "$1/queue")$(count_in "$1/running")" = 00 ] &&
                [ "$(cat "$1"/ran/* | wc -l)" = "$2" ]
}
