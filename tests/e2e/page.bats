#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The page of sqmgr-web in a real Chromium: it shows what sqmgrctl shows, follows changes, and passes the accessibility
# checks.
# seconds: 60
# promises: none
load helpers
# shellcheck disable=SC1091
. "$BATS_TEST_DIRNAME/native/modules.bash"

start_web() { # [SOCKET]
        : "${port:=$(unused_port 127.0.0.1)}"
        launch web sqmgr-web --listen "127.0.0.1:$port" --socket "${1-$folder/sqmgr.sock}"
        web_pid=$!
        wait_until 10 web_answers
}
web_answers() { (exec 8<>"/dev/tcp/127.0.0.1/$port"); }

start_all() {
        needs_modules "$page_tests"
        command -v sqmgr-web >/dev/null || skip 'this build has no sqmgr-web'
        start_redis
        configure <<END
command = $(stub_command)
active_process_count = 3
memory_threshold = 100M

[fleet:mailers]
log = $folder/mailers.log
command = $(stub_command)
active_process_count = 1
END
        start_sqmgr
        wait_until 20 all_active
        start_web
}
all_active() { sqmgrctl status --json | jq -e '[.fleets[] | .active] == [3, 1] and all(.fleets[].workers[]; .ready)' >/dev/null; }

# The profile of the browser is removed with the test.
browse() { # COMMAND [ARGUMENT...]
        mkdir -p "$folder/home"
        HOME=$folder/home TMPDIR=$folder XDG_CONFIG_HOME='' XDG_CACHE_HOME='' NODE_PATH=$page_modules timeout -k 5 400 \
                node "$page_tests/page.js" "$1" "http://127.0.0.1:$port/" "${@:2}"
}

setup_file() { page_modules=$(modules_folder "$page_tests")/node_modules && export page_modules; }

# Prints the visible parts of a status in the form of `page.js values`, without numbers that change continuously.
shown='[.fleets[] | {name, target, active, generation,
        workers: [.workers[] | {id, state, busy: "\(.busy)/\(.concurrency)", generation, pid}] | sort_by(.id)}]'
on_page='[.fleets[] | {name, target: (.facts[0] | capture("of (?<n>[0-9]+) active").n | tonumber),
        active: (.facts[0] | capture("^(?<n>[0-9]+) of").n | tonumber),
        generation: (.facts[3] | capture("^generation (?<n>[0-9]+)").n | tonumber),
        workers: [.workers[] | {id, state, busy, generation, pid}] | sort_by(.id)}]'

agrees() { # [no-script]: the differences are in the file differences
        browse values "$@" >page.json
        sqmgrctl status --json >status.json
        diff <(jq "$shown" status.json) <(jq "$on_page" page.json) >differences
}

@test "page: shows the values of sqmgrctl status, with and without JavaScript" {
        start_all
        echo 2 >"$folder/steer/busy"
        wait_until 10 fleet_is '[.workers[].busy] == [2, 2, 2]'
        redis sadd queues '<img src=x onerror=alert(1)>' >/dev/null
        redis lpush 'queue:<img src=x onerror=alert(1)>' '{"class":"Job","args":[],"enqueued_at":1}' >/dev/null
        # Without clients, sqmgr-web queries sqmgr every 5 s.
        wait_until 20 agrees no-script || { cat differences && false; }
        wait_until 20 agrees || { cat differences && false; }
        [ "$(jq -r .headline page.json)" = 'Healthy.' ]
        [ "$(jq -r .title page.json)" = "Healthy. - sqmgr on $(uname -n)" ]
        [ "$(jq -r .sum page.json)" = '4 of 4 workers active in 2 fleets, 8 jobs running' ]
        jq -e '.events | index("mailers/1 (pid \($pid)) active")' --argjson pid \
                "$(jq '.fleets[1].workers[0].pid' status.json)" page.json
        queue_is_shown() { browse values >page.json && jq -e '.queues | index([["<img src=x onerror=alert(1)>", "1"]])' page.json; }
        wait_until 20 queue_is_shown
        [ "$(jq .images page.json)" = 0 ]
}

# The watch prints nothing more after it has failed.
has_seen() { grep -qxF "$1" seen || gone "$watcher"; }
expect_seen() { # WHAT
        wait_until 60 has_seen "$1"
        grep -qxF "$1" seen || { cat watch.log && return 1; }
}

