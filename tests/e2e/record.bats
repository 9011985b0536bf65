#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The flight recorder: real passes are recorded, over a restart, kill -9 and a reload, and decided again.
# seconds: 25
# long: the next release deletes what this tests
# promises: none
load helpers

replays() { sqmgr-replay "$folder/state.record" >"$folder/replayed"; }

@test "a restart, kill -9 of sqmgr and reloads are recorded, and decided again the same" {
        fleet_lines='memory_threshold = 1G' start_fleet 3
        wait_until 20 ready 3
        # Without the setting there is no file.
        [ ! -e "$folder/state.record" ]
        sed -i 's/^\[sqmgr\]$/&\nrecord = 1M/' "$folder/sqmgr.ini"
        sqmgrctl reload
        wait_until 20 test -s "$folder/state.record"
        [ "$(stat -c '%a %u %s' "$folder/state.record")" = "600 $(id -u) 1048576" ]
        sqmgrctl restart --wait
        wait_until 20 ready 3
        record "$(worker_pids)"
        kill_sqmgr
        replays
        start_sqmgr
        wait_until 20 ready 3
        wait_ticks 4
        replays
        grep -q 'all decisions are the same' "$folder/replayed"
        # The restart started three workers, and quieted and stopped three.
        sqmgr-replay --verbose "$folder/state.record" >"$folder/verbose"
        [ "$(grep -c 'recorded default/.*: start (reason: restart)' "$folder/verbose")" = 3 ]
        [ "$(grep -c 'recorded default/.*: quiet (reason: restart)' "$folder/verbose")" = 3 ]
        # A threshold that all workers exceed would have replaced them.
        sqmgr-replay --set memory_threshold=1M "$folder/state.record" >"$folder/changed"
        grep -q 'only replayed: default/.*: start (reason: memory)' "$folder/changed"
        run -2 sqmgr-replay --set command=/bin/true "$folder/state.record"
        [[ $output == *"'command' is no setting that a record has"* ]]
        run -2 sqmgr-replay "$folder/sqmgr.ini"
        run -2 sqmgr-replay
        # No file is written any more once the setting is gone.
        sed -i '/^record = /d' "$folder/sqmgr.ini"
        sqmgrctl reload
        cp "$folder/state.record" "$folder/kept"
        wait_ticks 4
        cmp "$folder/kept" "$folder/state.record"
}
