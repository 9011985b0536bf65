# SPDX-License-Identifier: MIT
# Finds shortages of the machine that would fail many tests, each with a misleading reason.
# shellcheck shell=bash

# Requirements: processes, MiB in each folder, and the load for each processor that time limits allow for. The
# environment overrides them.
: "${NEEDS_PROCESSES:=500}" "${NEEDS_MIB:=512}" "${NEEDS_LOAD_BELOW:=12}"

# Prints how many more processes the control group and its ancestors allow; nothing without a limit.
places_in_groups() { # PROC GROUPS
        local path max current
        # Version 2, and the pids controller of version 1.
        sed -n 's/^0::\(.*\)/\1/p; s/^[0-9]*:\([^:]*,\)*pids\(,[^:]*\)*:\(.*\)/\/pids\3/p' "$1/self/cgroup" | while read -r path; do
                while [ -n "$path" ]; do
                        if max=$(cat "$2${path%/}/pids.max" 2>/dev/null) && [ "$max" != max ] &&
                                current=$(cat "$2${path%/}/pids.current" 2>/dev/null); then
                                echo $((max - current))
                        fi
                        path=${path%/*}
                done
        done
}

# Prints how many more processes can be started: the minimum over all limits.
places() { # PROC GROUPS
        local threads limit
        # The kernel counts threads in "RUNNING/ALL".
        threads=$(cut -d' ' -f4 "$1/loadavg" | cut -d/ -f2)
        {
                places_in_groups "$1" "$2"
                for limit in pid_max threads-max; do
                        [ ! -e "$1/sys/kernel/$limit" ] || echo $(($(cat "$1/sys/kernel/$limit") - threads))
                done
                # Root has no such limit.
                if [ "$EUID" != 0 ] && [ "$(ulimit -u)" != unlimited ]; then
                        echo $(($(ulimit -u) - $(ps -u "$EUID" -L -o lwp= | wc -l)))
                fi
        } | sort -n | head -n 1
}

# Prints a sentence for each shortage.
shortages() { # PROC GROUPS FOLDER...
        local proc=$1 groups=$2 left folder
        shift 2
        left=$(places "$proc" "$groups")
        if [ "${left:-$NEEDS_PROCESSES}" -lt "$NEEDS_PROCESSES" ]; then
                echo "only $left more processes can be started, and $NEEDS_PROCESSES are needed: end others, or raise the limit (pids.max, ulimit -u)"
        fi
        for folder; do
                left=$(df -Pm "$folder" | awk 'NR == 2 { print $4 }')
                [ "${left:-$NEEDS_MIB}" -ge "$NEEDS_MIB" ] ||
                        echo "only $left MiB are free in '$folder', and $NEEDS_MIB are needed: remove what is no longer used"
                left=$(df -Pi "$folder" | awk 'NR == 2 && $2 > 0 { print $4 }')
                [ "${left:-10000}" -ge 10000 ] ||
                        echo "only $left more files can be made in '$folder', and 10000 are needed: remove what is no longer used"
        done
}

# Prints a sentence for each reason why tests may be slow. Tests tolerate some slowness.
burdens() { # PROC
        local load processors
        read -r load _ <"$1/loadavg"
        processors=$(nproc)
        [ "${load%.*}" -lt $((processors * NEEDS_LOAD_BELOW)) ] ||
                echo "the load is $load with $processors processors: tests may run out of time"
}
