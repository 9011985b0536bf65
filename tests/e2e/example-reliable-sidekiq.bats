#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# contrib/examples/reliable-sidekiq: what its README promises, while a worker is killed, the master dies, Redis is full,
# the client dies, and a deployment goes on. SQMGR_LONG=1 plays six such days.
# seconds: 60
# promises: P1 P5
load helpers
# shellcheck source=contrib/examples/shared.bash
. "$top/contrib/examples/shared.bash"

say() { echo "# $*" >&3; }

@test "reliable sidekiq: through a day of trouble every job is done or dead, in order, and somebody is told" {
        start_example reliable-sidekiq
        day
        # The dead of the ledger are those that Sidekiq shows.
        [ "$(dead_in_redis)" = "$(awk '$2 == "dead" { print $3 }' ledger | sort -u)" ]
        # The troubles did happen.
        [ "$(grep -c ': it is put back' sqmgr.log)" = "$rounds" ]
        [ "$(grep -c "fleet 'strict': Redis failed over from" sqmgr.log)" = "$rounds" ]
        grep -q ' refused ' ledger
        grep -q ' kept ' ledger
        # Nobody was cut off but by kill -9.
        [ "$(sqmgrctl events --json | jq -s '[.[] | select(.event | IN("killed", "drain-cut", "hung"))] | length')" = 0 ]
}
