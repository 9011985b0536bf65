#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Data of a server that makes sqmgr crash costs a restart of sqmgr each minute at most: no job, no signal, and nothing
# for the fleets of other servers. The decoder of the framework `probe` has the defect (tests/frameworks/probe).
# promises: P4 P5
# seconds: 100
load helpers
PATH=$SQMGR_BUILD/tests/frameworks:$PATH

other() { redis-cli -s "$folder/other.sock" "$@"; }
other_answers() { [ "$(other ping 2>/dev/null)" = PONG ]; }
worker() { echo "ruby --disable-gems $top/tests/frameworks/probe/worker.rb $folder/$1.sock"; } # SERVER
status_is() { sqmgrctl status --json | jq -e "$1" >/dev/null; } # CONDITION
fleet_of() { sqmgrctl status --json | jq -r ".fleets[] | select(.name == \"$1\") | $2"; } # FLEET FILTER
ended() { [ "$(wc -l <"$folder/ends")" -ge "$1" ]; } # TIMES
# The Redis of the fleet `default` is named, and no other.
is_named() { status_is "[.problems[] | select(.code == \"server-crashes-sqmgr\") | .summary] | length == 1 and (.[0] | startswith(\"Redis unix://$folder/redis.sock: \"))"; }

@test "a server whose data ends sqmgr twice is read once a minute; fleets of other servers continue; reload ends it" {
        start_redis
        launch other redis-server --port 0 --unixsocket "$folder/other.sock" --dir "$folder" --save ''
        wait_until 10 other_answers
        configure <<END
framework = probe
command = $(worker redis)
active_process_count = 2

[fleet:other]
framework = probe
redis_url = unix://$folder/other.sock
command = $(worker other)
log = $folder/workers.log
END
        # Like the unit of systemd: sqmgr is started again.
        cat >supervise <<END
ulimit -c 0
until sqmgr -c "$folder/sqmgr.ini"; do
        date +%s >>"$folder/ends"
        sleep 0.2
done
END
        unset REDIS_URL
        touch ends
        launch sqmgr bash supervise
        wait_until 60 status_is '[.fleets[].active] == [2, 1]'
        workers=$(fleet_of default '.workers[].pid')
        first=$(fleet_of other '.workers[].pid')
        record "$workers" "$first"
        redis rpush probe:jobs '1 600' '2 1'
        other rpush probe:jobs '1 1'
        touch redis.sock.crash
        wait_until 30 ended 2
        wait_until 20 is_named
        [ "$(grep -c 'the last sqmgr ended while it read data of this server' sqmgr.log)" -ge 2 ]

        # An order for the fleet waits; that for the other one is carried out.
        wait_until 20 sqmgrctl restart default
        run -0 sqmgrctl restart other --wait=drained --timeout 200s
        gone "$first"
        [ "$(other hget probe:told "$first")" = 1 ]
        [ "$(other hget probe:done 1)" = 1 ]

        # The next reading ends sqmgr again, a minute later.
        wait_until 90 ended 3
        mapfile -t ends <ends
        [ $((ends[2] - ends[1])) -ge 58 ]
        wait_until 20 is_named
        rm redis.sock.crash
        wait_until 20 status_is '.fleets[1].active == 1'
        victim=$(fleet_of other '.workers[].pid')
        kill -KILL "$victim"
        wait_until 30 status_is ".fleets[1] | .active == 1 and .workers[0].pid != $victim"
        is_named
        alive "$workers"
        [ "$(redis hlen probe:told)" = 0 ]
        [ "$(wc -l <ends)" = 3 ]

        run -0 sqmgrctl reload
        wait_until 60 status_is '.fleets[0].rollout.state == "done" and ([.redis[].state] == ["connected", "connected"])'
        status_is '[.problems[] | select(.code == "server-crashes-sqmgr")] == []'
        # The worker whose job runs is quieted once, and drains; the job is not cut off.
        [ "$(redis hvals probe:told | sort -u)" = 1 ]
        [ "$(redis hget probe:started 1)" = 1 ]
        [ -n "$(fleet_of default '.workers[] | select(.busy > 0) | .pid')" ]
        [ "$(redis hget probe:done 2)" = 1 ]
        [ "$(wc -l <ends)" = 3 ]
}