@test "page: follows a restart, and keeps the reader's selection, focus and unfolded parts" {
        start_all
        launch watch env HOME="$folder" TMPDIR="$folder" NODE_PATH="$page_modules" node "$page_tests/page.js" watch \
                "http://127.0.0.1:$port/" "$folder" 'restart to generation 2 running' 'default/4' 'quieted (reason: restart)' \
                'generation 2, restart done' 'workers are left as they are' \
                'sqmgr does not answer.' 'Workers keep running without sqmgr.' 'No data from sqmgr-web'
        watcher=$!
        expect_seen ready
        sqmgrctl restart default --wait=drained --timeout 300s
        expect_seen 'generation 2, restart done'
        kill -KILL "$redis_pid"
        expect_seen 'workers are left as they are'
        kill -KILL "$sqmgr_pid"
        expect_seen 'Workers keep running without sqmgr.'
        kill -KILL "$web_pid"
        expect_seen 'No data from sqmgr-web'
        wait_until 60 gone "$watcher"
        [ ! -s watch.log ] || { cat watch.log && false; }
}

no_mailers() { sqmgrctl status --json | jq -e '.fleets[1].workers == []'; }

# New events legitimately shift the page.
page_shows_all() { browse values "$@" >page.json && jq -e '([.findings[] | select(startswith("notice") | not)] | length) >= 2 and (.fleets[1].workers == []) and
        (.halted | test("Reason: .+sqmgrctl .*restart default")) and .images == 0' page.json; }

@test "page: accessible, without layout shifts or foreign requests, wide and narrow, light and dark" {
        start_all
        sqmgrctl stop mailers
        echo 'pid=% tid=1 config/database.yml: no such file' >"$folder/steer/fail"
        sqmgrctl restart default
        wait_until 60 fleet_is '.rollout.state == "halted" and .starting == 0'
        wait_until 20 no_mailers
        wait_until 20 page_shows_all no-script
        wait_until 20 page_shows_all
        browse judge
}

@test "page: the graphs are drawn by the uPlot of the npm registry" {
        needs_modules "$page_tests"
        for file in dist/uPlot.iife.min.js dist/uPlot.min.css LICENSE; do
                cmp "$page_modules/uplot/$file" "$top/src/web/uplot/${file##*/}"
        done
        [ ! -e "$top/debian" ] || cmp "$page_modules/uplot/dist/uPlot.iife.js" "$top/debian/missing-sources/uPlot.iife.js"
}

mailers_drain() { sqmgrctl status --json | jq -e '.fleets[1].rollout.draining == 2'; }

# RENEW_PICTURES=1 renews the pictures: review them.
@test "page: the pictures in README and docs/monitoring.md are current" {
        local picture
        grep -qF "(contrib/pictures/page.png)" "$top/README.md"
        grep -qF "(../contrib/pictures/page-narrow.png)" "$top/docs/monitoring.md"
        for picture in page page-narrow; do
                [ "$(wc -c <"$top/contrib/pictures/$picture.png")" -lt 150000 ]
        done
        [ -n "${RENEW_PICTURES-}" ] || return 0
        start_workers 8 <<END
command = $(stub_command)
active_process_count = 8
memory_threshold = 3M

[fleet:mailers]
log = $folder/mailers.log
command = $(stub_command)
active_process_count = 2
memory_threshold = 3M
END
        # A short path that needs no -s: commands look as they do for the first sqmgr of a machine.
        ln -s sqmgr.sock socket
        start_web "$folder/socket"
        echo 2 >"$folder/steer/busy"
        wait_until 10 fleet_is '[.workers[].busy] | all(. == 2)'
        sqmgrctl restart mailers
        wait_until 60 mailers_drain
        # The graphs need a history.
        sleep 20
        browse picture "$top/contrib/pictures/page.png" 1200 light 960
        echo 0 >"$folder/steer/busy"
        echo 'pid=% tid=1 config/database.yml: no such file' >"$folder/steer/fail"
        sqmgrctl restart default
        wait_until 60 fleet_is '.rollout.state == "halted" and .starting == 0'
        # As above.
        sleep 6
        browse picture "$top/contrib/pictures/page-narrow.png" 390 dark 844
}
