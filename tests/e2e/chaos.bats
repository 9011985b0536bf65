#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Chaos: kills and freezes workers, templates, Redis and sqmgr, damages files, exhausts disk and descriptors, and breaks
# releases at random under load. The ledger must be balanced at the end. `make chaos MINUTES=N SEED=S` is the long form;
# the seed repeats the faults, but not the timing of the machine.
# seconds: 150
# promises: P1 P3 P4 P5 P8 P9
load helpers

@test "kill -9, SIGSTOP, restarts, reloads at random: no job is lost, cut off or run twice except by the test's own kills" {
        set -o pipefail
        seconds=$((${CHAOS_MINUTES:-0} * 60)) teller=3
        seed=$((SRANDOM % 1000000))
        # An ordinary run has one seed, which causes 16 of the 27 kinds of faults.
        [ "$seconds" != 0 ] || seconds=80 teller=1 seed=2966
        seed=${CHAOS_SEED:-$seed}
        # If a mount namespace can be created, the state has its own small disk, which is filled at times: 4M for the
        # record, and 80k.
        mkdir disk
        with_disk=("${unshare[@]}" --mount sh -c "mount -t tmpfs -o size=4176k,mode=755 none $folder/disk && exec ${plain[*]} \"\$@\"" sh)
        "${unshare[@]}" --mount true 2>/dev/null || with_disk=()
        "${with_disk[@]}" ruby "$top/tests/chaos/chaos.rb" "$folder" "$top" "$stub" "$seconds" "$seed" 9>&- |
                tee story 9>&- >&$teller || { tail -n 1000 sqmgr.log && false; }
        [ $teller = 3 ] || tail -n 3 story >&3
}
