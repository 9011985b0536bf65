# SPDX-License-Identifier: MIT
# Workers of each library of contrib/heartbeat. Jobs are files: the worker that renames `queue/N` to `running/N` has the
# job, adds a line to `ran/N`, waits while `hold` exists, and renames it to `done/N`. If the record is in Redis, worker
# and test use REDIS_URL. In a worker that forks, the child writes its pid to `child` once its signals are set.
# shellcheck shell=bash disable=SC1091,SC2034

. "$(dirname "${BASH_SOURCE[0]}")/modules.bash"

in_redis='ruby-redis python-redis'
! has_modules || in_redis+=' ioredis node-redis'
in_files='ruby python node shell c'

# Prints the command, as words without spaces.
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
# Jobs are named by numbers, beginning with FIRST.
add_jobs() { # FOLDER FIRST COUNT
        local i
        for ((i = $2; i < $2 + $3; i++)); do
                : >"$1/queue/$i"
        done
}
count_in() { find "$1" -mindepth 1 | wc -l; } # FOLDER
has_in() { [ "$(count_in "$1")" -ge "$2" ]; } # FOLDER COUNT
# True if all are done, each once.
all_done() { # FOLDER COUNT
        [ "$(count_in "$1/done")" = "$2" ] && [ "$(count_in "$1/queue")$(count_in "$1/running")" = 00 ] &&
                [ "$(cat "$1"/ran/* | wc -l)" = "$2" ]
}
