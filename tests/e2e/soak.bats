#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The soak runs for hours: `make soak HOURS=N`. Here its verdict on slopes is tested, on made series.
# seconds: 5
# promises: none
load helpers

@test "soak: a leak of 100 KB an hour in noise is seen; noise, one step, a warm-up and waves of load are not" {
        run -0 ruby "$top/tests/soak/check-slope"
        [ -z "$output" ]
}
