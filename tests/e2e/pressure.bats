#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Memory pressure: simulated by a file in place of the kernel's, and reported by the kernel in a control group under
# pressure.
# long: the next release deletes what this tests
# seconds: 80
# promises: P1 P2
load helpers

# Replaces files of /proc and of control groups, for sqmgr alone. AVG10 PERCENT-LEFT
squeeze() {
        printf 'some avg10=%s avg60=1.00 avg300=0.50 total=7\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n' "$1" \
                >"$folder/memory.new"
        printf 'MemTotal: 10000000 kB\nMemFree: 10 kB\nMemAvailable: %d00000 kB\n' "$2" >"$folder/meminfo.new"
        cat "$folder/memory.new" >"$folder/memory"
        cat "$folder/meminfo.new" >"$folder/meminfo"
}

start_squeezed() {
        [ "$(id -u)" = 0 ] || skip 'not root'
        unshare --mount true 2>/dev/null || skip 'this machine lets nobody have a mount namespace'
        squeeze 0.00 50
        start_redis
        cat >"$folder/begin" <<END
set -e
mount --make-rprivate /
mount -t tmpfs none /sys/fs/cgroup
mount --bind '$folder/memory' /proc/pressure/memory
mount --bind '$folder/meminfo' /proc/meminfo
exec sqmgr -c '$folder/sqmgr.ini'
END
        launch sqmgr unshare --mount sh "$folder/begin"
        # shellcheck disable=SC2034
        sqmgr_pid=$!
}

has_event() { sqmgrctl events --json | grep -q "\"event\": *\"$1\""; }

@test "pressure: the worker with the most memory finishes its job and leaves, and is replaced once memory is available" {
        # shellcheck disable=SC2034
        sqmgr_lines=$'pressure_limit = 20%\npressure_action = quiet'
        configure <<END
command = $(stub_command)
active_process_count = 3
END
        start_squeezed
        wait_until 30 ready 3
        run sqmgrctl doctor
        [[ $output == *"pressure_limit 20%"*"/proc/pressure/memory"* ]]
        before=$(worker_pids | sort)

        squeeze 45.00 5
        wait_until 30 has_event memory-pressure
        wait_until 10 fleet_is '([.workers[] | select(.state == "active")] | length) == 2'
        wait_until 20 fleet_is '(.workers | length) == 2 and (.waits_for | startswith("waits for memory: 45% of the time"))'
        run sqmgrctl doctor
        [[ $output == *"45% of the time is spent waiting for memory"* ]]
        run sqmgrctl metrics
        [[ $output == *$'\nsqmgr_memory_pressure 1\n'* ]]
        # A restart waits; dead workers are replaced.
        sqmgrctl restart
        fleet_is '.rollout.state == "running"'
        victim=$(sqmgrctl status --json | jq -r '.fleets[0].workers[0].pid')
        kill -KILL "$victim"
        wait_until 30 fleet_is "all(.workers[]; .pid != $victim) and (.workers | length) == 2"

        squeeze 0.00 50
        wait_until 30 has_event memory-eased
        wait_until 60 fleet_is '.rollout.state == "done" and .active == 3'
        for pid in $before; do
                wait_until 30 gone "$pid"
        done
}

@test "pressure: reported by the kernel itself, in a control group that is short of memory" {
        pressed=$(sed -n 's/^[^ ]* \([^ ]*\) cgroup2 .*/\1/p' /proc/mounts | head -n 1)/sqmgr-e2e-psi-$$
        [ "$(id -u)" = 0 ] || skip 'not root'
        make_group $((256 << 20))
        if [ -e "$group/memory.max" ]; then
                pressed=$group
        else
                mkdir "$pressed" 2>/dev/null || skip 'no control group can be made here'
                echo "rmdir '$pressed'" >>"$folder/at_end"
        fi
        [ -e "$pressed/memory.pressure" ] || skip 'no control group can be watched here'
        start_redis
        # shellcheck disable=SC2034
        sqmgr_lines='pressure_limit = 2%'
        configure <<END
command = $(stub_command)
active_process_count = 1
END
        cat >"$folder/begin" <<END
echo 0 >'$group/cgroup.procs' && echo 0 >'$pressed/cgroup.procs' && exec sqmgr -c '$folder/sqmgr.ini'
END
        launch sqmgr sh "$folder/begin"
        # shellcheck disable=SC2034
        sqmgr_pid=$!
        wait_until 30 ready 1
        run sqmgrctl doctor
        [[ $output == *"below pressure_limit 2% (source: '$pressed/memory.pressure')"* ]]
        grep -q "monitoring memory pressure: $pressed/memory.pressure, notified by the kernel" "$folder/sqmgr.log"

        # Memory that is read repeatedly does not fit beside the memory that is held.
        head -c 48M /dev/zero >"$folder/large"
        cat >"$folder/press" <<'END'
import os
import sys
import threading


def read_all(file):
    while True:
        for offset in range(0, 48 << 20, 1 << 18):
            os.pread(file, 1 << 18, offset)


held = b"x" * (int(sys.argv[2]) << 20)
file = os.open(sys.argv[1], os.O_RDONLY)
os.fsync(file)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
for _ in range(8):
    threading.Thread(target=read_all, args=(os.open(sys.argv[1], os.O_RDONLY),)).start()
END
        launch press sh -c "echo 0 >'$group/cgroup.procs' && echo 0 >'$pressed/cgroup.procs' && exec python3 '$folder/press' '$folder/large' 224"
        press=$!
        wait_until 60 has_event memory-pressure
        kill "$press"
        wait_until 60 has_event memory-eased
        run -0 sqmgrctl events --json
        [[ $output != *'"crashed"'* ]]
}
