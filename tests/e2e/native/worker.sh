#!/bin/sh
# SPDX-License-Identifier: MIT
# A worker of the shell library; jobs.bash describes what it does.
# Usage: worker.sh FOLDER
set -eu
# shellcheck source=contrib/heartbeat/heartbeat.sh
. "$(dirname "$0")/../../../contrib/heartbeat/heartbeat.sh"
cd "$1"

fetch() {
        for name in queue/*; do
                name=${name##*/}
                mv "queue/$name" "running/$name" 2>/dev/null || continue
                return 0
        done
        return 1
}

run() {
        echo x >>"ran/$name"
        while [ -e hold ]; do
                sleep 0.1
        done
        mv "running/$name" "done/$name"
}

heartbeat_start 'shell
'
while heartbeat_take; do
        if fetch; then
                heartbeat_run run
        else
                heartbeat_run sleep 0.1
        fi
        heartbeat_done
done
heartbeat_finish
