#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# contrib/examples/async-task: Sidekiq and PostgreSQL through restarts and workers that are killed with their jobs.
# long: it plays an example; other files test what the example uses
# seconds: 40
# promises: none
# shellcheck disable=SC1091,SC2034
load helpers
. "$BATS_TEST_DIRNAME/../../contrib/examples/shared.bash"

say() { echo "# $*" >&3; }

@test "async-task: every job ends once, however it is requeued, and none goes backward" {
        # Kills 24 workers, and runs more than 10,000 jobs.
        [ -z "${SQMGR_LONG-}" ] || rounds=8 letters=250 rows=500000
        start_example async-task
        play
}
